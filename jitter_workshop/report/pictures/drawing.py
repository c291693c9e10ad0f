"""Draw the chart as shapes: lines, words, curves and their marks. ``svg`` and ``png`` write these shapes.

Axes, ticks and ranges come from ``stats.scale``, so that the picture shows the same as the terminal. Curves differ by
colour and by mark; each curve has its mark at the values that the legend gives as numbers. A curve is solid up to the
last percentile with ten samples beyond it, then dotted. Published curves are grey, thin and named as published;
recorded curves of a chapter are thin, too, and have the colours of before and after. Labels that others chose are
cleaned and shortened here; the module of a format escapes them. Lengths are in pixels of a sheet that is :data:`WIDTH`
wide; y grows downward.
"""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from jitter_workshop.model.curve import ROLES, PercentileCurve
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.palette import Palette, heat_shade
from jitter_workshop.model.text import ID, MESSAGE, REASON, SHORT, clean, many
from jitter_workshop.stats import matrix as cells_of
from jitter_workshop.stats import scale
from jitter_workshop.stats.between import pieces
from jitter_workshop.stats.curve import curve_value_at, numbers_of_curves
from jitter_workshop.stats.heat import Heat, bounds, shade_of_count
from jitter_workshop.stats.view import CurveView, Point, from_edge, marked_points, percentiles

Theme = Literal["light", "dark"]
Role = Literal["plain", "dim", "title"]
Anchor = Literal["start", "middle", "end"]

WIDTH = 960
TEXT_PX, TITLE_PX = 14, 18
CURVE_PX, REFERENCE_PX, MARK_PX, RULE_PX = 2.25, 1.5, 1.5, 1.0
DOTS_PX = 6.1
"""The distance in pixels between two dots of a dotted line."""

_PLOT_HEIGHT = 440
_LEFT, _RIGHT, _TOP = 84, 28, 56
_AXIS_ROOM = 64
_LEGEND_LINE = 26
_NAME_AT = _LEFT + 42
_COLUMNS = (("p50", 640.0, 50.0), ("p99.9", 770.0, 99.9), ("max", 900.0, None))
_KEY_PX = 120
"""The distance of two entries of the key of filled areas."""
_NAME_ROOM = 570 - _NAME_AT
_PARTS_FROM = ((140.0, (1, 2, 5)), (90.0, (1, 3)))
"""The ticks of a decade of time on the y axis, by the least height of a decade in pixels."""
CUT = "≈ faster values lie below"
"""The words at the lower end of the y axis if values of the curves lie below it."""
_BETWEEN_PX = 6
"""The least distance in pixels between two labels of an axis."""
_DOWN = 0.35 * TEXT_PX
"""The distance in pixels from the middle of a line of text to its baseline."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """Identify a curve of a chart by its kind and its number. ``number``: from 0, among the measured curves or among
    the published curves (``stats.curve.numbers_of_curves``). ``reference``: True for a published or recorded curve.
    ``shade``: the index of the colour of a recorded curve that has a role in a chapter; None for all others.
    """

    number: int
    reference: bool
    shade: int | None = None

    @property
    def mark(self) -> int:
        """Return the shape of the curve's marks: 0 circle, 1 square, 2 diamond, 3 triangle. Four shapes in six colours
        tell 24 curves apart."""
        return (self.number + self.number // 6) % 4


def colour_of(palette: Palette, series: ChartSeries) -> str:
    """Return a curve's colour, as ``#rrggbb``."""
    if series.shade is not None:
        return palette.curves[series.shade % len(palette.curves)]
    colours = palette.references if series.reference else palette.curves
    return colours[series.number % len(colours)]


@dataclass(frozen=True, slots=True)
class Rule:
    """Hold a straight line, of the grid or of an axis."""

    x1: float
    y1: float
    x2: float
    y2: float
    axis: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """Hold a line of text at the position (x, y).

    ``anchor``: the point of the text that lies at (x, y): its start, middle or end. ``figure``: True to draw all digits
    equally wide. ``turned``: True to draw the text upward, centred on (x, y). ``tail``: more text in a dim colour.
    """

    x: float
    y: float
    text: str
    role: Role = "plain"
    anchor: Anchor = "start"
    figure: bool = False
    turned: bool = False
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Stroke:
    """Hold the line of a curve, or a piece of this line. ``few``: True for a piece with few samples, which is drawn
    dotted. ``sample``: True for the short line in the legend that shows how a curve is drawn.
    """

    points: tuple[Point, ...]
    series: ChartSeries
    few: bool = False
    sample: bool = False


@dataclass(frozen=True, slots=True)
class CurveMark:
    """Hold a mark on a curve. A mark on a published curve is hollow."""

    x: float
    y: float
    series: ChartSeries

    @property
    def outline(self) -> tuple[Point, ...]:
        """Return the corners of the mark's outline; () if the mark is a circle, which has the size
        :data:`CIRCLE_PX`."""
        return tuple((self.x + dx, self.y + dy) for dx, dy in _OUTLINES[self.series.mark])


CIRCLE_PX = 4.5
_OUTLINES: tuple[tuple[Point, ...], ...] = (
    (),
    ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
    ((0, -5), (5, 4), (-5, 4)),
)


@dataclass(frozen=True, slots=True)
class Area:
    """Hold a filled area: the space between the curves before and after a change, or a sample of it in the key. All
    lines are drawn over it."""

    outline: tuple[Point, ...]
    better: bool


@dataclass(frozen=True, slots=True)
class Tiles:
    """Hold cells of a heat map or matrix that all have the same shade. ``level``: the number of the shade, 1 to 6.
    ``cells``: (x, y, width, height) of each cell, in pixels."""

    level: int
    cells: tuple[tuple[float, float, float, float], ...]


HEAT_LEVELS = 6
_MOST_COLUMNS, _ROWS_PER_DECADE = 240, 16
_MOST_CELLS = 64
_MATRIX_LEFT, _MATRIX_TOP, _MATRIX_PX = 220, 80, 640
"""The left edge, the top edge and the side of a matrix's square, in pixels."""
FILL_SHARE = 0.18
"""The opacity of an area."""

DrawnShape = Rule | Words | Stroke | CurveMark | Area | Tiles


@dataclass(frozen=True, slots=True)
class Picture:
    """Hold a sheet with its shapes. ``height``: the sheet's height in pixels. Later shapes lie above earlier shapes."""

    height: int
    title: str
    description: str
    series: tuple[ChartSeries, ...]
    shapes: tuple[DrawnShape, ...]


def picture(
    curves: Sequence[PercentileCurve],
    title: str = "",
    view: CurveView | None = None,
    between: tuple[int, int] | None = None,
) -> Picture:
    """Return a chart of curves: axes, labels, and a legend with p50, p99.9 and maximum.

    ``view``: the axes, and one path for each curve; with None, the chart shows latency by percentile. ``between``: the
    indices of the curves before and after a change. The chart fills the space between these two curves if its y axis
    shows a time or a share, and has a key for the fillings.
    """
    view = percentiles(curves) if view is None else view
    title = clean(title or view.title)
    bottom = _TOP + _PLOT_HEIGHT
    series = _series(curves)
    plot = _Plot(view)
    named = "; ".join(f"{_label(c)}{f' ({clean(c.origin, SHORT)})' if c.origin else ''}" for c in curves)
    described = f"{view.y_name.capitalize()} by {view.x_name}, both axes logarithmic: {clean(named, MESSAGE)}"
    shapes: list[DrawnShape] = [Words(_LEFT, 32, fitted(title, WIDTH - _LEFT - _RIGHT, TITLE_PX), "title")]
    if between is not None and view.y in ("time", "share"):
        areas = _areas(plot, *between)
        shapes += [*areas, *_key_of_areas(areas, bottom + _AXIS_ROOM)]
    shapes += _axes(plot, bottom)
    for number, (curve, one) in enumerate(zip(curves, series, strict=True)):
        shapes += _curve(plot, number, curve, one)
    shapes += _legend(curves, series, bottom + _AXIS_ROOM)
    height = bottom + _AXIS_ROOM + _LEGEND_LINE * (len(curves) + 1) + 8
    return Picture(height, title, described, series, tuple(shapes))


def heat_picture(heat: Heat, title: str = "") -> Picture:
    """Return the heat map of a run: time to the right, latency upward.

    A column stands for a time, usually that of one block. A row stands for a range of latencies. The shade of a cell
    shows how many values of a block at this time are in this range.
    """
    along = f"time since the run's start{' (blank: a pause between blocks)' if heat.pauses else ''}"
    plot = _Plot(CurveView((), (), heat.ranges, "elapsed", "time", "", along, "latency"))
    bottom = _TOP + _PLOT_HEIGHT
    title = clean(title or f"Heat map of {heat.label}")
    rows = round((plot.ranges.y_high - plot.ranges.y_low) * _ROWS_PER_DECADE)
    ends = rows, plot.ranges.y_low, plot.ranges.y_high
    whole = len(heat.counts) <= _MOST_COLUMNS
    each = heat.end_s / _MOST_COLUMNS
    spans = heat.spans_s if whole else [(each * n, each * (n + 1)) for n in range(_MOST_COLUMNS)]
    counts = heat.by_block(*ends) if whole else heat.grid(_MOST_COLUMNS, *ends)
    limits = bounds(max((count for column in counts for count in column), default=1.0), HEAT_LEVELS)
    tall = _PLOT_HEIGHT / rows
    cells: dict[int, list[tuple[float, float, float, float]]] = {}
    for (start, end), column in zip(spans, counts, strict=True):
        left, right = plot.x(start), plot.x(end)
        # Neighbours of one shade in a column are one cell: the file is smaller, and has no seams.
        for shade, group in itertools.groupby(
            enumerate(shade_of_count(count, limits) for count in column), key=lambda one: one[1]
        ):
            run = [row for row, _ in group]
            if shade:
                at = (left, _TOP + run[0] * tall, right - left, len(run) * tall)
                cells.setdefault(shade, []).append(at)
    shapes: list[DrawnShape] = [Words(_LEFT, 32, fitted(title, WIDTH - _LEFT - _RIGHT, TITLE_PX), "title")]
    shapes += _axes(plot, bottom)
    shapes += [Tiles(shade, tuple(cells[shade])) for shade in sorted(cells)]
    y = bottom + _AXIS_ROOM + 16
    shapes.append(Words(_LEFT, y, f"values in a block of {scale.nice_ns(heat.block_s * 1e9)}", "dim"))
    for n, limit in enumerate(limits):
        x = _LEFT + 230 + n * 100
        shapes.append(Tiles(n + 1, ((x, y - 12, 14, 14),)))
        shapes.append(Words(x + 22, y, f"{limit:,}" + (" or more" if n + 1 == len(limits) else ""), figure=True))
    described = (
        f"Latency over time, on a logarithmic axis. The shade shows how many values: {clean(heat.label, REASON)}"
    )
    return Picture(bottom + _AXIS_ROOM + _LEGEND_LINE + 8, title, described, (), tuple(shapes))


def matrix_picture(matrix: Matrix, title: str = "") -> Picture:
    """Return a picture of a cache line's times from one CPU to another.

    Each CPU, or each range of CPUs, has a row and a column. The shade of a cell shows a time. The legend has the time
    of each shade, and the median, shortest and longest time of each cluster of CPU pairs.
    """
    cells = cells_of.matrix_grid(matrix, _MOST_CELLS)
    count = len(cells.bins)
    side = _MATRIX_PX / count
    title = clean(title or matrix.label or "Lines between CPUs")
    shapes: list[DrawnShape] = [
        Words(_MATRIX_LEFT, 32, fitted(title, WIDTH - _MATRIX_LEFT - _RIGHT, TITLE_PX), "title")
    ]
    tiles: dict[int, list[tuple[float, float, float, float]]] = {}
    for row, line in enumerate(cells.cells):
        for column, ns in enumerate(line):
            if ns is not None:
                at = (_MATRIX_LEFT + column * side, _MATRIX_TOP + row * side, side, side)
                tiles.setdefault(cells_of.shade_of_time(ns, cells.ends, HEAT_LEVELS), []).append(at)
    shapes += [Tiles(shade, tuple(tiles[shade])) for shade in sorted(tiles)]
    free_from = 0.0
    # A label for each row, or for every second, third, … where they would touch.
    step = max(round(1.2 * TEXT_PX / side + 0.49), 1)
    for number in range(0, count, step):
        middle = (number + 0.5) * side
        name = str(cells.bins[number].stands_for)
        row_name = name if cells.single else f"{number + 1}: {name}"
        told = fitted(row_name, _MATRIX_LEFT - 24)
        shapes.append(Words(_MATRIX_LEFT - 10, _MATRIX_TOP + middle + _DOWN, told, "dim", "end", figure=True))
        column_name = name if cells.single else str(number + 1)
        half = sum(map(_em, column_name)) * TEXT_PX / 2
        if middle - half >= free_from:
            free_from = middle + half + _BETWEEN_PX
            shapes.append(Words(_MATRIX_LEFT + middle, _MATRIX_TOP - 8, column_name, "dim", "middle", figure=True))
    y = _MATRIX_TOP + _MATRIX_PX + 32
    shapes.append(Words(_MATRIX_LEFT - 10, y, "one way, from", "dim", "end"))
    for number, limit in enumerate(cells_of.shortest_times(cells.ends, HEAT_LEVELS)):
        x = _MATRIX_LEFT + number * 110
        shapes.append(Tiles(number + 1, ((x, y - 12, 14, 14),)))
        shapes.append(Words(x + 22, y, scale.nice_ns(limit), figure=True))
    for one in matrix.clusters:
        y += _LEGEND_LINE
        shapes.append(Words(_MATRIX_LEFT - 10, y, fitted(clean(one.name, ID), _MATRIX_LEFT - 24), anchor="end"))
        shapes.append(Words(_MATRIX_LEFT + 80, y, scale.nice_ns(one.median_ns), anchor="end", figure=True))
        among = f"{scale.nice_ns(one.min_ns)} to {scale.nice_ns(one.max_ns)}, {many(one.pairs, 'pair')}"
        shapes.append(Words(_MATRIX_LEFT + 100, y, among, "dim", figure=True))
    stands = f" that stand for {sum(len(group.cpus) for group in matrix.groups)}" if matrix.sampled else ""
    described = f"The one-way time of a cache line between {len(matrix.cpus)} CPUs{stands}; the shade shows the time"
    return Picture(round(y) + _LEGEND_LINE + 8, title, described, (), tuple(shapes))


def heat_colour(palette: Palette, level: int) -> str:
    """Return the colour of shade ``level`` of a heat map. Shade 1 is near the background colour, the last shade near
    the text colour."""
    return heat_shade(palette, level, HEAT_LEVELS)


def fitted(text: str, room: float, size: float = TEXT_PX) -> str:
    """Return as much of a text as fits into ``room`` pixels in any usual typeface. A text that was cut ends with ``…``.
    ``size``: height of the letters in pixels."""
    if sum(map(_em, text)) * size <= room:
        return text
    left, kept = room / size - _em("…"), ""
    for character in text:
        left -= _em(character)
        if left < 0:
            break
        kept += character
    return kept.rstrip() + "…"


class _Plot:
    """Convert positions in a view to pixels of the sheet."""

    def __init__(self, view: CurveView) -> None:
        self.view = view
        self.ranges = view.ranges

    def x(self, position: float) -> float:
        share = (position - self.ranges.x_low) / (self.ranges.x_high - self.ranges.x_low)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, position: float) -> float:
        share = (self.ranges.y_high - position) / (self.ranges.y_high - self.ranges.y_low)
        return _TOP + share * _PLOT_HEIGHT

    @property
    def cut(self) -> bool:
        """Return True if values of the curves lie below the y axis (only of percentiles)."""
        return any(path[0][1] < self.ranges.y_low - 1e-9 for path in self.view.paths if path)

    def path(self, number: int) -> tuple[list[Point], int]:
        """Return the points of the curve ``number`` on the sheet, in pixels, and the number of solid points. A curve
        that begins below the y axis enters from its lower end."""
        path, solid = self.view.paths[number], self.view.solid[number]
        inside, solid = from_edge(path, solid, self.ranges.y_low) if self.cut else (path, solid)
        return [(self.x(x), self.y(y)) for x, y in inside], solid

    def y_ticks(self) -> tuple[scale.Tick, ...]:
        """Return the ticks of y. A decade of time with enough pixels has ticks between the powers of ten."""
        decade = _PLOT_HEIGHT / (self.ranges.y_high - self.ranges.y_low)
        fine = (parts for least, parts in _PARTS_FROM if decade >= least and self.view.y == "time")
        return scale.ticks(self.view.y, self.ranges.y_low, self.ranges.y_high, next(fine, (1,)))


def _series(curves: Sequence[PercentileCurve]) -> tuple[ChartSeries, ...]:
    return tuple(
        ChartSeries(place, c.elsewhere, ROLES.index(c.role) if c.elsewhere and c.role is not None else None)
        for c, place in zip(curves, numbers_of_curves(curves), strict=True)
    )


def _axes(plot: _Plot, bottom: int) -> list[DrawnShape]:
    right = WIDTH - _RIGHT
    shapes: list[DrawnShape] = []
    for tick in plot.y_ticks():
        y = plot.y(tick.position)
        shapes.append(Rule(_LEFT, y, right, y))
        shapes.append(Words(_LEFT - 10, y + _DOWN, tick.label, "dim", "end", figure=True))
    for tick in scale.ticks(plot.view.x, plot.ranges.x_low, plot.ranges.x_high):
        x = plot.x(tick.position)
        shapes.append(Rule(x, _TOP, x, bottom))
    return [
        *shapes,
        *_x_labels(plot, bottom + 20),
        Rule(_LEFT, bottom, right, bottom, axis=True),
        Rule(_LEFT, _TOP, _LEFT, bottom, axis=True),
        Words((_LEFT + right) / 2, bottom + 42, plot.view.x_name, "dim", "middle"),
        *([Words(_LEFT, bottom + 42, CUT, "dim")] if plot.cut else []),
        Words(18, _TOP + _PLOT_HEIGHT / 2, plot.view.y_name, "dim", "middle", turned=True),
    ]


def _x_labels(plot: _Plot, y: float) -> list[DrawnShape]:
    """Return the labels of the x axis. The last label is always drawn, because it shows how far the curves reach. Any
    other label is left out if it would overlap the next label."""
    found: list[DrawnShape] = []
    free_to = float(WIDTH)
    for tick in reversed(scale.ticks(plot.view.x, plot.ranges.x_low, plot.ranges.x_high)):
        x, long = plot.x(tick.position), sum(map(_em, tick.label)) * TEXT_PX
        words, right = Words(x, y, tick.label, "dim", "middle"), x + long / 2
        if right > WIDTH - 4:
            # At the right edge a label ends at the edge.
            words, right = Words(WIDTH - 4, y, tick.label, "dim", "end"), WIDTH - 4
        if right <= free_to:
            found.append(words)
            free_to = right - long - _BETWEEN_PX
    return found[::-1]


def _key_of_areas(areas: Sequence[Area], top: int) -> list[DrawnShape]:
    """Return the key of filled areas, for the row of the legend's heads: a sample and a word for each kind of area.
    ``top``: the upper edge of the legend in pixels."""
    shapes: list[DrawnShape] = []
    x = _LEFT
    for better in sorted({one.better for one in areas}, reverse=True):
        corners = ((x, top + 4), (x + 30, top + 4), (x + 30, top + 18), (x, top + 18))
        word = "better" if better else "worse"
        shapes += [Area(corners, better), Words(x + _NAME_AT - _LEFT, top + 16, word, "dim")]
        x += _KEY_PX
    return shapes


def _areas(plot: _Plot, before: int, after: int) -> list[Area]:
    first, second = (_held(plot.view.paths[one], plot.ranges.y_low) for one in (before, after))
    found = pieces(first, second)
    return [Area(tuple((plot.x(x), plot.y(y)) for x, y in one.outline), one.better) for one in found]


def _held(path: tuple[Point, ...], low: float) -> Sequence[Point]:
    """Return a path of percentiles with its part below ``low`` raised to ``low``; another path as it is."""
    inside, _ = from_edge(path, 0, low)
    if not path or path[0][1] >= low:
        return path
    return [(path[0][0], low), *(inside or [(path[-1][0], low)])]


def _curve(plot: _Plot, number: int, curve: PercentileCurve, series: ChartSeries) -> list[DrawnShape]:
    """Return the shapes of a curve: its line, first solid and then dotted, and its marks."""
    points, solid = plot.path(number)
    parts = ((points[:solid], False), (points[max(solid - 1, 0) :], True))
    shapes: list[DrawnShape] = [Stroke(tuple(some), series, few) for some, few in parts if len(some) > 1]
    if plot.view.x == "percentile":
        told = marked_points(curve, plot.view.paths[number], (percentile for _, _, percentile in _COLUMNS))
        stations = [(plot.x(x), plot.y(y)) for x, y in told if y >= plot.ranges.y_low]
    else:
        stations = _stations(plot, points, series.number)
    return [*shapes, *(CurveMark(x, y, series) for x, y in stations)]


def _stations(plot: _Plot, points: Sequence[Point], place: int) -> list[Point]:
    """Return where to draw a curve's marks, in pixels, if the x axis shows no percentiles. The curve has a mark at its
    end, and about one for each factor of ten in x. ``place``: the curve's number. It decides by how much the marks are
    moved, so that marks of different curves do not overlap.
    """
    if not points:
        return []
    found = [points[-1]]
    low = plot.ranges.x_low
    wanted = plot.x(low + 0.25 + (place % 5) * 0.17)
    for x, y in points:
        if x >= wanted and found[0][0] - x > 12:
            found.append((x, y))
            wanted = x + plot.x(low + 1.0) - _LEFT
    return found


def _legend(curves: Sequence[PercentileCurve], series: Sequence[ChartSeries], top: int) -> list[DrawnShape]:
    shapes: list[DrawnShape] = [Words(x, top + 16, head, "dim", "end", figure=True) for head, x, _ in _COLUMNS]
    for number, (curve, one) in enumerate(zip(curves, series, strict=True), start=1):
        y = top + 16 + number * _LEGEND_LINE
        shapes.append(Stroke(((_LEFT, y - 5), (_LEFT + 30, y - 5)), one, sample=True))
        shapes.append(CurveMark(_LEFT + 15, y - 5, one))
        # The label is shortened, and never the origin.
        origin = fitted(clean(curve.origin, SHORT), _NAME_ROOM / 2)
        label = fitted(_label(curve), _NAME_ROOM - (sum(map(_em, origin)) + 0.4) * TEXT_PX)
        shapes.append(Words(_NAME_AT, y, label, tail=origin))
        for _, x, percentile in _COLUMNS:
            known = curve.points[-1].value_ns if curve.points else None
            value = known if percentile is None else curve_value_at(curve, percentile)
            shapes.append(Words(x, y, scale.nice_ns(value), anchor="end", figure=True))
    return shapes


def _label(curve: PercentileCurve) -> str:
    return clean(curve.label, ID) or "run"


def _em(character: str) -> float:
    """Return the width of a character, as a share of the font size. The width is rounded up, so that texts fit in any
    usual typeface."""
    if character in "iljtfI.,:;'|! ()[]":
        return 0.41
    if unicodedata.combining(character):
        return 0.0
    if character in "mwMW@%" or unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if not character.isascii():
        return 0.8
    return 0.78 if character.isupper() else 0.65
