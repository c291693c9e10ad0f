"""The signs of curves: each in the row of its value's dot, at its percentile or one column beside it."""

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


def close(cell: signs.Place, number: int, other: tuple[signs.Place, int]) -> bool:
    """Return True if a sign is one of the same curve in the same row, and at most a column beside it."""
    return number == other[1] and cell[1] == other[0][1] and abs(cell[0] - other[0][0]) <= 1


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
    frame = canvas._frame(curves, marks, shown, 70, rows, False, False, list(values.values()), guessed)
    found = signs.placed(frame, values, guessed, {})
    signed = {(cell, number) for cell, number in found.curves.items()}
    signed |= {(cell, number) for cell, numbers in found.shared.items() for number in numbers}
    wanted = {(frame.column(x), frame.row(y)): n for n, points in values.items() for x, y in points}
    at_values = {((frame.column(x), frame.row(y)), n) for n, points in values.items() for x, y in points}
    inside = {(cell, n) for cell, n in at_values if frame.holds(*cell) and cell not in found.guesses}
    assert {(cell[1], n) for cell, n in signed} == {(cell[1], n) for cell, n in inside}
    assert all(any(close(cell, n, place) for place in inside) for cell, n in signed)
    assert all(any(close(cell, n, place) for place in signed) for cell, n in inside)
    for cell, number in signed - inside:
        beside = {n for at, n in inside if close(cell, number, (at, number))}
        assert len(beside) > 1, "a sign is moved only beside another one"
    assert not set(found.curves) & set(found.shared)
    assert set(found.at_guess) == set(wanted) & set(found.guesses)
    assert all(len(set(numbers)) > 1 for numbers in found.shared.values())
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


def test_two_values_in_one_cell_have_two_signs_from_a_factor_of_1_3_on() -> None:
    low = 4.0
    column, row = FRAME.column(3.0), FRAME.row(low)
    for factor, apart in ((1.0, False), (1.2, False), (1.3, True), (1.8, True)):
        high = low + math.log10(factor)
        assert FRAME.row(high) == row
        for first, second in ((low, high), (high, low)):
            found = signs.placed(FRAME, {0: [(3.0, first)], 1: [(3.0, second)]}, [], {})
            assert found.curves == ({(column, row): 0, (column + 1, row): 1} if apart else {})
            assert found.shared == ({} if apart else {(column, row): [0, 1]})


def test_of_three_values_the_two_that_are_alike_have_one_sign() -> None:
    column, row = FRAME.column(3.0), FRAME.row(4.0)
    found = signs.placed(FRAME, {0: [(3.0, 4.0)], 1: [(3.0, 4.2)], 2: [(3.0, 4.02)]}, [], {})
    assert found.shared == {(column, row): [0, 2]}
    assert found.curves == {(column + 1, row): 1}


def test_signs_at_the_right_end_go_to_the_left_and_without_room_they_stay_one() -> None:
    last, row = FRAME.columns - 1, FRAME.row(4.0)
    ends: dict[int, list[tuple[float, float]]] = {0: [(7.0, 4.0)], 1: [(7.0, 4.2)]}
    assert signs.placed(FRAME, ends, [], {}).curves == {(last - 1, row): 0, (last, row): 1}
    left = FRAME.at(last - 1), 4.0
    guessed = signs.placed(FRAME, ends, [left], {})
    assert not guessed.curves
    assert guessed.shared == {(last, row): [0, 1]}


@pytest.mark.parametrize("many", [1, 2, 3, 5])
@pytest.mark.parametrize("x", [0.0, 3.0, 7.0])
def test_signs_of_one_cell_are_one_combined_sign_at_their_percentile(many: int, x: float) -> None:
    found = signs.placed(FRAME, {n: [(x, 4.0)] for n in range(many)}, [], {})
    at = FRAME.column(x), FRAME.row(4.0)
    assert found.curves == ({at: 0} if many == 1 else {})
    assert found.shared == ({at: list(range(many))} if many > 1 else {})


def test_a_guess_and_the_curves_in_its_cell_have_one_combined_sign() -> None:
    point = (3.0, 4.0)
    at = FRAME.column(3.0), FRAME.row(4.0)
    for many in (0, 1, 2, 3):
        found = signs.placed(FRAME, {n: [point] for n in range(many)}, [point], {})
        assert list(found.guesses) == [at]
        assert set(found.at_guess) == ({at} if many else set())
        assert not found.curves
        assert not found.shared


@pytest.mark.parametrize(("dots", "moved"), [((0,), 0), ((-1, 0, 1), 0), ((-1,), -1), ((1,), 1), ((), 0), ((2,), 0)])
def test_a_sign_stands_on_its_curve_if_rounding_put_the_dot_into_the_next_row(
    dots: tuple[int, ...], moved: int
) -> None:
    column, row = FRAME.column(3.0), FRAME.row(4.0)
    near_its_edge = FRAME.ranges.y_high - (row + 0.4 * moved) / FRAME.decade
    found = signs.placed(FRAME, {0: [(3.0, near_its_edge)]}, [], {0: {(column, row + one) for one in dots}})
    assert found.curves == {(column, row + moved): 0}


def test_neighbouring_percentiles_have_a_sign_each() -> None:
    ends = {n: [(3.1, 4.0), (3.0, 4.0 + n)] for n in range(2)}
    found = signs.placed(FRAME, ends, [], {})
    row = FRAME.row(4.0)
    assert found.shared == {(FRAME.column(3.1), row): [0, 1]}
    assert found.curves == {(FRAME.column(3.0), row): 0, (FRAME.column(3.0), FRAME.row(5.0)): 1}


def test_values_that_differ_by_a_quarter_stand_in_one_row_where_a_row_is_a_decade() -> None:
    """Once 24.2 µs stood beside 10 µs and 30.5 µs beside 100 µs."""
    for low, high in ((24_200, 30_500), (28_000, 36_000), (31_000, 32_500)):
        both = [made(10, 10, 10, 11, 12, value, 4_240_000) for value in (low, high)]
        lines = canvas.draw_curves(both, 78, 10, "mono").plain.split("\n")
        assert sum("┤" in line for line in lines) >= 6, "a row is a decade"
        assert "".join(lines).count("◉") == 4, "three signs, and their key"
        assert not {"●", "■"} & set("".join(lines))


@pytest.mark.parametrize(("first", "second"), [(4.45, 4.55), (4.30, 4.52), (3.49, 3.51)])
def test_nearly_equal_values_share_a_row_and_the_labels_stay(first: float, second: float) -> None:
    moved = axes.shifted(FRAME, [(first, second)], [1.0, 8.0])
    assert FRAME.row(first) != FRAME.row(second)
    assert moved.row(first) == moved.row(second)
    for tick in axes.y_ticks(FRAME):
        assert moved.row(tick.position) == FRAME.row(tick.position)
    assert axes.shifted(FRAME, [(4.2, 4.8)], [1.0, 8.0]) == FRAME, "these differ by more than half a row"
    assert not math.isclose(moved.ranges.y_low, FRAME.ranges.y_low)


@pytest.mark.parametrize(("first", "second"), [(4.55, 5.40), (4.62, 5.30)])
def test_values_that_differ_by_2_stand_in_two_rows_where_a_move_of_the_axis_does_it(
    first: float, second: float
) -> None:
    """1.94 ms and 4.24 ms once shared a row of half a decade."""
    frame = axes.PlotFrame(70, 15, scale.Ranges(7.0, 1.0, 8.0), ("percentile", "time"))
    pair = first / 2 + 1.5, second / 2 + 1.5
    assert frame.row(pair[0]) == frame.row(pair[1])
    moved = axes.shifted(frame, [pair], [1.0, 8.0])
    assert moved.row(pair[0]) == moved.row(pair[1]) + 1
    for tick in axes.y_ticks(frame):
        assert moved.row(tick.position) == frame.row(tick.position)


def test_a_sign_that_only_names_its_curve_stands_on_one_of_its_dots() -> None:
    dots = {(4, 2), (4, 3), (5, 3), (7, 9)}
    assert signs.on_curve(dots, 4, 2) == (4, 2)
    assert signs.on_curve(dots, 4, 1) == (4, 2)
    assert signs.on_curve(dots, 5, 4) == (5, 3)
    # A far part of the curve is no place for the sign.
    assert signs.on_curve(dots, 6, 3) == (6, 3)
    assert signs.on_curve(dots, 7, 5) == (7, 5)


def test_a_sign_goes_into_the_next_row_only_where_its_value_is_near_the_edge() -> None:
    """Once 9.15 ms stood a row below 10.2 ms, because the dotted curve has a dot of a shorter time there."""
    dots = {(4, 2)}
    assert [signs.on_curve(dots, 4, 1, off) for off in (-0.4, 0.1, 0.4)] == [(4, 1), (4, 1), (4, 2)]
    assert [signs.on_curve(dots, 4, 3, off) for off in (-0.4, 0.1, 0.4)] == [(4, 2), (4, 3), (4, 3)]
