"""The signs of curves: each in the row of its value's dot, none moved to another row to make room."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.chart import axes, canvas, signs
from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.stats import scale, view

PARTS = (0.0, 10.0, 50.0, 90.0, 99.0, 99.9, 99.99)
FRAME = axes.PlotFrame(70, 8, scale.Ranges(7.0, 1.0, 8.0), ("percentile", "time"))


def made(*values: float) -> PercentileCurve:
    told = zip(PARTS, sorted(values), strict=True)
    return PercentileCurve("", tuple(CurvePoint(p, round(v), True) for p, v in told), 10**5)


def near(center: int) -> st.SearchStrategy[list[int]]:
    """Return values of a curve that are at most 2.5 times the values of other curves, or less than them."""
    return st.lists(st.integers(center * 2, center * 5), min_size=7, max_size=7)


def dot_of(frame: axes.PlotFrame, x: float, y: float) -> int:
    (cell,) = canvas._dots(frame, 1, [(x, y)])
    return cell[1]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(10, 10**7).flatmap(near), min_size=1, max_size=4),
    st.integers(4, 30),
    st.one_of(st.none(), st.integers(20, 10**7)),
)
def test_a_sign_stands_in_the_row_of_its_values_dot_and_signs_keep_the_order_of_values(
    runs: list[list[int]], rows: int, guess: int | None
) -> None:
    curves = [made(*values) for values in runs]
    marks = [] if guess is None else [(99.9, guess)]
    shown = view.percentiles(curves, marks)
    values, guessed = canvas._valued(curves, shown.paths, marks, 99.9)
    frame = canvas._frame(curves, marks, shown, 70, rows, False, False, [*values.values(), guessed])
    found = signs.placed(frame, values, guessed)
    for (column, row), number in found.curves.items():
        places = [(frame.column(x), y) for x, y in values[number]]
        of_sign = [(at, y) for at, y in places if abs(at - column) <= 4 and frame.row(y) == row]
        assert of_sign, "a sign in the row of one of its values"
    for points in values.values():
        for x, y in points:
            edge = abs((frame.down(y) + 0.5) % 1)
            if 0.02 < edge < 0.98 and frame.holds(frame.column(x), frame.row(y)):
                assert dot_of(frame, x, y) == frame.row(y)
    at_tail = {i: (frame.row(points[-1][1]), points[-1][1]) for i, points in values.items()}
    for (row, y), (other_row, other) in itertools.permutations(at_tail.values(), 2):
        assert row >= other_row or y > other, "what stands higher is longer"
    if guess is not None:
        assert list(found.guesses) == [(frame.column(guessed[0][0]), frame.row(guessed[0][1]))]
        assert not set(found.guesses) & set(found.curves)


@pytest.mark.parametrize(
    ("many", "steps"), [(1, [0]), (2, [-1, 1]), (3, [-1, 0, 1]), (4, [-2, -1, 1, 2]), (5, [-2, -1, 0, 1, 2])]
)
def test_signs_of_one_cell_stand_around_their_percentile(many: int, steps: list[int]) -> None:
    point = (3.0, 4.0)
    found = signs.placed(FRAME, {n: [point] for n in range(many)}, [])
    at = FRAME.column(3.0), FRAME.row(4.0)
    assert [(column - at[0], row - at[1], n) for (column, row), n in sorted(found.curves.items())] == [
        (step, 0, n) for n, step in enumerate(steps)
    ]


def test_a_guess_stands_at_its_percentile_and_the_signs_beside_it() -> None:
    point = (3.0, 4.0)
    for many in (1, 2, 3):
        found = signs.placed(FRAME, {n: [point] for n in range(many)}, [point])
        at = FRAME.column(3.0), FRAME.row(4.0)
        assert list(found.guesses) == [at]
        assert sorted(found.curves.values()) == list(range(many))
        assert at not in found.curves
        assert {row for _, row in found.curves} == {at[1]}


def test_signs_at_the_edge_of_the_plot_stay_in_their_row_and_order() -> None:
    for x in (0.0, 7.0):
        found = signs.placed(FRAME, {n: [(x, 4.0)] for n in range(3)}, [])
        assert [n for _, n in sorted(found.curves.items())] == [0, 1, 2]
        assert {row for _, row in found.curves} == {FRAME.row(4.0)}


def test_a_curve_has_no_second_sign_beside_its_first() -> None:
    ends = {n: [(3.1, 4.0), (3.0, 4.0)] for n in range(2)}
    assert sorted(signs.placed(FRAME, ends, []).curves.values()) == [0, 1]


def test_values_that_differ_by_a_quarter_stand_in_one_row_where_a_row_is_a_decade() -> None:
    """Once 24.2 µs stood beside 10 µs and 30.5 µs beside 100 µs."""
    for low, high in ((24_200, 30_500), (28_000, 36_000), (31_000, 32_500)):
        both = [made(10, 10, 10, 11, 12, value, 4_240_000) for value in (low, high)]
        lines = canvas.draw_curves(both, 78, 10, "mono").plain.split("\n")
        assert sum("┤" in line for line in lines) >= 6, "a row is a decade"
        rows = [{n for n, line in enumerate(lines) if sign in line} for sign in "●■"]
        assert rows[0] == rows[1]


@pytest.mark.parametrize(("first", "second"), [(4.45, 4.55), (4.30, 4.52), (3.49, 3.51)])
def test_nearly_equal_values_share_a_row_and_the_labels_stay(first: float, second: float) -> None:
    moved = axes.in_one_row(FRAME, [(first, second)], [1.0, 8.0])
    assert FRAME.row(first) != FRAME.row(second)
    assert moved.row(first) == moved.row(second)
    for tick in axes.y_ticks(FRAME):
        assert moved.row(tick.position) == FRAME.row(tick.position)
    assert axes.in_one_row(FRAME, [(4.2, 4.8)], [1.0, 8.0]) == FRAME, "these differ by more than half a row"
    assert not math.isclose(moved.ranges.y_low, FRAME.ranges.y_low)


def test_a_sign_that_only_names_its_curve_stands_on_one_of_its_dots() -> None:
    dots = {(4, 2), (4, 3), (5, 3), (7, 9)}
    assert signs.on_curve(dots, 4, 2) == (4, 2)
    assert signs.on_curve(dots, 4, 1) == (4, 2)
    assert signs.on_curve(dots, 5, 4) == (5, 3)
    # A far part of the curve is no place for the sign.
    assert signs.on_curve(dots, 6, 3) == (6, 3)
    assert signs.on_curve(dots, 7, 5) == (7, 5)
