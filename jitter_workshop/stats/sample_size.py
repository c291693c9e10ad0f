"""Compute how much must be measured, and how reliable a figure is.

The results are: how many rounds a proof needs for a verdict, and how many samples a solid percentile needs. Another
result is how many samples and stalls lie beyond each percentile of a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from statistics import NormalDist

from jitter_workshop.model.run import PERCENTILES, Run, of_transit
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, NO_CHANGE_WITHIN, SIGNIFICANCE, Budget, Standing
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.rounds import main_stalls, stalls_beyond

MANY_ROUNDS = 1_000
"""The largest number of rounds to recommend: to recommend more would be no useful advice."""

_POWER = 0.9


def rounds_needed(
    log_ratio: float,
    spread: float,
    rounds: int,
    p_to_reach: float,
    coarseness: float = 0.0,
    p_for_no_change: float = SIGNIFICANCE / 2,
) -> int | None:
    """Return the number of rounds with which nine in ten proofs would have a verdict.

    The verdict is one of two. For a change of ``log_ratio``, p must reach ``p_to_reach``. For no change, the p of both
    one-sided tests (one at each end of the band) must reach ``p_for_no_change``. The result is at least ten. It is
    always larger than ``rounds``, the number of rounds made so far. ``spread``: the standard deviation of one round's
    log ratio. ``coarseness``: the change of a log ratio that the clock's resolution can cause. Return None if more than
    :data:`MANY_ROUNDS` would be needed.

    The result is only an estimate, by the normal approximation and a correction for few rounds (z²/2: Guenther, The
    American Statistician 35, 1981).
    """
    z = NormalDist().inv_cdf
    candidates: list[float] = []
    beyond_clock = abs(log_ratio) - coarseness
    if beyond_clock > 0:
        sure = z(1 - p_to_reach / 2)
        candidates.append(((sure + z(_POWER)) * spread / beyond_clock) ** 2 + sure**2 / 2)
    room = math.log1p(NO_CHANGE_WITHIN) - abs(log_ratio) - coarseness
    if room > 0:
        # No change needs two tests: the interval must exclude both ends of the band.
        sure = z(1 - min(p_for_no_change, SIGNIFICANCE / 2))
        candidates.append(((sure + z((1 + _POWER) / 2)) * spread / room) ** 2 + sure**2 / 2)
    fewest = min(candidates, default=math.inf)
    return max(ENOUGH_ROUNDS, rounds + 1, math.ceil(fewest)) if fewest <= MANY_ROUNDS else None


def budget(percentile: str, per_second: float, messages_per_stall: float | Fraction = 1) -> Budget:
    """Return how many messages are needed until a percentile is solid, and how many seconds this takes. A percentile
    is solid if :data:`SOLID_BEYOND` events lie beyond it. ``per_second``: the messages a second.
    ``messages_per_stall``: the number of messages that one stall makes late. All messages of one stall count as one
    event.

    Raise ValueError if the percentile is not between 0 and 100, or the rate is not positive. Raise ValueError, too, if
    ``messages_per_stall`` is below 1.
    """
    if not 0 < Fraction(percentile) < 100 or not per_second > 0 or not messages_per_stall >= 1:
        given = f"{per_second} messages a second and {messages_per_stall} messages a stall"
        raise ValueError(f"no budget for p{percentile} at {given}")
    events = Fraction(SOLID_BEYOND) / (1 - Fraction(percentile) / 100)
    messages = math.ceil(events * Fraction(messages_per_stall))
    return Budget(percentile, messages, messages / per_second, messages_per_stall > 1)


def budget_from(run: Run, percentile: str) -> Budget | None:
    """Return the budget for a percentile, from a run like the planned one. The run gives two numbers: the messages per
    second, and the messages that one stall makes late. If the run has a value at this percentile, the second number
    uses only messages and stalls beyond this value. Only the messages that were sent count, so the values are those of
    transit. Return None for a run without messages.
    """
    run = of_transit(run)
    summary = run.main_summary
    if summary is None or not summary.count or run.duration_s <= 0:
        return None
    per_second = summary.count / run.duration_s
    worst = main_stalls(run)
    late = max(Fraction(1), Fraction(sum(s.messages for s in worst), len(worst))) if worst else Fraction(1)
    value = summary.percentiles.get(percentile)
    if value is not None and (beyond := stalls_beyond(run, value)):
        late = max(Fraction(1), summary.count * (1 - Fraction(percentile) / 100) / beyond)
    return budget(percentile, per_second, late)


FEW_SAMPLES, FEW_STALLS = "·", "~"
LEGEND = {
    FEW_SAMPLES: "fewer than ten samples beyond this value: the chart draws it dotted",
    FEW_STALLS: "fewer than ten distinct stalls beyond this value: it varies by chance",
}
FEW_TOLD = f"{FEW_STALLS} fewer than ten stalls beyond"
"""The meaning of FEW_STALLS in the legend of a chart, short enough for a legend beside the chart."""
FEW_BESIDE = f"{FEW_STALLS}: fewer than ten stalls lie beyond it"
"""The meaning of FEW_STALLS in brackets behind a value."""
_RARE = 99.0
"""Above this percentile, few stalls decide a value (docs/measuring.md)."""


def standings(run: Run) -> tuple[Standing, ...]:
    """Return for each percentile of a run's latencies how many samples and stalls lie beyond it; () if the run has no
    latencies."""
    summary = run.latency
    if summary is None:
        return ()
    found: list[Standing] = []
    for percentile in PERCENTILES:
        value = summary.percentiles.get(percentile)
        stalls = stalls_beyond(run, value) if value is not None else 0
        beyond = summary.count * (1 - Fraction(percentile) / 100)
        solid = value is not None and beyond >= SOLID_BEYOND
        found.append(Standing(percentile, value, float(beyond), stalls, solid, solid and stalls >= SOLID_BEYOND))
    return tuple(found)


def of_count(count: int) -> dict[str, str]:
    """Return percentile → the mark for few samples beyond it, or "". Only the number of samples decides. If ``count``
    is 0, the number is not known, and all marks are ""."""
    return {p: FEW_SAMPLES if count and count * (100 - float(p)) / 100 < SOLID_BEYOND else "" for p in PERCENTILES}


def marks_of_run(run: Run) -> dict[str, str]:
    """Return percentile → mark for a run's latencies."""
    return of_standings(standings(run), run.stalls.threshold_ns)


def of_standings(found: Iterable[Standing], threshold_ns: int) -> dict[str, str]:
    """Return percentile → mark. The mark says that few samples, or few distinct stalls, lie beyond the percentile; ""
    means enough. If the percentile's value is below ``threshold_ns``, only the samples decide. The run does not count
    such short stalls.
    """
    marks = {}
    for one in found:
        few = one.solid and not one.proof and float(one.percentile) > _RARE
        stalls = few and one.value_ns is not None and one.value_ns >= threshold_ns
        marks[one.percentile] = FEW_STALLS if stalls else "" if one.solid else FEW_SAMPLES
    return marks


def of_curve(shown: RunCurve) -> dict[str, str]:
    """Return percentile → mark for a curve in a chart. A curve that belongs to a run has the run's marks; the marks of
    any other curve depend on its number of samples.
    """
    return marks_of_run(shown.run) if shown.run is not None else of_count(shown.curve.count)


def marked(cells: Iterable[str], marks: Iterable[str], between: str = " ") -> list[str]:
    """Return the cells, each with its mark, or with a blank if the mark is "". ``between``: the text between cell and
    mark."""
    return [f"{cell}{between}{mark or ' '}" for cell, mark in zip(cells, marks, strict=True)]


def explain_marks(marks: Iterable[str]) -> list[str]:
    """Return a line of explanation for each mark in ``marks``."""
    present = set(marks)
    return [f"{mark}  {said}" for mark, said in LEGEND.items() if mark in present]
