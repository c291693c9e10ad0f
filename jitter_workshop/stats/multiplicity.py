"""Adjust ps of many lines, so that all together claim a change that is not there in at most 5 % of cases."""

from __future__ import annotations

from collections.abc import Sequence


def holm(ps: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Return each p adjusted for all of them, in the order given (Holm, Scandinavian Journal of Statistics 6, 1979). It
    holds for any dependence between the lines.

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
