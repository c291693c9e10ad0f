"""Draw percentile curves as text. No other module imports plotext.

This module does not import Textual, so the verb ``chart`` and the line-by-line workshop can use it, too.

plotext draws only the curves, as braille dots on linear axes. This module gives logarithms to plotext, because
plotext's own logarithmic axes fail with our ticks. Axes, grid, labels and marks are drawn here, so that they are
aligned with the values. plotext has only one figure for the whole process, so a lock protects it.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import shutil
import threading
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.axes import (
    GUTTER,
    LABELS_BELOW_FROM,
    OUTER_DOTS,
    Cell,
    PlotFrame,
    framed,
    grid_cells,
    on_curve,
    snapped,
    y_ticks,
)
from jitter_workshop.chart.gap import Gap, put_gap
from jitter_workshop.chart.key import put_key
from jitter_workshop.chart.marks import DotKind, character, current, spelled
from jitter_workshop.chart.probe import probe_octants
from jitter_workshop.chart.style import (
    FILLS,
    MARK_GLYPH,
    TINTED_FILLS,
    ChartPoint,
    fill_style,
    legend_lines,
    looks,
    names,
    plain_style,
    theme_named,
)
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.stats import scale
from jitter_workshop.stats.between import pieces
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.view import CurveView, Point, from_edge, marked_points, percentiles, tight

__all__ = ["ChartPoint", "curves_for_terminal", "draw_curves", "legend_lines", "plain_curve_lines"]

LEAST_WIDTH = 24
LEAST_HEIGHT = 4

PLAIN = "mono"
"""The theme of a chart without colours: its shapes show everything."""
_PLAIN_SIZE = (80, 28)
_LEAST_COLUMNS = 20
_NARROW = 40
"""The width in columns below which figures are shown instead of the chart."""
MOST_ROWS = 36
_BELOW_A_CROWD = 3
"""The number of lines of text below a chart of a crowd, which is many faint curves."""
_BELOW_MEDIAN = 0.25
"""The decades below the smallest p50 that are always shown."""
_DOT_GAP = 4.0
_DOTS_ACROSS, _DOTS_DOWN = 2, 4
_BRAILLE = 0x2800
_SGR = re.compile(r"\x1b\[[0-9;]*m")
_one_owner = threading.Lock()

Between = tuple[int, int] | None


def draw_curves(
    curves: Sequence[PercentileCurve],
    width: int,
    height: int,
    theme: str = "dark",
    highlight: int | None = None,
    marks: Sequence[ChartPoint] = (),
    view: CurveView | None = None,
    crowd: int = 0,
    between: Between = None,
    gap: Gap | None = None,
    asked: float = 99.9,
    named: bool = False,
) -> Text:
    """Draw curves over log-log axes in ``height`` lines of at most ``width`` columns.

    Below 24×4 the text has empty lines only. A curve is solid at a percentile if at least ten samples are above this
    percentile. Elsewhere the curve is dotted. A cell that several curves cross has the dots of all of them, in the
    colour of one curve. Each curve's sign is drawn at p50, at ``asked`` and at the last point.

    - ``highlight``: the index of the curve that is drawn last and bright; None draws all curves alike.
    - ``marks``: guesses, as (percentile, ns).
    - ``view``: another chart of the same curves, such as a histogram; None means value by percentile.
    - ``crowd``: a number n. The first n curves are faint and have no signs.
    - ``between``: the indices of two curves, before and after a change. The space between them is filled with the
      theme's ``good`` where the second curve is lower, else with ``bad``. Without colours, the fill is ``░`` or ``▒``.
      A key in the plot says which is which. A histogram is not filled.
    - ``gap``: the distance of two curves at a percentile, drawn as a line with its label.
    - ``asked``: the percentile that the legend shows.
    - ``named``: True to label each decade of the y axis that is at least one row high.
    """
    chosen = tuple(marks)
    palette = theme_named(theme)
    tinted = bool(palette.good) and theme != PLAIN
    looking = palette, highlight, chosen, view, crowd, between, tinted, gap, asked, named, current()
    return _render(tuple(curves), width, height, *looking).copy()


@functools.lru_cache(maxsize=32)
def _render(
    curves: tuple[PercentileCurve, ...],
    width: int,
    height: int,
    theme: Palette,
    highlight: int | None,
    marks: tuple[ChartPoint, ...],
    view: CurveView | None,
    crowd: int,
    between: Between,
    tinted: bool,
    gap: Gap | None,
    asked: float,
    named: bool,
    kind: DotKind,
) -> Text:
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Text("\n" * max(height - 1, 0), end="")
    rows_below = 2 if height >= LABELS_BELOW_FROM else 1
    columns, rows = width - GUTTER - 1, height - rows_below
    view = percentiles(curves, marks) if view is None else view
    of_percentiles = view.x == "percentile"
    ranges = tight(view, marks) if of_percentiles else view.ranges
    lowest = min((y for path in view.paths for _, y in path), default=None) if of_percentiles else None
    kept = _kept_from(curves, marks) if of_percentiles and not named else None
    frame = PlotFrame(columns, rows, snapped(ranges, columns, rows, named, view.y, lowest, kept), (view.x, view.y))
    labels = y_ticks(frame)
    cut = lowest is not None and lowest < frame.lower_edge - 1e-9

    cells = grid_cells(frame, labels, theme)
    shaded: set[bool] = set()
    if between is not None and view.y in ("time", "share"):
        shaded = _fill(frame, cells, view.paths[between[0]], view.paths[between[1]], theme, tinted)
    every = looks(curves, theme, highlight, crowd)
    order = [i for i in range(len(curves)) if i != highlight] + ([] if highlight is None else [highlight])
    paths = view.paths
    order = [i for i in order if 0 <= i < len(curves) and paths[i]]
    drawn = {i: _dots(frame, view.solid[i], paths[i]) for i in order}
    dotted = _shared(drawn, crowd)
    for (column, row), owners in dotted.items():
        dots = functools.reduce(lambda a, b: a | b, (drawn[i][column, row] for i in owners))
        # Cells of several curves have their colours in turn: no curve seems to end where another one begins.
        line = every[owners[column % len(owners)]].line
        cells[row][column] = (character(dots, kind), line + Style(bgcolor=cells[row][column][1].bgcolor))
    told = [i for i in order if i >= crowd]
    if of_percentiles:
        wanted = {i: _at(frame, curves[i], paths[i], asked) for i in sorted(told)}
    else:
        wanted = {i: _spread(frame, paths[i], place, len(told)) for place, i in enumerate(reversed(told))}
    for (column, row), i in _signed(frame, wanted, drawn, paths, side_by_side=of_percentiles).items():
        cells[row][column] = (every[i].glyph, every[i].point + Style(bgcolor=cells[row][column][1].bgcolor))
    _put_marks(frame, cells, marks, theme, dotted)
    first = [percentile for percentile, _ in marks]
    if gap is not None and put_gap(frame, cells, curves, gap, theme, drawn):
        first += [] if gap.percentile is None else [gap.percentile]
    put_key(frame, cells, shaded, theme, tinted)
    return spelled(framed(frame, cells, labels, [*first, asked], theme, rows_below, cut), kind)


def _kept_from(curves: Sequence[PercentileCurve], marks: Sequence[ChartPoint]) -> float | None:
    """Return the y from which on a chart of percentiles shows all values: a little below the smallest p50, and below
    every guess. None without curves."""
    medians = [y - _BELOW_MEDIAN for curve in curves for y in scale.height_at_median(curve)]
    guessed = [scale.y_of_ns(value_ns) for _, value_ns in marks]
    return min([*medians, *guessed]) if medians else None


def _fill(
    frame: PlotFrame,
    cells: list[list[Cell]],
    before: Sequence[Point],
    after: Sequence[Point],
    theme: Palette,
    tinted: bool,
) -> set[bool]:
    """Fill the cells whose middle lies between two paths. Return the kinds of filling: True for the better one."""
    found: set[bool] = set()
    for piece in pieces(before, after):
        style = fill_style(theme, piece.better)
        filling = (TINTED_FILLS if tinted else FILLS)[piece.better]
        left, right = frame.across(piece.before[0][0]), frame.across(piece.before[-1][0])
        for column in range(max(math.ceil(left - 0.5), 0), min(math.floor(right + 0.5), frame.columns - 1) + 1):
            x = frame.at(min(max(column, left), right))
            ends = sorted(frame.down(_height(edge, x)) for edge in (piece.before, piece.after))
            if round(ends[0]) == round(ends[1]):
                # Both curves are in one cell: a fill would tell of a difference that is not drawn.
                continue
            for row in range(max(math.ceil(ends[0]), 0), min(math.floor(ends[1]), frame.rows - 1) + 1):
                cells[row][column] = (filling, style)
                found.add(piece.better)
    return found


def _shared(drawn: Mapping[int, Mapping[tuple[int, int], int]], crowd: int) -> dict[tuple[int, int], list[int]]:
    """Return a dict: each cell that has dots → the curves to draw in it.

    The first ``crowd`` curves are faint. A faint curve is left out of cells that a bright curve crosses. Of several
    faint curves, only the last is drawn.
    """
    found: dict[tuple[int, int], list[int]] = {}
    for i, dots in drawn.items():
        for cell in dots:
            found.setdefault(cell, []).append(i)
    return {cell: [i for i in owners if i >= crowd] or owners[-1:] for cell, owners in found.items()}


def _dots(frame: PlotFrame, solid: int, path: Sequence[Point]) -> dict[tuple[int, int], int]:
    """Return a curve's dots: (column, row) of a cell → the bits of a braille character.

    ``solid``: the number of points, from the first one on, that are joined by a line. The other points are dotted.
    """
    beyond = OUTER_DOTS * (frame.ranges.y_high - frame.ranges.y_low) / (frame.rows - 1)
    lowest, highest = frame.ranges.y_low - beyond, frame.ranges.y_high + beyond
    if frame.units == ("percentile", "time"):
        # Of a curve that begins below the plot, the part inside enters from the lower edge.
        path, solid = from_edge(path, solid, frame.lower_edge)
    # A value at the edge of the first or of the last row is drawn with the outermost dots.
    path = [(x, min(max(y, lowest), highest)) for x, y in path]
    with _one_owner:
        figure = _figure(frame)
        line, tail = path[:solid], path[max(solid - 1, 0) :]
        if len(line) > 1:
            figure.draw(_signal(figure, line).lines(True))
        dotted = _spaced(frame, tail) if solid < len(path) else []
        if len(line) == 1:
            dotted = [*line, *dotted]
        if dotted:
            figure.draw(_signal(figure, dotted).lines(False))
        picture = str(figure.build().string())
    return {
        (column, row): ord(character) - _BRAILLE
        for row, line_of_text in enumerate(_SGR.sub("", picture).split("\n"))
        for column, character in enumerate(line_of_text)
        if _BRAILLE < ord(character) <= _BRAILLE + 0xFF
    }


def _figure(frame: PlotFrame) -> Any:
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
    # The ends of the range are centres of cells; a little beyond them dots are drawn, too (``axes.OUTER_DOTS``).
    figure.ruler(1, 0).lim(frame.ranges.y_low, frame.ranges.y_high)
    return figure


def _signal(figure: Any, path: Sequence[Point]) -> Any:
    import plotext

    return figure.signal([x for x, _ in path], [y for _, y in path], marker=plotext.marker("braille"))


def _spaced(frame: PlotFrame, path: Sequence[Point]) -> list[Point]:
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


def _at(frame: PlotFrame, curve: PercentileCurve, path: Sequence[Point], asked: float) -> list[tuple[int, int]]:
    """Return the cells in which a curve's sign is drawn: at its end, and at the percentiles of the legend.

    ``asked``: the percentile that the user chose for the legend.
    """
    places = marked_points(curve, path, (percentile for _, percentile in names(asked)))
    return [p for p in ((frame.column(x), frame.row(y)) for x, y in places) if frame.holds(*p)]


def _signed(
    frame: PlotFrame,
    wanted: Mapping[int, Sequence[tuple[int, int]]],
    drawn: Mapping[int, Collection[tuple[int, int]]],
    paths: Sequence[Sequence[Point]],
    side_by_side: bool,
) -> dict[tuple[int, int], int]:
    """Return a dict: each cell that shows a sign → the curve whose sign it is.

    Signs that want the same cell stand side by side on their curves, from left to right in the order of the legend. So
    two near values have a sign each. A sign without a free cell near its value is left out.

    - ``wanted``: the index of a curve → the cells at which its values are. The first cell is the end of the curve.
    - ``drawn``: the index of a curve → its cells with dots.
    - ``side_by_side``: False to leave out a sign instead of moving it to a cell that has no dot of its curve.
    """
    ends = [(-column, -i, row, -1) for i, cells in wanted.items() for column, row in cells[:1]]
    others = [(column, i, row, 1) for i, cells in wanted.items() for column, row in cells[1:]]
    found: dict[tuple[int, int], int] = {}
    # At the right end a sign has room at its left only. So the last curve of the legend comes first there.
    for at, number, row, way in (*sorted(ends), *sorted(others)):
        column, i = at * way, number * way
        for step in (*range(0, len(wanted) * way, way), -way, -2 * way):
            cell = _on(frame, drawn[i], paths[i], column + step, row, side_by_side) if step else None
            cell = on_curve(drawn[i], column, row) if not step else cell
            if cell is not None and cell not in found:
                found[cell] = i
                break
    return found


def _on(
    frame: PlotFrame,
    dots: Collection[tuple[int, int]],
    path: Sequence[Point],
    column: int,
    row: int,
    dotted: bool,
) -> tuple[int, int] | None:
    """Return the cell of a curve in a column, at most one row from ``row``; None if there is none. ``dotted``: True to
    return a cell between two dots of the curve, too."""
    cell = on_curve(dots, column, row)
    if cell in dots:
        return cell
    inside = dotted and frame.across(path[0][0]) <= column <= frame.across(path[-1][0])
    at = frame.row(_height(path, frame.at(column))) if inside else frame.rows
    return (column, at) if frame.holds(column, at) and abs(at - row) <= 1 else None


def _spread(frame: PlotFrame, path: Sequence[Point], place: int, total: int) -> list[tuple[int, int]]:
    """Return the cells in which a curve's sign is drawn: at its end, and at regular distances.

    This is for charts without percentiles on the x axis. ``place``: the number of the curve among ``total`` curves.
    Different curves use different columns.
    """
    stride = max(frame.columns // 4, 14)
    places = [(frame.column(path[-1][0]), frame.row(path[-1][1]))]
    column = round(stride * (place + 0.5) / total)
    end = frame.across(path[-1][0])
    while column < end - 3:
        places.append((column, frame.row(_height(path, frame.at(column)))))
        column += stride
    return [p for p in places if frame.holds(*p)]


def _height(path: Sequence[Point], x: float) -> float:
    # The place of a column, computed from its number, can lie outside of the path by a rounding error.
    x = min(max(x, path[0][0]), path[-1][0])
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        if x0 <= x <= x1:
            return y0 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return path[-1][1]


def _put_marks(
    frame: PlotFrame,
    cells: list[list[Cell]],
    marks: Sequence[ChartPoint],
    theme: Palette,
    dotted: Collection[tuple[int, int]],
) -> None:
    """Draw the guesses ``marks`` into ``cells``, each with a thin line down to the axis.

    The line is not drawn in the cells ``dotted``, because they contain the dots of curves.
    """
    for percentile, value_ns in marks:
        column = frame.column(scale.x_of_percentile(percentile))
        row = frame.row(scale.y_of_ns(value_ns))
        if not frame.holds(column, row):
            continue
        for below in range(row + 1, frame.rows):
            if (column, below) not in dotted:
                on = Style(bgcolor=cells[below][column][1].bgcolor)
                cells[below][column] = ("╎", plain_style(theme.mark, dim=True) + on)
        cells[row][column] = (
            MARK_GLYPH,
            plain_style(theme.mark, bold=True) + Style(bgcolor=cells[row][column][1].bgcolor),
        )


# -- line by line ------------------------------------------------------------------------------------------------------


def curves_for_terminal(
    curves: Sequence[PercentileCurve], view: CurveView | None = None, crowd: int = 0, between: Between = None
) -> str:
    """Return the curves and their legend as text of the terminal's size, with a line break at the end.

    Without a terminal, the size is 80×28.

    - ``view``: another chart of the curves; None means value by percentile.
    - ``crowd``: the number of curves, from the first one on, that are faint and not in the legend.
    - ``between``: as in :func:`draw_curves`.
    """
    probe_octants()
    console, plain, width, height = output()
    width = max(width, _LEAST_COLUMNS)
    below_it = legend_lines(curves[crowd:], width=width)
    below = len(curves) - crowd + (_BELOW_A_CROWD if crowd else 0)
    rows = max(min(height - 2 - below, MOST_ROWS), LEAST_HEIGHT)
    if plain:
        return "".join(f"{line}\n" for line in plain_curve_lines(curves, width, rows, view, crowd, between))
    chart = draw_curves(curves, width, rows, view=view, crowd=crowd, between=between)
    return escaped(console, Text("\n").join([chart, *below_it]))


def output() -> tuple[Console, bool, int, int]:
    """Return four values: the console for this program's output, a bool, the console's columns, and its lines.

    The bool is True if the console shows no colours. Without a terminal, the size is 80×28.
    """
    console = Console(highlight=False)
    width, height = shutil.get_terminal_size(_PLAIN_SIZE) if console.is_terminal else _PLAIN_SIZE
    return console, not console.is_terminal or console.is_dumb_terminal, width, height


def escaped(console: Console, text: Text) -> str:
    """Return a text as a string with the terminal's control codes. Lines are cut at the terminal's width.

    The string ends with a line break.
    """
    with console.capture() as captured:
        console.print(text, no_wrap=True, overflow="crop", crop=True)
    return captured.get()


def plain_curve_lines(
    curves: Sequence[PercentileCurve],
    width: int,
    rows: int,
    view: CurveView | None = None,
    crowd: int = 0,
    between: Between = None,
) -> list[str]:
    """Return the curves and their legend as lines without colours. If the width is too small for a chart, return one or
    two lines per curve."""
    if width < _NARROW:
        return [line[:width] for curve in curves for line in _figures(curve)]
    chart = draw_curves(curves, width, rows, PLAIN, view=view, crowd=crowd, between=between)
    below_it = legend_lines(curves[crowd:], width=width)
    return [line.rstrip() for line in (*chart.plain.split("\n"), *(entry.plain for entry in below_it))]


def _figures(curve: PercentileCurve) -> list[str]:
    line = f"{clean(curve.label, WORD)} p99.9 {nice_ns(curve_value_at(curve, 99.9))}"
    return [line, f"  ({clean(curve.origin, WORD)})"] if curve.origin else [line]
