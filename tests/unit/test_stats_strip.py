"""Strips: one log axis for all lines, 1 in its middle, nothing outside of it, nothing stretched by one wild interval."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats import strip
from jitter_workshop.stats.verdicts import judge
from tests.maderounds import make_rounds

ratios = st.floats(min_value=1e-6, max_value=1e6)


def row(ratio: float | None, low: float = 0.0, high: float | None = None) -> Verdict:
    return Verdict("stalls", ratio, low, high, 1.0, 1.0, "cannot_tell", None, "words")


@given(st.lists(st.tuples(ratios, st.floats(1.0, 100.0), st.floats(1.0, 100.0)), max_size=9), st.integers(5, 80))
def test_every_line_lies_on_the_axis_in_its_order(lines: list[tuple[float, float, float]], width: int) -> None:
    rows = [row(ratio, ratio / down, ratio * up) for ratio, down, up in lines]
    shared = strip.axis(rows)
    for one in rows:
        found = strip.strip(one, shared)
        assert found.ratio is not None
        assert 0 <= found.low <= found.ratio <= found.high <= 1
        assert len(strip.drawn(found, width)) == width
        if one.low >= 1 / shared.reach:
            assert not found.open_low
        if one.high is not None and one.high <= shared.reach:
            assert not found.open_high


@given(ratios, st.sampled_from(strip.REACHES))
def test_a_ratio_and_its_inverse_are_equally_far_from_the_middle(ratio: float, reach: float) -> None:
    assert math.isclose(strip.position(ratio, reach) + strip.position(1 / ratio, reach), 1.0, abs_tol=1e-9)


def test_the_band_of_no_change_is_around_the_middle() -> None:
    shared = strip.axis([row(0.5, 0.4, 0.6)])
    low, high = shared.band
    assert low < strip.MIDDLE < high
    assert math.isclose(low + high, 1.0)
    assert shared.ticks[len(shared.ticks) // 2] == (0.5, 1.0)


def test_one_wild_interval_does_not_squeeze_the_others() -> None:
    near = row(0.9, 0.8, 1.02)
    assert strip.axis([near]).reach == 1.25
    assert strip.axis([near, row(1.1, 0.001, None)]).reach == 1.25
    assert strip.axis([near, row(None)]).reach == 1.25
    assert strip.axis([near, row(1 / 57, 1 / 70, 1 / 45)]).reach == 100


def test_no_lines_have_an_axis_too() -> None:
    assert strip.axis([]).reach == strip.REACHES[0]


def test_what_goes_on_beyond_the_axis_says_so() -> None:
    shared = strip.axis([row(0.5, 0.4, 0.6)])
    assert strip.drawn(strip.strip(row(0.5, 0.4, 0.7), shared), 21) == "  ├─●──┤  │          "
    assert strip.drawn(strip.strip(row(None, 0.0, None), shared), 11) == "◂────┼────▸"
    assert strip.drawn(strip.strip(row(1.0, 1.0, 1.0), shared), 11) == "     ●     "
    assert strip.drawn(strip.strip(row(0.0, 0.0, 0.9), shared), 11).startswith("●")


def test_the_strips_of_a_judgement_fit_together() -> None:
    rows = judge(make_rounds(4, 10, ratio=0.2)).rows
    shared = strip.axis(rows)
    proven = next(r for r in rows if r.verdict == "lower")
    assert strip.strip(proven, shared).high < strip.MIDDLE
