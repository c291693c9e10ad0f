"""The chart as PNG: the same drawing as the SVG, sharp, of the same look on every host."""

from __future__ import annotations

import io
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from jitter_workshop.model.palette import PALETTES, Palette, blended
from jitter_workshop.report.pictures import drawing, png
from jitter_workshop.report.pictures.drawing import CurveMark, Stroke, Words, colour_of
from jitter_workshop.stats import view
from jitter_workshop.stats.histogram import Bin
from tests.madecurves import curve


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    assert image.format == "PNG"
    return image.convert("RGB")


def rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def colours(image: Image.Image, x: float, y: float, reach: int = 1) -> set[tuple[int, ...]]:
    """The colours of the file's pixels around a place of the drawing."""
    middle_x, middle_y = round(x * png.FINE), round(y * png.FINE)
    found = set()
    for dx in range(-reach, reach + 1):
        for dy in range(-reach, reach + 1):
            pixel = image.getpixel((min(max(middle_x + dx, 0), image.width - 1), middle_y + dy))
            assert isinstance(pixel, tuple)
            found.add(pixel)
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_png_shows_each_curve_in_its_colour(theme: drawing.Theme) -> None:
    curves = [
        curve("laptop", [168, 256, 8_126_495], origin="published 2015"),
        curve("mine", [100] * 5 + [9_000] * 5, 6),
        curve("few", [50, 700, 40_000], 0),
    ]
    palette: Palette = PALETTES[theme]
    data = png.render_png(curves, theme=theme)
    image, drawn = opened(data), drawing.picture(curves)
    assert image.size == (drawing.WIDTH * 2, drawn.height * 2)
    assert image.getpixel((0, 0)) == rgb(palette.background)
    marks = [shape for shape in drawn.shapes if isinstance(shape, CurveMark)]
    for mark in marks:
        covered = [m for m in marks if m is not mark and abs(m.x - mark.x) < 9 and abs(m.y - mark.y) < 9]
        if not covered:
            wanted = palette.background if mark.series.reference else colour_of(palette, mark.series)
            assert rgb(wanted) in colours(image, mark.x, mark.y), mark
    for stroke in (s for s in drawn.shapes if isinstance(s, Stroke) and not s.few):
        for x, y in stroke.points:
            near_mark = any(abs(m.x - x) < 9 and abs(m.y - y) < 9 for m in marks)
            assert near_mark or rgb(colour_of(palette, stroke.series)) in colours(image, x, y, 2), (stroke, x, y)


def test_dots_are_apart_and_a_line_is_not() -> None:
    flat = curve("x", [1_000] * 2, 1)
    for one, broken in ((flat, True), (curve("x", [1_000] * 2), False)):
        drawn = drawing.picture([one])
        image = opened(png.render_png([one]))
        y = next(shape for shape in drawn.shapes if isinstance(shape, Stroke)).points[0][1]
        colour = rgb(PALETTES["light"].curves[0])
        row = [image.getpixel((x, round(y * png.FINE))) == colour for x in range(200 * 2, 210 * 2)]
        assert any(row)
        assert all(row) is not broken


def test_every_letter_that_the_chart_itself_writes_is_in_the_font() -> None:
    font = png.font(28)
    box = bytes(font.getmask("\U000f1234"))
    own = string.printable[:95] + "µ×–…·≥⁻⁰¹²³⁴⁵⁶⁷⁸⁹" + "éßŁñЖλ"
    assert [c for c in own if not c.isspace() and bytes(font.getmask(c)) == box] == []


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=60), st.lists(st.integers(0, 10**11), max_size=4)), max_size=3))
def test_every_label_gives_a_valid_picture(given_curves: list[tuple[str, list[int]]]) -> None:
    opened(png.render_png([curve(label, values, 2) for label, values in given_curves], title="\x1b[31m\u202e"))


def test_words_stay_on_the_sheet_and_apart_from_the_figures() -> None:
    widest = [curve("W" * 200, [5, 10**10], origin="M" * 90), curve("中" * 60, [5]), curve("i" * 90, [5])]
    drawn = drawing.picture(widest, title="@" * 300)
    for words in (shape for shape in drawn.shapes if isinstance(shape, Words)):
        font = png.font(drawing.TITLE_PX if words.role == "title" else drawing.TEXT_PX)
        length = font.getlength(words.text + (f" {words.tail}" if words.tail else ""))
        start = words.x - {"start": 0, "middle": length / 2, "end": length}[words.anchor]
        if not words.turned:
            assert start >= 0
            assert start + length <= drawing.WIDTH, words
        if words.tail or (words.role == "plain" and words.anchor == "start"):
            assert start + length <= 575, words


def test_a_picture_is_the_same_every_time_and_describes_its_content() -> None:
    curves = [curve("mine", [100, 9_000])]
    shown = view.frequency([[Bin(100, 110, 7), Bin(5_000, 5_100, 3)]])
    data = png.render_png(curves, view=shown)
    assert data == png.render_png(curves, view=shown)
    about = Image.open(io.BytesIO(data)).info
    assert about["Title"] == shown.title
    assert "mine" in about["Description"]
    assert round(about["dpi"][0]) == 192


def test_a_long_legend_is_whole() -> None:
    curves = [curve(f"run {i}", [100 + i, 9_000 + i]) for i in range(60)]
    drawn = drawing.picture(curves)
    last = [shape for shape in drawn.shapes if isinstance(shape, Stroke) and shape.sample][-1]
    image = opened(png.render_png(curves))
    assert image.height == drawn.height * 2
    assert rgb(colour_of(PALETTES["light"], last.series)) in colours(image, *last.points[0])


def test_the_space_between_two_curves_has_the_colour_of_better_and_worse() -> None:
    before, after = curve("before", [1_000] * 5 + [90_000] * 5), curve("after", [9_000] * 10)
    drawn = drawing.picture([before, after], between=(0, 1))
    image = opened(png.render_png([before, after], theme="dark", between=(0, 1)))
    palette = PALETTES["dark"]
    for area in (shape for shape in drawn.shapes if isinstance(shape, drawing.Area)):
        x = (min(x for x, _ in area.outline) + max(x for x, _ in area.outline)) / 2 + 7
        ys = sorted(y for _, y in area.outline)
        wanted = blended(palette.good if area.better else palette.bad, palette.background, 1 - drawing.FILL_SHARE)
        assert rgb(wanted) in colours(image, x, (ys[0] + ys[-1]) / 2 + 7)
