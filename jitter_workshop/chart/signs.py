"""Place the signs of curves and of guesses in a chart.

In a chart of percentiles a sign says where a value is, so it stands in the row of its value and at its percentile.
Where several signs want the same cell, one combined sign stands for all of them if their values are nearly alike. Else
the signs stand side by side in this row, at most a column beside their percentile. In other charts a sign only names
its curve.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from jitter_workshop.chart.axes import APART, PlotFrame
from jitter_workshop.stats.view import Point, height_at

Place = tuple[int, int]
"""A cell as (column, row)."""
_BESIDE = (0, 1, -1)
"""The columns, counted from that of their percentile, in which signs of one row stand side by side."""
_ROUNDED = 1e-9
_NEAR_EDGE = 0.375
"""The share of a row from its centre from which rounding may put a value's dot into the next row."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Hold the cells with signs. ``curves``: cell → the index of the curve. ``guesses``: the cell of each guess; None
    for a guess outside of the plot. ``shared``: cell → the indices of the two curves or more whose signs are combined
    there. ``at_guess``: the cells in which the sign of a guess is combined with those of curves. ``below``: cell → by
    which share of a row the value is below the centre of the cell; of several values, their mean."""

    curves: Mapping[Place, int]
    guesses: Sequence[Place | None]
    shared: Mapping[Place, Sequence[int]] = field(default_factory=dict)
    at_guess: Collection[Place] = ()
    below: Mapping[Place, float] = field(default_factory=dict)


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
    wanted: dict[Place, dict[int, float]] = {}
    for number, points in values.items():
        for point in points:
            if (cell := _cell(frame, point)) is not None:
                off = frame.down(point[1]) - cell[1]
                wanted.setdefault(on_curve(drawn.get(number, ()), *cell, off), {})[number] = point[1]
    free = {cell: few for cell, few in wanted.items() if cell not in guessed}
    alone = {cell: next(iter(few)) for cell, few in free.items() if len(few) == 1}
    shared: dict[Place, Sequence[int]] = {}
    heights = {cell: list(free[cell].values()) for cell in alone}
    for cell, few in free.items():
        if len(few) > 1:
            taken = {place for place in (*wanted, *alone, *shared, *guessed) if place != cell}
            for place, owners in _side_by_side(frame, cell, few, taken).items():
                heights[place] = [few[owner] for owner in owners]
                if len(owners) == 1:
                    alone[place] = owners[0]
                else:
                    shared[place] = owners
    below = {cell: frame.down(sum(every) / len(every)) - cell[1] for cell, every in heights.items()}
    return Signs(alone, guessed, shared, {cell for cell in wanted if cell in guessed}, below)


def _side_by_side(
    frame: PlotFrame, cell: Place, heights: Mapping[int, float], taken: Collection[Place | None]
) -> dict[Place, list[int]]:
    """Return the cells for the signs of several curves that want ``cell``: cell → the curves whose sign stands there.

    Values that differ by APART or more have signs of their own, side by side. Values that are nearer have one sign. All
    have one sign if the cells beside ``cell`` have no room. ``heights``: the index of a curve → its value, in
    logarithms. ``taken``: the cells of other signs.
    """
    groups: list[list[int]] = []
    for number in sorted(heights, key=lambda one: heights[one]):
        if groups and heights[number] - heights[groups[-1][0]] < APART - _ROUNDED:
            groups[-1].append(number)
        else:
            groups.append([number])
    column, row = cell
    room = [column + by for by in _BESIDE if frame.holds(column + by, row) and (column + by, row) not in taken]
    if len(groups) > len(room):
        return {cell: sorted(heights)}
    # From left to right as in the legend.
    groups = sorted(map(sorted, groups))
    return {(at, row): group for at, group in zip(sorted(room[: len(groups)]), groups, strict=True)}


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


def on_curve(dots: Collection[Place], column: int, row: int, off: float | None = None) -> Place:
    """Return the cell for the sign of a curve that is drawn in (column, row).

    It is the cell itself if it has a dot of the curve, else the cell above or below with such a dot: a sign beside its
    own curve could stand on the other side of another one. Return (column, row) if none of the three cells has a dot,
    because the curve is dotted there. ``dots``: the cells with dots of the curve. ``off``: by which share of a row the
    value is below the centre of its row. With it, the sign goes only into the row on the value's side, and only if the
    value is near its edge: a dotted curve may have a dot of another value there. None for either row.
    """
    rows = [row]
    rows += [row - 1] if off is None or off <= -_NEAR_EDGE else []
    rows += [row + 1] if off is None or off >= _NEAR_EDGE else []
    return next(((column, at) for at in rows if (column, at) in dots), (column, row))


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
