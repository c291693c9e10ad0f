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
    OUTER_DOTS,
    ROWS_BELOW,
    Cell,
    PlotFrame,
    framed,
    grid_cells,
    rows_above,
    shifted,
    snapped,
    y_ticks,
)
from jitter_workshop.chart.gap import Gap, put_gap
from jitter_workshop.chart.key import combined_text, key_texts, put_combined, put_in_legend, put_key
from jitter_workshop.chart.marks import DotKind, character, current, spelled
from jitter_workshop.chart.probe import probe_octants
from jitter_workshop.chart.signs import Place, Signs, along_curves, placed
from jitter_workshop.chart.style import (
    COMBINED_MARK,
    FILLS,
    MARK_GLYPH,
    TINTED_FILLS,
    ChartPoint,
    at_height,
    combined_glyph,
    fill_style,
    in_blocks,
    legend_lines,
    looks,
    names,
    plain_style,
    theme_named,
)
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import MONO, Palette
from jitter_workshop.model.text import WORD, clean
from jitter_workshop.stats import scale
from jitter_workshop.stats.between import pieces
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.view import CurveView, Point, from_edge, height_at, marked_points, percentiles, tight

__all__ = ["ChartPoint", "curves_for_terminal", "draw_curves", "legend_lines", "plain_curve_lines"]

LEAST_WIDTH = 24
LEAST_HEIGHT = 4

PLAIN = MONO.name
"""The theme of a chart without colours: its shapes show everything."""
_PLAIN_SIZE = (80, 28)
_LEAST_COLUMNS = 20
_NARROW = 40
"""The width in columns below which figures are shown instead of the chart."""
MOST_ROWS = 36
_BELOW_A_CROWD = 3
"""The number of lines of text below a chart of a crowd, which is many faint curves."""
_NEAR_COLUMNS = 3
"""Two signs that are less than this number of columns apart are read as signs of one percentile."""
_NEAR_ROWS = 2
"""The rows between a distance and its words up to which they need no row above the curves."""
_BELOW_MEDIAN = 0.05
"""The decades below the smallest p50 that a chart with few rows shows, too."""
_PAIR = 2
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
    legend: list[Text] | None = None,
    legend_width: int | None = None,
) -> Text:
    """Draw curves over log-log axes in ``height`` lines of at most ``width`` columns.

    Below 24×4 the text has empty lines only. A curve is solid at a percentile if at least ten samples are above this
    percentile. Elsewhere the curve is dotted. A cell that several curves cross has the dots of all of them, in the
    colour of one curve. Each curve's sign is drawn at p50, at ``asked`` and at the last point. Signs of several curves
    in one cell are one combined sign. With colours, a sign is a block, drawn at the height of its value in its cell.

    - ``highlight``: the index of the curve that is drawn last and bright; None draws all curves alike.
    - ``marks``: guesses, as (percentile, ns).
    - ``view``: another chart of the same curves, such as a histogram; None means value by percentile.
    - ``crowd``: a number n. The first n curves are faint and have no signs.
    - ``between``: the indices of two curves, before and after a change. The space between them is filled with the
      theme's ``good`` where the second curve is lower, else with ``bad``. Without colours, the fill is ``░`` or ``▒``.
      A key says which is which. A histogram is not filled.
    - ``gap``: the distance of two curves at a percentile, drawn as a line with its label.
    - ``asked``: the percentile that the legend shows.
    - ``named``: True to label each decade of the y axis that is at least one row high.
    - ``legend``: the lines of the chart's legend (:func:`legend_lines`). If one of them has room, the key of the filled
      space is written into it, and not into the plot.
    - ``legend_width``: the columns of a line of the legend; None for ``width``.
    """
    palette, chosen = theme_named(theme), tuple(marks)
    every = looks(curves, palette, highlight, crowd)
    looking = palette, highlight, chosen, view, crowd, between, gap, asked, named, current()
    draw = functools.partial(_render, tuple(curves), width, height, *looking)
    # A row above the curves takes room from them, so it is there only if the words on a distance have no place near it.
    headed = False
    if gap is not None and gap.percentile is not None:
        plain, topped = (draw(headed=one, keyed=False, told=False)[3] for one in (False, True))
        headed = topped is not None and (plain is None or plain > max(topped, _NEAR_ROWS))
    draw = functools.partial(draw, headed=headed)
    keyed = told = False
    signed = len(curves) - crowd
    if legend is not None and signed > 0:
        _, shaded, combined, _ = draw(keyed=True, told=True)
        second = between[1] if between is not None else len(curves) - 1
        room = legend_width or width
        keys = [spelled(key, current()) for key in key_texts(shaded, palette, bool(palette.good))]
        keyed = bool(keys) and put_in_legend(legend, second - crowd, keys, room)
        key = spelled(combined_text(combined, every, signed, palette), current())
        told = bool(combined) and put_in_legend(legend, second - crowd, [key], room)
    return draw(keyed=keyed, told=told)[0].copy()


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
    gap: Gap | None,
    asked: float,
    named: bool,
    kind: DotKind,
    headed: bool,
    keyed: bool,
    told: bool,
) -> tuple[Text, frozenset[bool], frozenset[tuple[int, ...]], int | None]:
    """Return the chart, the kinds of filling in it (True for the better one), the curves of each combined sign, and
    the rows between the distance ``gap`` and its words, None without words.

    ``headed``: True if a row without a label of y is wanted above the curves. ``keyed``, ``told``: True if the chart
    has no key of the filled space, or of a combined sign.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return Text("\n" * max(height - 1, 0), end=""), frozenset(), frozenset(), None
    columns, rows, tinted = width - GUTTER - 1, height - ROWS_BELOW, bool(theme.good)
    view = percentiles(curves, marks) if view is None else view
    of_percentiles = view.x == "percentile"
    guesses = [scale.y_of_ns(value_ns) for _, value_ns in marks]
    lowest = min([*guesses, *(y for path in view.paths for _, y in path)], default=math.inf)
    values, guessed = _valued(curves, view.paths, marks, asked) if of_percentiles else ({}, [])
    signed = [values[i] for i in sorted(values) if i >= crowd]
    frame = _frame(curves, marks, view, columns, rows, headed, named, signed, guessed)
    head = rows_above(frame, _highest(view, marks)) if of_percentiles and not named else 0
    ends = max(lowest, frame.lower_edge), _highest(view, marks)
    labels = y_ticks(frame, ends if of_percentiles and not named and all(map(math.isfinite, ends)) else None)
    ticked = {frame.row(tick.position) for tick in labels}

    cells = grid_cells(frame, labels, theme, head)
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
    with_sign = [i for i in order if i >= crowd]
    if of_percentiles:
        signs = placed(frame, {i: values[i] for i in sorted(with_sign)}, guessed, drawn)
    else:
        signs = along_curves(frame, {i: paths[i] for i in reversed(with_sign)}, drawn)
    exact, both = in_blocks(theme), (combined_glyph(theme), plain_style(theme.text, bold=True))
    chosen = {cell: (every[i].glyph, every[i].point) for cell, i in signs.curves.items()}
    chosen |= dict.fromkeys(signs.shared, both)
    for cell, (glyph, style) in chosen.items():
        column, row = cell
        sign = at_height(glyph, signs.below.get(cell, 0.0)) if exact else glyph
        cells[row][column] = (sign, style + Style(bgcolor=cells[row][column][1].bgcolor))
    _put_guesses(frame, cells, signs, theme, dotted)
    first = [percentile for percentile, _ in marks]
    signed_at = {cell for cell in (*chosen, *signs.guesses) if cell is not None}
    away = None if gap is None else put_gap(frame, cells, curves, gap, theme, ticked, signed_at)
    if gap is not None and gap.percentile is not None and away is not None:
        first.append(gap.percentile)
    if not tinted:
        # A colour is seen below dots; a character is not.
        drawn_signs = {sign for row in cells for sign, _ in row}
        shaded = {better for better in shaded if FILLS[better] in drawn_signs}
    if not keyed:
        put_key(frame, cells, shaded, theme, tinted, ticked)
    combined = frozenset(map(tuple, signs.shared.values()))
    if combined and not told:
        put_combined(frame, cells, spelled(combined_text(combined, every, len(curves) - crowd, theme), kind), ticked)
    text = spelled(framed(frame, cells, labels, [*first, asked], theme, head), kind)
    return text, frozenset(shaded), combined, away


def _frame(
    curves: Sequence[PercentileCurve],
    marks: Sequence[ChartPoint],
    view: CurveView,
    columns: int,
    rows: int,
    headed: bool,
    named: bool,
    signed: Sequence[Sequence[Point]],
    guessed: Sequence[Point],
) -> PlotFrame:
    """Return the frame of a plot of ``columns`` × ``rows`` cells. ``headed``: True if a row without a label of y is
    wanted above the curves. ``named``: as in :func:`draw_curves`. ``signed``: for each curve with signs, its points
    that get one. ``guessed``: the points of the guesses."""
    if view.x != "percentile":
        return PlotFrame(columns, rows, snapped(view.ranges, columns, rows, named, view.y), (view.x, view.y))
    lowest = min((y for path in view.paths for _, y in path), default=None)
    kept = None if named else _kept_from(curves, marks)
    compared = len(signed) == _PAIR
    ranges = snapped(tight(view, marks), columns, rows, named, view.y, lowest, kept, headed and not named, compared)
    frame = PlotFrame(columns, rows, ranges, (view.x, view.y))
    return shifted(frame, _side_by_side(frame, [*signed, guessed]), _held(view, curves, marks))


def _valued(
    curves: Sequence[PercentileCurve], paths: Sequence[Sequence[Point]], marks: Sequence[ChartPoint], asked: float
) -> tuple[dict[int, list[Point]], list[Point]]:
    """Return the points that have a sign: the index of a curve → its points, and the points of the guesses ``marks``.
    The points of a curve are its end and the percentiles of the legend. ``asked``: the percentile that the user chose
    for the legend."""
    told = [percentile for _, percentile in names(asked)]
    values = {
        i: marked_points(one, path, told) for i, (one, path) in enumerate(zip(curves, paths, strict=True)) if path
    }
    return values, [(scale.x_of_percentile(percentile), scale.y_of_ns(value_ns)) for percentile, value_ns in marks]


def _side_by_side(frame: PlotFrame, owners: Sequence[Sequence[Point]]) -> list[tuple[float, float]]:
    """Return the heights of each two points of different owners that are at the same percentile, or nearly."""
    return [
        (one[1], other[1])
        for first, second in itertools.combinations(owners, 2)
        for one in first
        for other in second
        if abs(frame.across(one[0]) - frame.across(other[0])) < _NEAR_COLUMNS
    ]


def _highest(view: CurveView, marks: Sequence[ChartPoint]) -> float:
    """Return the greatest height of curves and guesses; infinity without any."""
    ends = [path[-1][1] for path in view.paths if path]
    return max([*ends, *(scale.y_of_ns(value_ns) for _, value_ns in marks)], default=math.inf)


def _held(view: CurveView, curves: Sequence[PercentileCurve], marks: Sequence[ChartPoint]) -> list[float]:
    """Return the heights that the plot has to hold: the greatest one, those of the medians and those of the guesses."""
    heights = [_highest(view, marks), *(scale.y_of_ns(value_ns) for _, value_ns in marks)]
    return [y for y in (*heights, *(y for one in curves for y in scale.height_at_median(one))) if math.isfinite(y)]


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
            ends = sorted(frame.down(height_at(edge, x)) for edge in (piece.before, piece.after))
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


def _put_guesses(
    frame: PlotFrame,
    cells: list[list[Cell]],
    signs: Signs,
    theme: Palette,
    dotted: Collection[Place],
) -> None:
    """Draw guesses into ``cells``, each with a thin line down to the axis.

    The line is not drawn in the cells ``dotted``, because they contain the dots of curves.
    """
    for place in signs.guesses:
        if place is None:
            continue
        column, row = place
        for below in range(row + 1, frame.rows):
            if (column, below) not in dotted:
                on = Style(bgcolor=cells[below][column][1].bgcolor)
                cells[below][column] = ("╎", plain_style(theme.mark, dim=True) + on)
        cells[row][column] = (
            COMBINED_MARK if place in signs.at_guess else MARK_GLYPH,
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
    chart = draw_curves(curves, width, rows, view=view, crowd=crowd, between=between, legend=below_it)
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
    below_it = legend_lines(curves[crowd:], theme=PLAIN, width=width)
    chart = draw_curves(curves, width, rows, PLAIN, view=view, crowd=crowd, between=between, legend=below_it)
    return [line.rstrip() for line in (*chart.plain.split("\n"), *(entry.plain for entry in below_it))]


def _figures(curve: PercentileCurve) -> list[str]:
    line = f"{clean(curve.label, WORD)} p99.9 {nice_ns(curve_value_at(curve, 99.9))}"
    return [line, f"  ({clean(curve.origin, WORD)})"] if curve.origin else [line]
