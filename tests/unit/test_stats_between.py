"""The space between two curves: whole, of one sign in each piece, and between both edges."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.stats.between import pieces

Points = list[tuple[float, float]]


@st.composite
def paths(draw: st.DrawFn) -> Points:
    xs = sorted(draw(st.lists(st.integers(0, 40), min_size=1, max_size=8)))
    return [(x / 4, draw(st.integers(0, 40)) / 4) for x in xs]


def area(corners: tuple[tuple[float, float], ...]) -> float:
    ring = itertools.pairwise((*corners, corners[0]))
    return abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in ring)) / 2


def height(path: Points, x: float) -> float:
    return next(
        y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        for (x0, y0), (x1, y1) in itertools.pairwise(path)
        if x0 < x1 and x0 <= x <= x1
    )


@given(paths(), paths())
def test_the_pieces_fill_all_that_lies_between_and_no_more(before: Points, after: Points) -> None:
    found = pieces(before, after)
    low, high = max(before[0][0], after[0][0]), min(before[-1][0], after[-1][0])
    for one in found:
        edges = list(zip(one.before, one.after, strict=True))
        assert all(a[0] == b[0] and low <= a[0] <= high for a, b in edges)
        assert all(b[1] <= a[1] + 1e-9 if one.better else b[1] >= a[1] - 1e-9 for a, b in edges)
        assert [x for x, _ in one.before] == sorted(x for x, _ in one.before)
    # Points of a path are at multiples of 1/4; the middle rule over steps of 1/4 is exact but for crossings.
    steps = 400
    if low < high:
        each = (high - low) / steps
        middles = [low + (n + 0.5) * each for n in range(steps)]
        total = sum(abs(height(before, x) - height(after, x)) for x in middles) * each
        assert sum(area(one.outline) for one in found) == pytest.approx(total, abs=0.02 * (high - low) * 10 + 1e-6)
    else:
        assert not found


def test_curves_that_cross_have_a_better_and_a_worse_piece() -> None:
    found = pieces([(0, 2), (4, 2)], [(0, 1), (4, 3)])
    assert [one.better for one in found] == [True, False]
    assert found[0].before[-1] == found[0].after[-1] == (2.0, 2.0)


def test_a_vertical_step_and_equal_curves() -> None:
    (one,) = pieces([(0, 1), (2, 1), (2, 3), (4, 3)], [(0, 1), (4, 1)])
    assert one.better
    assert area(one.outline) == pytest.approx(4)
    assert pieces([(0, 1), (4, 1)], [(0, 1), (4, 1)]) == ()
    assert pieces([], [(0, 1)]) == ()
