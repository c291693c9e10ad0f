"""Say how long one load from memory took, in a chapter whose runs load cache lines before each reading of the clock."""

from __future__ import annotations

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_ns, nice_number

LOADS = 4
"""The number of loads in each value (``model.spec.MemoryUse``)."""
_UNSURE = 0.05
"""The least share of the shorter median that half a step of the clock must be, so that the step is told."""
_MEMORIES = ("far", "near")


def told_of_loads(walk: ChapterWalk) -> list[str]:
    """Return sentences on the loads of a chapter's two runs: how much longer a load from far memory took than one from
    near memory, and what a neighbour costs, if it was measured. Return [] for runs without such loads, and on an
    emulated machine."""
    both = walk.runs.pair(walk.progress.runs)
    if walk.host.rehearsed or walk.runs.emulated or both is None or tuple(run.memory for run in both) != _MEMORIES:
        return []
    return [*filter(None, (one_load(*both), _cost_of_neighbour(walk, both[0])))]


def one_load(far: Run, near: Run) -> str:
    """Return how much longer one load of the run ``far`` took than one of ``near``, with the division, and how exact
    this is. Return "" if a median is not known, or if it is not longer."""
    long_ns, short_ns = far.percentile("50"), near.percentile("50")
    if long_ns is None or short_ns is None or long_ns <= short_ns:
        return ""
    each = nice_number((long_ns - short_ns) / LOADS)
    told = f"One load from far memory takes ({long_ns:,} - {short_ns:,}) / {LOADS} = {each} ns longer than a near one."
    step_ns = max(far.clock.resolution_ns, near.clock.resolution_ns)
    half = step_ns / 2
    if half < _UNSURE * short_ns or half >= short_ns:
        return told
    (low, high), (least, most) = ((value - half, value + half) for value in (short_ns, long_ns))
    factors = f"{least / high:.2g} to {most / low:.2g}"
    return (
        f"{told} The clock counts in steps of {step_ns} ns: the near median is {low:g}–{high:g} ns, so the factor of "
        f"the two medians is {factors}."
    )


def _cost_of_neighbour(walk: ChapterWalk, far: Run) -> str:
    """Return p50 and p99 of the run with far memory beside the neighbour and without it; "" if one run is missing."""
    others = walk.runs.pair(walk.progress.other_runs)
    if others is None:
        return ""
    beside, alone = (far, others[0]) if walk.noise.on else (others[0], far)
    parts = []
    for name in ("50", "99"):
        with_ns, without_ns = beside.percentile(name), alone.percentile(name)
        if with_ns is None or without_ns is None:
            return ""
        parts.append(f"p{name} is {nice_ns(with_ns)} with the neighbour, {nice_ns(without_ns)} without it")
    return f"Far memory: {'; '.join(parts)}."
