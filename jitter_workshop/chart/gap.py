"""Mark the distance between two curves at one percentile in a chart, and write the distance beside the mark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style

from jitter_workshop.chart.axes import Cell, PlotFrame, on_curve
from jitter_workshop.chart.style import FILLS, SIGNS, TINTED_FILLS, plain_style
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.palette import Palette
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import curve_value_at

_MAY_COVER = " ┈┊┼·" + "".join((*FILLS.values(), *TINTED_FILLS.values()))
"""The characters that a label may cover: faint lines of the grid, and the space between two curves. It must not cover
dots and marks."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Hold the distance of two curves at a percentile (0..100).

    - ``before``, ``after``: the indices of the curves.
    - ``label``: the distance in words.
    - ``loud``: True if the distance is large enough to count as the result of the comparison. A loud distance is
      bright; any other distance is faint.
    """

    percentile: float
    before: int
    after: int
    label: str
    loud: bool = True


def put_gap(
    frame: PlotFrame,
    cells: list[list[Cell]],
    curves: Sequence[PercentileCurve],
    gap: Gap,
    theme: Palette,
    dots: Mapping[int, Collection[tuple[int, int]]],
) -> bool:
    """Draw the distance of two curves at a percentile into ``cells``: a line with a label beside it.

    The line ends at dots of the curves. The label is placed where it covers the fewest dots. ``dots``: the index of a
    curve → its cells with dots, as (column, row). Return False if a curve has no value in the plot at this
    percentile.
    """
    column = frame.column(scale.x_of_percentile(gap.percentile))
    values = {i: curve_value_at(curves[i], gap.percentile) for i in (gap.before, gap.after) if i < len(curves)}
    rows = sorted(
        on_curve(dots.get(i, ()), column, frame.row(scale.y_of_ns(value)))[1]
        for i, value in values.items()
        if value is not None
    )
    if len(rows) != 2 or not all(frame.holds(column, row) for row in rows):
        return False
    top, bottom = rows
    style = plain_style(theme.text, bold=True) if gap.loud else plain_style(theme.dim)
    for row in range(top, bottom + 1):
        ends = {top: "┬", bottom: "┴"} if top != bottom else {top: "┼"}
        if row in ends and cells[row][column][0] in SIGNS:
            # A curve's sign at this percentile is itself an end of the line.
            continue
        cells[row][column] = (ends.get(row, "│"), style + Style(bgcolor=cells[row][column][1].bgcolor))
    # If there is too little room, the first and the last part say most: the percentile, and how many times.
    short = f"{gap.label.partition(': ')[0]}: {gap.label.rpartition(', ')[2]}"
    for label in (f" {gap.label} ", f" {short} "):
        places = [
            (row, start)
            for row in sorted(
                range(max(top - 1, 0), min(bottom + 2, frame.rows)), key=lambda r: abs(2 * r - top - bottom)
            )
            for start in (column + 1, column - len(label))
            if start >= 0 and start + len(label) <= frame.columns
        ]
        if places:
            break
    else:
        return True

    def covered(place: tuple[int, int]) -> int:
        row, start = place
        # Faint lines of the grid may be covered; dots and marks of curves may not.
        return sum(cell[0] not in _MAY_COVER for cell in cells[row][start : start + len(label)])

    row, start = min(places, key=covered)
    for offset, character in enumerate(label):
        at = start + offset
        cells[row][at] = (character, style + Style(bgcolor=cells[row][at][1].bgcolor))
    return True
