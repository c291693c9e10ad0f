"""Treat all lines of a judgement as one family: choose the first line, and adjust each p for the others.

Every choice here depends only on the sizes of the rounds' contributions. A flip of a sign does not change a size, so
the tests stay exact."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitter_workshop.model.verdict import SIGNIFICANCE
from jitter_workshop.stats.comparison import STALLS_PREFIX, stall_measure
from jitter_workshop.stats.exact import smallest_flip_p
from jitter_workshop.stats.rounds import MeasureLine

_PRIMARY = stall_measure(100_000)
_PRIMARY_EVENTS = 10
"""The number of stalls in a round (both runs together) that a primary line needs."""


def primary(shown: Sequence[MeasureLine]) -> int | None:
    """Return the index of the primary line, or None if there is none.

    It is the line of stalls over 100 µs. On a quiet host with fewer than ten such stalls in a round, it is the line of
    the next shorter length that has at least ten stalls.
    """
    stalls = [i for i, line in enumerate(shown) if line.measure.startswith(STALLS_PREFIX)]
    first = next((at for at, i in enumerate(stalls) if shown[i].measure == _PRIMARY), 0)
    return next((i for i in stalls[first:] if _enough(shown[i])), None)


def usual(shown: Sequence[MeasureLine]) -> int:
    """Return the index of the line to report first: the primary line, else stalls over 100 µs, else the first line."""
    first = primary(shown)
    if first is None:
        first = next((i for i, line in enumerate(shown) if line.measure == _PRIMARY), 0)
    return first


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Return each p, adjusted for the number of all ps, in the order given (Holm, Scandinavian Journal of Statistics 6,
    1979).

    Then at most 5 % of all judgements claim a change that is not there, however the lines depend on each other.

    ``weights``: each line's share of the error rate, equal by default (Holm's section 4). Raise ValueError for a p
    outside 0..1, for a weight that is not positive, and for a different number of weights."""
    shares = [1.0] * len(ps) if weights is None else list(weights)
    if any(not 0 <= p <= 1 for p in ps) or any(not w > 0 for w in shares) or len(shares) != len(ps):
        raise ValueError("each p must lie between 0 and 1 and have a positive weight")
    adjusted = [1.0] * len(ps)
    left, largest = sum(shares), 0.0
    for index in sorted(range(len(ps)), key=lambda i: ps[i] / shares[i]):
        largest = max(largest, min(1.0, left * ps[index] / shares[index]))
        adjusted[index] = largest
        left -= shares[index]
    return adjusted


def adjust(shown: Sequence[MeasureLine], ps: Sequence[float]) -> list[float]:
    """Return each line's p for a change, adjusted by Holm's method. The primary line gets half of the error rate, and
    the other lines share the other half. If the only line is that of a command, it also gets only half of the error
    rate; the other half stays unused.

    A line with so few events that it can never be significant gets no share, and its p is 1.0 (Tarone, Biometrics 46,
    1990). A line that a gate keeps from a verdict gets a share, because it is shown.
    """
    counted = [i for i, line in enumerate(shown) if can_claim(line)]
    first = primary(shown)
    others = sum(i != first for i in counted)
    return _holm_of(shown, counted, ps, [float(max(1, others)) if i == first else 1.0 for i in counted])


def adjust_no_change(shown: Sequence[MeasureLine], ps: Sequence[float]) -> list[float]:
    """Return Holm's p of each line for the claim that nothing changes, with equal weights. These ps are a family of
    their own, because a line cannot be wrong in both claims. A claim of a change is wrong if the true ratio is 1. A
    claim of no change is wrong if the true ratio is outside the band.

    As in :func:`adjust`, a line that can never be significant gets no share of the error rate. But here only the number
    of rounds with events decides this. The sizes of the contributions cannot decide it, because at the band's ends they
    are not the same as at ratio 1.
    """
    return _holm_of(shown, [i for i, line in enumerate(shown) if _can_be_even(line)], ps)


def _holm_of(
    shown: Sequence[MeasureLine], counted: Sequence[int], ps: Sequence[float], weights: Sequence[float] | None = None
) -> list[float]:
    """Return Holm's p for the lines with the indices ``counted``, and 1.0 for the other lines."""
    adjusted = dict(zip(counted, holm([min(1.0, ps[i] / shown[i].share) for i in counted], weights), strict=True))
    return [adjusted.get(i, 1.0) for i in range(len(ps))]


def doubt_of_no_change(shown: Sequence[MeasureLine]) -> float:
    """Return the unadjusted p below which a line has the verdict ``no_change``, if no other line claims anything. The
    line's interval must lie within the band, too. So the result is never above half of (1 - the interval's confidence),
    such as 0.025."""
    share = min(line.share for line in shown)
    return min(SIGNIFICANCE * share / max(1, sum(map(_can_be_even, shown))), SIGNIFICANCE * share / 2)


def can_claim(line: MeasureLine) -> bool:
    """Return True if the line's contributions could be significant with some choice of their signs."""
    return smallest_flip_p(line.pairs.contributions(0.0)) < SIGNIFICANCE * line.share


def doubt(shown: Sequence[MeasureLine], index: int) -> float:
    """Return the unadjusted p that the line ``index`` must reach to show a change, if no other line claims anything. It
    decides how many further rounds are recommended."""
    first = primary(shown)
    others = sum(1 for i in range(len(shown)) if i != first)
    if first is None or not others:
        return SIGNIFICANCE * shown[index].share / max(1, others)
    return SIGNIFICANCE / 2 if index == first else SIGNIFICANCE / 2 / others


def _can_be_even(line: MeasureLine) -> bool:
    events = [1.0 for x, y in zip(line.pairs.x, line.pairs.y, strict=True) if x or y]
    return smallest_flip_p(events) < SIGNIFICANCE * line.share


def _enough(line: MeasureLine) -> bool:
    pairs = line.pairs
    return can_claim(line) and math.fsum((*pairs.x, *pairs.y)) >= _PRIMARY_EVENTS * len(pairs.x)
