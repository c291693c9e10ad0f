"""The chart as text: sizes, axes that line up, colours that are never alone, input that cannot break it."""

from __future__ import annotations

import dataclasses
import itertools
import math
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style
from rich.text import Text

from jitter_workshop.chart import axes, canvas, signs
from jitter_workshop.chart import style as canvas_style
from jitter_workshop.chart.gap import Gap
from jitter_workshop.chart.key import combined_text, put_key
from jitter_workshop.chart.style import at_height, looks
from jitter_workshop.model.curve import CurvePoint, CurveRole, PercentileCurve
from jitter_workshop.model.palette import MONO, PALETTES, Palette
from jitter_workshop.stats import scale, view
from jitter_workshop.stats.histogram import Bin
from tests.madecurves import curve, percentile_of_x

LOW = curve("pinned", [100] * 30 + [4_000] * 20, solid=40)
HIGH = curve("baseline", [150] * 15 + [2_000_000] * 35)
PUBLISHED = curve("laptop", [168, 256, 8_126_495], origin="published 2015")


def braille(text: str) -> set[tuple[int, int]]:
    return {
        (c, r) for r, line in enumerate(text.split("\n")) for c, ch in enumerate(line) if "\u2801" <= ch <= "\u28ff"
    }


@settings(max_examples=40, deadline=None)
@given(
    st.integers(24, 220),
    st.integers(4, 60),
    st.lists(st.lists(st.integers(0, 60_000_000_000), max_size=12), max_size=4),
    st.sampled_from(["dark", "light", "high-contrast", "mono", "nonsense"]),
    st.one_of(st.none(), st.integers(-1, 5)),
    st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**12)), max_size=2),
)
def test_every_size_and_every_curve_fits(
    width: int,
    height: int,
    heights: list[list[int]],
    theme: str,
    highlight: int | None,
    marks: list[tuple[float, int]],
) -> None:
    curves = [curve(f"c{i}", values) for i, values in enumerate(heights)]
    text = canvas.draw_curves(curves, width, height, theme, highlight, marks)
    lines = text.split("\n", allow_blank=True)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width
    assert text.plain.count(canvas_style.MARK_GLYPH) <= len(marks)
    assert all(line.cell_len <= 30 for line in canvas.legend_lines(curves, theme=theme, marks=marks, width=30))


@given(
    st.integers(24, 160),
    st.integers(4, 50),
    st.lists(st.lists(st.integers(1, 60_000_000_000), min_size=1, max_size=12), max_size=3),
)
def test_every_view_fits_and_its_ticks_stand_where_they_say(width: int, height: int, runs: list[list[int]]) -> None:
    curves = [curve(f"c{i}", values) for i, values in enumerate(runs)]
    counted = [[Bin(v, v, 1) for v in sorted(set(values))] for values in runs]
    for shown in (view.ccdf(curves), view.frequency(counted)):
        text = canvas.draw_curves(curves, width, height, "mono", view=shown)
        lines = text.plain.split("\n")
        assert len(lines) == height
        assert max(len(line) for line in lines) <= width
        told = labels_beside(text.plain)
        every = [t.label for t in scale.ticks(shown.y, -20, 20)]
        assert [every.index(label) for label in told if label] == sorted(
            (every.index(label) for label in told if label), reverse=True
        )


def test_a_threshold_is_read_off_a_ccdf() -> None:
    points = ((3.0, 0.0), (6.0, 0.0), (6.0, -3.0))
    shown = view.CurveView((points,), (3,), scale.Ranges(7.0, -3.0, 0.0, 3.0), "time", "share", "", "", "")
    lines = canvas.draw_curves([LOW], 76, 20, "mono", view=shown).plain.split("\n")
    dots = braille("\n".join(lines))
    assert lines[0].startswith("     1 ┤")
    assert lines[-1].split() == ["1µs", "10µs", "100µs", "1ms", "10ms"]
    # All is longer up to 1 ms, and there it falls.
    column = lines[-1].index("1ms") + 1
    assert {r for c, r in dots if c < column - 1} == {0}
    assert {c for c, r in dots if r > 1} <= {column - 1, column, column + 1}


@pytest.mark.parametrize(("width", "height"), [(0, 0), (10, 3), (23, 10), (80, 3), (-5, -5)])
def test_too_small_is_empty_and_not_an_error(width: int, height: int) -> None:
    assert canvas.draw_curves([LOW], width, height).plain.strip() == ""


@pytest.mark.parametrize(("width", "height"), [(60, 12), (76, 14), (120, 35), (200, 60)])
def test_a_flat_curve_lies_on_its_tick_and_ends_at_its_percentile(width: int, height: int) -> None:
    flat = PercentileCurve("flat", tuple(CurvePoint(p, 10_000, True) for p in (0.0, 90.0, 99.0, 99.9)), 10_000)
    lines = canvas.draw_curves([flat], width, height, "mono").plain.split("\n")
    (row,) = [r for r, line in enumerate(lines) if line.startswith(" 10 µs")]
    dots = braille("\n".join(lines))
    assert {r for _, r in dots} == {row}
    label = lines[-1].index("99.9%")
    end = max(max(c for c, _ in dots), lines[row].rindex("●"))
    assert label <= end <= label + len("99.9%")


@given(st.integers(0, 3), st.floats(2, 8), st.integers(8, 60))
def test_the_decades_are_alike_to_within_a_row(low: int, decades: float, height: int) -> None:
    ends = CurvePoint(0.0, 10**low, True), CurvePoint(99.9, round(10 ** (low + decades)), True)
    lines = canvas.draw_curves([PercentileCurve("a", ends, 10_000)], 60, height, "mono").plain.split("\n")
    rows = [r for r, line in enumerate(lines) if "┤" in line]
    gaps = {b - a for a, b in itertools.pairwise(rows)}
    # From 1 to 2 and from 5 to 10 it is less far than from 2 to 5.
    assert max(gaps) <= math.log(2.5, 2) * (min(gaps) + 1) + 1
    # The curve still takes most of the height.
    taken = [r for _, r in braille("\n".join(lines))] + [r for r, line in enumerate(lines) if "●" in line]
    assert max(taken) - min(taken) >= 0.55 * (height - 2) - 2


def test_few_samples_are_dotted() -> None:
    solid = canvas.draw_curves([curve("a", [1_000] * 50)], 100, 20, "mono").plain
    dotted = canvas.draw_curves([curve("a", [1_000] * 50, solid=25)], 100, 20, "mono").plain
    assert len(braille(dotted)) < len(braille(solid)) * 0.85
    left = {c for c, _ in braille(dotted) if c < 45}
    assert left == {c for c, _ in braille(solid) if c < 45}


@pytest.mark.parametrize("theme", ["dark", "light", "high-contrast"])
def test_recorded_curves_have_the_colours_of_their_roles_and_flat_marks(theme: str) -> None:
    pair = [dataclasses.replace(curve, origin="recorded") for curve in (LOW, HIGH)]
    roles: list[CurveRole] = ["before", "after"]
    told = [dataclasses.replace(one, role=role) for one, role in zip(pair, roles, strict=True)]
    own = [dataclasses.replace(one, origin="") for one in told]
    recorded, measured = (looks(curves, PALETTES[theme], None) for curves in (told, own))
    assert [one.glyph for one in recorded] == ["▬", "▬"]
    assert [one.glyph for one in measured] == ["■", "■"]
    assert [one.glyph for one in looks(told, MONO, None)] == ["○", "□"]
    assert [one.line.color for one in recorded] == [one.line.color for one in measured]
    assert not any(one.line.dim for one in recorded)
    assert recorded[0].line.color != recorded[1].line.color
    grey = looks(pair, PALETTES[theme], None)
    assert grey[0].line.color != measured[0].line.color, "a curve of no chapter stays grey"
    assert all("recorded" in line.plain for line in canvas.legend_lines(told, width=80))


def test_curves_differ_without_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = canvas.draw_curves([LOW, HIGH, PUBLISHED], 80, 20, "dark")
    assert not any(getattr(span.style, "color", None) for span in text.spans)
    for glyph in ("●", "■", "○"):
        assert glyph in text.plain
    heads = [line.plain[0] for line in canvas.legend_lines([LOW, HIGH, PUBLISHED], width=80)]
    assert heads == ["●", "■", "○"]
    monkeypatch.delenv("NO_COLOR")
    assert any(
        getattr(span.style, "color", None) for span in canvas.draw_curves([LOW, HIGH, PUBLISHED], 80, 20, "dark").spans
    )


def test_without_colours_the_line_of_the_run_before_the_change_is_faint(monkeypatch: pytest.MonkeyPatch) -> None:
    roles: list[CurveRole] = ["before", "after"]
    pair = [dataclasses.replace(one, role=role) for one, role in zip((LOW, HIGH), roles, strict=True)]
    assert not any(one.line.dim for one in looks(pair, PALETTES["dark"], None))
    monkeypatch.setenv("NO_COLOR", "1")
    assert [bool(one.line.dim) for one in looks(pair, canvas_style.theme_named("dark"), None)] == [True, False]
    assert not any(one.point.dim for one in looks(pair, canvas_style.theme_named("dark"), None))


def styles_of_dots(text: Text) -> list[Style]:
    spans = [span for span in text.spans if braille(text.plain[span.start : span.end])]
    return [Style.parse(str(span.style)) for span in spans for _ in range(span.start, span.end)]


def test_the_highlighted_curve_is_bold_and_a_shared_cell_shows_both() -> None:
    one, two = curve("one", [1_000] * 50), curve("two", [1_000] * 50)
    for bright in (0, 1):
        wanted = [look.line for look in canvas_style.looks([one, two], PALETTES["dark"], bright)]
        found = styles_of_dots(canvas.draw_curves([one, two], 80, 15, "dark", bright))
        assert wanted[bright].bold
        assert set(found) == set(wanted)
        assert abs(found.count(wanted[0]) - found.count(wanted[1])) <= len(found) / 4


def test_no_curve_loses_dots_to_a_newer_one_in_the_same_cells() -> None:
    # Both run in one row of cells, one at its top and one at its bottom.
    low, high = curve("low", [1_000] * 50), curve("high", [1_080] * 50)
    both_in = view.percentiles([low, high])
    parts = zip((low, high), both_in.paths, both_in.solid, strict=True)
    views = [(one, dataclasses.replace(both_in, paths=(path,), solid=(solid,))) for one, path, solid in parts]
    alone = [canvas.draw_curves([one], 80, 15, "mono", view=its) for one, its in views]
    with_both = canvas.draw_curves([low, high], 80, 15, "mono").plain
    shared = braille(alone[0].plain) & braille(alone[1].plain) & braille(with_both)
    assert len(shared) > 20
    lines = [text.split("\n") for text in (alone[0].plain, alone[1].plain, with_both)]
    for column, row in shared:
        first, second, both = (ord(some[row][column]) - 0x2800 for some in lines)
        assert both == first | second


def test_the_space_between_before_and_after_shows_the_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = curve("before", [1_000] * 10 + [100_000] * 40), curve("after", [4_000] * 50)
    text = canvas.draw_curves([before, after], 100, 24, "dark", between=(0, 1))
    colours = {span.style.bgcolor.name for span in text.spans if isinstance(span.style, Style) and span.style.bgcolor}
    palette = PALETTES["dark"]
    assert colours == {canvas_style.fill_style(palette, way).bgcolor.name for way in (True, False)}  # type: ignore[union-attr]
    monkeypatch.setenv("NO_COLOR", "1")
    plain = canvas.draw_curves([before, after], 100, 24, "dark", between=(0, 1)).plain
    key = "░░ second run better  ▒▒ worse"
    assert key in plain
    plain = plain.replace(key, " " * len(key))
    lines = plain.split("\n")
    worse = {c for line in lines for c, ch in enumerate(line) if ch == "▒"}
    better = {c for line in lines for c, ch in enumerate(line) if ch == "░"}
    assert worse
    assert max(worse) < min(better)
    # In each column the filled cells lie between the dots of both curves.
    dots = braille(plain)
    for column in list(better)[5:-5]:
        rows = [r for r, line in enumerate(lines) if line[column : column + 1] == "░"]
        ends = [r for c, r in dots if c == column] + [r for r, line in enumerate(lines) if line[column] in "●■"]
        assert min(ends) < min(rows) <= max(rows) < max(ends)
    turned = canvas.draw_curves([before, after], 100, 24, "dark", between=(1, 0)).plain
    turned = turned.replace(key, " " * len(key))
    assert turned == plain.translate(str.maketrans("░▒", "▒░"))
    # Bars have no space between them.
    bars = view.frequency([[Bin(100, 100, 5)], [Bin(900, 900, 2)]])
    assert "░" not in canvas.draw_curves([before, after], 100, 24, view=bars, between=(0, 1)).plain


@pytest.mark.parametrize(("label_starts", "row"), [(21, 1), (22, 1), (23, 0)])
def test_the_key_of_the_shading_keeps_away_from_the_label_of_a_distance(label_starts: int, row: int) -> None:
    frame = axes.PlotFrame(40, 2, scale.Ranges(3.0, 1.0, 7.0), ("share", "time"))
    blank = [(" ", Style.null())] * 40
    label = [(letter, Style(bold=True)) for letter in "4.2 times more".ljust(40 - label_starts, ".")]
    cells = [[*blank[:label_starts], *label], blank.copy()]
    assert put_key(frame, cells, {False}, PALETTES["dark"], tinted=False)
    assert "".join(text for text, _ in cells[row]).startswith(" ▒▒ second run worse ")


def test_the_key_in_the_chart_keeps_away_from_the_labels_of_the_axis() -> None:
    frame = axes.PlotFrame(40, 2, scale.Ranges(3.0, 1.0, 7.0), ("share", "time"))
    for ticked, row, at in (({0}, 1, 0), ({1}, 0, 0), ({0, 1}, 0, 19)):
        cells = [[(" ", Style.null())] * 40 for _ in range(2)]
        assert put_key(frame, cells, {False}, PALETTES["dark"], False, ticked)
        assert "".join(text for text, _ in cells[row])[at : at + 21] == " ▒▒ second run worse "


@pytest.mark.parametrize("theme", ["dark", "mono"])
def test_the_legend_has_the_key_of_the_shading_where_it_has_room(theme: str) -> None:
    low, high = curve("moved", [1_000] * 50), curve("high", [50_000] * 50)
    for name, width, place in ((low.label, 78, 1), ("a" * 40, 78, 0), (low.label, 36, 1)):
        after = dataclasses.replace(low, label=name)
        legend = canvas.legend_lines([high, after], theme=theme, width=width)
        lengths = [line.cell_len for line in legend]
        before = [line.plain for line in legend]
        draw = partial(canvas.draw_curves, [high, after], 72, 10, theme, legend=legend, legend_width=width)
        draw()
        assert [line.plain for line in legend] == before, "nothing is filled"
        chart = draw(between=(0, 1)).plain
        assert sum("second run better" in line.plain for line in legend) == 1
        assert all(line.cell_len <= width for line in legend)
        at = [n for n, line in enumerate(before) if line[0] in "●■"][place]
        assert "better" in legend[at].plain, "it stands behind the name of the second curve if this has room"
        if width == 78:
            assert [line.cell_len for line in legend] == lengths, "the figures stay in their columns"
        assert "better" not in chart


def test_a_shading_whose_characters_are_all_below_dots_has_no_key() -> None:
    before, after = curve("before", [200] * 50 + [10**6]), curve("after", [30] * 50 + [10**6])
    for theme, told in (("dark", True), ("mono", False)):
        chart = canvas.draw_curves([before, after], 72, 8, theme, between=(0, 1)).plain
        assert ("better" in chart) is told
        assert "░" not in chart


def test_both_words_of_the_key_fit_behind_a_guess_where_the_names_leave_no_room() -> None:
    before, after = curve("before", [1_000] * 10 + [100_000] * 40), curve("workers moved", [4_000] * 50)
    for name, place in (("m", 1), ("interrupts moved off", 2)):
        both = [dataclasses.replace(before, label="before the change"), dataclasses.replace(after, label=name)]
        legend = canvas.legend_lines(both, marks=[(99.9, 2_000)], width=78, asked=99.9999)
        canvas.draw_curves(both, 78, 14, "mono", between=(0, 1), legend=legend)
        assert [n for n, line in enumerate(legend) if "better" in line.plain and "worse" in line.plain] == [place]


@pytest.mark.parametrize("theme", ["dark", "mono"])
@pytest.mark.parametrize("rows", [6, 10, 30])
def test_the_key_names_only_shadings_in_the_chart_and_covers_no_curve(theme: str, rows: int) -> None:
    low, high = curve("low", [1_000] * 50), curve("high", [50_000] * 50)
    for between, told, absent in (((1, 0), "better", "worse"), ((0, 1), "worse", "better")):
        plain = canvas.draw_curves([low, high], 72, rows, theme, between=between).plain
        assert told in plain
        assert absent not in plain
        assert braille(plain) == braille(canvas.draw_curves([low, high], 72, rows, theme).plain)
    assert "better" not in canvas.draw_curves([low, high], 72, rows, theme).plain


def test_the_mark_sits_on_its_percentile_and_value() -> None:
    lines = canvas.draw_curves([LOW], 76, 14, "mono", None, [(99.0, 10_000)]).plain.split("\n")
    (row,) = [r for r, line in enumerate(lines) if "×" in line]
    assert lines[row].startswith(" 10 µs")
    column = lines[row].index("×")
    assert lines[-1][column - 2 : column + 3].strip(" %") in ("99", "9")


@pytest.mark.parametrize(
    ("width", "told"), [(100, "p99.9: 2 ms → 4 µs, 500 times"), (50, "p99.9: 500 times"), (30, "")]
)
def test_the_gap_of_two_curves_is_marked_and_named_where_there_is_room(width: int, told: str) -> None:
    gap = Gap(99.9, 1, 0, "p99.9: 2 ms → 4 µs, 500 times")
    lines = canvas.draw_curves([LOW, HIGH], width, 20, "mono", gap=gap).plain.split("\n")
    column = lines[-1].index("99.9%") + 2
    top, bottom = (row for row, line in enumerate(lines[:-2]) if line[column] in "●■")
    assert lines[top][column] != lines[bottom][column], "the line ends at the signs of both curves"
    assert all((lines[row][column] == "│") is bool(told) for row in range(top + 1, bottom)), "no line without its words"
    assert lines[-2][column] == "┬"
    assert told in "\n".join(lines)
    assert ("500" in "\n".join(lines)) is (width > 30)
    one = canvas.draw_curves([LOW], width, 20, "mono", gap=Gap(99.9, 0, 5, "x")).plain
    assert one == canvas.draw_curves([LOW], width, 20, "mono").plain


@pytest.mark.parametrize(
    "label", ["p99.9: 2 ms → 4 µs, 500 times", "p99.9: 500 times, though stalls took no less time"]
)
def test_a_shortened_label_says_how_many_times(label: str) -> None:
    assert " p99.9: 500 times " in canvas.draw_curves([LOW, HIGH], 50, 20, "mono", gap=Gap(99.9, 1, 0, label)).plain


def test_a_distance_of_one_cell_without_room_for_its_words_is_not_drawn() -> None:
    both = [curve(name, [10] * 20 + [3_000_000] * 30) for name in "ab"]
    for width, told in ((40, False), (78, True)):
        plain = canvas.draw_curves(both, width, 10, "mono").plain
        gap = Gap(None, 0, 1, "stalls of 100 µs and more: 50.9 → 50.6 a second", level_ns=100_000)
        lines = canvas.draw_curves(both, width, 10, "mono", gap=gap).plain
        assert (lines == plain) is not told
        assert (gap.label in lines) is told


STALLS = "stalls of 100 µs and more: 30 → 2 a second, 15 times fewer"


def test_the_words_on_a_gap_cover_no_curve_where_the_chart_has_room() -> None:
    low, high = (
        PercentileCurve(name, (CurvePoint(0.0, value, True), CurvePoint(99.99, value, True)), 10**5)
        for name, value in (("a", 90_000), ("b", 110_000))
    )
    told = "p99.9: 110 µs → 90 µs, a factor of 1.2"
    whole = canvas.draw_curves([low, high], 80, 14, "mono").plain.split("\n")
    lines = canvas.draw_curves([low, high], 80, 14, "mono", gap=Gap(99.9, 1, 0, told)).plain.split("\n")
    (row,) = (n for n, line in enumerate(lines) if told in line)
    start = lines[row].index(told)
    assert not [sign for sign in whole[row][start : start + len(told)] if "\u2801" <= sign <= "\u28ff" or sign in "●■"]


@pytest.mark.parametrize(("width", "told"), [(100, STALLS), (56, f"{STALLS[:25]}: 15 times fewer"), (30, "")])
def test_the_gap_of_two_curves_at_a_latency_is_level_and_ends_at_both_curves(width: int, told: str) -> None:
    often, seldom = curve("often", [10] * 20 + [3_000_000] * 30), curve("seldom", [10] * 40 + [3_000_000] * 10)
    for before, after in ((0, 1), (1, 0)):
        gap = Gap(None, before, after, STALLS, level_ns=100_000)
        lines = canvas.draw_curves([often, seldom], width, 20, "mono", gap=gap).plain.split("\n")
        if not told:
            assert lines == canvas.draw_curves([often, seldom], width, 20, "mono").plain.split("\n")
            continue
        (row,) = [r for r, line in enumerate(lines) if "├─" in line]
        assert lines[row].strip().startswith("100 µs"), "it is at its latency"
        left, right = lines[row].index("├─"), lines[row].index("─┤") + 1
        assert set(lines[row][left + 1 : right]) == {"─"}
        assert told in "\n".join(lines)
        # Away from its line a label begins with the line's sign.
        (at,) = [r for r, line in enumerate(lines) if told in line]
        assert (f"├┤ {told}" in lines[at]) == (at != row)
    # A curve that does not reach the latency has no distance at it.
    quiet = curve("quiet", [10] * 50)
    gap = Gap(None, 0, 1, STALLS, level_ns=100_000)
    plain = canvas.draw_curves([often, quiet], width, 20, "mono").plain
    assert canvas.draw_curves([often, quiet], width, 20, "mono", gap=gap).plain == plain


@settings(max_examples=30, deadline=None)
@given(
    st.integers(24, 160),
    st.integers(4, 40),
    st.lists(st.integers(1, 10**9), min_size=2, max_size=12),
    st.lists(st.integers(1, 10**9), min_size=2, max_size=12),
    st.integers(1, 10**9),
)
def test_a_gap_at_a_latency_fits_every_size(
    width: int, height: int, first: list[int], second: list[int], level_ns: int
) -> None:
    curves = [curve("first", sorted(first)), curve("second", sorted(second))]
    gap = Gap(None, 0, 1, STALLS, level_ns=level_ns)
    lines = canvas.draw_curves(curves, width, height, "mono", gap=gap).split("\n", allow_blank=True)
    assert len(lines) == height
    assert max(line.cell_len for line in lines) <= width


@settings(max_examples=40, deadline=None)
@given(
    st.integers(40, 160),
    st.integers(8, 40),
    st.lists(st.integers(20, 10**8), min_size=9, max_size=9),
    st.floats(0.3, 3.0),
)
def test_the_words_on_a_gap_stand_beside_no_label_of_the_axis_and_cover_nothing(
    width: int, height: int, values: list[int], factor: float
) -> None:
    both = [made_curve("a", *values), made_curve("b", *(max(v * factor, 1) for v in values))]
    told = "p99.9: a factor of 1.27"
    lines = canvas.draw_curves(both, width, height, "mono", gap=Gap(99.9, 0, 1, told)).plain.split("\n")
    beside = [line for line in lines if told in line and "┤" in line]
    assert all(line.index(told) > line.index("┤") + 12 for line in beside), "far from the axis"
    if lines[0].strip() != told:
        whole = canvas.draw_curves(both, width, height, "mono", gap=Gap(99.9, 0, 1, "")).plain
        assert len(braille("\n".join(lines))) >= len(braille(whole))


def test_no_label_of_the_axis_stands_a_decade_above_the_longest_value() -> None:
    """Rows that are left of an axis with one row for each decade hold the words on a gap."""
    laptop = made_curve("laptop", 45, 70, 120, 168, 200, 3_000, 2e6, 8.13e6, 11.5e6)
    own = made_curve("own", 50, 60, 62, 65, 70, 300, 1e6, 4.07e6, 5.93e6)
    for gap in (None, Gap(99.9, 0, 1, "p99.9: a factor of 1.27")):
        lines = canvas.draw_curves([laptop, own], 78, 10, "mono", gap=gap).plain.split("\n")
        assert labels_beside("\n".join(lines)) == ["10 ms", "1 ms", "100 µs", "10 µs", "1 µs", "100 ns"]
        assert lines[0].startswith(" 10 ms") or (gap and gap.label in lines[0]), "no row above the curves is empty"
        assert gap is None or gap.label in "".join(lines)


@pytest.mark.parametrize("height", [9, 10, 14, 24])
def test_near_curves_have_a_sign_each_in_a_low_plot_too(height: int) -> None:
    def of(factor: float) -> PercentileCurve:
        shape = (0, 80), (50, 100), (90, 130), (99, 900), (99.9, 20_000), (99.99, 90_000)
        return PercentileCurve("", tuple(CurvePoint(p, round(v * factor), True) for p, v in shape), 10**6)

    for other in (1.0, 1.1, 1.4, 2.0):
        both = [of(1.0), of(other)]
        legend = canvas.legend_lines(both, theme="mono", width=80)
        drawn = canvas.draw_curves(both, 80, height, "mono", legend=legend).plain
        combined = drawn.count("◉")
        assert drawn.count("●") == drawn.count("■") == 3 - combined
        assert combined == 3 or other > 1
        assert combined == 0 or other < 2 or height == 9
        assert [line.plain.count("◉ both curves") for line in legend] == [0, int(combined > 0)]


def test_the_signs_of_a_curve_stand_at_the_figures_of_its_legend() -> None:
    points = tuple(
        CurvePoint(p, round(v), True) for p, v in ((0, 100), (50, 100), (90, 1e3), (99.9, 1e5), (99.99, 1e6))
    )
    lines = canvas.draw_curves([PercentileCurve("a", points, 10**5)], 80, 24, "mono").plain.split("\n")
    signs = sorted((c, r) for r, line in enumerate(lines) for c, one in enumerate(line) if one == "●")
    rows = {
        label: next(r for r, line in enumerate(lines) if line.startswith(f"{label:>6} ┤"))
        for label in ("100 ns", "100 µs", "1 ms")
    }
    assert [r for _, r in signs] == list(rows.values()), "at p50, p99.9 and the longest"
    assert [c for c, _ in signs[1:]] == [lines[-1].index("99.9%") + 2, lines[-1].index("99.99%") + 3]
    asked = canvas.draw_curves([PercentileCurve("a", points, 10**5)], 80, 24, "mono", asked=90.0).plain.split("\n")
    assert {r for r, line in enumerate(asked) if "●" in line} - set(rows.values()) == {
        next(r for r, line in enumerate(asked) if line.startswith("  1 µs ┤"))
    }
    assert canvas.legend_lines([PercentileCurve("a", points, 10**5)], width=80)[0].plain.split() == [
        "■", "a", "p50", "100", "ns", "p99.9", "100", "µs", "max", "1", "ms",
    ]  # fmt: skip


def frame_of(curves: list[PercentileCurve], marks: list[tuple[float, int]], height: int, named: bool) -> axes.PlotFrame:
    shown = view.percentiles(curves, marks)
    rows = height - axes.ROWS_BELOW
    values, guessed = canvas._valued(curves, shown.paths, marks, 99.9)
    return canvas._frame(curves, marks, shown, 72, rows, False, named, list(values.values()), guessed)


def ns_of(label: str) -> float:
    number, unit = label.split()
    return float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]


def labels_beside(text: str) -> list[str]:
    return [line.split("┤")[0].strip() for line in text.split("\n") if "┤" in line]


def test_the_label_of_the_marked_percentile_is_never_the_one_left_out() -> None:
    for width in range(44, 120):
        for height in (6, 12):
            for nines in range(3, 8):
                percentile = percentile_of_x(nines)
                label = "99." + "9" * (nines - 2) + "%"
                long = PercentileCurve("spin", (CurvePoint(0.0, 30, True), CurvePoint(100 - 1e-6, 900, True)), 10**8)
                last = canvas.draw_curves([long], width, height, "mono", None, [(percentile, 5_000)]).plain.split("\n")[
                    -1
                ]
                assert label in last.replace("─", " ").split(), (width, height, nines, last)


@given(st.integers(0, 6), st.floats(2, 11), st.integers(4, 40))
def test_the_labels_beside_the_chart_leave_out_decades_at_even_steps_only(
    low: int, decades: float, height: int
) -> None:
    ends = CurvePoint(0.0, 10**low, True), CurvePoint(99.9, round(10 ** (low + decades)), True)
    drawn = canvas.draw_curves([PercentileCurve("a", ends, 10_000)], 60, height, "mono").plain
    labels = labels_beside(drawn)
    told = [ns_of(label) for label in labels]
    decades_told = [value for value in told if str(value).startswith("1")]
    steps = {round(math.log10(a / b)) for a, b in itertools.pairwise(decades_told)}
    assert len(steps) <= 1
    assert steps <= {1, 2, 3, 6}
    assert steps == {1} or told == decades_told, "ticks between decades need all decades"
    assert height < 8 or len(labels) >= 2
    # The decades are as many rows apart. With a row for each decade, and for the margins, three labels can be read.
    enough = height - (2 if height >= 8 else 1) >= decades + 2
    rows = [n for n, line in enumerate(drawn.split("\n")) if "┤" in line]
    whole = [row for row, value in zip(rows, told, strict=True) if value in decades_told]
    assert height < 8 or len({b - a for a, b in itertools.pairwise(whole)}) <= 1
    assert not enough or len(labels) >= min(decades, 3)


def test_a_long_tail_has_labels_around_it_and_none_where_nothing_lies() -> None:
    tail = PercentileCurve("a", (CurvePoint(0.0, 76, True), CurvePoint(99.99, 428_000_000, True)), 10**5)
    drawn = {rows: labels_beside(canvas.draw_curves([tail], 80, rows, "mono").plain) for rows in range(7, 40)}
    assert all(1e8 <= ns_of(labels[0]) <= 1e10 for rows, labels in drawn.items() if rows >= 10)
    assert all(len(labels) >= 3 for rows, labels in drawn.items() if rows >= 10), drawn
    assert not [rows for rows, labels in drawn.items() if rows >= 9 and "1 ns" in labels]


@pytest.mark.parametrize("rows", range(9, 30))
def test_the_longest_value_is_less_than_a_decade_above_the_highest_label(rows: int) -> None:
    waits = [(0.0, 60), (50.0, 1_780_000), (99.9, 16_100_000), (99.99, 25_500_000)]
    curve = PercentileCurve("a", tuple(CurvePoint(at, value, True) for at, value in waits), 10**5)
    labels = labels_beside(canvas.draw_curves([curve], 80, rows, "mono").plain)
    assert 25_500_000 / 10 <= ns_of(labels[0]) <= 1e9


@given(st.floats(0, 3), st.floats(2, 8), st.integers(6, 36))
def test_the_axis_is_fitted_to_the_values(low: float, decades: float, rows: int) -> None:
    high = low + decades
    ranges = axes.snapped(scale.Ranges(5.0, low, high), 70, rows)
    frame = axes.PlotFrame(70, rows, ranges, ("percentile", "time"))
    assert 0 <= frame.row(high) <= frame.row(low) < rows
    assert ranges.y_high - high < 2.3
    assert low - ranges.y_low < 1.1
    heights = decades / (ranges.y_high - ranges.y_low) * (rows - 1)
    assert heights >= 0.6 * (rows - 1) - 1
    # A value within a tenth of a decade stands in the row of its label.
    if (rows - 1) / (ranges.y_high - ranges.y_low) <= 2:
        for tick in axes.y_ticks(frame):
            assert {frame.row(tick.position + off) for off in (-0.04, 0.04)} == {frame.row(tick.position)}


@pytest.mark.parametrize("height", range(8, 20))
def test_values_that_differ_by_a_tenth_stand_alike_and_others_apart(height: int) -> None:
    def drawn(label: str, *values: float) -> PercentileCurve:
        told = zip((0.0, 50.0, 90.0, 99.9, 99.99), values, strict=True)
        return PercentileCurve(label, tuple(CurvePoint(p, round(v), True) for p, v in told), 10**5)

    first, second = drawn("a", 200, 10.1e6, 20e6, 228e6, 268e6), drawn("b", 150, 8.94e6, 20e6, 35.7e6, 250e6)
    frame = frame_of([first, second], [], height, named=False)
    p50, tail = ({frame.row(scale.y_of_ns(c.points[n].value_ns)) for c in (first, second)} for n in (1, 3))
    assert max(p50) - min(p50) <= (height > 16)
    assert len(tail) == 2 or height in (9, 10)
    lines = canvas.draw_curves([first, second], 78, height, "mono").plain.split("\n")
    by_label = {line.split("┤")[0].strip(): n for n, line in enumerate(lines) if "┤" in line}
    assert by_label.get("10 ms", min(p50)) in p50
    assert not {"10 s", "100 s", "1 ns"} & set(by_label)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("low_ns", [130, 250, 700, 1_400, 3_000])
def test_the_axis_begins_in_the_decade_of_the_lowest_value(low_ns: int, named: bool) -> None:
    for exponent in range(16, 36):
        ends = CurvePoint(0.0, low_ns, True), CurvePoint(99.99, round(10 ** (exponent / 4)), True)
        shown = view.percentiles([PercentileCurve("a", ends, 10**5)])
        wanted = view.tight(shown) if named else shown.ranges
        for rows in range(8, 36):
            ranges = axes.snapped(wanted, 70, rows, named)
            lowest = axes.y_ticks(axes.PlotFrame(70, rows, ranges, ("percentile", "time")))[0]
            assert lowest.position >= math.floor(wanted.y_low), (low_ns, ends[1].value_ns, rows, ranges)


PARTS_OF_A_CURVE = (0.0, 10.0, 30.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99)


def made_curve(label: str, *values: float) -> PercentileCurve:
    told = zip(PARTS_OF_A_CURVE, sorted(values), strict=True)
    return PercentileCurve(label, tuple(CurvePoint(p, round(v), True) for p, v in told), 10**5)


VALUES = st.lists(st.integers(1, 10**10), min_size=9, max_size=9)


@settings(max_examples=60, deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(5, 50), st.booleans())
def test_each_label_is_in_the_row_of_its_value_and_only_values_faster_than_the_medians_are_cut(
    runs: list[list[int]], height: int, guessing: bool
) -> None:
    curves = [made_curve(f"run {n}", *values) for n, values in enumerate(runs)]
    marks = [(99.9, 5)] if guessing else []
    drawn = canvas.draw_curves(curves, 80, height, "mono", None, marks, named=guessing).plain
    lines = drawn.split("\n")
    rows = [(n, ns_of(line.split("┤")[0])) for n, line in enumerate(lines) if "┤" in line]
    told = [value for _, value in rows]
    assert told == sorted(set(told), reverse=True)
    # Rows and logarithms of labels are on one line, to within half a row for each of two labels.
    (top, high), (bottom, low) = rows[0], rows[-1]
    if top != bottom:
        each = (bottom - top) / math.log10(high / low)
        for row, value in rows:
            assert abs(top + math.log10(high / value) * each - row) <= 1
    seen = [ns for one in curves for ns in (point.value_ns for point in one.points)]
    medians = [one.points[3].value_ns for one in curves]
    frame = frame_of(curves, marks, height, guessing)
    assert all(scale.y_of_ns(ns) >= frame.lower_edge - 1e-9 for ns in seen if ns >= min(medians))
    # The axis begins at most a decade below the smallest p50, and two decades are always shown.
    assert all(frame.row(scale.y_of_ns(ns)) <= frame.rows - 1 for ns in medians)
    assert max(scale.y_of_ns(ns) for ns in seen) <= frame.ranges.y_high + 0.5 * (
        frame.ranges.y_high - frame.ranges.y_low
    ) / (frame.rows - 1)


@pytest.mark.parametrize("height", [13, 18, 24, 36])
def test_the_axis_of_two_curves_begins_below_their_medians_if_this_gives_a_decade_more_rows(height: int) -> None:
    one = made_curve("one", 30, 80, 150, 208, 300, 2e5, 8e6, 13.6e6, 14.4e6)
    other = made_curve("other", 35, 60, 100, 123, 200, 6e6, 12e6, 24.4e6, 25.2e6)
    both = frame_of([one, other], [], height, named=False).ranges
    several = frame_of([one, other, other], [], height, named=False).ranges
    assert both.y_high - both.y_low <= several.y_high - several.y_low
    frame = frame_of([one, other], [], height, named=False)
    for value in (123, 208, 13.6e6, 25.2e6):
        assert frame.holds(0, frame.row(scale.y_of_ns(value)))
    if height == 36:
        assert frame.row(scale.y_of_ns(24.4e6)) != frame.row(scale.y_of_ns(13.6e6))
        assert both.y_high - both.y_low < several.y_high - several.y_low


QUIET = made_curve("quiet", 8, 10, 10, 10, 12, 16, 900, 61_200, 10.2e6)
SLOW = made_curve("slow", 90, 150, 200, 217, 300, 400, 1.5e6, 5.48e6, 8.2e6)
AGAIN = made_curve("again", 70, 80, 95, 105, 200, 300, 1.2e6, 6.59e6, 8.31e6)


@pytest.mark.parametrize("height", range(6, 15))
@pytest.mark.parametrize("curves", [[QUIET], [SLOW], [SLOW, AGAIN]])
def test_a_low_chart_has_no_empty_row_above_its_curves_and_no_label_of_a_decade_in_which_nothing_lies(
    height: int, curves: list[PercentileCurve]
) -> None:
    plain = canvas.draw_curves(curves, 78, height, "mono").plain
    assert 0 in {row for _, row in braille(plain)} or "●" in plain.split("\n")[0]
    told = [ns_of(label) for label in labels_beside(plain)]
    assert told[0] == 1e7
    assert told[-1] >= min(one.points[0].value_ns for one in curves) / 10


def test_seven_decades_in_six_rows_have_a_label_at_every_third_one_in_every_second_row() -> None:
    lines = canvas.draw_curves([QUIET], 78, 7, "mono").plain.split("\n")
    assert [line[:8].strip() for line in lines[:5]] == ["10 ms ┤", "│", "10 µs ┤", "│", "10 ns ┤"]


def test_two_medians_that_differ_by_two_have_two_signs_that_touch_where_they_share_a_row() -> None:
    gap = Gap(99.9, 0, 1, "p99.9: 1.2×")
    lines = canvas.draw_curves([SLOW, AGAIN], 78, 11, "mono", gap=gap).plain.split("\n")
    first, second = (next(n for n, line in enumerate(lines) if sign in line) for sign in "●■")
    assert second == first
    assert "●■" in lines[first]
    assert [n for n, line in enumerate(lines) if gap.label in line] == [1]


def test_a_label_keeps_apart_from_the_sign_of_a_guess() -> None:
    gap = Gap(99.9, 0, 1, "p99.9: 1.2×")
    for height in range(8, 20):
        plain = canvas.draw_curves([SLOW, AGAIN], 78, height, "mono", None, [(99.9, 10**6)], gap=gap).plain
        assert gap.label in plain
        assert "× p99.9" not in plain


def test_curves_that_differ_by_half_stand_apart_at_80_by_24() -> None:
    """The axis shows the decades in use: once 15.7 ms and 10.9 ms were one line of an axis of nine decades."""
    free = made_curve("free", 20, 300, 1e6, 1.91e6, 3e6, 5e6, 10e6, 15.7e6, 19.8e6)
    pinned = made_curve("pinned", 60, 300, 0.9e6, 1.42e6, 2e6, 4e6, 8e6, 10.9e6, 13.8e6)
    frame = frame_of([free, pinned], [], 11, named=False)
    assert axes.y_ticks(frame)[0].label == "300 µs"
    dots = (frame.down(scale.y_of_ns(10.9e6)) - frame.down(scale.y_of_ns(15.7e6))) * 4
    assert dots >= 2
    lines = canvas.draw_curves([free, pinned], 80, 11, "mono").plain.split("\n")
    assert lines[-2].startswith("       └──")
    # A curve that is cut enters from the lower edge.
    assert min(row for _, row in braille("\n".join(lines))) == 0
    assert max(row for _, row in braille("\n".join(lines))) == 8


def test_a_quiet_curve_has_no_row_below_its_fastest_value() -> None:
    spin = made_curve("spin", 8, 9, 10, 10, 11, 12, 20, 40, 900)
    for height in range(8, 30):
        lines = canvas.draw_curves([spin], 80, height, "mono").plain.split("\n")
        assert ns_of([line for line in lines if "┤" in line][-1].split("┤")[0]) >= 3


def test_a_low_chart_cuts_more_so_that_each_decade_has_a_label() -> None:
    spin = made_curve("spin", 1, 8, 10, 10, 11, 12, 20, 400, 4.33e6)
    lines = canvas.draw_curves([spin], 80, 9, "mono").plain.split("\n")
    assert labels_beside("\n".join(lines)) == ["10 ms", "1 ms", "100 µs", "10 µs", "1 µs", "100 ns", "10 ns"]
    higher = canvas.draw_curves([spin], 80, 10, "mono").plain
    assert labels_beside(higher)[-1] == "1 ns"
    # A guess stays inside.
    guess = canvas.draw_curves([spin], 80, 9, "mono", None, [(99.9, 2)]).plain
    assert "×" in guess


def test_signs_in_one_cell_are_one_combined_sign_that_the_chart_explains() -> None:
    values = 100, 100, 110, 120, 150, 900, 2_000, 20_000, 90_000
    curves = [made_curve(str(n), *(value * (1 + n / 100) for value in values)) for n in range(4)]
    for highlight in (None, 0, 3):
        lines = canvas.draw_curves(curves, 80, 12, "mono", highlight).plain.split("\n")
        assert not set("●■◆▲") & set("".join(lines))
        key = next(line for line in lines if "◉ all four curves" in line)
        with_sign = [line for line in lines if "◉" in line and line != key]
        assert key
        assert len(with_sign) == 3
        # The sign stands at the percentile.
        assert lines[-1].index("99.9%") + 2 in [line.index("◉") for line in with_sign]
    guess = canvas.draw_curves(curves[:1], 80, 12, "mono", None, [(99.9, 2_000)]).plain
    assert "⊗" not in guess
    met = canvas.draw_curves(curves[:1], 80, 12, "mono", None, [(99.9, 20_000)]).plain
    assert ("⊗" in met, "×" in met) == (True, False)


@pytest.mark.parametrize("height", range(10, 20))
def test_the_grid_has_one_style_in_every_height(height: int) -> None:
    curve = made_curve("a", 60, 80, 100, 200, 900, 2e5, 1e6, 4e6, 9e6)
    drawn = canvas.draw_curves([curve], 80, height, "dark").plain
    assert "┈┈┈" in drawn
    assert "·" not in drawn
    lined = [line for line in drawn.split("\n") if "┈┈┈" in line]
    assert all("┤" in line for line in lined), "a line is at a label"


def test_the_legend_says_value_origin_and_guess() -> None:
    wide = [line.plain for line in canvas.legend_lines([LOW, PUBLISHED], marks=[(99.9, 200_000)], width=80)]
    assert wide[0].split() == ["■", "pinned", "p50", "100", "ns", "p99.9", "4", "µs", "max", "4", "µs"]
    assert "published 2015" in wide[1]
    assert "8.13 ms" in wide[1]
    assert wide[2] == "× your guess  p99.9 200 µs"
    narrow = [line.plain for line in canvas.legend_lines([LOW, PUBLISHED], width=36)]
    assert narrow[0].split() == ["p50", "p99.9", "max"]
    assert narrow[2].split() == ["100", "ns", "4", "µs", "4", "µs"]


def test_a_doubtful_figure_has_its_sign_in_the_legend() -> None:
    for width in (80, 36, 30):
        plain = "\n".join(line.plain for line in canvas.legend_lines([LOW], width=width, doubts=[{99.9: "~"}]))
        assert "~4 µs" in plain
        assert plain.count("~") == 1


def test_a_legend_without_room_for_figures_names_each_curve() -> None:
    legend = partial(canvas.legend_lines, [LOW, PUBLISHED], marks=[(99.9, 200_000)], width=36)
    assert [line.plain for line in legend(most=6)] == [line.plain for line in legend()]
    few = [line.plain for line in legend(most=5)]
    assert [line[0] for line in few] == ["■", "▬", "×"]
    assert "pinned" in few[0]
    assert "published 2015" in few[1]


def test_a_legend_with_few_lines_still_names_each_curve_and_cuts_a_name_at_its_end() -> None:
    many = [curve(f"run {number}: pinned, and beside spinners", [100, 200]) for number in range(6)]
    two = [line.plain for line in canvas.legend_lines(many, theme="mono", width=80, most=2)]
    assert [[line.count(sign) for sign in "●■◆▲▼★"] for line in two] == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert all(len(line) <= 80 for line in two)
    assert all(f"run {number}: pinned, an" in "".join(two) for number in range(6))
    names = [line.plain for line in canvas.legend_lines(many, theme="mono", width=36, most=7)]
    assert names[5] == "★ run 5: pinned, and beside spinners"
    assert [line.plain for line in canvas.legend_lines(many, theme="mono", width=30, most=7)][
        5
    ] == "★ run 5: pinned, and beside s…"


def test_three_curves_in_a_low_place_have_a_line_each_with_their_figures() -> None:
    three = [curve(name, [100, 200]) for name in ("far, without neighbour", "far memory", "near memory")]
    for most in (3, 4, 5):
        lines = [line.plain for line in canvas.legend_lines(three, theme="mono", width=78, most=most)]
        assert [line[0] for line in lines] == ["●", "■", "◆"]
        assert all("p50 " in line and "p99.9 " in line and "max " in line for line in lines)
    longer = [dataclasses.replace(one, label=f"{one.label}, measured once more") for one in three]
    lines = [line.plain for line in canvas.legend_lines(longer, width=78, most=3)]
    assert all("p50 " in line and "p99.9 " in line and "max" not in line for line in lines), "max goes first"
    assert [line[2 : 2 + len(one.label)] for line, one in zip(lines, longer, strict=True)] == [c.label for c in longer]
    narrow = [line.plain for line in canvas.legend_lines(longer, width=62, most=3)]
    assert all("p99.9 " in line for line in narrow)
    assert any("…" in line for line in narrow)
    few = [line.plain for line in canvas.legend_lines(three, width=78, most=2)]
    assert len(few) == 2
    assert "p50" not in "".join(few)


def test_the_key_of_combined_signs_says_for_which_curves_they_stand() -> None:
    def said(*groups: tuple[int, ...], curves: int = 3, theme: Palette = MONO) -> str:
        return combined_text(groups, looks([LOW] * 4, theme, None), curves, theme).plain

    assert said((0, 1), curves=2) == "◉ both curves"
    assert said((0, 1, 2)) == "◉ all three curves"
    assert said((0, 2)) == "◉ ● and ◆"
    assert said((0, 1, 3), curves=4) == "◉ ● ■ and ▲"
    assert said((0, 2), (0, 1, 2)) == "◉ two or three curves"
    assert said((0, 2), (0, 1)) == "◉ two curves"
    assert said((0, 2), theme=PALETTES["dark"]) == "■ ■ and ■"
    key = combined_text([(0, 2)], looks([LOW] * 4, PALETTES["dark"], None), 3, PALETTES["dark"])
    own = [str(look.point) for look in looks([LOW] * 4, PALETTES["dark"], None)]
    assert [str(span.style) for span in key.spans if key.plain[span.start] == "■"][1:] == [own[0], own[2]]


MIDDLES = {"▀": -0.25, "■": 0.0, "▄": 0.25, "▔": -0.4375, "▬": 0.0, "▂": 0.375}
"""By which share of a row the middle of each mark is below the centre of its cell."""


@given(st.floats(1.0, 8.0), st.integers(4, 40), st.booleans())
def test_with_colours_a_mark_is_at_most_a_quarter_of_a_row_from_its_value(y: float, rows: int, published: bool) -> None:
    frame = axes.PlotFrame(70, rows, scale.Ranges(7.0, 1.0, 8.0), ("percentile", "time"))
    found = signs.placed(frame, {0: [(3.0, y)]}, [], {})
    ((cell, _),) = found.curves.items()
    drawn = at_height("▬" if published else "■", found.below[cell])
    assert abs(cell[1] + MIDDLES[drawn] - frame.down(y)) <= 0.251


def test_two_values_that_differ_by_a_third_have_their_marks_at_different_heights() -> None:
    """5.9 ms once stood on the line of 10 ms, and 4.15 ms a whole row below it."""
    shape = ((0.0, 80), (50.0, 90), (99.0, 10**6))
    both = [
        PercentileCurve("", (*(CurvePoint(p, v, True) for p, v in shape), CurvePoint(99.9, last, True)), 10**5)
        for last in (5_900_000, 4_150_000)
    ]
    for theme in ("dark", "light", "high-contrast"):
        lines = canvas.draw_curves(both, 78, 14, theme).plain.split("\n")
        column, frame = lines[-1].index("99.9%") + 2, frame_of(both, [], 14, False)
        beside = [(n, sign) for n, line in enumerate(lines) for sign in line[column - 1 : column + 2]]
        near = [n + MIDDLES[sign] for n, sign in beside if sign in "▀■▄"]
        wanted = sorted(frame.down(scale.y_of_ns(one.points[-1].value_ns)) for one in both)
        assert sorted(near) == pytest.approx(wanted, abs=0.26)


@pytest.mark.parametrize("height", range(4, 12))
def test_the_percentiles_stand_below_the_axis_in_every_height(height: int) -> None:
    *_, axis, names = canvas.draw_curves([SLOW], 78, height, "mono").plain.split("\n")
    assert axis.strip().startswith("└──")
    assert "┬" in axis
    assert names.startswith("faster 0%")
    assert "─" not in names


@pytest.mark.parametrize("height", range(6, 40))
def test_a_sign_is_less_than_a_row_from_the_height_of_its_value_as_the_labels_give_it(height: int) -> None:
    isolated = made_curve("isolated", 8, 10, 10, 10, 11, 30, 5e3, 7.9e4, 2.14e7)
    worst = scale.y_of_ns(2.14e7)
    for curves in ([isolated], [isolated, SLOW], [QUIET, isolated, SLOW, AGAIN]):
        at = curves.index(isolated)
        frame = frame_of(curves, [], height, named=False)
        shown = view.percentiles(curves, [])
        values, _ = canvas._valued(curves, shown.paths, [], 99.9)
        drawn = {n: canvas._dots(frame, shown.solid[n], shown.paths[n]) for n in range(len(curves))}
        found = signs.placed(frame, values, [], drawn)
        every = [(cell, n) for cell, n in found.curves.items()]
        every += [(cell, n) for cell, group in found.shared.items() for n in group]
        # Each sign, against the nearest value of its curve.
        for (_, row), n in every:
            assert min(abs(frame.down(y) - row) for _, y in values[n]) <= 0.5 + 0.13
        # The labels are at their values, too, so a sign is read by the nearest one.
        assert all(abs(frame.down(t.position) - frame.row(t.position)) <= 0.26 for t in axes.y_ticks(frame))
        rows = [row for (_, row), n in every if n == at]
        assert round(frame.down(worst)) in rows or abs(frame.down(worst) % 1 - 0.5) < 0.13


@pytest.mark.parametrize("height", range(8, 14))
def test_21_ms_stand_at_10_ms_and_not_at_100_ms_where_a_row_is_a_decade(height: int) -> None:
    """In a chart of several curves they once stood at 100 ms, and in that of the chapter at 10 ms."""
    isolated = made_curve("isolated", 8, 10, 10, 10, 11, 30, 5e3, 7.9e4, 2.14e7)
    before = made_curve("before", 8, 10, 10, 10, 11, 40, 7e3, 7.3e4, 4.73e6)
    long = made_curve("long", 100, 100, 120, 130, 200, 1e3, 1e5, 8e6, 4.69e8)
    for curves in ([isolated], [before, isolated], [before, long, isolated]):
        frame = frame_of(curves, [], height, named=False)
        if 1 - 1e-9 <= frame.decade <= 1 + 1e-9:
            assert frame.row(scale.y_of_ns(2.14e7)) == frame.row(scale.y_of_ns(1e7))


def test_hostile_labels_stay_text() -> None:
    evil = curve("[bold red]x[/]\x1b[2J\n\u202eabc" + "y" * 500, [100, 200])
    for width in (36, 80):
        for line in canvas.legend_lines([evil], width=width):
            assert "\x1b" not in line.plain
            assert "\n" not in line.plain
            assert line.cell_len <= width
        assert any("[bold red]" in line.plain for line in canvas.legend_lines([evil], width=width))


def test_a_change_of_a_rendered_chart_does_not_reach_the_next_one() -> None:
    canvas.draw_curves([LOW], 60, 12).append("spoilt")
    assert "spoilt" not in canvas.draw_curves([LOW], 60, 12).plain


def test_drawing_needs_no_textual_and_importing_no_plotext() -> None:
    code = (
        "import sys\n"
        "from jitter_workshop.chart import canvas\n"
        "assert 'plotext' not in sys.modules\n"
        "assert not any(m.split('.')[0] in ('textual', 'hdrh') for m in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
