"""The exact sign-flip test, against listing every flip."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.stats.exact import FLIP_GROUPS, flip_p, smallest_flip_p

PARTS = st.lists(st.integers(-50, 50), max_size=11)


def listed(parts: list[int]) -> float:
    seen = abs(sum(parts))
    flips = [
        abs(sum(s * p for s, p in zip(signs, parts, strict=True))) for signs in product((1, -1), repeat=len(parts))
    ]
    return sum(f >= seen for f in flips) / len(flips)


@given(PARTS)
def test_it_is_the_share_of_flips_as_far_from_zero(parts: list[int]) -> None:
    assert flip_p(parts) == pytest.approx(listed(parts))


@given(PARTS, st.floats(0.001, 1000))
def test_neither_scale_nor_direction_matter(parts: list[int], scale: float) -> None:
    assert flip_p([p * scale for p in parts]) == pytest.approx(flip_p(parts))
    assert flip_p([-p for p in parts]) == pytest.approx(flip_p(parts))


@given(PARTS)
def test_no_signs_give_less_than_the_smallest(parts: list[int]) -> None:
    assert flip_p(parts) >= smallest_flip_p(parts) - 1e-12
    one_way = [abs(p) for p in parts]
    assert flip_p(one_way) == pytest.approx(smallest_flip_p(parts))


def test_all_ten_one_way_is_two_in_1024() -> None:
    assert flip_p([0.3] * 10) == pytest.approx(2 / 1024)


def test_the_sign_flip_p_of_no_difference_is_1() -> None:
    assert flip_p([]) == flip_p([0.0] * 12) == flip_p([1.0, -1.0]) == 1.0


@settings(max_examples=20)
@given(st.lists(st.floats(0.5, 2), min_size=FLIP_GROUPS + 1, max_size=90))
def test_many_rounds_are_flipped_in_groups_and_can_still_be_sure(sizes: list[float]) -> None:
    assert flip_p(sizes) == pytest.approx(2.0 / 2**FLIP_GROUPS)
    assert flip_p([s * (-1) ** i for i, s in enumerate(sizes)]) > 2.0 / 2**FLIP_GROUPS
