"""Compute how much must be measured, and how well a figure is supported. This covers the rounds until a proof has a
verdict, the samples until a percentile is solid, and the samples and stalls behind each percentile of a run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from statistics import NormalDist

from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, NO_CHANGE_WITHIN, SIGNIFICANCE, Budget, Standing
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.rounds import main_stalls, stalls_beyond

MANY_ROUNDS = 1_000
"""The largest number of rounds that is recommended; a larger one is no useful advice."""

_POWER = 0.9


def rounds_needed(
    log_ratio: float,
    spread: float,
    rounds: int,
    p_to_reach: float,
    coarseness: float = 0.0,
    p_for_no_change: float = SIGNIFICANCE / 2,
) -> int | None:
    """Return the number of rounds for which nine in ten proofs would have a verdict. The verdict is a difference of
    this size at a p of ``p_to_reach``, or no change at ``p_for_no_change`` (one-sided, at each end of the band). It is
    more than the rounds there are, and at least ten.

    This is a guess for the next try, made from the same few rounds. ``spread`` is the standard deviation of one round's
    log ratio, ``coarseness`` the clock's share of an interval. The number is computed by the normal approximation plus
    a correction for few rounds (z²/2: Guenther, The American Statistician 35, 1981). Return None where more than
    :data:`MANY_ROUNDS` would be needed.
    """
    z = NormalDist().inv_cdf
    candidates: list[float] = []
    beyond_clock = abs(log_ratio) - coarseness
    if beyond_clock > 0:
        sure = z(1 - p_to_reach / 2)
        candidates.append(((sure + z(_POWER)) * spread / beyond_clock) ** 2 + sure**2 / 2)
    room = math.log1p(NO_CHANGE_WITHIN) - abs(log_ratio) - coarseness
    if room > 0:
        # In the middle of the band both ends must be excluded.
        sure = z(1 - min(p_for_no_change, SIGNIFICANCE / 2))
        candidates.append(((sure + z((1 + _POWER) / 2)) * spread / room) ** 2 + sure**2 / 2)
    fewest = min(candidates, default=math.inf)
    return max(ENOUGH_ROUNDS, rounds + 1, math.ceil(fewest)) if fewest <= MANY_ROUNDS else None


def budget(percentile: str, per_second: float, messages_per_stall: float | Fraction = 1) -> Budget:
    """Return the number of messages until :data:`SOLID_BEYOND` events lie beyond a percentile, and the seconds for them
    at ``per_second`` messages.

    ``messages_per_stall``: messages that one stall makes late; they count as one event. Raise ValueError for a
    percentile outside 0..100 (both excluded), a rate that is not positive, or a stall of less than one message.
    """
    if not 0 < Fraction(percentile) < 100 or not per_second > 0 or not messages_per_stall >= 1:
        raise ValueError(f"no budget for p{percentile} at {per_second} a second, {messages_per_stall} a stall")
    events = Fraction(SOLID_BEYOND) / (1 - Fraction(percentile) / 100)
    messages = math.ceil(events * Fraction(messages_per_stall))
    return Budget(percentile, messages, messages / per_second, messages_per_stall > 1)


def budget_from(run: Run, percentile: str) -> Budget | None:
    """Return the budget from a run like the planned one: its own rate of messages, and stalls of its own size. Where
    the run knows the percentile, the rate of stalls beyond it decides, if that needs more messages. Return None for an
    empty run."""
    summary = run.histograms.get(run.main_histogram)
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
    FEW_SAMPLES: "fewer than ten samples beyond it: the chart draws it dotted",
    FEW_STALLS: "fewer than ten distinct stalls beyond it: it varies by chance",
}
_RARE = 99.0
"""The percentile beyond which a handful of stalls decides (docs/measuring.md)."""


def standings(run: Run) -> tuple[Standing, ...]:
    """Return the support of each percentile of a run's main histogram; () without that histogram."""
    summary = run.histograms.get(run.main_histogram)
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
    """Return percentile → mark, by the number of samples alone. The mark is "" for a curve whose number of samples is
    not known (0).
    """
    return {p: FEW_SAMPLES if count and count * (100 - float(p)) / 100 < SOLID_BEYOND else "" for p in PERCENTILES}


def of_run(run: Run) -> dict[str, str]:
    """Return percentile → mark for a run's main histogram."""
    return of_standings(standings(run), run.stalls.threshold_ns)


def of_standings(found: Iterable[Standing], threshold_ns: int) -> dict[str, str]:
    """Return percentile → mark, by samples and by distinct stalls. A value shorter than ``threshold_ns``, a run's
    shortest stall, is not judged by stalls."""
    marks = {}
    for one in found:
        few = one.solid and not one.proof and float(one.percentile) > _RARE
        stalls = few and one.value_ns is not None and one.value_ns >= threshold_ns
        marks[one.percentile] = FEW_STALLS if stalls else "" if one.solid else FEW_SAMPLES
    return marks


def of_curve(shown: RunCurve) -> dict[str, str]:
    """Return the marks of a curve in a chart: those of its run, else by its samples."""
    return of_run(shown.run) if shown.run is not None else of_count(shown.curve.count)


def marked(cells: Iterable[str], marks: Iterable[str], between: str = " ") -> list[str]:
    """Return cells with their marks appended, and padded with blanks where there is no mark."""
    return [f"{cell}{between}{mark or ' '}" for cell, mark in zip(cells, marks, strict=True)]


def legend(marks: Iterable[str]) -> list[str]:
    """Return a line of explanation for each mark that occurs."""
    present = set(marks)
    return [f"{mark}  {said}" for mark, said in LEGEND.items() if mark in present]
