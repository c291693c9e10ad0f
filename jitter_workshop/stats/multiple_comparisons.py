"""Treat all lines of a judgement as one family: choose the first line, and adjust each p for the others.

Every choice here depends only on the sizes of the rounds' contributions, which no flip of a sign changes, so the tests
stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitter_workshop.model.verdict import SIGNIFICANCE
from jitter_workshop.stats.comparison import STALLS_PREFIX, stall_measure
from jitter_workshop.stats.exact import smallest_flip_p
from jitter_workshop.stats.rounds import Line

_PRIMARY = stall_measure(100_000)
_PRIMARY_EVENTS = 10
"""The stalls a round, both of its runs together, that a primary line needs."""


def primary(shown: Sequence[Line]) -> int | None:
    """Return the index of the line that is asked first: stalls over 100 µs. On a quiet host with fewer than ten such
    stalls in a round, it is the next shorter length with at least ten. None where no length has.
    """
    stalls = [i for i, line in enumerate(shown) if line.measure.startswith(STALLS_PREFIX)]
    first = next((at for at, i in enumerate(stalls) if shown[i].measure == _PRIMARY), 0)
    return next((i for i in stalls[first:] if _enough(shown[i])), None)


def usual(shown: Sequence[Line]) -> int:
    """Return the index of the line to report first: the primary one, else stalls over 100 µs, else the first."""
    first = primary(shown)
    if first is None:
        first = next((i for i, line in enumerate(shown) if line.measure == _PRIMARY), 0)
    return first


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Return each p adjusted for all of them, in the order given (Holm, Scandinavian Journal of Statistics 6, 1979).

    All lines together then claim a change that is not there in at most 5 % of cases, for any dependence between them.

    ``weights``: each line's share of the doubt, equal where not given (his section 4). Raise ValueError for a p outside
    0..1, for a weight that is not positive, and for a different number of weights.
    """
    shares = [1.0] * len(ps) if weights is None else list(weights)
    if any(not 0 <= p <= 1 for p in ps) or any(not w > 0 for w in shares) or len(shares) != len(ps):
        raise ValueError("a p lies between 0 and 1 and has a positive weight")
    adjusted = [1.0] * len(ps)
    left, largest = sum(shares), 0.0
    for index in sorted(range(len(ps)), key=lambda i: ps[i] / shares[i]):
        largest = max(largest, min(1.0, left * ps[index] / shares[index]))
        adjusted[index] = largest
        left -= shares[index]
    return adjusted


def adjust(shown: Sequence[Line], ps: Sequence[float]) -> list[float]:
    """Return Holm's p of each line. The primary line has half of the doubt, and the others share the other half.

    A line with too few events to be significant with any signs takes no share, and its own p is 1.0 (Tarone, Biometrics
    46, 1990). Lines that a gate keeps from a verdict count, because they are shown.
    """
    counted = [i for i, line in enumerate(shown) if can_claim(line)]
    first = primary(shown)
    others = sum(i != first for i in counted)
    return _holm_of(counted, ps, [float(max(1, others)) if i == first else 1.0 for i in counted])


def adjust_no_change(shown: Sequence[Line], ps: Sequence[float]) -> list[float]:
    """Return Holm's p of each line for the claim that nothing changes, with equal weights. This is a family of its own:
    a line cannot be wrong in both claims, because its ratio is either 1 or outside the band.

    Here too, a line with events in too few rounds takes nothing from the others. Only the presence of events in a round
    counts, because the sizes that are flipped at the band's ends differ from those at 1.
    """
    return _holm_of([i for i, line in enumerate(shown) if _can_be_even(line)], ps)


def _holm_of(counted: Sequence[int], ps: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Return Holm's p of the lines at the places ``counted``, and 1.0 of the others."""
    adjusted = dict(zip(counted, holm([ps[i] for i in counted], weights), strict=True))
    return [adjusted.get(i, 1.0) for i in range(len(ps))]


def doubt_of_no_change(shown: Sequence[Line]) -> float:
    """Return the limit for a line's unadjusted p below which it shows no change, if all others claim nothing."""
    return SIGNIFICANCE / max(1, sum(map(_can_be_even, shown)))


def can_claim(line: Line) -> bool:
    """Return True if any signs of its contributions could make a line significant."""
    return smallest_flip_p(line.pairs.contributions(0.0)) < SIGNIFICANCE


def doubt(shown: Sequence[Line], index: int) -> float:
    """Return the limit for a line's unadjusted p below which it shows a change, if all others claim nothing. Further
    rounds would have to reach it.
    """
    first = primary(shown)
    others = sum(1 for i in range(len(shown)) if i != first)
    if first is None or not others:
        return SIGNIFICANCE / max(1, others)
    return SIGNIFICANCE / 2 if index == first else SIGNIFICANCE / 2 / others


def _can_be_even(line: Line) -> bool:
    events = [1.0 for x, y in zip(line.pairs.x, line.pairs.y, strict=True) if x or y]
    return smallest_flip_p(events) < SIGNIFICANCE


def _enough(line: Line) -> bool:
    pairs = line.pairs
    return can_claim(line) and math.fsum((*pairs.x, *pairs.y)) >= _PRIMARY_EVENTS * len(pairs.x)
