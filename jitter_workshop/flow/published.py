"""The curves of 2015 that everybody may compare with: figures of a laptop that were published, and are marked so."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import curve_from_percentiles

ORIGIN = "published 2015"


@cache
def published_curves() -> tuple[RunCurve, ...]:
    """Transit latency, producer to accumulator, of the perf-workshop's README; () where the asset is missing."""
    try:
        data = json.loads(_asset("published-latencies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(_curve(name, figures) for name, figures in data["curves"].items())


def _curve(name: str, figures: dict[str, Any]) -> RunCurve:
    label = f"laptop, {name}"
    curve = curve_from_percentiles(label, figures, int(figures["count"]), ORIGIN)
    return RunCurve(key=f"published-{name.replace(' ', '-')}", label=label, curve=curve, run=None)


def _asset(name: str) -> Path:
    """An asset of the installed package, or of a checkout that was not installed."""
    try:
        return Path(str(resources.files("jitter_workshop.assets"))) / name
    except ModuleNotFoundError:
        return Path(__file__).resolve().parents[2] / "assets" / name
