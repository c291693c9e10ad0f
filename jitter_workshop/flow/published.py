"""Curves that were not measured here: those of 2015, published figures of a laptop, and the course's runs on another
machine. Each says what it is."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jitter_workshop.flow.recordings import assets
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import curve_from_percentiles

ORIGIN = "published 2015"
RECORDED = "recorded"

_PUBLISHED = {"governor": ("baseline", "performance governor"), "isolation": ("performance governor", "isolated CPUs")}
"""Chapters whose change was published: the curve before and the one after."""

_PUBLISHED_SOURCE = "published in 2015 (perf-workshop): a laptop with 4 CPUs, Linux 4.0"


@cache
def published_curves() -> tuple[RunCurve, ...]:
    """Transit latency, producer to accumulator, of the perf-workshop's README; () where the asset is missing."""
    try:
        data = json.loads((assets() / "published-latencies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(_curve(name, figures) for name, figures in data["curves"].items())


def recorded_runs(chapter_id: str) -> tuple[tuple[RunCurve, ...], str]:
    """A chapter's runs on another machine, first and second, and what machine that was; ((), "") where there are none.
    Published figures stand in for a chapter that was not measured."""
    try:
        chapters = json.loads((assets() / "recorded-runs.json").read_text(encoding="utf-8"))["chapters"]
        entry = chapters.get(chapter_id)
    except (OSError, ValueError, KeyError):
        entry = None
    if entry is not None:
        curves = []
        for slot, figures in entry["runs"].items():
            label = f"recorded: {figures['label']}"
            values = {name: value for name, value in figures.items() if isinstance(value, int | float)}
            curve = curve_from_percentiles(label, values, int(figures["count"]), RECORDED)
            curves.append(RunCurve(f"recorded-{chapter_id}-{slot}", label, curve, None))
        return tuple(curves), str(entry["source"])
    names = _PUBLISHED.get(chapter_id, ())
    known = {curve.label.partition(", ")[2]: curve for curve in published_curves()}
    return tuple(known[name] for name in names if name in known), _PUBLISHED_SOURCE if names else ""


def _curve(name: str, figures: dict[str, Any]) -> RunCurve:
    label = f"laptop, {name}"
    curve = curve_from_percentiles(label, figures, int(figures["count"]), ORIGIN)
    return RunCurve(key=f"published-{name.replace(' ', '-')}", label=label, curve=curve, run=None)
