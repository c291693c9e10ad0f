"""Return the numbers behind a chart as rows of text, for the screen's table and for the line-by-line workshop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats import sample_support
from jitter_workshop.stats.scale import nice_ns

UNKNOWN = "–"


@dataclass(frozen=True, slots=True)
class CurveRows:
    """Hold the rows of a table of percentiles. ``rows``: a row per percentile, then maximum and count; each row is a
    name and one cell per curve. ``legend``: the meaning of the marks in the cells, one line each. ``beside``: the
    blanks that a column head needs to stand over cells with marks; "" without marks."""

    rows: list[list[str]]
    legend: list[str]
    beside: str


def curve_rows(curves: Sequence[RunCurve], tight: bool = False) -> CurveRows:
    """Return each percentile of each curve, with a mark where too few samples support it. ``tight``: the mark follows
    the figure without a blank."""
    between = "" if tight else " "
    found = [sample_support.of_curve(curve) for curve in curves]
    rows: list[tuple[str, list[str], list[str]]] = []
    for percentile in PERCENTILES:
        values = [nice_ns(value_at(curve, percentile)) for curve in curves]
        marks = [m[percentile] if v != UNKNOWN else "" for v, m in zip(values, found, strict=True)]
        rows.append((f"p{percentile}", values, marks))
    none = [""] * len(curves)
    rows.append(("max", [nice_ns(value_at(curve, "100")) for curve in curves], none))
    rows.append(("count", [f"{curve.curve.count:,}" for curve in curves], none))
    legend = sample_support.legend(mark for _, _, marks in rows for mark in marks)
    beside = f"{between} " if legend else ""
    told = [[name, *(sample_support.marked(cells, marks, between) if legend else cells)] for name, cells, marks in rows]
    if any(cell == UNKNOWN for _, cells, _ in rows for cell in cells):
        legend.append(f"{UNKNOWN}  too few samples to say")
        if any(curve.curve.known_to is not None for curve in curves):
            legend.append("   or beyond the other tool's histogram")
    return CurveRows(told, legend, beside)


def value_at(shown: RunCurve, percentile: str) -> int | None:
    """Return a curve's value from the run's own table, else from the first point that reaches the percentile. None
    where the samples cannot give it."""
    if shown.run is not None:
        summary = shown.run.histograms.get(shown.run.main_histogram)
        if summary is not None:
            return summary.max if percentile == "100" else summary.percentiles.get(percentile)
    wanted = float(percentile)
    if shown.curve.count and 1 - wanted / 100 < 1 / shown.curve.count and wanted < 100:
        return None
    if shown.curve.known_to is not None and shown.curve.known_to < wanted < 100:
        return None
    # A published curve gives its percentiles exactly, so allow for the rounding of 99.9999 and the like.
    points = shown.curve.points
    found = next((p.value_ns for p in points if p.percentile >= wanted - 1e-9), None)
    return points[-1].value_ns if found is None and wanted >= 100 and points else found
