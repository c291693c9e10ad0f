"""The chart as SVG: valid, self-contained, and closed to what others named."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.palette import PALETTES
from jitter_workshop.report.pictures.drawing import (
    CUT,
    Area,
    ChartSeries,
    CurveMark,
    Stroke,
    Words,
    colour_of,
    fitted,
    picture,
)
from jitter_workshop.report.pictures.svg import render_svg
from jitter_workshop.stats import scale, view
from jitter_workshop.stats.histogram import Bin
from tests.madecurves import curve, percentile_of_x

NS = "{http://www.w3.org/2000/svg}"


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.text(max_size=20), st.lists(st.integers(0, 10**11), max_size=8), st.text(max_size=5)), max_size=5
    ),
    st.text(max_size=30),
)
def test_every_label_gives_a_valid_and_harmless_picture(
    given_curves: list[tuple[str, list[int], str]], title: str
) -> None:
    text = render_svg([curve(label, values, 3, origin) for label, values, origin in given_curves], title)
    root = ElementTree.fromstring(text)
    assert root.tag == f"{NS}svg"
    allowed = {"svg", "title", "desc", "style", "rect", "text", "tspan", "line", "polyline", "circle", "polygon"}
    assert {e.tag.removeprefix(NS) for e in root.iter()} <= allowed
    assert not [a for e in root.iter() for a in e.attrib if a.lower().startswith(("on", "href", "{http"))]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(1, 10**10), min_size=9, max_size=9), min_size=1, max_size=4))
def test_each_label_of_y_is_at_its_value_and_all_shapes_are_inside(runs: list[list[int]]) -> None:
    told = (0.0, 10.0, 30.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99)
    curves = [
        PercentileCurve("a", tuple(CurvePoint(p, v, p < 99) for p, v in zip(told, sorted(values), strict=True)), 10**5)
        for values in runs
    ]
    between = (0, len(curves) - 1) if len(curves) > 1 else None
    drawn = picture(curves, between=between)
    top, bottom = 56, 496
    units = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
    words = [one for one in drawn.shapes if isinstance(one, Words) and one.anchor == "end" and one.x == 74]
    labels = [(one.y, float(one.text.split()[0]) * units[one.text.split()[1]]) for one in words]
    assert [value for _, value in labels] == sorted({value for _, value in labels})
    (low_y, low), (high_y, high) = labels[0], labels[-1]
    for y, value in labels:
        assert y == pytest.approx(low_y + (high_y - low_y) * math.log10(value / low) / math.log10(high / low))
    gaps = [a - b for (a, _), (b, _) in itertools.pairwise(labels)]
    assert min(gaps) >= 14
    for one in drawn.shapes:
        points = one.points if isinstance(one, Stroke) and not one.sample else ()
        points = one.outline if isinstance(one, Area) and one.outline[0][1] < bottom + 60 else points
        assert all(top - 1e-6 <= y <= bottom + 1e-6 for _, y in points)
    lowest = view.percentiles(curves).ranges.y_low
    cut = any(scale.y_of_ns(values[0]) < lowest - 1e-9 for values in map(sorted, runs))
    assert cut == any(isinstance(one, Words) and one.text == CUT for one in drawn.shapes)
    # The slower half is never cut.
    assert all(scale.y_of_ns(sorted(values)[3]) >= lowest for values in runs)


def test_a_hostile_label_is_text() -> None:
    text = render_svg([curve("<script>alert(1)</script>&\x1b[31m\u202e", [100, 200])])
    assert "<script" not in text
    assert "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in text


def test_recorded_curves_of_a_chapter_have_the_colours_of_before_and_after() -> None:
    pair = [curve(label, [100, 200], origin="recorded") for label in ("first", "second")]
    told = [dataclasses.replace(pair[0], role="before"), dataclasses.replace(pair[1], role="after")]
    text, grey = render_svg(told), render_svg(pair)
    for colour in PALETTES["light"].curves[:2]:
        assert colour in text
        assert colour not in grey
    assert text.count("recorded") >= 2


def test_axes_legend_dots_and_published_curves() -> None:
    text = render_svg(
        [curve("laptop", [168, 256, 8_126_495], origin="published 2015"), curve("mine", [100] * 5 + [9_000] * 5, 6)]
    )
    root = ElementTree.fromstring(text)
    words = ["".join(e.itertext()) for e in root.iter(f"{NS}text")]
    for wanted in ("99.99 %", "1 µs", "percentile", "latency", "laptop published 2015", "mine", "8.13 ms", "9 µs"):
        assert wanted in words
    lines = [e.get("class") for e in root.iter(f"{NS}polyline")]
    assert lines == ["line r0 reference", "line c0", "line c0 few"]
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@pytest.mark.parametrize("curves", [[], [PercentileCurve("empty", (), 0)], [curve("one", [5])]])
def test_little_to_draw_is_still_a_chart(curves: list[PercentileCurve]) -> None:
    assert "10 µs" in render_svg(curves) or "10 ns" in render_svg(curves)


@given(st.lists(st.integers(1, 10**10), min_size=2, max_size=20))
def test_curves_stay_inside_the_plot(values: list[int]) -> None:
    root = ElementTree.fromstring(render_svg([curve("c", values)]))
    for line in root.iter(f"{NS}polyline"):
        for pair in (line.get("points") or "").split():
            x, y = (float(v) for v in pair.split(","))
            assert 84 <= x <= 960 - 28
            assert 56 <= y <= 56 + 440


@given(st.lists(st.lists(st.integers(1, 10**11), min_size=1, max_size=8), max_size=4))
def test_every_view_is_a_valid_picture_with_its_points_inside(runs: list[list[int]]) -> None:
    curves = [curve(f"c{i}", values) for i, values in enumerate(runs)]
    counted = [[Bin(v, v, 1) for v in sorted(set(values))] for values in runs]
    for shown in (view.ccdf(curves), view.frequency(counted)):
        root = ElementTree.fromstring(render_svg(curves, view=shown))
        assert root.findtext(f"{NS}title") == shown.title
        told = [text.text for text in root.iter(f"{NS}text")]
        assert shown.x_name in told
        assert shown.y_name in told
        high = float(root.attrib["height"])
        for line in root.iter(f"{NS}polyline"):
            for point in line.attrib["points"].split():
                x, y = map(float, point.split(","))
                assert 0 <= x <= 960
                assert 0 <= y <= high


def test_pictures_in_one_page_keep_to_themselves() -> None:
    texts = [render_svg([curve("a", [100, 900]), curve("b", [5], origin="elsewhere")], scope=s) for s in ("one", "two")]
    for text, scope in zip(texts, ("one", "two"), strict=True):
        root = ElementTree.fromstring(text)
        ids = [e.attrib["id"] for e in root.iter() if "id" in e.attrib]
        assert ids == [scope, f"{scope}-title", f"{scope}-description"]
        assert root.attrib["aria-labelledby"].split() == ids[1:]
        style = root.findtext(f"{NS}style") or ""
        selectors = [s.strip() for rule in re.findall(r"([^{}]+)\{", style) for s in rule.split(",")]
        assert all(s.startswith((f"#{scope}", "@media")) for s in selectors), selectors


def test_a_theme_is_the_readers_unless_one_is_asked_for() -> None:
    both, light, dark = (render_svg([curve("a", [100, 900])], theme=theme) for theme in (None, "light", "dark"))
    assert "prefers-color-scheme" in both
    assert "prefers-color-scheme" not in light + dark
    paper = PALETTES["light"].background
    assert paper in both
    assert paper in light
    assert paper not in dark
    assert PALETTES["dark"].background in dark


@pytest.mark.parametrize("scope", ["", "a b", "A", "x>", "1"])
def test_a_scope_is_a_plain_word(scope: str) -> None:
    with pytest.raises(ValueError, match="scope"):
        render_svg([], scope=scope)


@given(st.text(max_size=60), st.integers(0, 900))
def test_a_text_is_cut_to_its_room_and_says_so(text: str, room: int) -> None:
    found = fitted(text, room)
    assert found == text or found.endswith("…")
    assert len(found) <= max(len(text), 1)


def test_marks_stand_at_the_figures_of_the_legend() -> None:
    deep = PercentileCurve(
        "run", tuple(CurvePoint(percentile_of_x(n / 4), 100 + 90 * n * n, True) for n in range(21)), 10**6
    )
    shapes = picture([deep]).shapes
    ranges = view.percentiles([deep]).ranges
    across = [
        84 + scale.x_of_percentile(percentile) / ranges.x_high * (960 - 84 - 28)
        for percentile in (50, 99.9, deep.points[-1].percentile)
    ]
    marks = [s.x for s in shapes if isinstance(s, CurveMark) and s.y <= 56 + 440]
    assert sorted(marks) == pytest.approx(across)


def test_twenty_four_curves_look_each_different() -> None:
    assert (
        len({(ChartSeries(n, False).mark, colour_of(PALETTES["light"], ChartSeries(n, False))) for n in range(24)})
        == 24
    )


@pytest.mark.parametrize("count", range(3, 14))
def test_no_label_below_the_plot_runs_into_the_next(count: int) -> None:
    # A spin run of a second reaches 99.999999 %; sheets are 960 wide, and digits of 14 pixels at most 9 wide.
    deep = PercentileCurve("spin", tuple(CurvePoint(percentile_of_x(i), 100 + i, True) for i in range(count)), 10**9)
    shapes = picture([deep]).shapes
    labels = [s for s in shapes if isinstance(s, Words) and s.text.endswith(" %") and s.role == "dim"]
    ends = [
        (w.x - wide * {"start": 0, "middle": 0.5, "end": 1}[w.anchor], wide)
        for w in labels
        for wide in [9 * len(w.text)]
    ]
    assert all(left + wide <= right for (left, wide), (right, _) in itertools.pairwise(ends))
    ticks = scale.percentile_ticks(view.percentiles([deep]).ranges.x_high)
    assert labels[0].text == ticks[0].label
    assert labels[-1].text == ticks[-1].label


def test_the_space_between_two_curves_is_filled_below_all_lines() -> None:
    before, after = curve("before", [1_000, 1_000, 90_000]), curve("after", [4_000, 4_000, 4_000])
    root = ElementTree.fromstring(render_svg([before, after], between=(0, 1)))
    classes = [e.get("class", "") for e in root]
    areas = [n for n, name in enumerate(classes) if name.startswith("area")]
    assert [classes[n] for n in areas] == ["area worse", "area better", "area better", "area worse"], "with a key"
    assert max(areas) < min(n for n, name in enumerate(classes) if name in ("grid", "axis") or name.startswith("line"))
    assert "area" not in "".join(e.get("class", "") for e in ElementTree.fromstring(render_svg([before, after])))
    for palette in (PALETTES["light"], PALETTES["dark"]):
        assert f"--good: {palette.good}; --bad: {palette.bad};" in render_svg([before], theme=None)
