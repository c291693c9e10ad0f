"""Compute the length of a run for a wanted percentile, and the percentile that a run of a given length reaches."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.measuring.request import LONGEST_S, MeasureRequest, blocks, interval_ns, pacing
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.spec import KINDS, between_blocks_s, clock_seconds
from jitter_workshop.model.text import ID, WORD, clean
from jitter_workshop.model.verdict import Budget
from jitter_workshop.stats.omission import LEAST_SENT
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
    - ``messages``: the approximate number of messages; None if it is not known. Without ``like``, this is the most that
      the run can make.
    - ``solid``: the highest percentile with ten messages beyond it; None if the run may make too few, or if nothing
      shows how many it makes beside its noise.
    - ``distinct``: the highest percentile with ten distinct stalls beyond it; None without an earlier run beside the
      same noise.
    - ``like``: the name of an earlier run of the same kind, or None.
    - ``beside``: the name of an earlier run beside the same noise, if only its placement differs; or None.
    - ``beside_made``: how many messages the run ``beside`` makes in this run's time; None without such a run.
    - ``noisy``: True if a noise runs during the run.
    - ``usual_pauses``: True if the length of the pauses between blocks is assumed, because no earlier run of this kind
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
    beside: str | None = None
    beside_made: int | None = None


def outlook(request: MeasureRequest, runs: Sequence[Run]) -> Outlook:
    """Return the expected figures of a checked request, computed from earlier ``runs``. Raise the errors of
    ``blocks``."""
    before = like(request, runs)
    beside = None if before is not None else _of_same_load(request, runs)
    cut = blocks(request)
    rate = _per_second(request, before)
    seconds = cut.count * cut.block_ns / 1e9
    messages = cut.messages
    if messages is not None:
        seconds = messages / rate if rate else seconds
    elif rate is not None:
        messages = int(seconds * rate)
    made = _made_beside(request, beside, seconds, messages)
    beside = None if made is None else beside
    seen = before or beside
    if messages is not None and seen is None and request.noise:
        # With more load beside them, the threads make no more than they made without it.
        alone = like(dataclasses.replace(request, noise=None), runs)
        messages = round(min(messages, seconds * (_per_second(request, alone) or math.inf)))
    solid = distinct = None
    reached = messages if made is None else made
    if reached is not None and (seen is not None or not request.noise):
        solid = _furthest(reached, [(p, budget(p, 1.0)) for p in PERCENTILES])
        if seen is not None:
            distinct = _furthest(reached, [(p, _of(p, 1.0, seen)) for p in PERCENTILES])
    between_s = _pause_s(request, before, runs)
    clock_s = request.settle_s + clock_seconds(seconds, cut.count, between_s, traced=request.evidence)
    return Outlook(
        request.workload,
        seconds,
        clock_s,
        messages,
        solid,
        distinct,
        like=_name(before) if before is not None else None,
        noisy=bool(request.noise),
        usual_pauses=_between_blocks(before) is None,
        settle_s=request.settle_s,
        beside=_name(beside) if beside is not None else None,
        beside_made=made,
    )


def _made_beside(request: MeasureRequest, beside: Run | None, seconds: float, messages: int | None) -> int | None:
    """Return how many messages the run ``beside`` makes in ``seconds``, at most ``messages``. Return None without such
    a run, or if the messages of a request are not known. Also return None without a noise if nearly all are made."""
    rate = None if beside is None else _per_second(request, beside)
    if messages is None or rate is None:
        return None
    made = min(round(seconds * rate), messages)
    return made if request.noise or made < LEAST_SENT * messages else None


def run_length_sentences(found: Outlook) -> str:
    """Return the sentences on a run's length that are shown before the run. They give its measured time, its messages,
    the percentile that the messages reach, and the time from start to end."""
    return f"{_reached(found)} {_by_the_clock(found)}"


def _by_the_clock(found: Outlook) -> str:
    busy = ", longer on a busy host" if found.usual_pauses else ""
    said = f"With its start and pauses it takes about {_takes(max(round(found.clock_s), 1))}{busy}."
    if found.settle_s:
        said += (
            f" Its first {_takes(found.settle_s)} are not measured: the restored setting takes effect only after this "
            "time."
        )
    return said


def _reached(found: Outlook) -> str:
    """Return a sentence on a run's measured time, its messages, and the percentile that the messages reach."""
    what = KINDS[found.workload].makes
    length = f"{_takes(found.seconds)} of measuring"
    if found.messages is None:
        return f"{length}; only the run shows how many {what} this makes."
    known = found.like or found.beside
    # Threads that lose their CPU make less than the pace that is asked for.
    most = found.like is None and (found.noisy or found.beside is not None)
    said = f"{length}, {'at most' if most else 'about'} {_two_digits(found.messages):,} {what}"
    if known is None and found.noisy:
        return f"{said}: the noise decides how many are made, and which percentiles they reach."
    if found.beside is not None and found.beside_made is not None:
        said += f"; {found.beside} made {_two_digits(found.beside_made):,}"
    if found.distinct is not None and found.distinct != found.solid:
        # Ten late messages can come from one stall: what the run is about is the stalls.
        often = f" as in {found.like}" if found.like is not None else ""
        said += f": enough to know p{found.distinct}, if stalls come as often{often}"
        return f"{said}; the values up to p{found.solid} rest on few stalls." if found.solid else f"{said}."
    if not found.solid:
        return f"{said}: too few for any percentile."
    if known is None:
        # Only a run counts the stalls that make the late messages.
        return f"{said}: enough for p{found.solid} at most. A percentile with fewer than ten stalls beyond it gets a ~."
    return f"{said}: enough to know p{found.solid}."


def _two_digits(count: int) -> int:
    """Return a count rounded to two significant digits, because an outlook is not more exact than two digits."""
    return round(count, 2 - len(str(count)))


def chapter_length_sentences(request: MeasureRequest, runs: Sequence[Run]) -> str:
    """Return the sentences of :func:`run_length_sentences` for a chapter's run. Return "" if the request has an error,
    which the run itself reports."""
    try:
        told = run_length_sentences(outlook(request, runs))
    except UsageError:
        return ""
    return f"{told} Then the trace is read." if request.evidence else told


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
    before = like(request, runs) or _of_same_load(request, runs)
    rate = _per_second(request, before)
    what = KINDS[request.workload].makes
    if rate is None:
        raise UsageError(
            f"the rate of {what} is not known before a first run of {request.workload}",
            "measure once without --for-percentile",
        )
    need = _of(wanted, rate, before)
    seconds = max(need.seconds * _SPARE, _SHORTEST_S)
    least = "at least " if before is None and request.noise else ""
    said = f"p{wanted} needs {need.messages:,} {what}, which take {least}{_takes(seconds)}"
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
    free = request.placement == "none"
    return next(
        (run for run in _of_same_loads(request, runs) if (run.placement.mode == "none") == free),
        None,
    )


def _of_same_load(request: MeasureRequest, runs: Iterable[Run]) -> Run | None:
    """Return the newest complete run that differs from ``request`` in its kind of placement at most; None if there is
    none."""
    return next(_of_same_loads(request, runs), None)


def _of_same_loads(request: MeasureRequest, runs: Iterable[Run]) -> Iterator[Run]:
    """Yield the complete runs with the same workload, pace, duty, memory, lock and noise as ``request``, the newest
    first."""
    paced = interval_ns(request) if KINDS[request.workload].paced else None
    for run in reversed(list(runs)):
        if (
            run.complete
            and (run.workload, run.pacing, run.duty) == (request.workload, pacing(request), request.duty)
            and (paced is None or run.interval_ns == paced)
            and (request.workload != "spin" or run.duty == 100 or run.pause in (None, request.pause))
            and (run.memory or "none", run.lock or "none") == (request.memory, request.lock)
            and run.noise == request.noise
        ):
            yield run


def _pause_s(request: MeasureRequest, before: Run | None, runs: Sequence[Run]) -> float:
    """Return the expected seconds between two blocks of a request's run. ``before``: an earlier run of the same kind;
    None if there is none. Then the newest of ``runs`` shows how much longer the pauses of this host are than the usual
    ones: they depend on the host, and on how busy it is."""
    usual_s = between_blocks_s(request.workload, traced=request.evidence, noisy=bool(request.noise))
    seen_s = _between_blocks(before)
    if seen_s is not None:
        # Reading a trace takes its time, and the earlier run may have had none.
        return max(seen_s, usual_s) if request.evidence else seen_s
    newest = next((run for run in reversed(runs) if run.complete), None)
    of_newest_s = _between_blocks(newest)
    if newest is None or of_newest_s is None:
        return usual_s
    noisy = newest.noise is not None
    return usual_s * of_newest_s / between_blocks_s(newest.workload, traced=request.evidence, noisy=noisy)


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
    the same kind made, or the newest beside the same noise, else one in each interval. Return None if none of these is
    known."""
    return _per_second(request, like(request, runs) or _of_same_load(request, runs))


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
