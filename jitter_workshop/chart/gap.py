"""Mark the distance between two curves in a chart, at one percentile or at one latency, and write the distance beside
the mark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from rich.style import Style

from jitter_workshop.chart.axes import Cell, PlotFrame
from jitter_workshop.chart.style import COMBINED_MARK, FILLS, MARK_GLYPH, TINTED_FILLS, plain_style
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import Palette
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import curve_percentile_at, curve_value_at

_MAY_COVER = " ┈┊┼·" + "".join((*FILLS.values(), *TINTED_FILLS.values()))
"""The characters that a label may cover: faint lines of the grid, and the space between two curves. It must not cover
dots and marks."""
_UPRIGHT, _LEVEL = "│", "├┤"
"""The signs by which a label away from its line names an upright line and a level one."""
_BETWEEN = 2
"""The number of rows, or of columns, from one end of a line to the other from which it is drawn. A shorter one has no
cell between its ends, so it would be a sign of its own."""
_GUESSES = {MARK_GLYPH, COMBINED_MARK}
"""The signs of a guess: beside one, a label would read as the words on it."""
_FROM_AXIS = 12
"""The least column of a label in a row with a label of the y axis: nearer to the axis it would read as a value."""
_NEAR = 6
"""The number of rows between a line and its label up to which they are seen together."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Hold the distance of two curves at a percentile (0..100), or at a latency.

    - ``percentile``: None for a distance at a latency.
    - ``before``, ``after``: the indices of the curves.
    - ``label``: the distance in words.
    - ``loud``: True if the distance is large enough to count as the result of the comparison. A loud distance is
      bright; any other distance is faint.
    - ``level_ns``: the latency, in ns; None for a distance at a percentile. Beyond the points where two curves reach
      it, each curve has its values that are at least as long, such as its stalls.
    """

    percentile: float | None
    before: int
    after: int
    label: str
    loud: bool = True
    level_ns: int | None = None


def put_gap(
    frame: PlotFrame,
    cells: list[list[Cell]],
    curves: Sequence[PercentileCurve],
    gap: Gap,
    theme: Palette,
    ticked: Collection[int],
    marked: Collection[tuple[int, int]] = (),
) -> int | None:
    """Draw the distance of two curves into ``cells``: a label, and a line beside it if this has cells between its ends.
    The line is upright at a percentile, and level at a latency. It ends at the curves. No line is drawn without a
    label, which explains it.

    The label covers no dot. In the rows ``ticked``, those of labels of the y axis, it stands only where it has no other
    place, and away from the axis. Only the label of a latency may stand anywhere in the row of this latency. The line
    leaves out the cells ``marked``, as (column, row), which show signs: a sign is itself an end of the line.

    Return the rows between the distance and its label; None if no label is drawn: a curve has no value in the plot at
    this percentile, or does not reach this latency there, or the label has no room.
    """
    if gap.percentile is None:
        return _put_level(frame, cells, curves, gap, theme, ticked, marked)
    column = frame.column(scale.x_of_percentile(gap.percentile))
    values = {i: curve_value_at(curves[i], gap.percentile) for i in (gap.before, gap.after) if i < len(curves)}
    rows = sorted(frame.row(scale.y_of_ns(value)) for value in values.values() if value is not None)
    if len(rows) != 2 or not all(frame.holds(column, row) for row in rows):
        return None
    top, bottom = rows
    style = _style(gap, theme)
    line = [(row, column) for row in range(top, bottom + 1)] if bottom - top >= _BETWEEN else []
    trial = [list(row) for row in cells]
    _put_line(trial, line, ("┬", "│", "┴"), style, marked)
    near = sorted(range(max(top - 1, 0), min(bottom + 2, frame.rows)), key=lambda r: abs(2 * r - top - bottom))
    middle = ((top + bottom) // 2, column)
    places = partial(_beside, near, column)
    rows_of_line = range(top, bottom + 1), (_UPRIGHT if line else "")
    away = _put_label(frame, trial, gap, style, middle, places, *rows_of_line, ticked)
    cells[:] = cells if away is None else trial
    return away


def _beside(rows: Sequence[int], column: int, size: int) -> list[tuple[int, int]]:
    """Return the places (row, first column) for a label of ``size`` characters on both sides of an upright line."""
    return [(row, at) for row in rows for at in (column + 1, column - size)]


def _put_line(
    cells: list[list[Cell]],
    places: Sequence[tuple[int, int]],
    signs: tuple[str, str, str],
    style: Style,
    marked: Collection[tuple[int, int]],
) -> None:
    """Draw a line between two curves through the cells (row, column) of ``places``, except those ``marked``. ``signs``:
    the characters of its first end, its middle and its other end."""
    first, middle, last = signs
    for at, (row, column) in enumerate(places):
        if (column, row) in marked:
            continue
        ends = at in (0, len(places) - 1)
        character = middle if not ends else last if at else first
        cells[row][column] = (character, style + Style(bgcolor=cells[row][column][1].bgcolor))


def _put_level(
    frame: PlotFrame,
    cells: list[list[Cell]],
    curves: Sequence[PercentileCurve],
    gap: Gap,
    theme: Palette,
    ticked: Collection[int],
    marked: Collection[tuple[int, int]],
) -> int | None:
    """Draw the distance of two curves at a latency, as :func:`put_gap` does."""
    level_ns = gap.level_ns or 0
    row = frame.row(scale.y_of_ns(level_ns))
    found = [curve_percentile_at(curves[i], level_ns) for i in (gap.before, gap.after) if i < len(curves)]
    columns = sorted(frame.column(scale.x_of_percentile(one)) for one in found if one is not None)
    if len(columns) != 2 or not all(frame.holds(column, row) for column in columns):
        return None
    left, right = columns
    style = _style(gap, theme)
    line = [(row, column) for column in range(left, right + 1)] if right - left >= _BETWEEN else []
    trial = [list(one) for one in cells]
    _put_line(trial, line, ("├", "─", "┤"), style, marked)
    near = [r for step in (1, 2, 3) for r in (row - step, row + step) if 0 <= r < frame.rows]

    def places(size: int) -> list[tuple[int, int]]:
        level = [(row, right + 1), (row, left - size)]
        starts = [max(0, min(at, frame.columns - size)) for at in ((left + right - size) // 2, left - size, right + 1)]
        return [*level, *((r, at) for r in near for at in starts)]

    rows_of_line = range(row, row + 1), (_LEVEL if line else "")
    middle = row, (left + right) // 2
    kept_off = set(ticked) - {row}
    away = _put_label(frame, trial, gap, style, middle, places, *rows_of_line, kept_off)
    cells[:] = cells if away is None else trial
    return away


def _style(gap: Gap, theme: Palette) -> Style:
    return plain_style(theme.text, bold=True) if gap.loud else plain_style(theme.dim)


def _put_label(
    frame: PlotFrame,
    cells: list[list[Cell]],
    gap: Gap,
    style: Style,
    middle: tuple[int, int],
    places: Callable[[int], Sequence[tuple[int, int]]],
    rows: range,
    sign: str,
    kept_off: Collection[int],
) -> int | None:
    """Write the label of a distance where it covers no dot: beside the line, or else where the chart has room, as near
    to the line as possible. Where there is no such place for it, or only one that is more than _NEAR rows away, write a
    shorter label. If that has no free place either, write none. A label in none of the ``rows`` of its line begins with
    ``sign``, which shows what the line looks like. In the rows ``kept_off`` a label stands only where it has no other
    place, and not nearer to the axis than _FROM_AXIS.

    Return the rows between the ``rows`` of the line and the label; None if no label was written.

    ``middle``: the middle of the line, as (row, column). ``places``: returns the places beside the line for a label of
    so many characters, as (row, first column), the best first."""
    # The figure, and how many times, say most: the two values are left out, and what follows.
    figure, _, said = gap.label.partition(": ")
    short = f"{figure}: {next((part for part in said.split(', ') if '→' not in part), said)}"

    # Faint lines of the grid may be covered; dots and marks of curves may not.
    kept = [[0, *accumulate(cell[0] not in _MAY_COVER for cell in row)] for row in cells]

    def covered(place: tuple[int, int], size: int) -> bool:
        row, start = place
        beside = {cells[row][at][0] for at in (start - 1, start + size) if 0 <= at < frame.columns}
        return kept[row][start + size] > kept[row][start] or bool(beside & _GUESSES)

    def away(place: tuple[int, int], size: int) -> int:
        row, start = place
        # A row is about twice as high as a column is wide.
        return 2 * abs(row - middle[0]) + abs(start + size // 2 - middle[1])

    found: list[tuple[bool, bool, str, int, int]] = []
    for label, apart in ((f" {said} ", apart) for said in (gap.label, short) for apart in (False, True)):
        label = f" {sign}{label}" if apart and sign else label
        size = len(label)
        allowed = [row for row in range(frame.rows) if (row not in rows) == apart]
        every = [(row, start) for row in allowed for start in range(frame.columns - size + 1)]
        beside = [place for place in places(size) if 0 <= place[1] <= frame.columns - size and place[0] in allowed]
        in_order = [*beside, *sorted(every, key=partial(away, size=size))]
        in_order = [
            *(place for place in in_order if place[0] not in kept_off),
            *(place for place in in_order if place[0] in kept_off and place[1] >= _FROM_AXIS),
        ]
        free = next((place for place in in_order if not covered(place, size)), None)
        if free is not None:
            found.append((abs(free[0] - middle[0]) > _NEAR, free[0] in kept_off, label, *free))
    if not found:
        return None
    *_, label, row, start = min(found, key=lambda one: one[:2])
    for offset, character in enumerate(label):
        at = start + offset
        cells[row][at] = (character, style + Style(bgcolor=cells[row][at][1].bgcolor))
    return max(rows.start - row, row - rows.stop + 1, 0)
