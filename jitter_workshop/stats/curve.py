"""Build percentile curves: few points, evenly spaced on the chart's axis. A point with few samples beyond it is
marked."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from jitter_workshop.model.curve import ROLES, CurvePoint, ImportedRun, PercentileCurve
from jitter_workshop.model.run import PERCENTILES, HistogramSummary
from jitter_workshop.stats import scale
from jitter_workshop.stats.histogram import Bin, non_zero, rank_of, samples_needed

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

MAX_POINTS = 150
"""The largest number of points of a curve. A screen cannot show more points separately, and they would take longer to
draw."""

SOLID_BEYOND = 10
"""A point is solid where at least this many samples lie beyond it (docs/measuring.md)."""


def percentile_curve(
    histogram: HdrHistogram,
    label: str,
    *,
    max_ns: int | None = None,
    min_ns: int | None = None,
) -> PercentileCurve:
    """Return the percentile curve of a histogram.

    The smallest value is at 0 %, the largest at 1-1/count. The curve has at most :data:`MAX_POINTS` points, evenly
    spaced in log10(1/(1-p)). The points include the percentiles of a run's table, so that chart and table agree.
    ``min_ns``, ``max_ns``: the true minimum and maximum. With None, the limits of the lowest and of the highest counter
    are used instead.
    """
    return curve_from_bins(non_zero(histogram), label, max_ns=max_ns, min_ns=min_ns)


def curve_from_bins(
    bins: Sequence[Bin],
    label: str,
    *,
    max_ns: int | None = None,
    min_ns: int | None = None,
    origin: str = "",
    beyond: int = 0,
) -> PercentileCurve:
    """Return the percentile curve of counters that are not zero, as :func:`percentile_curve` does.

    ``beyond``: the number of samples above all counters. Only the greatest of these samples is known: ``max_ns``. The
    curve goes straight from the last known percentile to ``max_ns``.
    """
    within = sum(b.samples for b in bins)
    count = within + beyond
    if not within:
        return PercentileCurve(label, (), count, origin)
    lowest = bins[0].low if min_ns is None else min_ns
    highest = bins[-1].high if max_ns is None else max_ns
    points = [CurvePoint(0.0, lowest, count >= SOLID_BEYOND)]
    at, seen = 0, bins[0].samples
    for percentile in _percentiles(count):
        rank = rank_of(percentile, count)
        if rank > within:
            break
        while seen < rank:
            at += 1
            seen += bins[at].samples
        value = max(lowest, min(bins[at].high, highest))
        points.append(CurvePoint(percentile, value, _beyond(count, percentile)))
    if count > 1 and (not beyond or max_ns is not None):
        points.append(CurvePoint(100 * (1 - 1 / count), highest, False))
    return PercentileCurve(label, tuple(points), count, origin, 100 * within / count if beyond else None)


def cut_curve(curve: PercentileCurve, count: int) -> PercentileCurve:
    """Return the curve of a corrected histogram, cut off so that its largest value is at 1-1/count. ``count``: the
    number of measured samples. A corrected histogram also has added values, so it has more values than were measured.
    Without the cut, its curve would reach further right than the other curves of the run.
    """
    last = 100 * (1 - 1 / max(count, 1))
    points = [replace(p, solid=_beyond(count, p.percentile)) for p in curve.points if p.percentile < last]
    if len(points) < len(curve.points):
        points.append(CurvePoint(last, curve.points[-1].value_ns, False))
    return replace(curve, points=tuple(points))


def imported_curve(run: ImportedRun) -> PercentileCurve:
    """Return the curve of another tool's measurement, with the tool's name as origin."""
    if run.bins:
        bins = [Bin(*one) for one in run.bins]
        return curve_from_bins(
            bins, run.label, max_ns=run.max_ns, min_ns=run.min_ns, origin=run.origin, beyond=run.beyond
        )
    last = 100 * (1 - 1 / max(run.count, 1))
    points = [CurvePoint(p, v, _beyond(run.count, p)) for p, v in _thinned(run.points) if p < last]
    if run.count > 1:
        points.append(CurvePoint(last, run.max_ns, False))
    return PercentileCurve(run.label, tuple(points), run.count, run.origin)


def _thinned(points: Sequence[tuple[float, int]]) -> Sequence[tuple[float, int]]:
    """Return at most MAX_POINTS of the points; the first and the last are always kept."""
    if len(points) <= MAX_POINTS:
        return points
    step = (len(points) - 1) / (MAX_POINTS - 1)
    return [points[round(n * step)] for n in range(MAX_POINTS)]


def curve_from_percentiles(
    label: str, values: Mapping[str, float | None], count: int, origin: str = ""
) -> PercentileCurve:
    """Return a curve from a table of percentiles in ns. The keys are ``min``, ``max``, and percentiles such as ``50``
    or ``p50``. The keys ``mean`` and ``count`` are ignored.

    A percentile is left out if it needs more than ``count`` samples. Raise ValueError for a key such as ``p100``.
    """
    points: list[CurvePoint] = []
    for key, value in values.items():
        if value is None or key in ("mean", "count"):
            continue
        if key in ("min", "max"):
            percentile = 0.0 if key == "min" else 100 * (1 - 1 / max(count, 1))
        else:
            text = key.removeprefix("p")
            percentile = float(text)
            if not 0 <= percentile < 100:
                raise ValueError(f"{label}: {key} is not a percentile")
            if count < samples_needed(text):
                continue
        points.append(CurvePoint(percentile, round(value), key != "max" and _beyond(count, percentile)))
    # A percentile is its counter's upper bound and can lie slightly above the true maximum; a curve must not fall.
    highest = values.get("max")
    if highest is not None:
        points = [CurvePoint(p.percentile, min(p.value_ns, round(highest)), p.solid) for p in points]
    points.sort(key=lambda p: (p.percentile, p.value_ns))
    return PercentileCurve(label, tuple(points), count, origin)


def curve_from_summary(label: str, summary: HistogramSummary) -> PercentileCurve:
    """Return a coarse curve from the table of percentiles that a run keeps. Use it if the run's histogram cannot be
    read."""
    return curve_from_percentiles(label, {"min": summary.min, **summary.percentiles, "max": summary.max}, summary.count)


def _percentiles(count: int) -> list[float]:
    """Return the percentiles of the inner points of a curve, in ascending order. Most of them are evenly spaced on the
    logarithmic axis; the percentiles of a run's table are added. ``count``: the number of samples, which limits the
    highest percentile."""
    if count < 2:
        return []
    steps = MAX_POINTS - 1 - len(PERCENTILES)
    even = (100 * (1 - count ** (-step / steps)) for step in range(1, steps))
    last = 100 * (1 - 1 / count)
    return sorted({p for p in (*even, *(float(p) for p in PERCENTILES if count >= samples_needed(p))) if p < last})


def numbers_of_curves(curves: Sequence[PercentileCurve]) -> list[int]:
    """Return the number of each curve of a chart, which decides its mark and its colour.

    Curves that were measured here and curves from elsewhere are numbered apart, each from 0. A curve with a role has
    the number of this role; if several curves have the role, the last of them has it. The other curves have the
    numbers that are left, in their order.
    """
    of_roles = {ROLES.index(c.role): at for at, c in enumerate(curves) if c.role is not None and not c.elsewhere}
    taken = {at: number for number, at in of_roles.items()}
    left, elsewhere = (n for n in itertools.count() if n not in of_roles), itertools.count()
    return [taken[at] if at in taken else next(elsewhere if c.elsewhere else left) for at, c in enumerate(curves)]


def curve_value_at(curve: PercentileCurve, percentile: float) -> int | None:
    """Return the curve's value in ns at a percentile; None if the percentile is beyond the last sample or its value is
    unknown."""
    if not curve.points or percentile > curve.points[-1].percentile:
        return None
    if curve.known_to is not None and curve.known_to < percentile < curve.points[-1].percentile:
        return None
    return next(p.value_ns for p in curve.points if p.percentile >= percentile)


def curve_percentile_at(curve: PercentileCurve, value_ns: int) -> float | None:
    """Return the percentile (0..100) at which a curve reaches a value, in ns. Between two points the curve is a
    straight line on the chart's logarithmic axes. Return None if no value of the curve is so large, or if it is not
    known where the curve reaches the value."""
    before = None
    for point in curve.points:
        if point.value_ns >= value_ns:
            if curve.known_to is not None and curve.known_to < point.percentile:
                return None
            if before is None or before.value_ns >= point.value_ns:
                return point.percentile
            low, high, wanted = (scale.y_of_ns(one) for one in (before.value_ns, point.value_ns, value_ns))
            left, right = scale.x_of_percentile(before.percentile), scale.x_of_percentile(point.percentile)
            return 100 * (1 - 10 ** -(left + (right - left) * (wanted - low) / (high - low)))
        before = point
    return None


def _beyond(count: int, percentile: float) -> bool:
    # A small tolerance: 10,000 samples have ten beyond p99.9, in spite of binary rounding.
    return count * (1 - percentile / 100) >= SOLID_BEYOND * (1 - 1e-9)
