"""Place the signs of curves and of guesses in a chart.

In a chart of percentiles a sign says where a value is, so it stands in the row of its value and at its percentile. No
sign is moved to make room: where several signs want the same cell, one combined sign stands for all of them. In other
charts a sign only names its curve.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from jitter_workshop.chart.axes import PlotFrame
from jitter_workshop.stats.view import Point, height_at

Place = tuple[int, int]
"""A cell as (column, row)."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Hold the cells with signs. ``curves``: cell → the index of the curve. ``guesses``: the cell of each guess; None
    for a guess outside of the plot. ``shared``: cell → the indices of the two curves or more whose signs are combined
    there. ``at_guess``: the cells in which the sign of a guess is combined with those of curves."""

    curves: Mapping[Place, int]
    guesses: Sequence[Place | None]
    shared: Mapping[Place, Sequence[int]] = field(default_factory=dict)
    at_guess: Collection[Place] = ()


def placed(
    frame: PlotFrame,
    values: Mapping[int, Sequence[Point]],
    guesses: Sequence[Point],
    drawn: Mapping[int, Collection[Place]],
) -> Signs:
    """Return the cells for the signs of curves and guesses.

    ``values``: the index of a curve → the points that have a sign, in logarithms. Curves are in the order of the
    legend. ``guesses``: the points of guesses. ``drawn``: the index of a curve → its cells with dots. Each sign stands
    at its percentile, in the row of its value. If rounding put the curve's dot into the row above or below, the sign
    stands there, on its curve.
    """
    guessed = [_cell(frame, point) for point in guesses]
    wanted: dict[Place, list[int]] = {}
    for number, points in values.items():
        cells = (cell for point in points if (cell := _cell(frame, point)) is not None)
        for cell in dict.fromkeys(on_curve(drawn.get(number, ()), *cell) for cell in cells):
            wanted.setdefault(cell, []).append(number)
    free = {cell: few for cell, few in wanted.items() if cell not in guessed}
    alone = {cell: few[0] for cell, few in free.items() if len(few) == 1}
    shared = {cell: few for cell, few in free.items() if len(few) > 1}
    return Signs(alone, guessed, shared, {cell for cell in wanted if cell in guessed})


def _cell(frame: PlotFrame, point: Point) -> Place | None:
    """Return the cell of a point; None if it is outside of the plot."""
    place = frame.column(point[0]), frame.row(point[1])
    return place if frame.holds(*place) else None


def along_curves(
    frame: PlotFrame, paths: Mapping[int, Sequence[Point]], drawn: Mapping[int, Collection[Place]]
) -> Signs:
    """Return the cells for the signs of curves in a chart without percentiles on its x axis: at the end of each curve,
    and at regular distances, which differ from curve to curve.

    A sign that finds its cell taken goes to another cell of its curve, or is left out. ``paths``: the index of a curve
    → its points, the latest curve first. ``drawn``: the index of a curve → its cells with dots.
    """
    wanted = {i: _spread(frame, path, place, len(paths)) for place, (i, path) in enumerate(paths.items())}
    ends = [(-column, -i, row, -1) for i, cells in wanted.items() for column, row in cells[:1]]
    others = [(column, i, row, 1) for i, cells in wanted.items() for column, row in cells[1:]]
    found: dict[Place, int] = {}
    # At the right end a sign has room at its left only. So the last curve of the legend comes first there.
    for at, number, row, way in (*sorted(ends), *sorted(others)):
        column, i = at * way, number * way
        for step in (*range(0, len(wanted) * way, way), -way, -2 * way):
            cell = on_curve(drawn[i], column + step, row)
            if cell not in found and (cell in drawn[i] or not step):
                found[cell] = i
                break
    return Signs(found, ())


def on_curve(dots: Collection[Place], column: int, row: int) -> Place:
    """Return the cell for the sign of a curve that is drawn in (column, row).

    It is the cell itself if it has a dot of the curve, else the cell above or below with such a dot: a sign beside its
    own curve could stand on the other side of another one. Return (column, row) if none of the three cells has a dot,
    because the curve is dotted there. ``dots``: the cells with dots of the curve.
    """
    return next(((column, at) for at in (row, row - 1, row + 1) if (column, at) in dots), (column, row))


def _spread(frame: PlotFrame, path: Sequence[Point], place: int, total: int) -> list[Place]:
    """Return the cells in which a curve's sign is wanted: at its end, and at regular distances. ``place``: the number
    of the curve among ``total`` curves. Different curves use different columns."""
    stride = max(frame.columns // 4, 14)
    places = [(frame.column(path[-1][0]), frame.row(path[-1][1]))]
    column = round(stride * (place + 0.5) / total)
    end = frame.across(path[-1][0])
    while column < end - 3:
        places.append((column, frame.row(height_at(path, frame.at(column)))))
        column += stride
    return [p for p in places if frame.holds(*p)]
