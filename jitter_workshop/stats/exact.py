"""Compute exact tests and limits of counts, by the Poisson distribution, the binomial distribution and the sign-flip
test.

The Poisson limits hold for independent events. Stalls often come in groups. Then the true rate is less certain than
these limits say."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist

CONFIDENCE = 0.95

FLIP_GROUPS = 16
"""The largest number of groups of contributions. The signs of a group are flipped together. 2^16 ways to flip are
enough."""

_STEPS = 200
_CLOSE = 1e-13
"""The search for a root ends when it moves by less than this value times the root, or times 1 if the root is below
1."""
_ENOUGH = 1e-15
_TINY = 1e-300
_TERMS = 200_000
_HAIR = 1e-12
_MANY = 10_000
"""Above this count of events, a limit is computed as half of a chi-square's quantile by Wilson and Hilferty (PNAS
1931). This approximation is then within 10^-7 of the exact limit."""


def poisson_limits(count: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the lower and upper limit of the expected number of events (Garwood, Biometrika 1936). ``count``: the
    number of events that were seen.

    If the expected number is the lower limit, ``count`` or more events have the probability (1 - confidence) / 2. If it
    is the upper limit, ``count`` or fewer events have the same probability.

    For a count of 0, the lower limit is 0, and only the upper limit can be wrong. So the probability for the upper
    limit is then 1 - confidence. This is the rule of three (3.0 at 95 %; Hanley and Lippman-Hand, JAMA 1983). Raise
    ValueError if the count is negative or the confidence is outside 0..1.
    """
    if count < 0 or not 0 < confidence < 1:
        raise ValueError("a count must not be negative, and a confidence must lie between 0 and 1")
    if count == 0:
        return 0.0, -math.log(1 - confidence)
    doubt = (1 - confidence) / 2
    if count > _MANY:
        return _cube_root(count, doubt), _cube_root(count + 1, 1 - doubt)
    spread = 10 * math.sqrt(count) + 50
    low = solve(lambda mean: poisson_at_most(count - 1, mean), 1 - doubt, max(0.0, count - spread), float(count))
    high = solve(lambda mean: poisson_at_most(count, mean), doubt, float(count), count + spread)
    return low, high


def rate_limits(count: int, duration_s: float, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """Return the lower and upper limit of a rate per second, for ``count`` events in ``duration_s``. Return None if
    ``duration_s`` is not positive."""
    if duration_s <= 0:
        return None
    low, high = poisson_limits(count, confidence)
    return low / duration_s, high / duration_s


def poisson_at_most(count: int, mean: float) -> float:
    """Return the probability of ``count`` events or fewer if ``mean`` events are expected. This probability is the
    regularised incomplete gamma function Q(count + 1, mean)."""
    if count < 0:
        return 0.0
    if mean <= 0:
        return 1.0
    a = count + 1
    scale = math.exp(a * math.log(mean) - mean - math.lgamma(a))
    if mean < a + 1:
        return max(0.0, 1.0 - scale * _series(a, mean))
    # Q(a, x) by its continued fraction (DLMF 8.9.2).
    terms = ((n * (a - n), mean + 1 - a + 2 * n) for n in range(1, _TERMS))
    return min(1.0, scale * _continued_fraction(mean + 1 - a, terms))


def binomial_at_least(count: float, total: float, share: float) -> float:
    """Return the probability of at least ``count`` hits in ``total`` trials, if each trial is a hit with probability
    ``share``: the regularised incomplete beta function I(share; count, total - count + 1)."""
    if count <= 0:
        return 1.0
    if count > total:
        return 0.0
    return _incomplete_beta(count, total - count + 1, min(1.0, max(0.0, share)))


def binomial_two_sided(count: float, total: float, share: float) -> float:
    """Return the two-sided p of ``count`` hits in ``total`` trials. ``share``: the probability of a hit in each trial.
    The p is twice the smaller of the two tail probabilities, and at most 1 (Clopper and Pearson, Biometrika 1934).
    """
    return min(1.0, 2 * binomial_at_least(count, total, share), 2 * binomial_at_least(total - count, total, 1 - share))


def student_two_sided(t: float, freedom: float) -> float:
    """Return the probability that a value of Student's t distribution is at least as far from 0 as ``t``.
    ``freedom``: the degrees of freedom, a positive number, which need not be whole (DLMF 8.17: the regularised
    incomplete beta function)."""
    return min(1.0, _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t)))


def flip_p(contributions: Sequence[float]) -> float:
    """Return the two-sided p of the sign-flip test (Fisher, The Design of Experiments, 1935, §21).

    The test gives the contributions every possible combination of signs. For each combination, it computes the sum of
    the contributions. The p is the share of these sums that are at least as far from zero as the actual sum. If the
    change has no effect, only chance decides which of a round's two runs is higher. All combinations of signs then have
    the same probability. Return 1.0 if all contributions are 0.

    More than :data:`FLIP_GROUPS` contributions are flipped in groups. The test stays exact, with a little less power
    (Hemerik and Goeman, TEST 27, 2018).
    """
    parts = _grouped([c for c in contributions if c])
    seen = abs(math.fsum(parts))
    hair = _HAIR * math.fsum(abs(c) for c in parts)
    if seen <= hair:
        return 1.0
    # To be fast, all sums of each half are listed, and pairs of these sums are counted.
    half = len(parts) // 2
    left, right = _sums(parts[:half]), sorted(_sums(parts[half:]))
    short = [seen - hair - one for one in left]
    as_far = len(left) * len(right) - sum(map(bisect_left, itertools.repeat(right), short))
    # A flip of all signs mirrors a sum, so the other tail has the same size.
    return min(1.0, 2 * as_far / (len(left) * len(right)))


def smallest_flip_p(contributions: Sequence[float]) -> float:
    """Return the smallest p of the sign-flip test that contributions of these sizes could give. Their signs may be
    any. The result depends only on the number of contributions that are not 0.
    """
    flipped = min(FLIP_GROUPS, sum(1 for c in contributions if c))
    return min(1.0, 2 / (1 << flipped))


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


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    # The fraction converges fast only on one side of the mean. On the other side, use 1 minus the mirrored function.
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _continued_fraction(1.0, _beta_terms(a, b, x)) / a)
    return max(0.0, 1 - front * _continued_fraction(1.0, _beta_terms(b, a, 1 - x)) / b)


def _beta_terms(a: float, b: float, x: float) -> Iterator[tuple[float, float]]:
    """Yield the pairs (a, b) of the continued fraction of the incomplete beta function (DLMF 8.17.22), for
    :func:`_continued_fraction`."""
    for m in range(_TERMS // 2):
        if m:
            yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)), 1.0
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)), 1.0


def _continued_fraction(first: float, terms: Iterator[tuple[float, float]]) -> float:
    """Return the value of the continued fraction 1/(first + a₁/(b₁ + a₂/(b₂ + …))). ``terms``: the pairs (a, b). The
    method is Lentz's (Applied Optics 15, 1976)."""
    c, d = 1 / _TINY, 1 / first
    value = d
    for a, b in terms:
        d = 1 / (a * d + b or _TINY)
        c = b + a / c or _TINY
        value *= c * d
        if abs(c * d - 1) < _ENOUGH:
            break
    return value


def solve(falling: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Return the argument at which the function ``falling`` has the value ``wanted``. The search is between ``low``
    and ``high``. If no argument gives this value, return the nearer of ``low`` and ``high``.

    The method is Ridders' (IEEE Transactions on Circuits and Systems 26, 1979). It calls ``falling`` about ten times
    less often than bisection.
    """
    above, below = falling(low) - wanted, falling(high) - wanted
    if above <= 0 or below >= 0:
        return low if above <= 0 else high
    found = math.inf
    for _ in range(_STEPS):
        middle = (low + high) / 2
        at = falling(middle) - wanted
        bent = math.sqrt(at * at - above * below)
        last, found = found, middle + (middle - low) * at / bent if bent else middle
        value = falling(found) - wanted
        if value == 0 or abs(found - last) <= _CLOSE * max(1.0, abs(found)):
            break
        for point, seen in ((middle, at), (found, value)):
            if seen > 0 and point > low:
                low, above = point, seen
            elif seen <= 0 and point < high:
                high, below = point, seen
    return found


def _grouped(parts: list[float]) -> list[float]:
    if len(parts) <= FLIP_GROUPS:
        return parts
    return [math.fsum(parts[first::FLIP_GROUPS]) for first in range(FLIP_GROUPS)]


def _sums(parts: Sequence[float]) -> list[float]:
    sums = [0.0]
    for part in parts:
        sums = [s + part for s in sums] + [s - part for s in sums]
    return sums
