"""Compute the sample budget: the samples that a percentile needs before a run, and those it has after it."""

from __future__ import annotations

import math
from fractions import Fraction

from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.verdict import Budget, Standing
from jitter_workshop.stats.curve import SOLID_BEYOND
from jitter_workshop.stats.rounds import main_stalls, stalls_beyond


def budget(percentile: str, per_second: float, messages_per_stall: float | Fraction = 1) -> Budget:
    """Return messages, and seconds at ``per_second`` of them, until :data:`SOLID_BEYOND` events lie beyond a
    percentile.

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
