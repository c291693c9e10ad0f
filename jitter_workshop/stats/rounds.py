"""Combine pairs of runs into rounds, and collect the lines of a judgement. The order of the runs in each round is
drawn by chance.

A line has one measure's pairs of values from all rounds. If the line can have no verdict, it also has the reason. The
first lines are numbers of stalls: those over 100 µs, over 10 µs and so on. The next line is the time that all stalls
took. Only a few percentiles are shown, because with each further line, an effect on the other lines is harder to prove.
The maximum is never shown, because it is one event.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jitter_workshop.model.run import INTENDED, Run, Stall, StallRate, of_transit
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.verdict import COMMAND_SHARE, CommandFigure, Order, Round, Side
from jitter_workshop.stats.comparison import NS, STOLEN, USER, differences, measure_name, stall_measure
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.paired import Pairs
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.stalls import union

PERCENTILES = ("50", "99", "99.9", "99.99")
PERCENTILES_OF_SPIN = ("99.999", "99.9999")
"""The percentiles that are judged for ``spin``. It reads the clock tens of millions of times a second, so lower
percentiles show only the clock's own cost."""

_UNGATED = 99.0
_STEPS_NS = {USER: 1_000.0}
"""The step, in ns, in which a command's times are known: the kernel reports user time in µs (getrusage(2))."""


def draw_orders(rounds: int, seed: int) -> tuple[Order, ...]:
    """Return a random order of the two runs for each round, AB or BA. AB and BA are equally frequent. If the number of
    rounds is odd, chance decides which of them occurs once more. So a steady drift affects runs with the change as
    much as runs without it. An effect of one run on the next run also affects both sides equally.
    """
    chance = random.Random(seed)
    both: tuple[Order, Order] = ("AB", "BA")
    orders = [both[i % 2] for i in range(rounds - rounds % 2)] + [chance.choice(both) for _ in range(rounds % 2)]
    chance.shuffle(orders)
    return tuple(orders)


def side_of(run: Run) -> Side:
    """Return those figures of one run from which verdicts are computed. ``duration_s`` is the time that the run's rates
    refer to. It is shorter than the run if the sampler makes pauses. The percentiles of the ring are those of transit:
    the errors and the power of the verdicts were measured for them (docs/verdicts.md)."""
    run = of_transit(run)
    summary = run.main_summary
    percentiles = dict(summary.percentiles) if summary else {}
    return Side(
        run=run.id,
        duration_s=run.rated_s,
        threshold_ns=run.stalls.threshold_ns,
        stalls=run.stalls.rates,
        stolen_ns_per_second=run.stalls.stolen_ns_per_second,
        percentiles=percentiles,
        beyond={key: stalls_beyond(run, value) for key, value in percentiles.items() if value is not None},
        worst_ns=summary.max if summary else None,
        resolution_ns=run.clock.resolution_ns,
    )


def figure_rounds(measure: str, unit: str, found: Iterable[tuple[Order, float, float]]) -> tuple[Round, ...]:
    """Return the rounds of a proof whose figure comes from a user's command. ``found``: for each round its order, the
    command's figure without the change, and the figure with it. Raise ValueError if a figure is not a number of zero
    or more.
    """
    return tuple(
        Round(order, *(side_of_figure(CommandFigure(measure, unit, value)) for value in both)) for order, *both in found
    )


def side_of_figure(figure: CommandFigure) -> Side:
    """Return the figures of one run of a round: the figure of a user's command, and no others. Raise ValueError if the
    figure is negative or not finite."""
    if not (math.isfinite(figure.value) and figure.value >= 0):
        raise ValueError("a figure must be a finite number, zero or more")
    return Side("", 0.0, 0, (), 0.0, {}, {}, None, 0, figure)


def stalls_beyond(run: Run, value_ns: int) -> int:
    """Return the number of distinct stalls of at least ``value_ns`` in the thread of the main histogram. Stalls that
    overlap count as one. ``value_ns``: the value of a percentile of the run's latencies.

    The result is a lower bound, because a run with many stalls lists only the longest ones. So the result can prevent a
    verdict, but cannot cause one. The run's stall rates also count stalls. If such a count is larger than the number in
    the list, the count is returned. For the transit of ``ring``, these counts are not used, because they include the
    stalls of the producer. A latency from when a message was due contains the stalls of both threads.
    """
    due, known = INTENDED in run.histograms, KINDS.get(run.workload)
    own = main_stalls(run)
    if due and known is not None:
        own = tuple(s for s in run.stalls.worst if s.thread in known.rated)
    long = [s.start_ns for s in own if s.duration_ns >= value_ns]
    begins = [start for start, _ in union((s.start_ns, s.end_ns) for s in own)]
    listed = len({bisect_right(begins, start) for start in long})
    if known is None or (len(known.rated) > 1 and not due):
        return listed
    return max([listed, *(r.count for r in run.stalls.rates if r.threshold_ns >= value_ns)])


def main_stalls(run: Run) -> tuple[Stall, ...]:
    """Return the stalls in the run's list that belong to the main histogram's thread."""
    return tuple(s for s in run.stalls.worst if s.thread == run.main_thread)


def rounds_of(pairs: Iterable[tuple[Order, Run, Run]]) -> tuple[Round, ...]:
    """Return rounds from (order, run without the change, run with it). Raise ValueError, with the reason, if two of the
    runs cannot be compared (``comparison.differences``)."""
    listed = list(pairs)
    runs = [run for _, without, with_it in listed for run in (without, with_it)]
    for run in runs[1:]:
        if unlike := differences(runs[0], run):
            raise ValueError(f"runs {runs[0].id} and {run.id} cannot be compared: " + "; ".join(unlike))
    return tuple(Round(order, side_of(without), side_of(with_it)) for order, without, with_it in listed)


@dataclass(frozen=True, slots=True)
class MeasureLine:
    """Hold one measure over all rounds of a proof.

    ``pairs``: the values without and with the change; empty if nothing can be compared. ``gate``: why there is no
    verdict; "" if there can be one. ``without``, ``with_it``: the level without and with the change. ``seconds``: the
    measured time without and with the change. ``counts``: the number of stalls without and with the change; None for a
    percentile or a command's figure. ``unit``: the unit of a command's figure. ``share``: the part of the error rate
    that all lines of this proof may use together. It is 1 for our own runs, and COMMAND_SHARE for a command.
    """

    measure: str
    name: str
    pairs: Pairs
    gate: str
    without: float | None
    with_it: float | None
    seconds: tuple[float, float]
    counts: tuple[int, int] | None = None
    unit: str = ""
    share: float = 1.0


def measure_lines(rounds: Sequence[Round], workload: str = "ring") -> list[MeasureLine]:
    """Return one line for each measure that all rounds have in common: stalls by length, the longest first, then time
    in stalls, then percentiles. Rounds of a command have one line, for its figure."""
    if not rounds:
        return []
    if rounds[0].without.figure is not None:
        return [_figure_line(rounds)]
    sides = [side for one in rounds for side in (one.without, one.with_it)]
    thresholds = set.intersection(*({r.threshold_ns for r in side.stalls} for side in sides))
    found = [_stall_line(rounds, threshold) for threshold in sorted(thresholds, reverse=True)]
    if len({side.threshold_ns for side in sides}) == 1:
        found.append(_stolen_line(rounds))
    wanted = PERCENTILES_OF_SPIN if workload == "spin" else PERCENTILES
    known = [p for p in wanted if any(side.percentiles.get(p) is not None for side in sides)]
    return [*found, *(_percentile_line(rounds, p) for p in known)]


def _figure_line(rounds: Sequence[Round]) -> MeasureLine:
    found = [(r.without.figure, r.with_it.figure) for r in rounds]
    both = [(a, b) for a, b in found if a is not None and b is not None]
    measure, unit = both[0][0].measure, both[0][0].unit
    x, y = tuple(a.value for a, _ in both), tuple(b.value for _, b in both)
    return MeasureLine(
        measure,
        measure_name(measure),
        Pairs(x, y, step=_STEPS_NS.get(measure, 0.0) if unit == NS else 0.0),
        "" if len(both) == len(rounds) else "not every run has this figure",
        _geometric(x),
        _geometric(y),
        (0.0, 0.0),
        unit=unit,
        share=COMMAND_SHARE,
    )


def _rate(side: Side, threshold_ns: int) -> StallRate:
    for rate in side.stalls:
        if rate.threshold_ns == threshold_ns:
            return rate
    return StallRate(threshold_ns, 0, 0.0, 0.0)


def _at_equal_time(rounds: Sequence[Round], events: Callable[[Side], float]) -> Pairs:
    """Return the numbers of events without and with the change, as a pair for each round. The events of a round's
    longer run are scaled down to the time of its shorter run. So the lengths of the runs do not change the result.
    """

    def scaled(side: Side, other: Side) -> float:
        return events(side) * min(side.duration_s, other.duration_s) / side.duration_s if side.duration_s > 0 else 0.0

    return Pairs(
        tuple(scaled(r.without, r.with_it) for r in rounds),
        tuple(scaled(r.with_it, r.without) for r in rounds),
        counted=True,
    )


def _stall_line(rounds: Sequence[Round], threshold_ns: int) -> MeasureLine:
    pairs = _at_equal_time(rounds, lambda side: _rate(side, threshold_ns).count)
    counts = _counts(rounds, threshold_ns)
    seconds = _seconds(rounds)
    return MeasureLine(
        stall_measure(threshold_ns),
        f"stalls over {nice_ns(threshold_ns)}",
        pairs,
        "",
        *_levels(counts, seconds),
        seconds,
        counts,
    )


def _stolen_line(rounds: Sequence[Round]) -> MeasureLine:
    """Return the line of the time in stalls, expressed as a number of stalls of equal length.

    The time in stalls is divided by one length. This length is chosen so that the number is (Σs)²/Σs², where s are the
    stalls' real lengths. In proportion, such a number varies by chance as much as the time in stalls (Fay and Feuer,
    Statistics in Medicine 16, 1997, for weighted Poisson sums).
    """
    length_ns = _telling_length(rounds)
    pairs = _at_equal_time(rounds, lambda side: side.stolen_ns_per_second * side.duration_s / length_ns)
    seconds = _seconds(rounds)
    totals = _sums(rounds, lambda side: side.stolen_ns_per_second * side.duration_s)
    return MeasureLine(
        STOLEN,
        "time in stalls",
        pairs,
        "",
        *_levels(totals, seconds),
        seconds,
        _counts(rounds, rounds[0].without.threshold_ns),
    )


def _telling_length(rounds: Sequence[Round]) -> float:
    """Return Σs²/Σs in ns, at least 1, where s are the lengths of all stalls. The sums are estimated: for each decade
    of lengths, from the number of its stalls and their total length.
    """
    count: dict[int, float] = {}
    taken: dict[int, float] = {}
    for side in (side for one in rounds for side in (one.without, one.with_it)):
        for rate in side.stalls:
            count[rate.threshold_ns] = count.get(rate.threshold_ns, 0) + rate.count
            taken[rate.threshold_ns] = taken.get(rate.threshold_ns, 0.0) + rate.stolen_ns_per_second * side.duration_s
    squares = whole = above_count = above_ns = 0.0
    for threshold in sorted(count, reverse=True):
        in_decade, ns = count[threshold] - above_count, taken[threshold] - above_ns
        if in_decade > 0 and ns > 0:
            squares += ns * ns / in_decade
            whole += ns
        above_count, above_ns = count[threshold], taken[threshold]
    return max(1.0, squares / whole) if whole else 1.0


def _percentile_line(rounds: Sequence[Round], percentile: str) -> MeasureLine:
    both = [(r.without.percentiles.get(percentile), r.with_it.percentiles.get(percentile)) for r in rounds]
    known = [(x, y) for x, y in both if x is not None and y is not None]
    step = max(max(r.without.resolution_ns, r.with_it.resolution_ns) for r in rounds)
    name = "the median" if percentile == "50" else f"p{percentile}"
    return MeasureLine(
        f"p{percentile}",
        name,
        Pairs(tuple(float(x) for x, _ in known), tuple(float(y) for _, y in known), step=float(step)),
        _percentile_gate(rounds, percentile, len(known)),
        _geometric([x for x, _ in known]),
        _geometric([y for _, y in known]),
        _seconds(rounds),
    )


def _percentile_gate(rounds: Sequence[Round], percentile: str, known: int) -> str:
    if known < len(rounds):
        return "not every run has enough samples for this percentile"
    if float(percentile) <= _UNGATED:
        return ""
    fewest = round(min(_sums(rounds, lambda side: side.beyond.get(percentile, 0))))
    if fewest >= SOLID_BEYOND:
        return ""
    stalls = f"distinct stall{'' if fewest == 1 else 's'}"
    return f"only {fewest} {stalls} beyond this value in the runs without or with the change; {SOLID_BEYOND} are needed"


def _levels(totals: tuple[float, float], seconds: tuple[float, float]) -> tuple[float | None, float | None]:
    (a, b), (a_s, b_s) = totals, seconds
    return a / a_s if a_s > 0 else None, b / b_s if b_s > 0 else None


def _geometric(values: Sequence[float]) -> float | None:
    if not values:
        return None
    return math.exp(math.fsum(math.log(v) for v in values) / len(values)) if min(values) > 0 else 0.0


def _sums(rounds: Sequence[Round], amount: Callable[[Side], float]) -> tuple[float, float]:
    """Return two sums of an amount over all rounds: of the runs without the change, and of the runs with it."""
    return math.fsum(amount(r.without) for r in rounds), math.fsum(amount(r.with_it) for r in rounds)


def _seconds(rounds: Sequence[Round]) -> tuple[float, float]:
    return _sums(rounds, lambda side: side.duration_s)


def _counts(rounds: Sequence[Round], threshold_ns: int) -> tuple[int, int]:
    without, with_it = _sums(rounds, lambda side: _rate(side, threshold_ns).count)
    return round(without), round(with_it)
