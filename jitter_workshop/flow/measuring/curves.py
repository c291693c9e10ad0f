"""Read curves other than those of a session's runs: figures published in 2015, a course's runs on another machine,
imports from other tools, and further curves of one run. Each curve names its source.

A course's runs on another machine are shown in a rehearsal. They are in ``recorded-runs.json`` in the course's folder,
and among the assets for the built-in course. The file may come from anyone, and is checked as strictly as lessons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jitter_workshop.course.files import Problems, read_source
from jitter_workshop.course.loader import BUILTIN_ID
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.host_ops.recordings import assets
from jitter_workshop.model.course import SLOTS, Chapter, StepName
from jitter_workshop.model.curve import ImportedRun
from jitter_workshop.model.run import PERCENTILES, Run
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.session.store import OpenSession
from jitter_workshop.stats import histogram as hg
from jitter_workshop.stats.curve import curve_from_percentiles, imported_curve, percentile_curve
from jitter_workshop.stats.figures import INTENDED

FILE = "recorded-runs.json"
FIGURES = ("min", "mean", "max", *(f"p{name}" for name in PERCENTILES))
MOST_NS = 10**14
_MOST_SOURCE = 120


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """Hold the figures of one run. ``applied``: ids of the tunables that were applied then. ``values``: name of the
    figure → ns, for the names in ``FIGURES``."""

    label: str
    workload: str
    applied: frozenset[str]
    count: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class RecordedChapter:
    """Hold a chapter's recorded runs by slot. ``source``: when and on what machine they were measured."""

    source: str
    runs: dict[str, RecordedRun]
    line: int = 1


def read_recorded(folder: Path, problems: Problems) -> dict[str, RecordedChapter]:
    """Return the recorded runs in ``folder`` by chapter id; {} if there are none. Mistakes are added to ``problems``,
    and entries with a mistake are left out."""
    if not (folder / FILE).exists():
        return {}
    source = read_source(folder, FILE, problems)
    if source is None:
        return {}
    try:
        data = json.loads(source.text, parse_constant=_no_number)
        _expect(isinstance(data, dict) and data.get("unit") == "ns", 'the file must be an object with "unit": "ns"')
        chapters = data.get("chapters")
        _expect(isinstance(chapters, dict), '"chapters" must be an object of chapter ids')
    except (ValueError, RecursionError) as error:
        problems.add(FILE, getattr(error, "lineno", 1), f"the runs cannot be read: {str(error)[:200]}")
        return {}
    found: dict[str, RecordedChapter] = {}
    for ident, entry in chapters.items():
        line = source.text.count("\n", 0, max(source.text.find(f'"{ident}"'), 0)) + 1
        try:
            found[ident] = _chapter(entry, line)
        except ValueError as error:
            problems.add(FILE, line, f"{str(ident)[:40]!r}: {error}")
    return found


def misfit(chapter: Chapter, slot: str, run: RecordedRun) -> str:
    """Return the reason why a recorded run does not fit a slot of the chapter, or "". A run does not fit if the lesson
    measures something else there, or if the run was made without the chapter's settings."""
    asked = chapter.measurement(slot)
    if asked is None:
        return f"the chapter has nothing to measure in {slot!r}"
    if (run.label, run.workload) != (asked.label, asked.workload):
        return f"{slot!r} must be '{asked.label}' of {asked.workload}, not '{run.label}' of {run.workload}"
    ids = {word.partition("=")[0] for word in chapter.tunables}
    if slot == "again" and ids and not ids & run.applied:
        return f"{slot!r} was made with none of the chapter's tunables applied"
    strange = sorted(run.applied - (ids if slot == "again" else frozenset()))
    return f"{slot!r} was made with {', '.join(strange[:4])} applied" if strange else ""


def _chapter(entry: Any, line: int) -> RecordedChapter:
    _expect(isinstance(entry, dict), "the chapter's entry must be an object")
    source = _text(entry.get("source"), "source", _MOST_SOURCE)
    runs = entry.get("runs")
    _expect(
        isinstance(runs, dict) and set(runs) <= set(SLOTS) and "measure" in runs,
        "runs must have 'measure' and may have 'again'",
    )
    return RecordedChapter(source, {slot: _run(slot, runs[slot]) for slot in SLOTS if slot in runs}, line)


def _run(slot: str, entry: Any) -> RecordedRun:
    _expect(isinstance(entry, dict), f"{slot} must be an object")
    applied = entry.get("applied", [])
    _expect(
        isinstance(applied, list) and all(isinstance(a, dict) and isinstance(a.get("id"), str) for a in applied),
        f'{slot}: applied must be a list of {{"id": …, "value": …}}',
    )
    count = entry.get("count")
    _expect(type(count) is int and 1 <= count <= MOST_NS, f"{slot}: count must be a whole number of at least 1")
    values = {name: entry[name] for name in FIGURES if entry.get(name) is not None}
    for name, value in values.items():
        _expect(type(value) in (int, float) and 0 <= value <= MOST_NS, f"{slot}: {name} must be a time in ns")
    _expect({"min", "max", "p50"} <= values.keys(), f"{slot}: min, p50 and max are needed")
    rising = [values[name] for name in FIGURES if name in values and name.startswith("p")]
    _expect(rising == sorted(rising) and values["min"] <= rising[0], f"{slot}: the percentiles must rise or stay equal")
    strange = set(entry) - {"label", "workload", "applied", "count", *FIGURES}
    _expect(not strange, f"{slot}: unknown key {', '.join(sorted(map(repr, strange)))[:80]}")
    return RecordedRun(
        _text(entry.get("label"), f"{slot}: label", 40),
        _text(entry.get("workload"), f"{slot}: workload", 20),
        frozenset(one["id"] for one in applied),
        count,
        values,
    )


def _text(value: Any, what: str, most: int) -> str:
    good = isinstance(value, str) and 0 < len(value) <= most and value.isprintable()
    _expect(good, f"{what} must be printable text of at most {most} characters")
    return str(value)


def _expect(good: bool, message: str) -> None:
    if not good:
        raise ValueError(message)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def misfits(chapters: Mapping[str, Chapter], recorded: Mapping[str, RecordedChapter]) -> list[tuple[int, str]]:
    """Return (line, sentence) for each recorded run that no chapter shows."""
    found: list[tuple[int, str]] = []
    for ident, entry in recorded.items():
        chapter = chapters.get(ident)
        if chapter is None:
            found.append((entry.line, f"there is no chapter {ident[:40]!r} in this course"))
            continue
        found += [
            (entry.line, f"{ident!r}: {why}") for s, run in entry.runs.items() if (why := misfit(chapter, s, run))
        ]
    return found


ORIGIN = "published 2015"
RECORDED = "recorded"

_PUBLISHED = {"governor": ("baseline", "performance governor"), "isolation": ("performance governor", "isolated CPUs")}
"""Chapters whose change has published curves: the names of the curves before and after the change."""

_PUBLISHED_SOURCE = "published in 2015 (perf-workshop): a laptop with 4 CPUs, Linux 4.0"

Curves = tuple[tuple[RunCurve, ...], str]
"""Curves and their source. The source ends the sentence "these curves were …". ((), "") if there are none."""


@cache
def published_curves() -> tuple[RunCurve, ...]:
    """Return the curves in the perf-workshop's README: transit from producer to accumulator. () if the asset is
    missing."""
    try:
        data = json.loads((assets() / "published-latencies.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(_curve(name, figures) for name, figures in data["curves"].items())


def imported_curves(runs: Sequence[ImportedRun]) -> tuple[RunCurve, ...]:
    """Return the curves of runs that were imported from other tools. Each curve names its tool."""
    return tuple(RunCurve(f"imported-{run.id}", run.label, imported_curve(run), None) for run in runs)


def recorded_runs(chapter: Chapter, course_dir: str = "", course_id: str = BUILTIN_ID) -> Curves:
    """Return the curves of a chapter's first and second run on another machine, from the course's own folder or, for
    the built-in course, from the assets. Runs that do not fit the chapter are left out, and so is a second run without
    a first one. If the built-in course has no recorded runs of a chapter, published curves are returned."""
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
    """Return the recorded curves that a step shows, and their source."""
    if step not in ("measure", "again", "compare"):
        return (), ""
    curves, source = recorded_runs(chapter, course_dir, course_id)
    if step == "measure":
        return curves[:1], source
    lacking = len(curves) == 1 and chapter.measurement("again") is not None
    return curves, f"{source}; no run after the change was recorded" if lacking else source


def _recorded(key: str, run: RecordedRun) -> RunCurve:
    return RunCurve(key, run.label, curve_from_percentiles(run.label, run.values, run.count, RECORDED), None)


def _curve(name: str, figures: dict[str, Any]) -> RunCurve:
    label = f"laptop, {name}"
    curve = curve_from_percentiles(label, figures, int(figures["count"]), ORIGIN)
    return RunCurve(key=f"published-{name.replace(' ', '-')}", label=label, curve=curve, run=None)


def further_curves(handle: OpenSession, run: Run) -> tuple[RunCurve, ...]:
    """Return two more curves of a run, for the chapter on coordinated omission: latency from the intended send time,
    and latency as received with HdrHistogram's later correction. A curve without data is left out."""
    found: list[RunCurve] = []
    label = run.label or run.id
    try:
        found.append(
            RunCurve(f"{run.id}-intended", f"{label}: from the intended time", handle.curve(run, INTENDED), run)
        )
        received = handle.histogram(run.id, run.main_histogram)
        invented = hg.corrected(received, run.interval_ns)
    except (SessionError, ValueError):
        return tuple(found)
    words = f"{label}: corrected afterwards"
    return (*found, RunCurve(f"{run.id}-corrected", words, percentile_curve(invented, words), run))
