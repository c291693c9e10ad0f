"""Limits of a counted number of rare events, against plain sums and against what is known."""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats.exact import poisson_at_most, poisson_limits, rate_limits

COUNTS = st.integers(1, 60)
MEANS = st.floats(0.01, 120)
CONFIDENCES = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99])


def summed(count: int, mean: float) -> float:
    """P(at most ``count``), term by term."""
    return math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1)) for k in range(count + 1))


@given(st.integers(0, 200), MEANS)
def test_the_distribution_is_the_sum_of_its_terms(count: int, mean: float) -> None:
    assert poisson_at_most(count, mean) == pytest.approx(summed(count, mean), rel=1e-9, abs=1e-12)


@given(COUNTS, CONFIDENCES)
def test_at_the_limits_the_count_is_as_rare_as_was_asked(count: int, confidence: float) -> None:
    low, high = poisson_limits(count, confidence)
    assert low < count < high
    assert 1 - summed(count - 1, low) == pytest.approx((1 - confidence) / 2, rel=1e-6)
    assert summed(count, high) == pytest.approx((1 - confidence) / 2, rel=1e-6)


known_limits = functools.cache(poisson_limits)  # the same two hundred counts for every mean


@given(st.floats(0.05, 40))
def test_the_truth_lies_within_in_at_least_so_many_cases(mean: float) -> None:
    held, chance = 0.0, math.exp(-mean)
    for count in range(200):
        low, high = known_limits(count)
        # Of none the whole doubt lies above: such a mean would be missed a little more often than one time in forty.
        held += chance * (low <= mean <= high)
        chance *= mean / (count + 1)
    assert held >= 0.95 - 0.025


@pytest.mark.parametrize(
    ("count", "low", "high"),
    # Garwood's table of 1936, at 95 %; of none the rule of three.
    [(0, 0.0, 2.996), (1, 0.0253, 5.572), (3, 0.6187, 8.767), (10, 4.795, 18.39), (30, 20.24, 42.83)],
)
def test_known_limits(count: int, low: float, high: float) -> None:
    assert poisson_limits(count) == (pytest.approx(low, rel=1e-3, abs=1e-9), pytest.approx(high, rel=1e-3))


def test_where_the_way_changes_the_limits_do_not_jump() -> None:
    below, above = poisson_limits(10_000), poisson_limits(10_001)
    for one, other in zip(below, above, strict=True):
        assert 0.9 < other - one < 1.1
    assert poisson_limits(10**9)[0] == pytest.approx(10**9 - 1.96 * math.sqrt(10**9), abs=30)


@given(st.integers(0, 10**6), st.floats(0.01, 10**5))
def test_a_rate_is_a_count_over_its_time(count: int, duration_s: float) -> None:
    low, high = poisson_limits(count)
    assert rate_limits(count, duration_s) == (low / duration_s, high / duration_s)
    assert rate_limits(count, 0.0) is None


@pytest.mark.parametrize(("count", "confidence"), [(-1, 0.95), (1, 0.0), (1, 1.0)])
def test_nonsense_has_no_limits(count: int, confidence: float) -> None:
    with pytest.raises(ValueError, match="not be negative"):
        poisson_limits(count, confidence)
