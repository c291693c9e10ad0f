"""Percentile curves and axes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.curve import ROLES, CurvePoint, CurveRole, PercentileCurve
from jitter_workshop.stats import curve as cv
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats import scale
from tests.madecurves import percentile_of_x

VALUES = st.lists(st.tuples(st.integers(0, 60_000_000_000), st.integers(1, 100_000)), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_a_curve_rises_from_the_minimum_to_the_maximum_and_follows_the_percentiles(
    values: list[tuple[int, int]],
) -> None:
    h = hg.new_histogram()
    for value, count in values:
        h.record_value(value, count)
    low, high = min(v for v, _ in values), max(v for v, _ in values)
    curve = cv.percentile_curve(h, "one", min_ns=low, max_ns=high)
    percentiles = [p.percentile for p in curve.points]
    heights = [p.value_ns for p in curve.points]
    assert len(curve.points) <= cv.MAX_POINTS
    assert percentiles == sorted(percentiles)
    assert heights == sorted(heights)
    assert (heights[0], heights[-1]) == (low, high)
    assert percentiles[-1] == pytest.approx(100 * (1 - 1 / curve.count))
    theirs = h.get_percentile_to_value_dict(percentiles)
    for point in curve.points[1:-1]:
        assert point.value_ns == max(low, min(theirs[point.percentile], high))
        if abs(beyond := curve.count * (1 - point.percentile / 100) - 10) > 1e-6:
            assert point.solid == (beyond > 0)
    for percentile, value in hg.summarise_histogram(h).percentiles.items():
        if value is not None and float(percentile) < percentiles[-1]:
            assert cv.curve_value_at(curve, float(percentile)) == max(low, min(value, high))


def test_a_single_sample_and_no_sample_are_curves_too() -> None:
    h = hg.new_histogram()
    assert cv.percentile_curve(h, "none").points == ()
    h.record_value(77)
    assert cv.percentile_curve(h, "one").points == (CurvePoint(0.0, 77, False),)
    h.record_value(90)
    assert cv.percentile_curve(h, "two").points[-1] == CurvePoint(50.0, 90, False)


def test_points_are_solid_while_ten_samples_lie_beyond() -> None:
    published = {"mean": 60879, "min": 76, "p50": 168, "p99.9": 9_000, "p99.999": 20_000, "max": 30_000}
    curve = cv.curve_from_percentiles("laptop", published, 10_000, "published 2015")
    assert [(round(p.percentile, 3), p.value_ns, p.solid) for p in curve.points] == [
        (0.0, 76, True),
        (50.0, 168, True),
        (99.9, 9_000, True),
        (99.99, 30_000, False),
    ]
    assert curve.origin == "published 2015"


def test_a_coarse_curve_from_a_runs_table() -> None:
    h = hg.new_histogram()
    h.record_value(100, 989)
    h.record_value(5000, 11)
    curve = cv.curve_from_summary("run", hg.summarise_histogram(h, min_ns=100, max_ns=5000))
    assert [p.value_ns for p in curve.points] == [100, 100, 100, 5000, 5000, 5000]


def test_an_impossible_percentile_is_refused() -> None:
    with pytest.raises(ValueError, match="p100"):
        cv.curve_from_percentiles("x", {"p100": 1}, 10)


def test_reading_a_value_off_a_curve() -> None:
    curve = PercentileCurve("c", (CurvePoint(0.0, 5, True), CurvePoint(90.0, 50, True)), 10)
    assert cv.curve_value_at(curve, 50) == 50
    assert cv.curve_value_at(curve, 0) == 5
    assert cv.curve_value_at(curve, 99) is None


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=30), st.integers(1, 10**9))
def test_a_curve_reaches_a_value_at_the_share_of_smaller_values(values: list[int], wanted: int) -> None:
    values.sort()
    step = 100 / len(values)
    found = PercentileCurve("", tuple(CurvePoint(n * step, value, True) for n, value in enumerate(values)), 1_000)
    at = cv.curve_percentile_at(found, wanted)
    if wanted > values[-1]:
        assert at is None
        return
    assert at is not None
    smaller = sum(value < wanted for value in values)
    assert max(smaller - 1, 0) * step - 1e-6 <= at <= smaller * step + 1e-6
    # Beyond the values that another tool knows, nothing is known.
    unknown = PercentileCurve("", found.points, 1_000, known_to=-1.0)
    assert cv.curve_percentile_at(unknown, wanted) is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 ns"),
        (76, "76 ns"),
        (999.6, "1 µs"),
        (4_100, "4.1 µs"),
        (4_134, "4.13 µs"),
        (999_600, "1 ms"),
        (8_126_495, "8.13 ms"),
        (1.2e9, "1.2 s"),
        (-300, "-300 ns"),
    ],
)
def test_times_read_as_people_say_them(value: float | None, text: str) -> None:
    assert scale.nice_ns(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00002, "0.00002"),
        (0.0123, "0.012"),
        (0.546, "0.55"),
        (0.99, "0.99"),
        (0.9951, "1"),
        (47.41, "47.4"),
        (7, "7"),
        (9.996, "10"),
        (99.94, "99.9"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1_453.2, "1,450"),
        (7_774_000.0, "7,770,000"),
        (-1_450.0, "-1,450"),
    ],
)
def test_numbers_read_as_people_write_them(value: float, text: str) -> None:
    assert scale.nice_number(value) == text


@given(st.floats(1e-6, 1e12))
def test_a_nice_number_is_close_and_has_no_exponent(value: float) -> None:
    text = scale.nice_number(value)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=0.0051 if value >= 1 else 0.051)
    assert len(text.replace(",", "").replace(".", "").strip("0")) <= 3


@given(st.floats(0.001, 1e15))
def test_a_nice_time_is_within_half_a_percent_and_short(value: float) -> None:
    text = scale.nice_ns(value)
    number, unit = text.split(" ")
    factor = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    if value >= 1:
        assert float(number) * factor == pytest.approx(value, rel=0.0051)
        assert value >= 1e12 or len(number.replace(".", "")) <= 4


@given(st.floats(0, 99.9999999))
def test_the_x_axis_goes_there_and_back(percentile: float) -> None:
    assert percentile_of_x(scale.x_of_percentile(percentile)) == pytest.approx(percentile)


def test_the_ends_of_the_axes() -> None:
    assert scale.x_of_percentile(99.9) == pytest.approx(3)
    assert scale.x_of_percentile(100) == scale.X_LIMIT
    assert scale.y_of_ns(0) == 0
    assert [t.label for t in scale.percentile_ticks(4)] == ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]
    assert [t.label for t in scale.ticks("time", 1.5, 4)] == ["100 ns", "1 µs", "10 µs"]


@given(st.lists(st.integers(0, 60_000_000_000), max_size=20), st.integers(1, 10**9))
def test_ranges_hold_every_point_and_mark(values: list[int], mark: int) -> None:
    curve = PercentileCurve("c", tuple(CurvePoint(99.9, v, True) for v in sorted(values)), 10)
    r = scale.ranges([curve], [(99.99, mark)])
    assert r.x_high >= 4
    for value in [*values, mark]:
        assert r.y_low <= scale.y_of_ns(value) <= r.y_high
    assert r.y_high - r.y_low >= 2
    assert math.isclose(r.y_low * 4 % 1, 0)


@given(st.lists(st.integers(1, 10**9), min_size=4, max_size=4), st.integers(1, 10**9))
def test_the_y_axis_begins_at_most_a_decade_below_the_smallest_median(values: list[int], mark: int) -> None:
    told = zip((0.0, 50.0, 90.0, 99.9), sorted(values), strict=True)
    one = PercentileCurve("c", tuple(CurvePoint(p, v, True) for p, v in told), 10**4)
    (median,) = scale.height_at_median(one)
    assert median == pytest.approx(scale.y_of_ns(one.points[1].value_ns))
    r = scale.ranges([one])
    # It may begin further below only where two decades would not fit above.
    assert median - 1 <= r.y_low <= median or r.y_high - r.y_low == 2 or r.y_low >= scale.y_of_ns(values[0]) - 0.35
    assert r.y_low >= min(median - 1, r.y_high - 2) - 0.25 - 1e-9
    assert scale.ranges([one], [(99.0, mark)]).y_low <= scale.y_of_ns(mark)


def test_the_height_at_the_median_is_on_the_drawn_line() -> None:
    ends = CurvePoint(0.0, 100, True), CurvePoint(75.0, 10_000, True)
    assert scale.height_at_median(PercentileCurve("c", ends, 10)) == [pytest.approx(3)]
    assert scale.height_at_median(PercentileCurve("c", ends[:1], 10)) == [2]
    assert scale.height_at_median(PercentileCurve("c", (), 10)) == []


def test_an_empty_chart_has_axes() -> None:
    r = scale.ranges([])
    assert len(scale.ticks("time", r.y_low, r.y_high)) >= 4


def test_a_curve_keeps_the_number_of_its_role_and_others_have_the_free_ones() -> None:
    def curve(role: CurveRole | None = None, origin: str = "") -> PercentileCurve:
        return PercentileCurve("", (), 0, origin, role=role)

    assert cv.numbers_of_curves([curve(), curve(), curve()]) == [0, 1, 2]
    # In each order, and beside each number of others.
    assert cv.numbers_of_curves([curve("before")]) == [0]
    assert cv.numbers_of_curves([curve("after"), curve("before")]) == [1, 0]
    assert cv.numbers_of_curves([curve(origin="published 2015"), curve("earlier"), curve("after")]) == [0, 5, 1]
    assert cv.numbers_of_curves([curve(), curve("before"), curve(), curve("due")]) == [1, 0, 2, 3]
    # A run that is made anew is drawn as the one that it replaces.
    assert cv.numbers_of_curves([curve("before"), curve("after"), curve("before")]) == [2, 1, 0]
    assert sorted(cv.numbers_of_curves([curve(role) for role in ROLES])) == list(range(len(ROLES)))
