"""Read curves beside those of a session's runs: published figures of 2015, the course's runs on another machine,
imports from other tools, and further curves of one run. Each names its source.

A course's runs on another machine, for a rehearsal, are in its ``recorded-runs.json``, and for the built-in one among
the assets. The file may come from anyone, and is read as strictly as lessons.
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

FILE = "recorded-runs.json"
FIGURES = ("min", "mean", "max", *(f"p{name}" for name in PERCENTILES))
MOST_NS = 10**14
_MOST_SOURCE = 120


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """Hold one run in figures. ``applied``: ids of what this tool had set then. ``values``: ns by ``FIGURES``."""

    label: str
    workload: str
    applied: frozenset[str]
    count: int
    values: dict[str, float]


@dataclass(frozen=True, slots=True)
class RecordedChapter:
    """Hold a chapter's runs by slot, and ``source``: when they were measured, and on what machine."""

    source: str
    runs: dict[str, RecordedRun]
    line: int = 1


def read_recorded(folder: Path, problems: Problems) -> dict[str, RecordedChapter]:
    """Return the recorded runs in ``folder`` by chapter id, {} where it has none. Mistakes are added to ``problems``,
    and entries with a mistake are left out."""
    if not (folder / FILE).exists():
        return {}
    source = read_source(folder, FILE, problems)
    if source is None:
        return {}
    try:
        data = json.loads(source.text, parse_constant=_no_number)
        _expect(isinstance(data, dict) and data.get("unit") == "ns", 'it must be an object with "unit": "ns"')
        chapters = data.get("chapters")
        _expect(isinstance(chapters, dict), '"chapters" must be an object of chapter ids')
    except (ValueError, RecursionError) as error:
        problems.add(FILE, getattr(error, "lineno", 1), f"no recorded runs: {str(error)[:200]}")
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
    """Return the reason why a run does not fit this chapter's slot, "" where it does: the lesson measures something
    else there, or the run was made without the settings that it stands for."""
    asked = chapter.measurement(slot)
    if asked is None:
        return f"the chapter has nothing to measure in {slot!r}"
    if (run.label, run.workload) != (asked.label, asked.workload):
        return f"{slot!r} is '{asked.label}' of {asked.workload}, not '{run.label}' of {run.workload}"
    ids = {word.partition("=")[0] for word in chapter.tunables}
    if slot == "again" and ids and not ids & run.applied:
        return f"{slot!r} was made with none of the chapter's tunables applied"
    strange = sorted(run.applied - (ids if slot == "again" else frozenset()))
    return f"{slot!r} was made with {', '.join(strange[:4])} applied" if strange else ""


def _chapter(entry: Any, line: int) -> RecordedChapter:
    _expect(isinstance(entry, dict), "it must be an object")
    source = _text(entry.get("source"), "source", _MOST_SOURCE)
    runs = entry.get("runs")
    _expect(
        isinstance(runs, dict) and set(runs) <= set(SLOTS) and "measure" in runs,
        "the runs 'measure' and perhaps 'again'",
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
    _expect(rising == sorted(rising) and values["min"] <= rising[0], f"{slot}: its percentiles must rise or stay equal")
    strange = set(entry) - {"label", "workload", "applied", "count", *FIGURES}
    _expect(not strange, f"{slot}: unknown {', '.join(sorted(map(repr, strange)))[:80]}")
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
    """Return (line, sentence) for every recorded run that no chapter will show."""
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
INTENDED = "accumulator_intended"

_PUBLISHED = {"governor": ("baseline", "performance governor"), "isolation": ("performance governor", "isolated CPUs")}
"""Chapters whose change was published: the curve before and the one after."""

_PUBLISHED_SOURCE = "published in 2015 (perf-workshop): a laptop with 4 CPUs, Linux 4.0"

Curves = tuple[tuple[RunCurve, ...], str]
"""Curves and their source, which completes the sentence "these curves were …"; ((), "") if there are none."""


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
    return curves, f"{source}; no run after the change was recorded" if lacking else source


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
        found.append(
            RunCurve(f"{run.id}-intended", f"{label}: from the intended time", handle.curve(run, INTENDED), run)
        )
        received = handle.histogram(run.id, run.main_histogram)
        invented = hg.corrected(received, run.interval_ns)
    except (SessionError, ValueError):
        return tuple(found)
    words = f"{label}: corrected afterwards"
    return (*found, RunCurve(f"{run.id}-corrected", words, percentile_curve(invented, words), run))
