"""Draw the axes of a chart as text: their ranges, grid, ticks and labels.

Positions on an axis are log10 values (``stats.scale``), except for the seconds of a heat map. The y axis is fitted to
the values: as few rows as possible stay empty. Each tick of y stands in the row of its value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.marks import current
from jitter_workshop.chart.style import plain_style
from jitter_workshop.model.palette import Palette
from jitter_workshop.stats import scale

GUTTER = 7
"""The number of columns to the left of the plot, for the labels of y."""
_FASTER = "faster"
"""The word before the percentiles: so many of all values are smaller than the curve there."""
ROWS_BELOW = 2
"""The rows below a plot: the axis, and the labels of x."""
_MOST_STRETCH_ACROSS = 1.4
"""The largest factor by which the x axis is stretched so that each decade has the same whole number of columns."""
_MOST_STRETCH_OF_WHOLE = 1.2
"""The largest factor by which the y axis is stretched so that each decade has the same whole number of rows."""
_PARTS = (1, 2, 3, 6)
"""The numbers of decades that may together have a whole number of rows, and the distances of ticks in decades."""
_LEAST_TICKS = 3
"""The least number of ticks of y from which the scale can be read."""
_ANY_FROM = 8
"""The rows of a decade from which every whole number of rows can be labelled: a tick is less than half a row beside its
value, and its neighbours are several rows away."""
_PARTS_OF_DECADES = {2: (1, 3), 3: (1, 2, 5), 4: (1, 3), 6: (1, 2, 5), 8: (1, 3)}
"""The ticks of a decade of time that has so many rows: at these, the ticks are as many rows apart. Of fewer than
_ANY_FROM rows, other numbers give ticks at powers of ten only."""
_ONE_TICK_FROM = 3
"""The decades of an axis from which ticks at powers of ten are enough."""
_MANY_PARTS = (1, 2, 5)
_ENOUGH_TICKS = 4
_FEW_ROWS = 4
"""The rows of a decade from which a chart shows enough of a small difference. With fewer, the axis may begin higher."""
_HALVES = 1.5
"""The only height of a decade, in rows, that is above 1 and not whole: every second decade has a tick."""
_TWO_THIRDS = 2 / 3
"""The only height of a decade, in rows, that is below 1 and not one divided by a whole number: every third decade has a
tick."""
_BETWEEN_LABELS = 2
"""The least number of columns between two labels of x."""
_AT_A_TICK = 0.01
_MOST_BELOW = 2
"""The most rows below the values that may be empty while there is none above them."""
_LABELLED_ABOVE = 2
"""The rows of a decade from which rows above the highest value have ticks. With fewer, such a row would be a decade in
which nothing lies."""
OUTER_DOTS = 0.375
"""The distance of a cell's outer dots from its centre, as a share of a row: a cell has four rows of dots."""
_WITHIN = 0.49
"""The largest distance of a value from the centre of its row, as a share of a row: from a half on, the value is in the
next row."""
_ALIKE = 0.4
"""Two values that differ by less than this share of a row are to stand in the same row."""
APART = math.log10(1.3)
"""From this difference on (log10), two values are to stand in different rows, and never have one sign."""
_SHIFTS = (0.125, -0.125)
"""The shares of a row by which the y axis may be moved for this, the preferred ones first. With more, a value would
stand at the label of another one than the nearest."""
_BESIDE_TICK = 0.26
"""The largest distance of a tick from its value after such a move, as a share of a row."""

Cell = tuple[str, Style]


@dataclass(frozen=True, slots=True)
class PlotFrame:
    """Hold the size of a plot, and convert x and y to cells.

    The plot has ``columns`` × ``rows`` cells, without the labels beside it. x and y are logarithms (log10). Positions
    are counted in columns and rows; a whole number is the centre of a cell. ``units``: the units of x and of y.
    """

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

    def at(self, column: float) -> float:
        """Return the x of a column."""
        return self.ranges.x_low + column / (self.columns - 1) * (self.ranges.x_high - self.ranges.x_low)

    def down(self, y: float) -> float:
        return (self.ranges.y_high - y) / (self.ranges.y_high - self.ranges.y_low) * (self.rows - 1)

    @property
    def decade(self) -> float:
        """Return the rows of a decade of y."""
        return (self.rows - 1) / (self.ranges.y_high - self.ranges.y_low)

    @property
    def lower_edge(self) -> float:
        """Return the y of the lower edge of the last row: no value below it is drawn."""
        return self.ranges.y_low - _WITHIN * (self.ranges.y_high - self.ranges.y_low) / (self.rows - 1)

    def holds(self, column: int, row: int) -> bool:
        return 0 <= column < self.columns and 0 <= row < self.rows


def shifted(frame: PlotFrame, near: Sequence[tuple[float, float]], held: Sequence[float]) -> PlotFrame:
    """Return the frame with its y axis moved by a part of a row, so that values that are nearly alike share a row, and
    values that differ by a factor of 1.3 do not.

    Else two values that differ by a tenth could stand a row apart where rows are whole decades. Each tick stays in its
    row. ``near``: the pairs of values to look at, in logarithms; of these, pairs that differ by less than _ALIKE rows
    are to share a row; others that differ by APART or more are to stand in two. ``held``: the values that must stay
    inside of the plot.
    """
    ticks = [(frame.row(tick.position), tick.label) for tick in y_ticks(frame)]
    each = (frame.ranges.y_high - frame.ranges.y_low) / (frame.rows - 1)
    best, least = frame, _apart(frame, near)
    for share in _SHIFTS:
        if not least:
            break
        ranges = dataclasses.replace(
            frame.ranges, y_low=frame.ranges.y_low + share * each, y_high=frame.ranges.y_high + share * each
        )
        moved = dataclasses.replace(frame, ranges=ranges)
        apart = _apart(moved, near)
        inside = all(-_WITHIN <= moved.down(y) <= frame.rows - 1 + _WITHIN for y in held)
        named = y_ticks(moved)
        told = all(abs(moved.down(t.position) - moved.row(t.position)) <= _BESIDE_TICK for t in named)
        if apart < least and inside and told and [(moved.row(t.position), t.label) for t in named] == ticks:
            best, least = moved, apart
    return best


def rows_above(frame: PlotFrame, highest: float) -> int:
    """Return the number of rows above the value ``highest`` that have neither axis nor label. It is 0 if a decade has
    at least _LABELLED_ABOVE rows."""
    return max(frame.row(highest), 0) if frame.decade < _LABELLED_ABOVE and math.isfinite(highest) else 0


def _apart(frame: PlotFrame, near: Sequence[tuple[float, float]]) -> float:
    """Return by how much pairs of values look further apart or nearer than they are; 0.0 if each pair of nearly equal
    values shares a row, and each pair of values that differ by APART is in two rows."""
    wrong = 0.0
    for a, b in near:
        distance, apart = abs(frame.down(a) - frame.down(b)), frame.row(a) != frame.row(b)
        if distance < _ALIKE:
            wrong += (_ALIKE - distance) * apart
        elif abs(a - b) >= APART and not apart:
            wrong += distance
    return wrong


def snapped(
    ranges: scale.Ranges,
    columns: int,
    rows: int,
    named: bool = False,
    unit: str = "time",
    lowest: float | None = None,
    kept_from: float | None = None,
    headed: bool = False,
    compared: bool = False,
) -> scale.Ranges:
    """Return the ranges, stretched a little, so that ticks fall on centres of cells.

    All decades of an axis then have the same height. The height of a decade of y is the first height in this list that
    fits:

    - A whole number of rows. It fits only if few rows of the plot stay empty.
    - The largest height of which two, three or six decades together have a whole number of rows. If a decade has at
      least one row, the axis must be long enough for _LEAST_TICKS ticks at this distance.

    A decade of time has no height at which its ticks would be unevenly apart (_PARTS_OF_DECADES).

    - ``named``: True to use a whole number of rows for each decade, even if many rows stay empty.
    - ``unit``: the unit of y.
    - ``lowest``: the lowest value, if it is below the ranges. Spare rows then show values down to it.
    - ``headed``: True if a row above the highest value is wanted where a decade has less than two rows. It takes the
      place of a row below ``kept_from``.
    - ``kept_from``: the value below which the axis need not show anything. If decades have few rows, the axis begins
      higher than the ranges, up to this value, where this gives each decade more rows. None to show all of the ranges.
    - ``compared``: True to do so however many rows the decades have, because the difference of two curves is read.
    """
    across = ranges.x_high - ranges.x_low
    each = max((columns - 1) // across, 1)
    x_high = ranges.x_low + (columns - 1) / each
    if x_high - ranges.x_low > _MOST_STRETCH_ACROSS * across:
        x_high = ranges.x_high
    best, ends = _fitted(ranges, rows, named, unit, lowest)
    if kept_from is not None:
        few = math.inf if compared else _FEW_ROWS
        latest = min(kept_from, ranges.y_high - scale.LEAST_DECADES)
        for share in (0.5, 1.0):
            begins = ranges.y_low + share * (latest - ranges.y_low)
            if best < few and begins > ranges.y_low:
                higher = dataclasses.replace(ranges, y_low=begins)
                cells, fitted = _fitted(higher, rows, named, unit, ranges.y_low if lowest is None else lowest)
                if cells > best:
                    best, ends = cells, fitted
        if best < _FEW_ROWS:
            heads = (True, False) if headed and best < _LABELLED_ABOVE else (False,)
            found = (_filled(ranges, latest, best, rows, head) for head in heads)
            ends = next((one for one in found if one is not None), ends)
    return scale.Ranges(x_high, *ends, ranges.x_low)


def _filled(ranges: scale.Ranges, latest: float, cells: float, rows: int, headed: bool) -> tuple[float, float] | None:
    """Return the ends of a y axis with ``cells`` rows for each decade on which the highest value is in the first row,
    or in the second one if ``headed``; None if it has no room for all values from ``latest`` on.

    A row above the values would be an empty one between the chart and the text above it. So spare rows lie below.
    """
    for begins in (ranges.y_low, latest):
        fitted = _raised(dataclasses.replace(ranges, y_low=begins), cells, rows - headed, below=True)
        if fitted is not None:
            return fitted[0], fitted[1] + headed / cells
    return None


def _fitted(
    ranges: scale.Ranges, rows: int, named: bool, unit: str, lowest: float | None
) -> tuple[float, tuple[float, float]]:
    """Return the rows of a decade, and the low and the high end of the y axis. The arguments are as in
    :func:`snapped`."""
    span = ranges.y_high - ranges.y_low
    for wanted, stretch in _cells_a_decade(span, rows, named, unit):
        for cells in wanted:
            fitted = _raised(ranges, cells, rows, lowest) if rows - 1 <= stretch * span * cells else None
            if fitted is not None:
                return cells, fitted
    return (rows - 1) / span, (ranges.y_low, ranges.y_high)


def _cells_a_decade(span: float, rows: int, named: bool, unit: str) -> list[tuple[list[float], float]]:
    """Return groups of possible heights of a decade. The preferred group comes first.

    Each group is a pair: a list of heights in rows, and a factor. The factor limits how far these heights may stretch
    the axis. ``span``: the number of decades that ``rows`` must show. ``named``, ``unit``: as in :func:`snapped`.
    """
    # The first and the last row hold values up to their edges.
    most = (rows - 1 + 2 * _WITHIN) / span + 1e-9

    def parts(every: int) -> list[float]:
        found = [n / every for n in range(math.floor(most * every), 0, -1)]
        return found if unit != "time" else [n for n in found if whole(n) or n == _HALVES or (n % 1 == 0 and even(n))]

    def whole(rows: float) -> bool:
        # Of less than one row, a row holds a whole number of decades, or two rows hold three.
        return rows <= 1 and (abs(1 / rows - round(1 / rows)) < 1e-9 or abs(rows - _TWO_THIRDS) < 1e-9)

    def even(rows: float) -> bool:
        return rows >= _ANY_FROM or rows in _PARTS_OF_DECADES or span >= _ONE_TICK_FROM

    # A decade of one row or more is of a height at which ticks are as many whole rows apart.
    read = {
        n
        for every in _PARTS
        for n in parts(every)
        if every == 1 or (every + 1 <= span if n < 1 else (_LEAST_TICKS - 1) * every <= span)
    } or {n for every in _PARTS for n in parts(every)}
    return [(parts(1), math.inf if named else _MOST_STRETCH_OF_WHOLE), (sorted(read, reverse=True), math.inf)]


def _raised(
    ranges: scale.Ranges, cells: float, rows: int, lowest: float | None = None, *, below: bool = False
) -> tuple[float, float] | None:
    """Return the low and the high end of a y axis with ``cells`` rows for each decade.

    No decade falls on the edge of two rows: else 9 ms and 11 ms could stand one row above and one row below 10 ms.
    Return None if the axis needs more than ``rows`` rows. ``lowest``: as in :func:`snapped`. ``below``: True if all
    spare rows are below the values.
    """
    # A value is within a cell up to this share of a row beside the cell's centre. An empty bar is as long as its cell.
    within = 0.0 if ranges.y_low < 0 else _WITHIN
    asides = (0.0,) if ranges.y_low < 0 else _asides(cells, ranges.y_high)
    ends = [
        (
            aside,
            math.ceil(ranges.y_high * cells - within - aside - 1e-9),
            math.floor(ranges.y_low * cells + within - aside + 1e-9),
        )
        for aside in asides
    ]
    # The first one of those that need the fewest rows.
    aside, high, needed = min(ends, key=lambda one: one[1] - one[2])
    low = high - (rows - 1)
    spare = needed - low
    if spare < 0:
        return None
    if below:
        # More than a few empty rows are shared out: a curve far above its axis would look wrong.
        up = spare // 2 if spare > _MOST_BELOW else 0
        return (low + up + aside) / cells, (high + up + aside) / cells
    if lowest is not None and lowest < ranges.y_low:
        # Values are better than empty rows: the spare rows go below, as far as there are values.
        lower = math.floor(lowest * cells + within - aside + 1e-9)
        begins = max(low, min(lower, low + spare))
        return (begins + aside) / cells, (begins + rows - 1 + aside) / cells
    # Of an odd number of spare rows, the one more is above, so that the longest value has a tick above it. No spare row
    # lies below the decade in which the lowest value is: such rows would be empty, and their labels would mislead.
    decade = math.ceil(math.floor(ranges.y_low) * cells - aside - 1e-9)
    shift = max((spare + 1) // 2, min(decade - low, spare), -low)
    if ranges.y_low < 0:
        # A share ends at 1, and an empty bar stands on the lowest value: the spare rows go to the other side.
        shift = 0 if ranges.y_high <= 0 else spare
    return (low + shift + aside) / cells, (high + shift + aside) / cells


def _asides(cells: float, highest: float) -> tuple[float, ...]:
    """Return by which share of a row 1 ns may be below the centre of its row. With each of these shares, every decade
    of ``cells`` rows is as far as possible from the edge of its row. ``highest``: the highest value."""
    if abs(cells - _TWO_THIRDS) < 1e-9:
        # The decade nearest to the highest value is in the middle of its row, and so is every third one below it.
        return (round(highest) * cells % 1,)
    if any(abs(n * cells - round(n * cells)) < 1e-6 for n in (1, 3)):
        return (0.0,)
    return (1 / 4, 3 / 4) if abs(2 * cells - round(2 * cells)) < 1e-6 else (1 / 12,)


def y_ticks(frame: PlotFrame, values: tuple[float, float] | None = None) -> tuple[scale.Tick, ...]:
    """Return the ticks of y. Each tick stands in the row of its value.

    ``values``: the lowest and the highest value in the plot. The first tick at or above the highest one is the last
    tick, and the first at or below the lowest one is the first tick: a label beyond them would name a decade in which
    nothing lies. None for ticks in the whole plot.

    Every decade has a tick if it has a whole number of rows. A decade of time of two rows or more may have ticks
    between, too: at 3, or at 2 and 5 (_PARTS_OF_DECADES). It has them if at most every second row then has a tick, or
    if there are fewer than _ENOUGH_TICKS decades.

    With one and a half rows for a decade, or with less than one, every second, third or sixth one has a tick. The first
    of these distances is taken that is a whole number of rows, and that gives at least _LEAST_TICKS ticks. Else it is
    the first whole number of rows that gives two ticks. If there is none, it is the first that is at least one row.
    """
    height = frame.decade
    beyond = _WITHIN / height
    ends = frame.ranges.y_low - beyond, frame.ranges.y_high + beyond
    decades = _around(frame, scale.ticks(frame.units[1], *ends), values)
    rows = round(height)
    if frame.units[1] == "time" and abs(height - rows) < 1e-6 and rows >= min(_PARTS_OF_DECADES):
        fine = scale.ticks("time", *ends, _PARTS_OF_DECADES.get(rows, _MANY_PARTS if rows >= _ANY_FROM else (1,)))
        fine = _around(frame, fine, values)
        return fine if 2 * len(fine) <= frame.rows + 1 or len(decades) < _ENOUGH_TICKS else decades
    wide = [n for n in _PARTS if n * height >= 1 - 1e-9] or [_PARTS[-1]]
    found = {n: _every(decades, n) for n in wide}
    even = [n for n in wide if abs(n * height - round(n * height)) < 1e-6]
    for least in (_LEAST_TICKS, 2):
        for n in even:
            if len(found[n]) >= least:
                return found[n]
    return found[wide[0]]


def _around(
    frame: PlotFrame, ticks: tuple[scale.Tick, ...], values: tuple[float, float] | None
) -> tuple[scale.Tick, ...]:
    """Return the ticks up to the first ones that are not between the ``values``. Where a decade has less than
    _LABELLED_ABOVE rows, the ticks end in the rows of these values."""
    if values is None:
        return ticks
    last, first = (frame.row(y) for y in values)
    rows = [frame.row(tick.position) for tick in ticks]
    if frame.decade >= _LABELLED_ABOVE:
        last = min((row for row in rows if row >= last), default=frame.rows)
        first = max((row for row in rows if row <= first), default=0)
    return tuple(tick for tick, row in zip(ticks, rows, strict=True) if first <= row <= last)


def _every(decades: Sequence[scale.Tick], distance: int) -> tuple[scale.Tick, ...]:
    """Return ticks that are ``distance`` decades apart, as many as possible, and then as high as possible, so that long
    values have a tick near them."""
    return tuple(decades[(len(decades) - 1) % distance :: distance])


def grid_cells(frame: PlotFrame, labels: Sequence[scale.Tick], theme: Palette, head: int = 0) -> list[list[Cell]]:
    """Return the cells of the grid: faint lines at the ticks. ``head``: the number of rows without a grid, from the
    first one on.

    If more than every second row has a tick, only every second tick has a line. Without a faint colour in the theme,
    draw only dots where lines cross. In ASCII, a dot would be the sign of a filled space.
    """
    faint = plain_style(theme.grid, dim=True)
    empty: Cell = (" ", Style.null())
    cells = [[empty] * frame.columns for _ in range(frame.rows)]
    columns = {frame.column(t.position) for t in frame.x_ticks()} - {0}
    rows, lines = {frame.row(t.position) for t in labels}, bool(theme.grid)
    crossing = "┼" if lines or current() == "ascii" else "·"
    if lines and 2 * len(rows) > frame.rows + 1:
        rows = set(sorted(rows)[::2])
    for row in range(head, frame.rows):
        for column in range(frame.columns):
            if row in rows and column in columns:
                cells[row][column] = (crossing, faint)
            elif lines and row in rows:
                cells[row][column] = ("┈", faint)
            elif lines and column in columns:
                cells[row][column] = ("┊", faint)
    return cells


def framed(
    frame: PlotFrame,
    cells: list[list[Cell]],
    labels: Sequence[scale.Tick],
    asked: Sequence[float],
    theme: Palette,
    head: int = 0,
) -> Text:
    """Return the plot with its axes, in ROWS_BELOW rows more than the plot has. ``head``: the number of rows above the
    y axis, from the first one on."""
    dim, line = plain_style(theme.dim), plain_style(theme.grid, dim=True)
    by_row = {frame.row(t.position): t.label for t in reversed(labels) if len(t.label) < GUTTER}
    text = Text(no_wrap=True, end="")
    for row, content in enumerate(cells):
        text.append(f"{by_row.get(row, ''):>{GUTTER - 1}} ", dim)
        text.append(" " if row < head else "┤" if row in by_row else "│", line)
        _append_cells(text, content)
        text.append("\n")
    ticks = frame.x_ticks()
    columns = {frame.column(t.position) for t in ticks}
    axis = "".join("┬" if c in columns else "─" for c in range(1, frame.columns))
    names = _x_labels(frame, ticks, asked)
    corner = f"{'└':>{GUTTER + 1}}"
    text.append(corner + "─" + axis + "\n", line)
    if frame.units[0] == "percentile":
        names = f"{_FASTER:<{GUTTER}}{names[GUTTER:]}"
    text.append(names.rstrip(), dim)
    return text


def _append_cells(text: Text, content: Sequence[Cell]) -> None:
    """Append cells to a text. Neighbours of the same style become one span."""
    start = 0
    for at in range(1, len(content) + 1):
        if at == len(content) or content[at][1] is not content[start][1]:
            text.append("".join(c for c, _ in content[start:at]), content[start][1])
            start = at


def _x_labels(frame: PlotFrame, ticks: Sequence[scale.Tick], asked: Sequence[float]) -> str:
    """Return the line with the labels of x, each centred below its tick.

    If not all labels have room, every second, third or fourth one is shown, so that their distances are alike, and the
    first one if it has room. The labels of the percentiles ``asked`` are always among them. If even this has no room,
    these are placed first, and a label that would touch another one is left out.
    """
    width = GUTTER + 1 + frame.columns
    wanted = [scale.x_of_percentile(percentile) for percentile in asked]

    def place(tick: scale.Tick) -> int:
        at = (number for number, x in enumerate(wanted) if abs(tick.position - x) < _AT_A_TICK)
        return next(at, len(wanted))

    first = [number for number, tick in enumerate(ticks) if place(tick) < len(wanted)]
    for every in (1, 2, 3, 4):
        begins = first[0] % every if first else 0
        shown = ticks[begins::every]
        if _placed(frame, shown, width)[1] == len(shown) and all((at - begins) % every == 0 for at in first):
            return _placed(frame, [*shown, *ticks[:1]], width)[0]
    return _placed(frame, sorted(ticks, key=place), width)[0]


def _placed(frame: PlotFrame, ticks: Sequence[scale.Tick], width: int) -> tuple[str, int]:
    """Return a line with the labels of ticks that have room, and their number. Earlier ticks go first."""
    line, placed = [" "] * width, 0
    for tick in ticks:
        middle = GUTTER + 1 + frame.column(tick.position)
        label = tick.label.replace(" ", "")
        start = max(GUTTER, min(middle - len(label) // 2, width - len(label)))
        end = start + len(label)
        if all(sign == " " for sign in line[max(start - _BETWEEN_LABELS, 0) : end + _BETWEEN_LABELS]):
            line[start:end] = label
            placed += 1
    return "".join(line), placed
