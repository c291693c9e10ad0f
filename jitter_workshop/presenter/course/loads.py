"""Say how long one load from memory took, in a chapter whose runs load cache lines before each reading of the clock."""

from __future__ import annotations

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.comparing import other_changed_settings
from jitter_workshop.model.run import Run
from jitter_workshop.stats.scale import nice_number

LOADS = 4
"""The number of loads in each value (``model.spec.MemoryUse``)."""
_UNSURE = 0.05
"""The least share of the shorter median that half a step of the clock must be, so that the step is told."""
LEAST_COST = 0.08
"""The least share by which far loads must be longer beside the neighbour, so that a cost is told: three equal runs on a
guest differed by up to 6 %."""
_MEMORIES = ("far", "near")


def told_of_loads(walk: ChapterWalk) -> list[str]:
    """Return sentences on the loads of a chapter's two runs: how much longer a load from far memory took than one from
    near memory, and what a neighbour costs, if it was measured. Return [] for runs without such loads, and on an
    emulated machine."""
    both = walk.runs.pair(walk.progress.runs)
    if walk.host.rehearsed or walk.runs.emulated or both is None or tuple(run.memory for run in both) != _MEMORIES:
        return []
    return [*filter(None, (one_load(*both), _told_cost(walk, both[0])))]


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


def _told_cost(walk: ChapterWalk, far: Run) -> str:
    """Return what the neighbour costs, or that it was not measured. Return "" if the chapter has no control run, and
    while it shows the runs without the neighbour, if the run with far memory was not made both ways."""
    company, other = walk.chapter.company, walk.runs.other_run("measure")
    if other is None and company is not None and company.control and walk.noise.on:
        return "The neighbour's cost was not measured. Repeat the step 'again': a run without the neighbour follows it."
    if other is None or other.memory != far.memory:
        return ""
    if changed := other_changed_settings(walk.chapter, *sorted((far, other), key=lambda run: run.started_at)):
        return f"The neighbour's cost is not told. {changed}"
    return cost_of_neighbour(*((far, other) if walk.noise.on else (other, far)))


def cost_of_neighbour(beside: Run, alone: Run) -> str:
    """Return how much longer one far load takes beside the neighbour than without it, by the medians of two runs.
    Return that it cannot be told if it is not at least ``LEAST_COST`` longer, and "" if a median is not known."""
    with_ns, without_ns = beside.percentile("50"), alone.percentile("50")
    if with_ns is None or not without_ns:
        return ""
    medians = f"p50 {without_ns:,} → {with_ns:,} ns"
    share = (with_ns - without_ns) / without_ns
    if share < LEAST_COST:
        return f"The neighbour's cost is too small to tell: equal runs can differ by as much ({medians})."
    each = nice_number((with_ns - without_ns) / LOADS)
    return f"The neighbour: a far load takes {each} ns more beside it ({medians}, {share:.0%})."
