"""Compute the binomial distribution: exact, and for counts between whole ones too."""

from __future__ import annotations

import math

_ENOUGH = 1e-14
_TINY = 1e-300
_TERMS = 100_000


def at_least(count: float, total: float, share: float) -> float:
    """Return the probability of ``count`` or more of ``total`` events where each falls with probability ``share``: the
    regularised incomplete beta function I(share; count, total - count + 1)."""
    if count <= 0:
        return 1.0
    if count > total:
        return 0.0
    return _incomplete_beta(count, total - count + 1, min(1.0, max(0.0, share)))


def two_sided(count: float, total: float, share: float) -> float:
    """Return twice the smaller tail (Clopper and Pearson, Biometrika 1934), at most 1."""
    return min(1.0, 2 * at_least(count, total, share), 2 * at_least(total - count, total, 1 - share))


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast only on its own side of the mean; the other side is 1 minus it.
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(a, b, x) / a)
    return max(0.0, 1 - front * _fraction(b, a, 1 - x) / b)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            break
    return value


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
