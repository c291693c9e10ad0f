"""Test the place of an interval on the axis that all lines of a verdict share, and its drawing in cells."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats.interval_plot import REACHES, Axis, axis_of, interval_picture, scale, strip
from jitter_workshop.stats.verdicts import judge_change
from tests.maderounds import make_rounds

ratios = st.floats(1e-6, 1e6)
axes = st.sampled_from([Axis(reach) for reach in REACHES])
WIDTH = 21


def row(low: float, ratio: float | None, high: float | None) -> Verdict:
    return Verdict("p99", ratio, low, high, 0.5, 1.0, "cannot_tell", None, "")


@given(axes, ratios)
def test_one_is_the_middle_and_a_ratio_mirrors_its_inverse(axis: Axis, ratio: float) -> None:
    assert axis.position(1) == 0.5
    assert axis.position(ratio) == pytest.approx(1 - axis.position(1 / ratio), abs=1e-9)
    assert 0 <= axis.position(ratio) <= 1


@given(axes, ratios, ratios)
def test_more_lies_further_right(axis: Axis, one: float, other: float) -> None:
    assert (one < other) <= (axis.position(one) <= axis.position(other))


@given(axes)
def test_the_band_encloses_the_middle(axis: Axis) -> None:
    low, high = axis.band
    assert 0 < low < 0.5 < high < 1
    assert low + high == pytest.approx(1)


@given(axes, st.lists(ratios, min_size=3, max_size=3).map(sorted))
def test_an_interval_beyond_the_axis_has_an_arrow(axis: Axis, found: list[float]) -> None:
    low, ratio, high = found
    made = strip(row(low, ratio, high), axis)
    assert made is not None
    assert made.ratio is not None
    assert made.low <= made.ratio <= made.high
    assert made.below == (low < 1 / axis.reach * (1 - 1e-9))
    assert made.above == (high > axis.reach * (1 + 1e-9))
    shown = interval_picture(made, axis, WIDTH)
    assert len(shown) == WIDTH
    assert ("◂" in shown) <= made.below
    assert ("▸" in shown) <= made.above


def test_pictures() -> None:
    axis = Axis(10)
    assert interval_picture(strip(row(0.2, 0.3, 0.5), axis), axis, WIDTH) == "   ├─●─┤  │          "
    assert interval_picture(strip(row(0.5, 2.0, 4.0), axis), axis, WIDTH) == "       ├──┼──●──┤    "
    assert interval_picture(strip(row(0.0, 0.01, 0.03), axis), axis, WIDTH) == "◂         │          "
    assert interval_picture(strip(row(2.0, None, None), axis), axis, WIDTH) == "          │  ├──────▸"
    assert interval_picture(strip(row(0.5, 2.0, None), axis), axis, WIDTH) == "       ├──┼──●──────▸"
    assert interval_picture(None, axis, WIDTH) == "          │          "
    assert scale(axis, WIDTH) == "1/10      1       10×"
    near = Axis(2)
    assert interval_picture(strip(row(0.98, 1.0, 1.02), near), near, WIDTH) == "         ┊●┊         "
    assert scale(near, WIDTH) == "1/2       1        2×"


def test_a_line_of_which_nothing_is_known_has_no_picture() -> None:
    assert strip(row(0.0, None, None), Axis(10)) is None


def test_the_axis_has_room_for_nearly_all() -> None:
    assert axis_of([]).reach == 2
    assert axis_of([row(0.95, 1.0, 1.05)] * 9).reach == 2
    assert axis_of([row(0.3, 0.5, 0.9)] * 9 + [row(0.0001, 0.5, None)]).reach == 5
    assert axis_of([row(1e-9, 1e-8, 1e-7)]).reach == 1_000
    assert axis_of([row(0.5, 1.0, 2.0)] * 5).reach == 2


@pytest.mark.parametrize("ratio", [1.0, 0.02, 30.0])
def test_the_plotted_interval_of_a_judgement_agrees_with_its_verdict(ratio: float) -> None:
    judged = judge_change(make_rounds(4, ratio=ratio))
    axis = axis_of(judged.rows)
    for one in judged.rows:
        shown = interval_picture(strip(one, axis), axis, WIDTH)
        assert len(shown) == WIDTH
        if one.verdict == "lower":
            assert not any(c in shown[WIDTH // 2 + 1 :] for c in "├─●┤")
        assert math.isfinite(axis.position(one.low))
