"""Draw percentile curves as text. Only this module imports plotext. It does not import Textual, so the verb ``chart``
and the line-by-line workshop use it as well.

plotext draws curves as braille dots on linear axes. The logarithms are taken here, because plotext's own logarithmic
axes fail with ticks of our own. Axes, grid, labels and marks are drawn here around the dots, so that they are aligned
with the values. plotext has one global figure; a lock protects it.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.style import MARK_GLYPH, Mark, legend, looks, plain_style, theme_named
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.view import Point, View, percentiles

__all__ = ["Mark", "in_plain", "legend", "printed", "render"]

LEAST_WIDTH = 24
LEAST_HEIGHT = 4

_PLAIN_SIZE = (80, 28)
_LEAST_COLUMNS = 20
_NARROW = 40
"""Below this width, figures are shown in place of the chart."""
_MOST_ROWS = 36
_BELOW_A_CROWD = 3
"""Lines of text printed below a chart with a crowd."""
_LABELS_BELOW_FROM = 8
_GUTTER = 7
_MOST_STRETCH = 1.3
_DOT_GAP = 4.0
_AT_A_TICK = 0.01
_DOTS_ACROSS, _DOTS_DOWN = 2, 4
_FIRST_CODE = 16
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_one_owner = threading.Lock()

Cell = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class _Frame:
    """Hold the size of the plot, and convert x and y to cells. The plot has ``columns`` × ``rows`` cells, beside a
    gutter. x and y are log10; they fall on the centres of cells. ``units``: the units of x and of y."""

    columns: int
    rows: int
    ranges: scale.Ranges
    units: tuple[str, str]

    def x_ticks(self) -> tuple[scale.Tick, ...]:
        return scale.ticks(self.units[0], self.ranges.x_low, self.ranges.x_high)

    def column(self, x: float) -> int:
        return round(self.across(x))

    def row(self, y: float) -> int:
        return round(self.down(y))

    def across(self, x: float) -> float:
        return (x - self.ranges.x_low) / (self.ranges.x_high - self.ranges.x_low) * (self.columns - 1)

    def down(self, y: float) -> float:
        return (self.ranges.y_high - y) / (self.ranges.y_high - self.ranges.y_low) * (self.rows - 1)

    def holds(self, column: int, row: int) -> bool:
        return 0 <= column < self.columns and 0 <= row < self.rows


def render(
    curves: Sequence[PercentileCurve],
    width: int,
    height: int,
    theme: str = "dark",
    highlight: int | None = None,
    marks: Sequence[Mark] = (),
    view: View | None = None,
    crowd: int = 0,
) -> Text:
    """Draw curves over log-log axes in ``height`` lines of at most ``width`` columns.

    ``highlight``: the index of the curve that is drawn last and bright; None: all look alike. ``marks``: predictions,
    as (percentile, ns). A line is solid where at least ten samples are beyond the percentile, else dotted. Below 24×4
    the text has empty lines only. ``view``: another chart of the curves, with one path per curve and without marks;
    None: value by percentile. ``crowd``: this number of curves, from the first, are faint and have no marks of their
    own.
    """
    return _render(tuple(curves), width, height, theme_named(theme), highlight, tuple(marks), view, crowd).copy()


@functools.lru_cache(maxsize=32)
def _render(
    curves: tuple[PercentileCurve, ...],
    width: int,
    height: int,
    theme: Palette,
    highlight: int | None,
    marks: tuple[Mark, ...],
    view: View | None,
    crowd: int,
) -> Text:
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Text("\n" * max(height - 1, 0), end="")
    rows_below = 2 if height >= _LABELS_BELOW_FROM else 1
    columns, rows = width - _GUTTER - 1, height - rows_below
    view = percentiles(curves, marks) if view is None else view
    frame = _Frame(columns, rows, _snapped(view.ranges, columns, rows), (view.x, view.y))
    labels = _y_ticks(frame)

    cells = _grid(frame, labels, theme)
    every = looks(curves, theme, highlight, crowd)
    order = [i for i in range(len(curves)) if i != highlight] + ([] if highlight is None else [highlight])
    paths = view.paths
    order = [i for i in order if 0 <= i < len(curves) and paths[i]]
    for (column, row), (character, owner) in _dots(frame, [(i, view.solid[i], paths[i]) for i in order]).items():
        cells[row][column] = (character, every[owner].line)
    taken: set[tuple[int, int]] = set()
    named = [i for i in order if i >= crowd]
    for place, i in enumerate(reversed(named)):
        for column, row in _stations(frame, paths[i], place, len(named)):
            if (column, row) not in taken:
                taken.add((column, row))
                cells[row][column] = (every[i].glyph, every[i].point)
    _put_marks(frame, cells, marks, theme)
    return _framed(frame, cells, labels, [percentile for percentile, _ in marks], theme, rows_below)


def _snapped(ranges: scale.Ranges, columns: int, rows: int) -> scale.Ranges:
    """Stretch the ranges a little, so that all decades have the same number of cells and each tick falls on a cell.
    With few rows only every second or third decade has a tick on a cell. Where that would waste rows, decades differ by
    one cell."""
    across = ranges.x_high - ranges.x_low
    each = max((columns - 1) // across, 1)
    x_high = ranges.x_low + (columns - 1) / each
    if x_high - ranges.x_low > _MOST_STRETCH * across:
        x_high = ranges.x_high
    span = ranges.y_high - ranges.y_low
    for cells in (*range(math.floor((rows - 1) / span), 0, -1), 2 / 3, 1 / 2):
        if span * cells > rows - 1:
            continue
        if rows - 1 > _MOST_STRETCH * span * cells:
            break
        high = math.ceil(ranges.y_high * cells - 1e-9)
        low = high - (rows - 1)
        spare = math.floor(ranges.y_low * cells + 1e-9) - low
        if spare >= 0:
            shift = max(spare // 2, -low)
            if ranges.y_low < 0:
                # A share ends at 1, and an empty bar stands on the lowest value: the spare rows go to the other side.
                shift = 0 if ranges.y_high <= 0 else spare
            return scale.Ranges(x_high, (low + shift) / cells, (high + shift) / cells, ranges.x_low)
    return scale.Ranges(x_high, ranges.y_low, ranges.y_high, ranges.x_low)


def _y_ticks(frame: _Frame) -> tuple[scale.Tick, ...]:
    """Return one tick per decade. Where two ticks would share a row, return one per two, three or six decades: if only
    some decades were left out, the steps of the axis would look even but would not be."""
    distinct: list[tuple[scale.Tick, ...]] = []
    for every in (1, 2, 3, 6):
        ticks = scale.ticks(frame.units[1], frame.ranges.y_low, frame.ranges.y_high, every)
        gaps = [frame.row(a.position) - frame.row(b.position) for a, b in itertools.pairwise(ticks)]
        if all(gaps):
            distinct.append(ticks)
            if every == 1 or (gaps and len(set(gaps)) == 1):
                return ticks
    return distinct[0] if distinct else ()


def _grid(frame: _Frame, labels: Sequence[scale.Tick], theme: Palette) -> list[list[Cell]]:
    """Return the cells of the grid: faint lines at the ticks, or only dots at their crossings if there would be too
    many lines or the theme has no faint colour."""
    faint = plain_style(theme.grid, dim=True)
    empty: Cell = (" ", Style.null())
    cells = [[empty] * frame.columns for _ in range(frame.rows)]
    columns = {frame.column(t.position) for t in frame.x_ticks()} - {0}
    rows = {frame.row(t.position) for t in labels}
    lines = bool(theme.grid) and 2 * len(rows) <= frame.rows + 1
    for row in range(frame.rows):
        for column in range(frame.columns):
            if row in rows and column in columns:
                cells[row][column] = ("┼" if lines else "·", faint)
            elif lines and row in rows:
                cells[row][column] = ("┈", faint)
            elif lines and column in columns:
                cells[row][column] = ("┊", faint)
    return cells


def _dots(frame: _Frame, drawn: Sequence[tuple[int, int, tuple[Point, ...]]]) -> dict[tuple[int, int], tuple[str, int]]:
    """Return braille characters by (column, row), each with the index of the last curve drawn there. ``drawn``: for
    each curve its index, the number of its solid points, and its points."""
    if not drawn:
        return {}
    with _one_owner:
        figure = _figure(frame)
        for code, (_, solid, path) in enumerate(drawn):
            marker = _marker(_FIRST_CODE + code)
            line, tail = path[:solid], path[max(solid - 1, 0) :]
            if len(line) > 1:
                figure.draw(_signal(figure, line, marker).lines(True))
            dotted = _spaced(frame, tail) if solid < len(path) else []
            if len(line) == 1:
                dotted = [*line, *dotted]
            if dotted:
                figure.draw(_signal(figure, dotted, marker).lines(False))
        picture = str(figure.build().string())
    return _cells_of(picture, [i for i, _, _ in drawn])


def _figure(frame: _Frame) -> Any:
    import plotext

    plotext.terminal.limit(False, False)
    figure = plotext.figure
    figure.clear.data()
    figure.plot_size(frame.columns, frame.rows)
    figure.axes(False)
    figure.legend(False)
    figure.canvas("default")
    for axis in (0, 1):
        for side in (0, 1):
            figure.ruler(axis, side).frequency(0)
    figure.ruler(0, 0).lim(frame.ranges.x_low, frame.ranges.x_high)
    figure.ruler(1, 0).lim(frame.ranges.y_low, frame.ranges.y_high)
    return figure


@functools.cache
def _marker(code: int) -> Any:
    """Return a braille marker in one of the 256 terminal colours. The colour is not shown: it names a curve."""
    import plotext

    return plotext.marker("braille", pixel=plotext.pixel(foreground=code))


def _signal(figure: Any, path: Sequence[Point], marker: Any) -> Any:
    return figure.signal([x for x, _ in path], [y for _, y in path], marker=marker)


def _spaced(frame: _Frame, path: Sequence[Point]) -> list[Point]:
    """Return points along a path at even distances on the screen, so that a steep dotted line has no gaps."""
    spaced: list[Point] = []
    ahead = _DOT_GAP
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        across = (frame.across(x1) - frame.across(x0)) * _DOTS_ACROSS
        down = (frame.down(y1) - frame.down(y0)) * _DOTS_DOWN
        length = math.hypot(across, down)
        while length and ahead <= length:
            share = ahead / length
            spaced.append((x0 + (x1 - x0) * share, y0 + (y1 - y0) * share))
            ahead += _DOT_GAP
        ahead -= length
    return spaced


def _cells_of(picture: str, owners: Sequence[int]) -> dict[tuple[int, int], tuple[str, int]]:
    """Read the text that plotext drew. Return each character by (column, row), with the curve of its colour."""
    found: dict[tuple[int, int], tuple[str, int]] = {}
    for row, line in enumerate(picture.split("\n")):
        column, owner = 0, -1
        for number, part in enumerate(_SGR.split(line)):
            if number % 2:
                code = part.rpartition(";")[2]
                owner = int(code) - _FIRST_CODE if part.startswith("38;5;") else -1
                continue
            for character in part:
                if character != " " and 0 <= owner < len(owners):
                    found[column, row] = (character, owners[owner])
                column += 1
    return found


def _stations(frame: _Frame, path: Sequence[Point], place: int, total: int) -> list[tuple[int, int]]:
    """Return the cells for a curve's mark: at its end, and at regular distances. Curves use different columns."""
    stride = max(frame.columns // 4, 14)
    places = [(frame.column(path[-1][0]), frame.row(path[-1][1]))]
    column = round(stride * (place + 0.5) / total)
    end = frame.across(path[-1][0])
    while column < end - 3:
        x = frame.ranges.x_low + column / (frame.columns - 1) * (frame.ranges.x_high - frame.ranges.x_low)
        places.append((column, frame.row(_height(path, x))))
        column += stride
    return [p for p in places if frame.holds(*p)]


def _height(path: Sequence[Point], x: float) -> float:
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        if x0 <= x <= x1:
            return y0 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return path[-1][1]


def _put_marks(frame: _Frame, cells: list[list[Cell]], marks: Sequence[Mark], theme: Palette) -> None:
    """Draw the predictions into ``cells``, each with a thin line down to the axis."""
    for percentile, value_ns in marks:
        column = frame.column(scale.x_of_percentile(percentile))
        row = frame.row(scale.y_of_ns(value_ns))
        if not frame.holds(column, row):
            continue
        for below in range(row + 1, frame.rows):
            if not "\u2800" <= cells[below][column][0] <= "\u28ff":
                cells[below][column] = ("╎", plain_style(theme.mark, dim=True))
        cells[row][column] = (MARK_GLYPH, plain_style(theme.mark, bold=True))


def _framed(
    frame: _Frame,
    cells: list[list[Cell]],
    labels: Sequence[scale.Tick],
    asked: Sequence[float],
    theme: Palette,
    rows_below: int,
) -> Text:
    """Return the plot with its axes. The labels of x are below the axis, or on the axis if there are too few rows."""
    dim, line = plain_style(theme.dim), plain_style(theme.grid, dim=True)
    by_row = {frame.row(t.position): t.label for t in reversed(labels) if len(t.label) < _GUTTER}
    text = Text(no_wrap=True, end="")
    for row, content in enumerate(cells):
        text.append(f"{by_row.get(row, ''):>{_GUTTER - 1}} ", dim)
        text.append("┤" if row in by_row else "│", line)
        _append_cells(text, content)
        text.append("\n")
    ticks = frame.x_ticks()
    columns = {frame.column(t.position) for t in ticks}
    axis = "".join("┬" if c in columns else "─" for c in range(1, frame.columns))
    names = _x_labels(frame, ticks, asked)
    if rows_below == 2:
        text.append(" " * _GUTTER + "└" + "─" + axis + "\n", line)
        text.append(names.rstrip(), dim)
    else:
        base = " " * _GUTTER + "└" + "─" * frame.columns
        for a, b in zip(base, names, strict=True):
            text.append(b if b != " " else a, dim if b != " " else line)
    return text


def _append_cells(text: Text, content: Sequence[Cell]) -> None:
    """Append cells to a text. Neighbours of the same style become one span."""
    start = 0
    for at in range(1, len(content) + 1):
        if at == len(content) or content[at][1] is not content[start][1]:
            text.append("".join(c for c, _ in content[start:at]), content[start][1])
            start = at


def _x_labels(frame: _Frame, ticks: Sequence[scale.Tick], asked: Sequence[float]) -> str:
    """Return the line of percentiles, each centred below its tick. A label that would touch its neighbour is left out.
    The percentiles of the marks, ``asked``, are placed first."""
    width = _GUTTER + 1 + frame.columns
    line = [" "] * width
    wanted = [scale.x_of_percentile(percentile) for percentile in asked]
    for tick in sorted(ticks, key=lambda t: not any(abs(t.position - x) < _AT_A_TICK for x in wanted)):
        middle = _GUTTER + 1 + frame.column(tick.position)
        label = tick.label.replace(" ", "")
        start = max(_GUTTER, min(middle - len(label) // 2, width - len(label)))
        end = start + len(label)
        if all(character == " " for character in line[max(start - 1, 0) : end + 1]):
            line[start:end] = label
    return "".join(line)


# -- line by line ------------------------------------------------------------------------------------------------------


def printed(curves: Sequence[PercentileCurve], view: View | None = None, crowd: int = 0) -> str:
    """Return the curves and their legend at the terminal's size (80×28 without a terminal), with a line break at the
    end. ``view``: another chart of the curves; None: value by percentile. ``crowd``: this number of curves, from the
    first, are faint and have no line in the legend."""
    console = Console(highlight=False)
    width, height = shutil.get_terminal_size(_PLAIN_SIZE) if console.is_terminal else _PLAIN_SIZE
    width = max(width, _LEAST_COLUMNS)
    below_it = legend(curves[crowd:], width=width)
    below = len(curves) - crowd + (_BELOW_A_CROWD if crowd else 0)
    rows = max(min(height - 2 - below, _MOST_ROWS), LEAST_HEIGHT)
    if not console.is_terminal or console.is_dumb_terminal:
        return "".join(f"{line}\n" for line in in_plain(curves, width, rows, view, crowd))
    chart = render(curves, width, rows, view=view, crowd=crowd)
    with console.capture() as captured:
        console.print(Text("\n").join([chart, *below_it]), no_wrap=True, overflow="crop", crop=True)
    return captured.get()


def in_plain(
    curves: Sequence[PercentileCurve], width: int, rows: int, view: View | None = None, crowd: int = 0
) -> list[str]:
    """Return the curves and their legend as lines without colours. For a small width return a line or two per curve."""
    if width < _NARROW:
        return [line[:width] for curve in curves for line in _figures(curve)]
    chart = render(curves, width, rows, "mono", view=view, crowd=crowd)
    below_it = legend(curves[crowd:], width=width)
    return [line.rstrip() for line in (*chart.plain.split("\n"), *(entry.plain for entry in below_it))]


def _figures(curve: PercentileCurve) -> list[str]:
    line = f"{clean(curve.label, 20)} p99.9 {nice_ns(value_at(curve, 99.9))}"
    return [line, f"  ({clean(curve.origin, 20)})"] if curve.origin else [line]
