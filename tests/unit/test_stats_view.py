"""The same runs turned and counted in other ways: against plain counting."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats import scale
from jitter_workshop.stats import view as vw
from jitter_workshop.stats.curve import percentile_curve
from jitter_workshop.stats.stalls import buckets

# Below 2,048 every ns has a counter of its own.
EXACT = st.lists(st.integers(1, 2_047), min_size=1, max_size=300)
COUNTS = st.lists(st.integers(0, 10**6), min_size=26, max_size=26)


def recorded(values: list[int]) -> Any:
    made = hg.new_histogram()
    for value in values:
        made.record_value(value)
    return made


def inside(view: vw.CurveView) -> bool:
    r = view.ranges
    return all(
        r.x_low - 1e-9 <= x <= r.x_high + 1e-9 and r.y_low - 1e-9 <= y <= r.y_high + 1e-9
        for path in view.paths
        for x, y in path
    )


@given(EXACT)
def test_a_ccdf_says_how_much_is_longer(values: list[int]) -> None:
    view = vw.ccdf([percentile_curve(recorded(values), "a")])
    (path,) = view.paths
    assert inside(view)
    # From the shortest, with everything above it, down to the longest of n, at 1/n.
    assert path[0] == (math.log10(min(values)), 0.0)
    assert path[-1] == pytest.approx((math.log10(max(values)), -math.log10(len(values))))
    for (x, y), (x_after, y_after) in pairwise(path):
        assert x <= x_after
        assert y >= y_after
    for x, y in path:
        value, share = round(10**x), 10**y
        # A rank is rounded to a whole sample: half of one is the most that the share can be off.
        assert sum(v > value for v in values) <= share * len(values) + 0.5 + 1e-6
        assert sum(v >= value for v in values) >= share * len(values) - 0.5 - 1e-6


@given(st.lists(EXACT, min_size=1, max_size=3))
def test_bars_hold_every_value_once(runs: list[list[int]]) -> None:
    view = vw.frequency([hg.non_zero(recorded(values)) for values in runs])
    assert inside(view)
    assert view.solid == tuple(map(len, view.paths))
    for values, path in zip(runs, view.paths, strict=True):
        plain = Counter(math.floor(math.log10(v) * vw.PER_DECADE + 1e-9) for v in values)
        tops = {round(x * vw.PER_DECADE): 10**y for (x, y), (after, _) in pairwise(path) if after > x + 1e-9}
        assert {bar: round(height) for bar, height in tops.items() if height >= 0.9} == dict(plain)
        # An empty bar stands on the floor and not at zero, where a logarithmic axis has no place.
        assert {round(height, 6) for bar, height in tops.items() if bar not in plain} <= {0.5}


@given(COUNTS, st.integers(10**6, 10**13))
def test_rates_are_levels_between_their_bounds(counts: list[int], sampled_ns: int) -> None:
    made = buckets(counts, sampled_ns)
    view = vw.gap_rates_view([made])
    (path,) = view.paths
    if not any(counts):
        assert path == ()
        return
    assert inside(view)
    levels = {round(10**x): 10**y for (x, y), (after, _) in pairwise(path) if after > x}
    for bucket in made:
        if bucket.count:
            assert levels[bucket.from_ns] == pytest.approx(bucket.per_hour)
        elif bucket.from_ns in levels:
            # Half of what a single gap would be.
            assert levels[bucket.from_ns] == pytest.approx(0.5 * 3.6e12 / sampled_ns)


def test_the_view_of_percentiles_has_the_points_of_the_curve() -> None:
    points = (CurvePoint(0.0, 100, True), CurvePoint(90.0, 1_000, True), CurvePoint(99.0, 10_000, False))
    curve = PercentileCurve("a", points, 100)
    view = vw.percentiles([curve])
    assert view.paths == (((0.0, 2.0), (pytest.approx(1.0), 3.0), (pytest.approx(2.0), 4.0)),)
    assert (view.solid, view.ranges, view.x, view.y) == ((2,), scale.ranges([curve]), "percentile", "time")


def test_a_view_without_curves_has_valid_ranges() -> None:
    for view in (vw.ccdf([]), vw.frequency([]), vw.gap_rates_view([]), vw.frequency([[]]), vw.percentiles([])):
        assert inside(view)
        assert view.ranges.x_high > view.ranges.x_low
        assert view.ranges.y_high > view.ranges.y_low


@pytest.mark.parametrize(
    ("unit", "low", "high", "labels"),
    [
        ("share", -4.2, 0.0, ["10⁻⁴", "10⁻³", "0.01", "0.1", "1"]),
        ("number", -0.5, 4.1, ["1", "10", "100", "1,000", "10⁴"]),
        ("time", 3.0, 6.0, ["1 µs", "10 µs", "100 µs", "1 ms"]),
        ("percentile", 0.0, 3.0, ["0 %", "90 %", "99 %", "99.9 %"]),
    ],
)
def test_ticks_of_every_unit(unit: str, low: float, high: float, labels: list[str]) -> None:
    assert [tick.label for tick in scale.ticks(unit, low, high)] == labels


def test_a_path_enters_from_the_edge() -> None:
    path = [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]
    assert vw.from_edge(path, 2, 0.5) == (path, 2)
    assert vw.from_edge(path, 2, 2.0) == ([(0.5, 2.0), (1.0, 3.0), (2.0, 5.0)], 2)
    # The point from which on the path is dotted may be outside.
    assert vw.from_edge(path, 1, 4.0) == ([(1.5, 4.0), (2.0, 5.0)], 0)
    assert vw.from_edge(path, 3, 6.0) == ([], 0)
    assert vw.from_edge([], 0, 1.0) == ([], 0)


def test_a_place_outside_of_a_path_has_the_height_of_the_nearer_end() -> None:
    path = ((5.8, 4.3), (7.0, 5.0), (9.0, 6.6))
    assert [vw.height_at(path, x) for x in (5.8 - 1e-12, 5.8, 9.0, 9.0 + 1e-12)] == [4.3, 4.3, 6.6, 6.6]
    assert vw.height_at(path, 8.0) == pytest.approx(5.8)
