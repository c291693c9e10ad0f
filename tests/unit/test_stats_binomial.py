"""The binomial distribution, against plain sums; and Holm's correction."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats.exact import binomial_at_least, binomial_two_sided
from jitter_workshop.stats.multiple_comparisons import holm

SHARES = st.floats(0.001, 0.999)
PS = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def summed(count: int, total: int, share: float) -> float:
    return math.fsum(math.comb(total, k) * share**k * (1 - share) ** (total - k) for k in range(count, total + 1))


@given(st.integers(0, 60), st.integers(0, 60), SHARES)
def test_the_tail_is_the_sum_of_its_terms(a: int, b: int, share: float) -> None:
    assert binomial_at_least(a, a + b, share) == pytest.approx(summed(a, a + b, share), rel=1e-8, abs=1e-12)


@given(st.floats(0.1, 1e6), st.floats(0.1, 1e6), SHARES)
def test_between_whole_counts_it_lies_between_theirs(a: float, b: float, share: float) -> None:
    lower, upper = (
        binomial_at_least(math.ceil(a), math.ceil(a) + b, share),
        binomial_at_least(math.floor(a), math.floor(a) + b, share),
    )
    assert lower - 1e-9 <= binomial_at_least(a, a + b, share) <= upper + 1e-9


@given(st.integers(0, 1000), st.integers(0, 1000), SHARES)
def test_either_side_says_the_same(a: int, b: int, share: float) -> None:
    assert binomial_two_sided(a, a + b, share) == pytest.approx(binomial_two_sided(b, a + b, 1 - share), abs=1e-9)


def test_edges() -> None:
    assert binomial_at_least(0, 5, 0.3) == 1.0
    assert binomial_at_least(6, 5, 0.3) == 0.0
    assert binomial_at_least(2, 5, 0.0) == 0.0
    assert binomial_at_least(2, 5, 1.0) == 1.0
    # None of ten on one side at equal shares: the sign test's p.
    assert binomial_two_sided(10, 10, 0.5) == pytest.approx(2 / 1024)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    # Half of the doubt to the first: 0.02 at twice, and what it leaves to the other two.
    assert holm([0.02, 0.001, 0.03], [2, 1, 1]) == pytest.approx([0.03, 0.004, 0.03])


@given(PS)
def test_holm_never_makes_a_p_smaller_and_keeps_their_order(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(a >= p - 1e-12 and a <= 1 for a, p in zip(adjusted, ps, strict=True))
    assert adjusted == pytest.approx(holm(ps, [3.0] * len(ps)))
    in_order = [a for _, a in sorted(zip(ps, adjusted, strict=True))]
    assert all(a <= b + 1e-12 for a, b in pairwise(in_order))


@given(PS)
def test_holm_lies_between_doing_nothing_and_bonferroni(ps: list[float]) -> None:
    assert min(holm(ps)) == pytest.approx(min(1.0, len(ps) * min(ps)))


@pytest.mark.parametrize(("ps", "weights"), [([1.5], None), ([-0.1], None), ([0.5], [0.0]), ([0.5], [1.0, 1.0])])
def test_holm_refuses_nonsense(ps: list[float], weights: list[float] | None) -> None:
    with pytest.raises(ValueError, match="positive weight"):
        holm(ps, weights)
