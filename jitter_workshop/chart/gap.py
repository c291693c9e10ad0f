"""Mark the distance between two curves in a chart, at one percentile or at one latency, and write the distance beside
the mark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from rich.style import Style

from jitter_workshop.chart.axes import Cell, PlotFrame
from jitter_workshop.chart.style import COMBINED, COMBINED_MARK, FILLS, SIGNS, TINTED_FILLS, plain_style
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import Palette
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import curve_percentile_at, curve_value_at

_MAY_COVER = " ┈┊┼·" + "".join((*FILLS.values(), *TINTED_FILLS.values()))
"""The characters that a label may cover: faint lines of the grid, and the space between two curves. It must not cover
dots and marks."""
_UPRIGHT, _LEVEL, _ONE_CELL = "│", "├┤", "┼"
"""The signs by which a label away from its line names an upright line, a level line, and a level line of one
cell. An upright line without a cell between its ends has none, because the signs of the curves cover its ends."""
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
) -> bool:
    """Draw the distance of two curves into ``cells``: a line with a label beside it. The line is upright at a
    percentile, and level at a latency.

    The line ends at the curves. The label covers no dot, and stands in none of the rows ``ticked``: beside a label of
    the y axis it would read as a value. Only the label of a latency may stand in the row of this latency. Return False
    if a curve has no value in the plot at this percentile, or does not reach this latency there.
    """
    if gap.percentile is None:
        return _put_level(frame, cells, curves, gap, theme, ticked)
    column = frame.column(scale.x_of_percentile(gap.percentile))
    values = {i: curve_value_at(curves[i], gap.percentile) for i in (gap.before, gap.after) if i < len(curves)}
    rows = sorted(frame.row(scale.y_of_ns(value)) for value in values.values() if value is not None)
    if len(rows) != 2 or not all(frame.holds(column, row) for row in rows):
        return False
    top, bottom = rows
    style = _style(gap, theme)
    covered = cells[top][column]
    _put_line(cells, [(row, column) for row in range(top, bottom + 1)], ("┬", "│", "┴"), style)
    near = sorted(range(max(top - 1, 0), min(bottom + 2, frame.rows)), key=lambda r: abs(2 * r - top - bottom))
    middle = ((top + bottom) // 2, column)
    places = partial(_beside, near, column)
    line = range(top, bottom + 1), (_UPRIGHT if bottom > top + 1 else "")
    if not _put_label(frame, cells, gap, style, middle, places, *line, ticked) and top == bottom:
        # One cell without words would say nothing.
        cells[top][column] = covered
    return True


def _beside(rows: Sequence[int], column: int, size: int) -> list[tuple[int, int]]:
    """Return the places (row, first column) for a label of ``size`` characters on both sides of an upright line."""
    return [(row, at) for row in rows for at in (column + 1, column - size)]


def _put_line(
    cells: list[list[Cell]], places: Sequence[tuple[int, int]], signs: tuple[str, str, str], style: Style
) -> None:
    """Draw a line between two curves through the cells (row, column) of ``places``. ``signs``: the characters of its
    first end, its middle and its other end."""
    first, middle, last = signs
    for at, (row, column) in enumerate(places):
        ends = at in (0, len(places) - 1)
        if ends and cells[row][column][0] in {*SIGNS, COMBINED, COMBINED_MARK}:
            # A curve's sign is itself an end of the line.
            continue
        character = middle if not ends else "┼" if len(places) == 1 else last if at else first
        cells[row][column] = (character, style + Style(bgcolor=cells[row][column][1].bgcolor))


def _put_level(
    frame: PlotFrame,
    cells: list[list[Cell]],
    curves: Sequence[PercentileCurve],
    gap: Gap,
    theme: Palette,
    ticked: Collection[int],
) -> bool:
    """Draw the distance of two curves at a latency, as :func:`put_gap` does. Return False if a curve does not reach
    this latency in the plot."""
    level_ns = gap.level_ns or 0
    row = frame.row(scale.y_of_ns(level_ns))
    found = [curve_percentile_at(curves[i], level_ns) for i in (gap.before, gap.after) if i < len(curves)]
    columns = sorted(frame.column(scale.x_of_percentile(one)) for one in found if one is not None)
    if len(columns) != 2 or not all(frame.holds(column, row) for column in columns):
        return False
    left, right = columns
    style = _style(gap, theme)
    covered = cells[row][left]
    _put_line(cells, [(row, column) for column in range(left, right + 1)], ("├", "─", "┤"), style)
    near = [r for step in (1, 2, 3) for r in (row - step, row + step) if 0 <= r < frame.rows]

    def places(size: int) -> list[tuple[int, int]]:
        level = [(row, right + 1), (row, left - size)]
        starts = [max(0, min(at, frame.columns - size)) for at in ((left + right - size) // 2, left - size, right + 1)]
        return [*level, *((r, at) for r in near for at in starts)]

    line = range(row, row + 1), (_LEVEL if right > left else _ONE_CELL)
    middle = row, (left + right) // 2
    if not _put_label(frame, cells, gap, style, middle, places, *line, set(ticked) - {row}) and left == right:
        cells[row][left] = covered
    return True


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
) -> bool:
    """Write the label of a distance where it covers no dot: beside the line, or else where the chart has room, as near
    to the line as possible. Where there is no such place for it, or only one that is more than _NEAR rows away, write a
    shorter label. If that has no free place either, write none. A label in none of the ``rows`` of its line begins with
    ``sign``, which shows what the line looks like. No label stands in the rows ``kept_off``.
    Return False if none was written.

    ``middle``: the middle of the line, as (row, column). ``places``: returns the places beside the line for a label of
    so many characters, as (row, first column), the best first."""
    # The figure, and how many times, say most: the two values are left out, and what follows.
    figure, _, said = gap.label.partition(": ")
    short = f"{figure}: {next((part for part in said.split(', ') if '→' not in part), said)}"

    # Faint lines of the grid may be covered; dots and marks of curves may not.
    kept = [[0, *accumulate(cell[0] not in _MAY_COVER for cell in row)] for row in cells]

    def covered(place: tuple[int, int], size: int) -> int:
        row, start = place
        return kept[row][start + size] - kept[row][start]

    def away(place: tuple[int, int], size: int) -> int:
        row, start = place
        # A row is about twice as high as a column is wide.
        return 2 * abs(row - middle[0]) + abs(start + size // 2 - middle[1])

    found: list[tuple[bool, str, int, int]] = []
    for label, apart in ((f" {said} ", apart) for said in (gap.label, short) for apart in (False, True)):
        label = f" {sign}{label}" if apart and sign else label
        size = len(label)
        allowed = [row for row in range(frame.rows) if (row not in rows) == apart and row not in kept_off]
        every = [(row, start) for row in allowed for start in range(frame.columns - size + 1)]
        beside = [place for place in places(size) if 0 <= place[1] <= frame.columns - size and place[0] in allowed]
        in_order = [*beside, *sorted(every, key=partial(away, size=size))]
        free = next((place for place in in_order if not covered(place, size)), None)
        if free is not None:
            found.append((abs(free[0] - middle[0]) > _NEAR, label, *free))
    if not found:
        return False
    _, label, row, start = min(found, key=lambda one: one[0])
    for offset, character in enumerate(label):
        at = start + offset
        cells[row][at] = (character, style + Style(bgcolor=cells[row][at][1].bgcolor))
    return True
