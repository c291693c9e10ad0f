"""Place the signs of curves and of guesses in a chart.

In a chart of percentiles a sign says where a value is, so it stands in the row of its value and at its percentile.
Signs that want the same cell stand left and right of the percentile, all in this row: no sign is moved to another row
to make room. So signs in different rows always have different values, in this order. In other charts a sign only names
its curve.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jitter_workshop.chart.axes import PlotFrame
from jitter_workshop.stats.view import Point, height_at

Place = tuple[int, int]
"""A cell as (column, row)."""
_FURTHEST = 4
"""The largest number of columns between a sign and its percentile."""
_AGAIN = 2
"""The number of columns within which a curve needs no second sign in the same row."""


@dataclass(frozen=True, slots=True)
class Signs:
    """Hold the cells with signs. ``curves``: cell → the index of the curve. ``guesses``: the cell of each guess; None
    for a guess outside of the plot."""

    curves: Mapping[Place, int]
    guesses: Sequence[Place | None]


def placed(frame: PlotFrame, values: Mapping[int, Sequence[Point]], guesses: Sequence[Point]) -> Signs:
    """Return the cells for the signs of curves and guesses.

    ``values``: the index of a curve → the points that have a sign, in logarithms. Curves are in the order of the
    legend. ``guesses``: the points of guesses. A guess stands exactly at its percentile. A curve's sign is left out if
    the curve has one in the same row at most _AGAIN columns away, or if no cell near its percentile is free.
    """
    at_guess = [_cell(frame, point) for point in guesses]
    wanted: dict[Place, list[int]] = {}
    for number, points in values.items():
        for cell in dict.fromkeys(_cell(frame, point) for point in points):
            if cell is not None:
                wanted.setdefault(cell, []).append(number)
    guessed = {cell for cell in at_guess if cell is not None}
    found = {cell: few[0] for cell, few in wanted.items() if len(few) == 1 and cell not in guessed}
    for cell, few in sorted(wanted.items()):
        if len(few) > 1 or cell in guessed:
            _put_together(frame, cell, few, guessed, found)
    return Signs(found, at_guess)


def _put_together(
    frame: PlotFrame, cell: Place, curves: Sequence[int], guessed: Iterable[Place], found: dict[Place, int]
) -> None:
    """Add to ``found`` the signs of curves that want the same cell."""
    column, row = cell
    taken = {*found, *guessed}
    steps = _steps(len(curves), middle=len(curves) % 2 == 1 and cell not in taken)
    # At the edge of the plot all of them move, so that their order stays.
    aside = max(0, -(column + steps[0])) - max(0, column + steps[-1] - (frame.columns - 1))
    for number, step in zip(curves, steps, strict=True):
        if any(found.get((column + near, row)) == number for near in range(-_AGAIN, _AGAIN + 1)):
            continue
        way = 1 if step > 0 else -1
        for further in range(_FURTHEST):
            place = column + step + aside + way * further, row
            if place not in taken and frame.holds(*place) and abs(place[0] - column) <= _FURTHEST:
                found[place] = number
                taken.add(place)
                break


def _steps(many: int, *, middle: bool) -> list[int]:
    """Return the distances of so many signs from their percentile, in columns, from left to right: as many on its left
    as on its right. ``middle``: True if one sign stands at the percentile itself."""
    left = many // 2 if middle else (many + 1) // 2
    return [*range(-left, 0), *([0] if middle else []), *range(1, many - left + (0 if middle else 1))]


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
