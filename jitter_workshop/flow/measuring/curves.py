"""Read curves beside those of a session's runs: published figures of 2015, the course's runs on another machine,
imports from other tools, and further curves of one run. Each names its source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jitter_workshop.course.files import Problems
from jitter_workshop.course.loader import BUILTIN_ID
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.host_ops.recordings import assets
from jitter_workshop.flow.measuring.recorded_runs import RecordedRun, misfit, read_recorded
from jitter_workshop.model.course import Chapter, StepName
from jitter_workshop.model.imported import ImportedRun
from jitter_workshop.model.run import Run
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import curve_from_percentiles, imported_curve, percentile_curve

ORIGIN = "published 2015"
RECORDED = "recorded"
INTENDED = "accumulator_intended"

_PUBLISHED = {"governor": ("baseline", "performance governor"), "isolation": ("performance governor", "isolated CPUs")}
"""Chapters whose change was published: the curve before and the one after."""

_PUBLISHED_SOURCE = "published in 2015 (perf-workshop): a laptop with 4 CPUs, Linux 4.0"

Curves = tuple[tuple[RunCurve, ...], str]
"""Curves and their source, as the end of "these curves were …"; ((), "") where there are none."""


@cache
def published_curves() -> tuple[RunCurve, ...]:
    """Return the transit latency, producer to accumulator, of the perf-workshop's README; () if the asset is
    missing."""
    try:
        data = json.loads((assets() / "published-latencies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(_curve(name, figures) for name, figures in data["curves"].items())


def imported_curves(runs: Sequence[ImportedRun]) -> tuple[RunCurve, ...]:
    """Return the curves of other tools that were imported into a session; each names its tool."""
    return tuple(RunCurve(f"imported-{run.id}", run.label, imported_curve(run), None) for run in runs)


def recorded_runs(chapter: Chapter, course_dir: str = "", course_id: str = BUILTIN_ID) -> Curves:
    """Return a chapter's runs on another machine, first and second: from the course's own folder, and for the built-in
    course from the assets. Only runs of what the chapter measures, made with its settings, count; a second run without
    its first does not. Published figures stand in for a chapter of the built-in course that was not measured."""
    builtin = course_id == BUILTIN_ID
    for place in (*([Path(course_dir)] if course_dir else []), *([assets()] if builtin else [])):
        entry = read_recorded(place, Problems()).get(chapter.id)
        runs = {s: r for s, r in entry.runs.items() if not misfit(chapter, s, r)} if entry is not None else {}
        if entry is not None and "measure" in runs:
            return tuple(_recorded(f"recorded-{chapter.id}-{slot}", run) for slot, run in runs.items()), entry.source
    names = _PUBLISHED.get(chapter.id, ()) if builtin else ()
    known = {curve.label.partition(", ")[2]: curve for curve in published_curves()}
    return tuple(known[name] for name in names if name in known), _PUBLISHED_SOURCE if names else ""


def recorded_in(step: StepName, chapter: Chapter, course_dir: str, course_id: str) -> Curves:
    """Return the recorded curves that belong to a step."""
    if step not in ("measure", "again", "compare"):
        return (), ""
    curves, source = recorded_runs(chapter, course_dir, course_id)
    if step == "measure":
        return curves[:1], source
    lacking = len(curves) == 1 and chapter.measurement("again") is not None
    return curves, f"{source}; no run with the change was recorded" if lacking else source


def _recorded(key: str, run: RecordedRun) -> RunCurve:
    return RunCurve(key, run.label, curve_from_percentiles(run.label, run.values, run.count, RECORDED), None)


def _curve(name: str, figures: dict[str, Any]) -> RunCurve:
    label = f"laptop, {name}"
    curve = curve_from_percentiles(label, figures, int(figures["count"]), ORIGIN)
    return RunCurve(key=f"published-{name.replace(' ', '-')}", label=label, curve=curve, run=None)


def further_curves(handle: OpenSession, run: Run) -> tuple[RunCurve, ...]:
    """Return two more curves of a run, for the chapter about coordinated omission: from the intended send time, and as
    received with HdrHistogram's later correction. Those that the run or the session does not have are left out."""
    found: list[RunCurve] = []
    label = run.label or run.id
    try:
        found.append(RunCurve(f"{run.id}-intended", f"{label}: from the due time", handle.curve(run, INTENDED), run))
        received = handle.histogram(run.id, run.main_histogram)
        invented = hg.corrected(received, run.interval_ns)
    except (SessionError, ValueError):
        return tuple(found)
    words = f"{label}: corrected afterwards"
    return (*found, RunCurve(f"{run.id}-corrected", words, percentile_curve(invented, words), run))
