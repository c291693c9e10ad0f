"""Correct the p-values of a judgement's lines, and choose the judgement's primary line. A line is one measure of a
proof. The correction is for the number of lines.

These choices use only the sizes of the rounds' contributions (:mod:`paired`), never their signs. The sign-flip test
changes only the signs. So the choices do not influence the test, and the test stays exact.
"""

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
    """Return the index of the primary line; None if there is none.

    The primary line counts stalls over 100 µs, if there are at least ten of them a round. On a quieter host, it counts
    shorter stalls: those over the longest limit that at least ten stalls a round exceed.
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
    """Return the p-values ``ps`` adjusted by Holm's method, in the same order (Scandinavian Journal of Statistics 6,
    1979).

    With adjusted p-values, at most 5 % of all judgements claim a change that does not exist. This holds even if the
    lines depend on each other. ``weights``: each line's share of the error rate; None for equal shares (section 4 of
    Holm's paper). Raise ValueError if a p is outside 0..1, or a weight is not positive. Raise ValueError, too, if
    ``weights`` and ``ps`` differ in length.
    """
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


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """Return the p-values ``ps`` adjusted by the method of Benjamini and Hochberg, in the same order (Journal of the
    Royal Statistical Society B 57, 1995).

    If the lines with an adjusted p of at most q are claimed, the expected share of false claims among them is at most
    q. This holds for independent lines and for lines that rise together. Raise ValueError if a p is outside 0..1.
    """
    if any(not 0 <= p <= 1 for p in ps):
        raise ValueError("each p must lie between 0 and 1")
    adjusted, smallest = [1.0] * len(ps), 1.0
    for rank, index in sorted(enumerate(sorted(range(len(ps)), key=lambda i: ps[i]), 1), reverse=True):
        smallest = min(smallest, ps[index] * len(ps) / rank)
        adjusted[index] = smallest
    return adjusted


def adjust(shown: Sequence[MeasureLine], ps: Sequence[float]) -> list[float]:
    """Return each line's p for a change, adjusted by Holm's method. The primary line gets half of the error rate, and
    the other lines share the other half. A proof of a user's command has only one line. This line gets half of the
    error rate, too; the other half stays unused.

    A line that can never be significant gets no share, and its p is 1.0 (Tarone, Biometrics 46, 1990). A line without a
    verdict for another reason (``gate``) still gets a share, because the line is shown.
    """
    counted = [i for i, line in enumerate(shown) if can_claim(line)]
    first = primary(shown)
    others = sum(i != first for i in counted)
    return _holm_of(shown, counted, ps, [float(max(1, others)) if i == first else 1.0 for i in counted])


def adjust_no_change(shown: Sequence[MeasureLine], ps: Sequence[float]) -> list[float]:
    """Return each line's p for no change, adjusted by Holm's method with equal weights.

    These p-values are adjusted separately from those of :func:`adjust`. The reason is that for one line, only one of
    the two claims can be wrong. A claim of a change is wrong if the true ratio is 1. A claim of no change is wrong if
    the true ratio is outside the band. A line gets no share if it has too few rounds with events to ever be
    significant.
    """
    return _holm_of(shown, [i for i, line in enumerate(shown) if _can_be_even(line)], ps)


def _holm_of(
    shown: Sequence[MeasureLine], counted: Sequence[int], ps: Sequence[float], weights: Sequence[float] | None = None
) -> list[float]:
    """Return Holm's p for the lines with the indices ``counted``, and 1.0 for the other lines."""
    adjusted = dict(zip(counted, holm([min(1.0, ps[i] / shown[i].share) for i in counted], weights), strict=True))
    return [adjusted.get(i, 1.0) for i in range(len(ps))]


def doubt_of_no_change(shown: Sequence[MeasureLine]) -> float:
    """Return the limit of the unadjusted p for the verdict ``no_change``. A line gets this verdict if its p is below
    the limit. The limit is computed as if no other line had a verdict. It is at most half of (1 - the interval's
    confidence), such as 0.025, because the interval must also lie within the band.
    """
    share = min(line.share for line in shown)
    return min(SIGNIFICANCE * share / max(1, sum(map(_can_be_even, shown))), SIGNIFICANCE * share / 2)


def can_claim(line: MeasureLine) -> bool:
    """Return True if the line's contributions could be significant with some choice of their signs."""
    return smallest_flip_p(line.pairs.contributions(0.0)) < SIGNIFICANCE * line.share


def doubt(shown: Sequence[MeasureLine], index: int) -> float:
    """Return the limit of the unadjusted p below which the line ``index`` shows a change. The limit is computed as if
    no other line had a verdict. The recommended number of further rounds is computed from this limit.
    """
    first = primary(shown)
    others = sum(1 for i in range(len(shown)) if i != first)
    if first is None or not others:
        return SIGNIFICANCE * shown[index].share / max(1, others)
    return SIGNIFICANCE / 2 if index == first else SIGNIFICANCE / 2 / others


def _can_be_even(line: MeasureLine) -> bool:
    # The sizes of the contributions cannot decide: at the band's ends they are not the same as at ratio 1.
    events = [1.0 for x, y in zip(line.pairs.x, line.pairs.y, strict=True) if x or y]
    return smallest_flip_p(events) < SIGNIFICANCE * line.share


def _enough(line: MeasureLine) -> bool:
    pairs = line.pairs
    return can_claim(line) and math.fsum((*pairs.x, *pairs.y)) >= _PRIMARY_EVENTS * len(pairs.x)
