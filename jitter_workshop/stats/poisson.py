"""Compute exact limits for a Poisson count of rare events.

They hold for events that come independently of each other. Stalls often come in groups; then the truth is less certain
than these limits say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

CONFIDENCE = 0.95

_STEPS = 200
_ENOUGH = 1e-15
_TERMS = 100_000
_MANY = 10_000
"""Above, half of a chi-square's quantile by Wilson and Hilferty (PNAS 1931): there within 10^-7 of the exact one."""


def limits(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the lower and upper limit of the mean of which ``count`` events were seen (Garwood, Biometrika 1936): the
    means for which so many or more, and so few or fewer, would each be seen in (1 - confidence) / 2 of all cases.

    For a count of zero there is only an upper limit, and all of the doubt is on its side: the rule of three (3.0 at 95
    %; Hanley and Lippman-Hand, JAMA 1983). Raise ValueError for a negative count or a confidence outside 0..1.
    """
    if count < 0 or not 0 < confidence < 1:
        raise ValueError("a count is not negative, and a confidence lies between 0 and 1")
    if count == 0:
        return 0.0, -math.log(1 - confidence)
    doubt = (1 - confidence) / 2
    if count > _MANY:
        return _cube_root(count, doubt), _cube_root(count + 1, 1 - doubt)
    spread = 10 * math.sqrt(count) + 50
    low = _solve(lambda mean: at_most(count - 1, mean), 1 - doubt, max(0.0, count - spread), float(count))
    high = _solve(lambda mean: at_most(count, mean), doubt, float(count), count + spread)
    return low, high


def rate_limits(count: int, duration_s: float, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return the limits of a rate a second, for ``count`` events in ``duration_s``; None without time."""
    if duration_s <= 0:
        return None
    low, high = limits(count, confidence)
    return low / duration_s, high / duration_s


def at_most(count: int, mean: float) -> float:
    """Return the probability of ``count`` events or fewer where ``mean`` are expected: the regularised incomplete gamma
    function Q(count + 1, mean), by its series below count + 2 and by its continued fraction above."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    a = count + 1
    scale = math.exp(a * math.log(mean) - mean - math.lgamma(a))
    if mean < a + 1:
        return max(0.0, 1.0 - scale * _series(a, mean))
    return min(1.0, scale * _fraction(a, mean))


def _cube_root(count: int, share: float) -> float:
    deviations = NormalDist().inv_cdf(share)
    return float(count * (1 - 1 / (9 * count) + deviations / (3 * math.sqrt(count))) ** 3)


def _series(a: float, x: float) -> float:
    term = total = 1 / a
    for n in range(1, _TERMS):
        term *= x / (a + n)
        total += term
        if term < total * _ENOUGH:
            break
    return total


def _fraction(a: float, x: float) -> float:
    """Compute the continued fraction by Lentz's method (Applied Optics 15, 1976)."""
    tiny = 1e-300
    b = x + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for n in range(1, _TERMS):
        factor = n * (a - n)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        change = c * d
        value *= change
        if abs(change - 1) < _ENOUGH:
            break
    return value


def _solve(falling: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Return where a falling function has a value, between two places around it."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        if falling(middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
