"""Compute the length of a run for a wanted percentile, and the percentile that a run of a given length reaches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.measuring.request import LONGEST_S, MeasureRequest, blocks, interval_ns, pacing
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.spec import KINDS, clock_seconds
from jitter_workshop.model.text import ID, WORD, clean
from jitter_workshop.model.verdict import Budget
from jitter_workshop.stats.sample_size import budget, budget_from
from jitter_workshop.stats.scale import nice_duration, nice_ns

TOO_LONG = "a run lasts at most a day"
_RARE = 99.0
_SPARE = 1.05
"""The planned length of a run is the computed length times this factor: messages start a little late, and lead-ins are
left out."""
_SHORTEST_S = 1.0
_LONG_S = 40.0


@dataclass(frozen=True, slots=True)
class Outlook:
    """Hold the expected figures of a run.

    - ``seconds``: the time that the run measures.
    - ``clock_s``: the time from the run's start to its end, with the pauses between blocks.
    - ``messages``: the approximate number of messages; None if it is not known.
    - ``solid``: the highest percentile with ten messages beyond it.
    - ``distinct``: the highest percentile with ten distinct stalls beyond it; None without an earlier run of the same
      kind.
    - ``like``: the name of this earlier run, or None.
    - ``noisy``: True if a noise runs during the run.
    - ``usual_pauses``: True if the length of the pauses between blocks is assumed, because no earlier run on this host
      shows this length.
    - ``settle_s``: seconds at the start that are not recorded.
    """

    workload: str
    seconds: float
    clock_s: float
    messages: int | None
    solid: str | None
    distinct: str | None
    like: str | None
    noisy: bool = False
    usual_pauses: bool = False
    settle_s: float = 0.0


def outlook(request: MeasureRequest, runs: Sequence[Run]) -> Outlook:
    """Return the expected figures of a checked request, computed from earlier ``runs``. Raise the errors of
    ``blocks``."""
    before = like(request, runs)
    cut = blocks(request)
    rate = _per_second(request, before)
    seconds = cut.count * cut.block_ns / 1e9
    messages = cut.messages
    if messages is not None:
        seconds = messages / rate if rate else seconds
    elif rate is not None:
        messages = int(seconds * rate)
    solid = distinct = None
    if messages is not None:
        solid = _furthest(messages, [(p, budget(p, 1.0)) for p in PERCENTILES])
        if before is not None:
            distinct = _furthest(messages, [(p, _of(p, 1.0, before)) for p in PERCENTILES])
    # Without a run alike, the pauses are those of the newest run: they depend on how busy the host is.
    between_s = _between_blocks(before or next((run for run in reversed(runs) if run.complete), None))
    clock_s = request.settle_s + clock_seconds(seconds, cut.count, traced=request.evidence, between_s=between_s)
    known, noisy, usual = _name(before) if before else None, bool(request.noise), between_s is None
    return Outlook(request.workload, seconds, clock_s, messages, solid, distinct, known, noisy, usual, request.settle_s)


def run_length_sentences(found: Outlook) -> str:
    """Return the sentences on a run's length that are shown before the run. They give its measured time, its messages,
    the percentile that the messages reach, and the time from start to end."""
    return f"{_reached(found)} {_by_the_clock(found)}"


def _by_the_clock(found: Outlook) -> str:
    busy = ", or longer where this host is busy" if found.usual_pauses else ""
    said = f"With its start and pauses the run takes about {_takes(max(round(found.clock_s), 1))}{busy}."
    if found.settle_s:
        said += (
            f" Its first {_takes(found.settle_s)} are not measured: the restored setting takes effect only after this "
            "time."
        )
    return said


def _reached(found: Outlook) -> str:
    """Return a sentence on a run's measured time, its messages, and the percentile that the messages reach."""
    what = KINDS[found.workload].makes
    if found.messages is None:
        return f"{_takes(found.seconds)}; the first run shows how many {what} this makes."
    # Without a run alike beside the same noise the pace is what is asked for: threads that lose their CPU make less.
    about = "about" if found.like is not None or not found.noisy else "at most"
    said = f"{_takes(found.seconds)}, {about} {_two_digits(found.messages):,} {what}: "
    if found.distinct is not None and found.distinct != found.solid:
        # Ten late messages can come from one stall: what the run is about is the stalls.
        said += f"enough to know p{found.distinct}, if stalls come as often as in {found.like}"
        return f"{said}; the values up to p{found.solid} rest on few stalls." if found.solid else f"{said}."
    said += f"enough to know p{found.solid}" if found.solid else "too few for any percentile"
    return f"{said}."


def _two_digits(count: int) -> int:
    """Return a count rounded to two significant digits, because an outlook is not more exact than two digits."""
    return round(count, 2 - len(str(count)))


def chapter_length_sentences(request: MeasureRequest, runs: Sequence[Run]) -> str:
    """Return the sentences of :func:`run_length_sentences` for a chapter's run. Return "" if the request has an error,
    which the run itself reports."""
    try:
        return run_length_sentences(outlook(request, runs))
    except UsageError:
        return ""


def until(request: MeasureRequest, percentile: str, runs: Sequence[Run]) -> tuple[MeasureRequest, str]:
    """Return the request with the duration that a percentile needs, and a line with this duration. In a run of this
    duration, ten events are expected beyond the percentile on this host. Raise UsageError if the percentile is unknown,
    or if the request already gives a length. Raise UsageError if the workload's rate is not known yet, or if the run
    would take more than a day."""
    wanted = percentile.removeprefix("p").removesuffix("%").strip()
    if wanted not in PERCENTILES:
        raise UsageError(
            f"--for-percentile cannot be {clean(percentile, WORD)}", f"choose one of {', '.join(PERCENTILES)}"
        )
    if request.messages is not None or request.duration_s is not None:
        raise UsageError("--for-percentile sets the duration itself", "leave out --messages and --duration")
    before = like(request, runs)
    rate = _per_second(request, before)
    what = KINDS[request.workload].makes
    if rate is None:
        raise UsageError(
            f"the rate of {what} is not known before a first run of {request.workload}",
            "measure once without --for-percentile",
        )
    need = _of(wanted, rate, before)
    seconds = max(need.seconds * _SPARE, _SHORTEST_S)
    said = f"p{wanted} needs {need.messages:,} {what}, which take {_takes(seconds)}"
    if seconds > LONGEST_S:
        raise UsageError(f"{said}, but {TOO_LONG}", "choose a lower percentile or a shorter interval")
    preset = "standard" if seconds > _LONG_S and request.preset == "quick" else request.preset
    longer = dataclasses.replace(request, duration_s=seconds, preset=preset)
    why = (
        f"ten stalls like those of {_name(before)} come in this time"
        if need.stalls_seen and before
        else f"ten of these {what} lie beyond the percentile"
    )
    return longer, f"{said}: {why}. {_by_the_clock(outlook(longer, runs))}"


def like(request: MeasureRequest, runs: Iterable[Run]) -> Run | None:
    """Return the newest complete run of the same kind as ``request``; None if there is none. Runs of one kind have the
    same workload, pace, duty, memory, lock, noise and kind of placement."""
    paced = interval_ns(request) if KINDS[request.workload].paced else None
    for run in reversed(list(runs)):
        if (
            run.complete
            and (run.workload, run.pacing, run.duty) == (request.workload, pacing(request), request.duty)
            and (paced is None or run.interval_ns == paced)
            and (request.workload != "spin" or run.duty == 100 or run.pause in (None, request.pause))
            and (run.memory or "none", run.lock or "none") == (request.memory, request.lock)
            and (run.noise, run.placement.mode == "none") == (request.noise, request.placement == "none")
        ):
            return run
    return None


def _between_blocks(before: Run | None) -> float | None:
    """Return the mean pause in seconds between two blocks of the run ``before``. The pause includes the lead-in of the
    second block. Return None if the run has fewer than two blocks, or if there is no run."""
    if before is None or len(before.blocks) < 2:
        return None
    first, last = before.blocks[0], before.blocks[-1]
    measured_ns = sum(block.duration_ns for block in before.blocks[:-1])
    return max(last.start_ns - first.start_ns - measured_ns, 0) / 1e9 / (len(before.blocks) - 1)


def expected_rate(request: MeasureRequest, runs: Sequence[Run]) -> float | None:
    """Return how many messages a second the run of a request will probably make: as many as the newest of ``runs`` of
    the same kind made, else one in each interval. Return None if neither is known."""
    return _per_second(request, like(request, runs))


def _per_second(request: MeasureRequest, before: Run | None) -> float | None:
    summary = before.main_summary if before is not None else None
    if before is not None and summary is not None and summary.count and before.duration_s > 0:
        return summary.count / before.duration_s
    return 1e9 / interval_ns(request) if KINDS[request.workload].paced else None


def _of(percentile: str, rate: float, before: Run | None) -> Budget:
    """Return how many messages and how much time a run needs to measure a percentile. Above p99, the messages and the
    time are computed from the stalls of the run ``before``, if possible. Otherwise they are computed from the
    percentile alone. ``rate``: messages per second."""
    found = budget_from(before, percentile) if before is not None and float(percentile) > _RARE else None
    return budget(percentile, rate) if found is None else found


def _furthest(messages: int, needs: Sequence[tuple[str, Budget]]) -> str | None:
    """Return the highest percentile for which ``messages`` are enough; None if there is none. ``needs``: (percentile,
    budget), the lowest percentile first."""
    reached = None
    for percentile, need in needs:
        if messages < need.messages:
            break
        reached = percentile
    return reached


def _takes(seconds: float) -> str:
    return nice_ns(seconds * 1e9) if seconds < _SHORTEST_S else nice_duration(seconds)


def _name(run: Run) -> str:
    return f"'{clean(run.label, ID)}'" if run.label else run.id
