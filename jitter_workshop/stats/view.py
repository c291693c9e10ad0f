"""Prepare a chart of runs: percentile curves, CCDFs, numbers of values by length, or rates of gaps.

A view holds points, ranges and the units of both axes. The chart in the terminal and the SVG draw every view alike. All
axes are logarithmic (``stats.scale``)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import GapBucket
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import curve_value_at
from jitter_workshop.stats.histogram import Bin

Point = tuple[float, float]

PER_DECADE = 20
"""A frequency histogram has this number of bars per decade of time. Humps whose lengths differ by 12 % are then in
different bars."""

_FLOOR = 0.5
"""The height of an empty bar. A logarithmic axis has no zero, so the bar is drawn half as high as a bar of one
value."""


@dataclass(frozen=True, slots=True)
class CurveView:
    """Hold the points (log10) of each curve, from left to right. ``solid``: the number of solid points at the start of
    each curve; the other points are drawn dotted. ``x`` and ``y``: the axes' units, as ``scale.ticks`` knows them."""

    paths: tuple[tuple[Point, ...], ...]
    solid: tuple[int, ...]
    ranges: scale.Ranges
    x: str
    y: str
    title: str
    x_name: str
    y_name: str


def percentiles(curves: Sequence[PercentileCurve], marks: Iterable[Point] = ()) -> CurveView:
    """Return the view of values by percentile: rarer values are further to the right."""
    paths = tuple(
        tuple((scale.x_of_percentile(p.percentile), scale.y_of_ns(p.value_ns)) for p in c.points) for c in curves
    )
    return CurveView(
        paths,
        _solid(curves),
        scale.ranges(curves, marks),
        "percentile",
        "time",
        "Percentiles of latency",
        "percentile",
        "latency",
    )


def tight(view: CurveView, marks: Iterable[Point] = ()) -> scale.Ranges:
    """Return ranges for a view of percentiles. They leave no space above and below the curves. So each decade has more
    room. Values below the view's own range stay out of it.
    """
    ys = [y for path in view.paths for _, y in path]
    guessed = [scale.y_of_ns(value_ns) for _, value_ns in marks]
    low = min([max(min(ys), view.ranges.y_low), *guessed] if ys else guessed, default=0.0)
    high = max([*ys, *guessed], default=0.0)
    return replace(view.ranges, y_low=low, y_high=high) if high - low >= scale.LEAST_DECADES else view.ranges


def height_at(path: Sequence[Point], x: float) -> float:
    """Return the height of a path at ``x``. Outside of the path, return the height of its nearer end."""
    x = min(max(x, path[0][0]), path[-1][0])
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        if x0 <= x <= x1:
            return y0 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return path[-1][1]


def from_edge(path: Sequence[Point], solid: int, low: float) -> tuple[list[Point], int]:
    """Return the part of a path from the point at which it rises above ``low``, and how many points of this part are
    solid. ``solid``: this number for the whole path. The path of percentiles never falls. A path that stays below
    ``low`` gives ([], 0)."""
    first = next((n for n, (_, y) in enumerate(path) if y >= low), len(path))
    if first in (0, len(path)):
        return (list(path), solid) if first == 0 else ([], 0)
    (x0, y0), (x1, y1) = path[first - 1], path[first]
    enters = x0 + (x1 - x0) * (low - y0) / (y1 - y0), low
    if first < solid:
        return [enters, *path[first:]], solid - first + 1
    return [enters, *path[first:]], 0


def marked_points(curve: PercentileCurve, path: Sequence[Point], told: Iterable[float | None]) -> list[Point]:
    """Return the points at which a percentile curve has marks: at its end, and at each figure of its legend. ``path``:
    the curve's points in the view. ``told``: the percentiles of the legend's figures; None stands for the maximum,
    which is at the curve's end.
    """
    if not path:
        return []
    (first, _), (end, _) = path[0], path[-1]
    found = [path[-1]]
    for percentile in told:
        value = None if percentile is None else curve_value_at(curve, percentile)
        if percentile is not None and value is not None and first <= (x := scale.x_of_percentile(percentile)) < end:
            found.append((x, scale.y_of_ns(value)))
    return found


def ccdf(curves: Sequence[PercentileCurve]) -> CurveView:
    """Return the view of P(value > x): the percentile curve with its axes exchanged. The height of the curve at x is
    the share of values longer than x. The largest of n values is drawn at the height 1/n, because a logarithmic axis
    has no 0.
    """
    paths = tuple(
        tuple((scale.y_of_ns(p.value_ns), -scale.x_of_percentile(p.percentile)) for p in c.points) for c in curves
    )
    return _view(paths, _solid(curves), "share", "How much is longer", "longer than", "share", top=0.0)


def frequency(bins: Sequence[Sequence[Bin]]) -> CurveView:
    """Return the view of how many values have each length, as outlines of bars. Each bar covers a twentieth of a
    decade. ``bins`` has one sequence of counters for each curve."""
    paths = tuple(_outline(_bars(some), _FLOOR) for some in bins)
    return _view(paths, tuple(map(len, paths)), "number", "How many of each length", "length", "how many")


def gap_rates_view(buckets: Sequence[Sequence[GapBucket]]) -> CurveView:
    """Return the view of ``spin``'s gaps per hour of sampled time, as outlines of its 26 buckets. ``buckets`` has one
    sequence for each curve."""
    paths = []
    for some in buckets:
        known = [b for b in some if b.per_hour]
        # The rate of a single gap is the lowest rate that the sampled time can show.
        floor = min((b.per_hour / b.count for b in known if b.per_hour), default=1.0) * _FLOOR
        paths.append(_outline([(b.from_ns, b.to_ns or 2 * b.from_ns, b.per_hour or 0.0) for b in some], floor))
    return _view(tuple(paths), tuple(map(len, paths)), "number", "Gaps an hour of sampled time", "gap", "gaps an hour")


def _bars(bins: Sequence[Bin]) -> list[tuple[float, float, float]]:
    """Return (from, to, count) of each bar from the shortest value to the longest value, including empty bars. A
    counter that crosses the border of two bars is counted in the bar of its middle."""
    counts: dict[int, int] = {}
    for low, high, samples in bins:
        bar = math.floor(math.log10(max((low + high) / 2, 1.0)) * PER_DECADE + 1e-9)
        counts[bar] = counts.get(bar, 0) + samples
    if not counts:
        return []
    return [
        (10 ** (bar / PER_DECADE), 10 ** ((bar + 1) / PER_DECADE), float(counts.get(bar, 0)))
        for bar in range(min(counts), max(counts) + 1)
    ]


def _outline(bars: Sequence[tuple[float, float, float]], floor: float) -> tuple[Point, ...]:
    """Return the outline of bars that touch each other, as points in log10. The outline rises from ``floor``, follows
    the tops of the bars, and falls to ``floor``. Empty bars at the ends are left out. Return () if all bars are
    empty."""
    held = [n for n, (_, _, height) in enumerate(bars) if height]
    if not held:
        return ()
    bars = bars[held[0] : held[-1] + 1]
    low = math.log10(floor)
    points: list[Point] = [(math.log10(bars[0][0]), low)]
    for start, end, height in bars:
        level = math.log10(max(height, floor))
        points += [(math.log10(start), level), (math.log10(end), level)]
    return (*points, (points[-1][0], low))


def _solid(curves: Sequence[PercentileCurve]) -> tuple[int, ...]:
    return tuple(next((n for n, p in enumerate(c.points) if not p.solid), len(c.points)) for c in curves)


def _view(
    paths: tuple[tuple[Point, ...], ...],
    solid: tuple[int, ...],
    unit: str,
    title: str,
    x_name: str,
    y_name: str,
    top: float | None = None,
) -> CurveView:
    """Return a view of these paths, with time on the x axis. The x axis begins and ends at a power of ten, and shows
    all points. ``top``: the upper end of the y axis in log10; None to fit the points.
    """
    everything = [point for path in paths for point in path]
    xs, ys = [x for x, _ in everything] or [3.0, 6.0], [y for _, y in everything] or [0.0, 3.0]
    x_low, x_high = math.floor(min(xs)), math.ceil(max(xs) + 1e-9)
    y_low = math.floor(min(ys) * 4) / 4
    y_high = math.ceil((max(ys) + 0.05) * 4) / 4 if top is None else top
    ranges = scale.Ranges(max(x_high, x_low + 1), y_low, max(y_high, y_low + 1), x_low)
    return CurveView(paths, solid, ranges, "time", unit, title, x_name, y_name)
