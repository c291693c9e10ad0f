"""Read runs of a course's chapters on another machine, for a rehearsal: ``recorded-runs.json`` of a course, and of the
built-in one among the assets. The file may come from anyone, and is read as strictly as lessons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jitter_workshop.course.files import Problems, read_source
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.run import PERCENTILES

FILE = "recorded-runs.json"
SLOTS = ("measure", "again")
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
        return f"the chapter measures nothing in {slot!r}"
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
        isinstance(runs, dict) and set(runs) <= set(SLOTS) and "measure" in runs, "runs: measure, and perhaps again"
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
    _expect(rising == sorted(rising) and values["min"] <= rising[0], f"{slot}: its percentiles must not fall")
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
    raise ValueError(f"{word} is no number")


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
