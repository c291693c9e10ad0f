"""Read curves that are not the main curve of a session's run. Each curve names its source.

- the curves that were published in 2015;
- the curves that were imported from other tools;
- two further curves of a session's run.

The module ``flow.chapters.recorded`` reads the runs in a course that were made on another machine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

from jitter_workshop.errors import SessionError
from jitter_workshop.model.course import CONTROL, TREATED
from jitter_workshop.model.curve import CurveRole, ImportedRun
from jitter_workshop.model.run import HANDOFF, INTENDED, Run
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.paths import assets
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import curve_from_percentiles, cut_curve, imported_curve, percentile_curve
from jitter_workshop.stats.figures import FROM_DUE_TIME, TRANSIT

ROLES_OF_SLOTS: dict[str, CurveRole] = {"measure": "before", "again": "after", TREATED: "cure", CONTROL: "cure"}
"""Slot → the role of its run's curve."""

ORIGIN = "published"
PUBLISHED_WORKLOAD = "ring"
"""The workload of the published curves, whatever the chapter measures that shows them."""
RECORDED = "recorded"

CORRECTED = "corrected"
_SHORT = "laptop 2015"
CLOCKS = (TRANSIT, FROM_DUE_TIME, CORRECTED)
"""The names of the curves in the chapter on coordinated omission. A name stands before the label of the run."""

_PUBLISHED = {"governor": ("baseline", "performance governor"), "isolation": ("performance governor", "isolated CPUs")}
"""Chapters whose change has published curves: the names of the curves before and after the change."""

_PUBLISHED_SOURCE = "published in 2015 (perf-workshop): a laptop with 4 CPUs, Linux 4.0"

Curves = tuple[tuple[RunCurve, ...], str]
"""Curves and their source. The source ends the sentence "these curves were …". ((), "") if there are none."""


@cache
def published_curves() -> tuple[RunCurve, ...]:
    """Return the published curves of the perf-workshop (a tutorial of 2015), from its README. They show the transit:
    the time of a message from the producer to the accumulator. Return () if the file with these curves is missing or
    invalid."""
    try:
        data = json.loads((assets() / "published-latencies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(_curve(name, figures) for name, figures in data["curves"].items())


def scale_curve() -> tuple[RunCurve, ...]:
    """Return the published curve that gives the scale, as the only item, by its short name; () if there is none."""
    return tuple(
        dataclasses.replace(shown, label=_SHORT, curve=dataclasses.replace(shown.curve, label=_SHORT))
        for shown in published_curves()[:1]
    )


def told_apart_by_clock(curves: Sequence[RunCurve]) -> tuple[RunCurve, ...]:
    """Return the curves of the ring's runs with one clock each: a curve of transit is named so if it stands beside one
    that counts from when a message was due. A curve of another tool has its own words for what it measures."""
    if not any(shown.from_due for shown in curves):
        return tuple(curves)
    return tuple(_named_transit(shown) if _is_transit(shown) else shown for shown in curves)


def _is_transit(shown: RunCurve) -> bool:
    """Return True if a curve of the ring is one of transit, and its label does not say so yet."""
    if shown.label.endswith((f", {TRANSIT}", f", {HANDOFF}")):
        return False
    if shown.run is None:
        return shown.curve.origin == ORIGIN
    return not shown.from_due and shown.run.workload == PUBLISHED_WORKLOAD


def _named_transit(shown: RunCurve) -> RunCurve:
    handoff = shown.run is not None and shown.run.by_handoff
    label = f"{shown.label}, {HANDOFF if handoff else TRANSIT}"
    return dataclasses.replace(shown, label=label, curve=dataclasses.replace(shown.curve, label=label))


def published_before_and_after(chapter: str) -> Curves:
    """Return the published curves before and after the change that a chapter teaches. Return ((), "") if there are no
    such curves."""
    names = _PUBLISHED.get(chapter, ())
    known = {curve.label.partition(", ")[2]: curve for curve in published_curves()}
    roles: tuple[CurveRole, ...] = ("before", "after")
    shown = tuple(with_role(known[name], role) for name, role in zip(names, roles, strict=False) if name in known)
    return shown, _PUBLISHED_SOURCE if names else ""


def imported_curves(runs: Sequence[ImportedRun]) -> tuple[RunCurve, ...]:
    """Return the curves of runs that were imported from other tools. Each curve names its tool."""
    return tuple(RunCurve(f"imported-{run.id}", run.label, imported_curve(run), None) for run in runs)


def _curve(name: str, figures: dict[str, Any]) -> RunCurve:
    label = f"{_SHORT}, {name}"
    curve = curve_from_percentiles(label, figures, int(figures["count"]), ORIGIN)
    return RunCurve(key=f"published-{name.replace(' ', '-')}", label=label, curve=curve, run=None)


def label_with_quantity(shown: RunCurve, measures: str) -> RunCurve:
    """Return the curve with its quantity at the start of its label. A legend may cut off the end of a long label."""
    label = f"{measures}: {shown.label}"
    return dataclasses.replace(shown, label=label, curve=dataclasses.replace(shown.curve, label=label))


def with_role(shown: RunCurve, role: CurveRole | None) -> RunCurve:
    """Return the curve with its role in a chapter; None for none."""
    return dataclasses.replace(shown, curve=dataclasses.replace(shown.curve, role=role))


def further_curves(handle: OpenSession, run: Run) -> tuple[RunCurve, ...]:
    """Return up to two further curves of a run, for the chapter on coordinated omission. The first curve has the
    latency from the due time. The second curve has the measured latency after HdrHistogram's correction. A
    curve without data is left out."""
    found: list[RunCurve] = []
    label = run.label or run.id
    try:
        due = RunCurve(f"{run.id}-intended", label, handle.curve(run, INTENDED), None)
        found.append(label_with_quantity(with_role(due, "due"), FROM_DUE_TIME))
        received = handle.histogram(run.id, run.main_histogram)
        invented = percentile_curve(hg.corrected(received, run.interval_ns), label)
    except (SessionError, ValueError):
        return tuple(found)
    repaired = dataclasses.replace(cut_curve(invented, received.total_count), origin=run.mark)
    correction = RunCurve(f"{run.id}-corrected", label, repaired, None)
    return (*found, label_with_quantity(with_role(correction, "corrected"), CORRECTED))
