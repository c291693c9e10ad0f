"""Prepare a chart of runs: their curves by percentile, or the same values turned and counted in other ways.

A view is points, ranges and the two axes' units; the terminal's chart and the SVG draw any of them alike. All axes are
logarithmic (``stats.scale``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import GapBucket
from jitter_workshop.stats import scale
from jitter_workshop.stats.histogram import Bin

Point = tuple[float, float]

PER_DECADE = 20
"""The number of bars of a frequency histogram in a decade of time: humps that lie 12 % apart can be told from each
other.
"""

_FLOOR = 0.5
"""The height of an empty bar. A logarithmic axis has no zero; half of the smallest visible count is an honest floor."""


@dataclass(frozen=True, slots=True)
class View:
    """Hold the points (log10) of each curve, from left to right. ``solid``: the number of leading points of each curve
    that are solid; the rest is drawn dotted. ``x`` and ``y``: units that ``scale.ticks`` knows."""

    paths: tuple[tuple[Point, ...], ...]
    solid: tuple[int, ...]
    ranges: scale.Ranges
    x: str
    y: str
    title: str
    x_name: str
    y_name: str


def percentiles(curves: Sequence[PercentileCurve], marks: Iterable[Point] = ()) -> View:
    """Return the view of value by percentile: rarer values lie further to the right."""
    paths = tuple(
        tuple((scale.x_of_percentile(p.percentile), scale.y_of_ns(p.value_ns)) for p in c.points) for c in curves
    )
    return View(
        paths,
        _solid(curves),
        scale.ranges(curves, marks),
        "percentile",
        "time",
        "Percentiles of latency",
        "percentile",
        "latency",
    )


def ccdf(curves: Sequence[PercentileCurve]) -> View:
    """Return the view of P(value > x): the percentile curve with its axes exchanged, so that one reads the share above
    a threshold at the threshold. Its last point is the largest of n values, at 1/n.
    """
    paths = tuple(
        tuple((scale.y_of_ns(p.value_ns), -scale.x_of_percentile(p.percentile)) for p in c.points) for c in curves
    )
    return _view(paths, _solid(curves), "share", "How much is longer", "longer than", "share", top=0.0)


def frequency(bins: Sequence[Sequence[Bin]]) -> View:
    """Return the view of how many values fall into each twentieth of a decade, as outlines of bars; one sequence of
    counters a curve."""
    paths = tuple(_outline(_bars(some), _FLOOR) for some in bins)
    return _view(paths, tuple(map(len, paths)), "number", "How many of each length", "length", "how many")


def rates(buckets: Sequence[Sequence[GapBucket]]) -> View:
    """Return the view of ``spin``'s gaps per hour of sampled time, as outlines of its 26 buckets. ``buckets`` has one
    sequence for each curve."""
    paths = []
    for some in buckets:
        known = [b for b in some if b.per_hour]
        # One gap is the smallest count that the sampled time could show.
        floor = min((b.per_hour / b.count for b in known if b.per_hour), default=1.0) * _FLOOR
        paths.append(_outline([(b.from_ns, b.to_ns or 2 * b.from_ns, b.per_hour or 0.0) for b in some], floor))
    return _view(tuple(paths), tuple(map(len, paths)), "number", "Gaps an hour of sampled time", "gap", "gaps an hour")


def _bars(bins: Sequence[Bin]) -> list[tuple[float, float, float]]:
    """Return (from, to, count) of every bar between the shortest value and the longest, the empty ones as well. A
    counter that lies across a border goes to the bar of its middle."""
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
    """Return the upper edge of bars that touch each other, from the first that is not empty to the last, down to the
    floor at both ends; () where all are empty."""
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
) -> View:
    """Return a view over time, in whole decades of it, with every point inside."""
    everything = [point for path in paths for point in path]
    xs, ys = [x for x, _ in everything] or [3.0, 6.0], [y for _, y in everything] or [0.0, 3.0]
    x_low, x_high = math.floor(min(xs)), math.ceil(max(xs) + 1e-9)
    y_low = math.floor(min(ys) * 4) / 4
    y_high = math.ceil((max(ys) + 0.05) * 4) / 4 if top is None else top
    ranges = scale.Ranges(max(x_high, x_low + 1), y_low, max(y_high, y_low + 1), x_low)
    return View(paths, solid, ranges, "time", unit, title, x_name, y_name)
