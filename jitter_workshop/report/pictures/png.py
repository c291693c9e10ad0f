"""Draw the charts as PNG files, for programs that cannot show SVG.

Width and height of a file, in pixels, are twice those of the sheet in :mod:`drawing`. To make edges smooth, lines are
drawn on a larger image, which is then scaled down by averaging. To save memory, the image is drawn in horizontal
strips, one after another. The letters come from a font in the assets, so that a picture is the same on all hosts. A
character that this font lacks is drawn as a box.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources

from PIL import Image, ImageDraw, ImageFont, PngImagePlugin

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.palette import PALETTES, Palette, blended
from jitter_workshop.report.pictures import drawing
from jitter_workshop.report.pictures.drawing import (
    WIDTH,
    Area,
    CurveMark,
    DrawnShape,
    Rule,
    Stroke,
    Theme,
    Tiles,
    Words,
    colour_of,
)
from jitter_workshop.stats.heat import Heat
from jitter_workshop.stats.view import CurveView, Point

FINE = 2
"""The number of pixels of the file along each side of a pixel of the sheet."""

_OVER = 4
"""The number of points along each side of a pixel of the file. The points are averaged, so that the edge of a line has
17 shades."""
_SCALE = FINE * _OVER
_BAND = 96
_REACH = 8
"""The largest distance by which the drawing of a stroke or mark reaches beyond its points."""
_DPI = 96 * FINE
_BOLD = 0.6
"""The shift between the two drawings that make a title bold. The font itself has only one weight."""
_ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def render_png(
    curves: Sequence[PercentileCurve],
    title: str = "",
    view: CurveView | None = None,
    *,
    theme: Theme = "light",
    between: tuple[int, int] | None = None,
) -> bytes:
    """Return the bytes of a PNG file with the chart of ``svg.render_svg``.

    ``theme``: light or dark colours, because a PNG file cannot adapt to its reader. ``between``: the indices of the
    curves before and after a change. The chart fills the space between these two curves.
    """
    return _written(drawing.picture(curves, title, view, between), theme)


def render_heat_png(heat: Heat, title: str = "", *, theme: Theme = "light") -> bytes:
    """Return the bytes of a PNG file with the heat map of a run."""
    return _written(drawing.heat_picture(heat, title), theme)


def render_matrix_png(matrix: Matrix, title: str = "", *, theme: Theme = "light") -> bytes:
    """Return the bytes of a PNG file with a matrix."""
    return _written(drawing.matrix_picture(matrix, title), theme)


def _written(drawn: drawing.Picture, theme: Theme) -> bytes:
    palette = PALETTES[theme]
    sheet = Image.new("RGB", (WIDTH * FINE, drawn.height * FINE), palette.background)
    lines = [shape for shape in drawn.shapes if not isinstance(shape, Words)]
    for top in range(0, drawn.height, _BAND):
        sheet.paste(_band(lines, top, min(_BAND, drawn.height - top), palette), (0, top * FINE))
    for shape in drawn.shapes:
        if isinstance(shape, Words):
            _write(sheet, shape, palette)
    about = PngImagePlugin.PngInfo()
    about.add_itxt("Title", drawn.title)
    about.add_itxt("Description", drawn.description)
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True, dpi=(_DPI, _DPI), pnginfo=about)
    return file.getvalue()


def _band(shapes: Sequence[DrawnShape], top: int, height: int, palette: Palette) -> Image.Image:
    """Return an image of one horizontal strip of the sheet, without texts. ``top``, ``height``: the strip's upper edge
    and its height, in pixels of the sheet."""
    large = Image.new("RGB", (WIDTH * _SCALE, height * _SCALE), palette.background)
    pen = ImageDraw.Draw(large)
    for shape in shapes:
        low, high = _extent(shape)
        if high + _REACH < top or low - _REACH > top + height:
            continue
        if isinstance(shape, Rule):
            _rule(pen, shape, top, palette)
        elif isinstance(shape, Tiles):
            for x, y, wide, tall in shape.cells:
                left, upper, right, lower = (round(v * _SCALE) for v in (x, y - top, x + wide, y - top + tall))
                pen.rectangle((left, upper, right - 1, lower - 1), drawing.heat_colour(palette, shape.level))
        elif isinstance(shape, Area):
            colour = palette.good if shape.better else palette.bad
            corners = [(x * _SCALE, (y - top) * _SCALE) for x, y in shape.outline]
            pen.polygon(corners, blended(colour, palette.background, 1 - drawing.FILL_SHARE))
        elif isinstance(shape, Stroke):
            _stroke(pen, shape, top, palette)
        elif isinstance(shape, CurveMark):
            _mark(pen, shape, top, palette)
    return large.reduce(_OVER)


def _extent(shape: DrawnShape) -> tuple[float, float]:
    """Return the lowest and the highest y of a shape."""
    if isinstance(shape, Rule):
        return min(shape.y1, shape.y2), max(shape.y1, shape.y2)
    if isinstance(shape, Tiles):
        return min(y for _, y, _, _ in shape.cells), max(y + height for _, y, _, height in shape.cells)
    if isinstance(shape, Stroke | Area):
        ys = [y for _, y in (shape.points if isinstance(shape, Stroke) else shape.outline)]
        return min(ys), max(ys)
    return shape.y, shape.y


def _rule(pen: ImageDraw.ImageDraw, rule: Rule, top: int, palette: Palette) -> None:
    """Draw a rule on whole pixels of the file, so that it is sharp."""
    x1, y1, x2, y2 = (
        round(v * FINE) * _OVER for v in (rule.x1 - 0.5, rule.y1 - top - 0.5, rule.x2 + 0.5, rule.y2 - top + 0.5)
    )
    pen.rectangle((x1, y1, x2 - 1, y2 - 1), palette.dim if rule.axis else palette.fine_grid)


def _stroke(pen: ImageDraw.ImageDraw, stroke: Stroke, top: int, palette: Palette) -> None:
    width = (drawing.REFERENCE_PX if stroke.series.reference else drawing.CURVE_PX) * _SCALE
    points = [(x * _SCALE, (y - top) * _SCALE) for x, y in stroke.points]
    colour = colour_of(palette, stroke.series)
    if stroke.few:
        for x, y in _dots(points, drawing.DOTS_PX * _SCALE):
            _disc(pen, x, y, width / 2, colour)
        return
    pen.line(points, colour, round(width), joint="curve")
    for x, y in (points[0], points[-1]):
        _disc(pen, x, y, width / 2, colour)


def _dots(points: Sequence[Point], step: float) -> Iterator[Point]:
    """Yield points along a line from its beginning. Two neighbouring points are ``step`` apart."""
    ahead = 0.0
    for (x1, y1), (x2, y2) in itertools.pairwise(points):
        length = math.hypot(x2 - x1, y2 - y1)
        while ahead <= length and length:
            share = ahead / length
            yield x1 + (x2 - x1) * share, y1 + (y2 - y1) * share
            ahead += step
        ahead -= length


def _mark(pen: ImageDraw.ImageDraw, mark: CurveMark, top: int, palette: Palette) -> None:
    colour = colour_of(palette, mark.series)
    fill = palette.background if mark.series.reference else colour
    half = drawing.MARK_PX / 2
    if not mark.outline:
        x, y = mark.x * _SCALE, (mark.y - top) * _SCALE
        _disc(pen, x, y, (drawing.CIRCLE_PX + half) * _SCALE, colour)
        _disc(pen, x, y, (drawing.CIRCLE_PX - half) * _SCALE, fill)
        return
    corners = [(x * _SCALE, (y - top) * _SCALE) for x, y in mark.outline]
    pen.polygon(corners, fill)
    pen.line([*corners, *corners[:2]], colour, round(drawing.MARK_PX * _SCALE), joint="curve")


def _disc(pen: ImageDraw.ImageDraw, x: float, y: float, radius: float, colour: str) -> None:
    pen.ellipse((x - radius, y - radius, x + radius, y + radius), colour)


def _write(sheet: Image.Image, words: Words, palette: Palette) -> None:
    title = words.role == "title"
    face = font((drawing.TITLE_PX if title else drawing.TEXT_PX) * FINE)
    colour = palette.dim if words.role == "dim" else palette.text
    x, y = words.x * FINE, words.y * FINE
    if words.turned:
        _write_upward(sheet, words.text, (x, y), face, colour)
        return
    pen = ImageDraw.Draw(sheet)
    pen.text((x, y), words.text, colour, face, _ANCHORS[words.anchor], stroke_width=_BOLD if title else 0)
    if words.tail:
        pen.text((x + face.getlength(f"{words.text} "), y), words.tail, palette.dim, face, "ls")


def _write_upward(
    sheet: Image.Image, text: str, at: tuple[float, float], face: ImageFont.FreeTypeFont, colour: str
) -> None:
    """Write a text that runs upward, centred on ``at``."""
    ascent, descent = face.getmetrics()
    mask = Image.new("L", (math.ceil(face.getlength(text)) + 2, ascent + descent))
    ImageDraw.Draw(mask).text((1, ascent), text, 255, face, "ls")
    mask = mask.transpose(Image.Transpose.ROTATE_90)
    corner = (round(at[0] - ascent), round(at[1] - mask.height / 2))
    sheet.paste(colour, (*corner, corner[0] + mask.width, corner[1] + mask.height), mask)


@cache
def font(pixels: int) -> ImageFont.FreeTypeFont:
    """Return the pictures' font with this height in pixels."""
    found = resources.files("jitter_workshop.assets").joinpath("fonts/DejaVuSans.ttf").read_bytes()
    return ImageFont.truetype(io.BytesIO(found), pixels)
