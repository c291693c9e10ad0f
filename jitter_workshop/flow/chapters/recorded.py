"""Read a course's runs that were recorded on another machine.

In a rehearsal (a chapter taught on a recording), these runs replace runs that this host cannot make.

The recorded runs are in the file ``recorded-runs.json``, in the course's folder. For the built-in course, this file is
among the assets. Anyone may write such a file, so it is checked as strictly as a lesson. Every screen marks these runs
as recorded.

The times of an emulated machine mean nothing. A run from such a machine has counts, and for each cause the number of
its events. It has no curve. Every screen marks these counts as emulated.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from jitter_workshop.course.files import Problems, read_source
from jitter_workshop.course.loader import BUILTIN_ID
from jitter_workshop.flow.chapters.suspects import MOST, cause_from_counters, suspect
from jitter_workshop.flow.measuring.curves import (
    RECORDED,
    ROLES_OF_SLOTS,
    Curves,
    published_before_and_after,
    with_role,
)
from jitter_workshop.model.course import SLOTS, Chapter, Course, StepName
from jitter_workshop.model.diagnosis import SeenCauses, Suspect
from jitter_workshop.model.evidence import CAUSE_KINDS
from jitter_workshop.model.noise import NOISE_KINDS
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import HANDOFF, PERCENTILES, READY, HistogramSummary, Run, bare_run
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.text import ID, MOST_ENTRIES, NAME, REASON, WORD
from jitter_workshop.model.walk import PathEntry, RunCurve
from jitter_workshop.paths import assets
from jitter_workshop.report.cause_words import ANOTHER_TASK
from jitter_workshop.report.diagnosis_words import TASKS, TICK
from jitter_workshop.stats.curve import curve_from_percentiles
from jitter_workshop.stats.figures import KnownRun, counts_alone, figure_with_id

FILE = "recorded-runs.json"
FIGURES = ("min", "mean", "max", *(f"p{name}" for name in PERCENTILES))
MOST_NS = 10**14
_MOST_SOURCE = 120
_MOST_COUNTS = 60
_MOST_FIRST = 20
_MOST_NAMED = 4
_MOST_S = 86_400
_SAME_LENGTH = 0.2
"""The share by which the length of a recorded run may differ from the length that the lesson names."""
_OF_EMULATED = {"label", "workload", "applied", "count", "noise", "duration_s", "counts", "seen"}
"""The keys of a run on an emulated machine. Such a run has no times."""
_KEYS = {*_OF_EMULATED, "transit_from", *FIGURES}
_TOTALS = ("stalls", "stalled_ns", "unknown_ns", "others")
_CAUSE = {"kind", "name", "count", "total_ns", "own_load"}
_COUNTED_KINDS = (*CAUSE_KINDS, TASKS, TICK)
"""The kinds of causes that a run can have if its evidence is counters and not a trace."""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """Hold the figures of one recorded run.

    - ``applied``: ids of the tunables that were applied during the run.
    - ``values``: name of the figure → value in ns, for the names in ``FIGURES``; {} for an emulated machine.
    - ``noise``: the kind of noise during the run; None for no noise, "" if the file does not name it.
    - ``duration_s``: the length of the run in s; 0 if the file does not give it.
    - ``counts``: id of a figure of ``stats.figures`` → value.
    - ``seen``: the causes in the run's trace, or in the counters of an emulated machine; None without either.
    - ``transit_from``: as in ``model.run.Run``.
    """

    label: str
    workload: str
    applied: frozenset[str]
    count: int
    values: dict[str, float]
    noise: str | None = ""
    duration_s: float = 0.0
    counts: dict[str, float] = field(default_factory=dict)
    seen: SeenCauses | None = None
    transit_from: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedChapter:
    """Hold a chapter's recorded runs by slot. ``source``: the date and the machine of the measurement. ``emulated``:
    True if this machine was emulated, so that the runs have only counts. ``first``: tunable id → its value in the first
    run, if this value differs from that of the chapter's recording."""

    source: str
    runs: dict[str, RecordedRun]
    line: int = 1
    emulated: bool = False
    first: dict[str, str] = field(default_factory=dict)

    def first_told(self) -> str:
        """Return a sentence on the settings of the first run, if they differ from those of the chapter's recording;
        else ""."""
        named = ", ".join(f"{ident} = {value}" for ident, value in self.first.items())
        return f"The first recorded run was made with {named}." if named else ""

    def known(self, slot: str) -> KnownRun | None:
        """Return the recorded run of a slot with its figures; None if there is no such run."""
        run = self.runs.get(slot)
        if run is None:
            return None
        return KnownRun(_as_run(run), recorded=_figures(run), emulated=self.emulated, seen=run.seen)


# -- the file ----------------------------------------------------------------------------------------------------------


def read_recorded(folder: Path, problems: Problems) -> dict[str, RecordedChapter]:
    """Return chapter id → recorded runs, from the file in ``folder``; {} if there is none. Mistakes are added to
    ``problems``, and entries with a mistake are left out."""
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
        problems.add(FILE, getattr(error, "lineno", 1), f"the runs cannot be read: {str(error)[:REASON]}")
        return {}
    found: dict[str, RecordedChapter] = {}
    for ident, entry in chapters.items():
        line = source.text.count("\n", 0, max(source.text.find(f'"{ident}"'), 0)) + 1
        try:
            found[ident] = _chapter(entry, line)
        except ValueError as error:
            problems.add(FILE, line, f"{str(ident)[:ID]!r}: {error}")
    return found


def misfit(chapter: Chapter, slot: str, run: RecordedRun) -> str:
    """Return the reason why a recorded run does not fit a chapter's slot, or "". The run must measure what the lesson
    measures in this slot, with the same settings and noise. A run whose noise is not known fits any noise."""
    asked = chapter.measurement(slot)
    if asked is None:
        return f"the chapter has nothing to measure in {slot!r}"
    if (run.label, run.workload) != (asked.label, asked.workload):
        return f"the run in {slot!r} must be '{asked.label}' of {asked.workload}, not '{run.label}' of {run.workload}"
    if run.noise != "" and run.noise != asked.noise:
        return f"the run in {slot!r} must have the noise {asked.noise or 'none'}, not {run.noise or 'none'}"
    ids = _tunables(chapter)
    if slot == "again" and ids and not ids & run.applied:
        return f"the run in {slot!r} was made without the chapter's tunables"
    strange = sorted(run.applied - (ids if slot == "again" else frozenset()))
    return f"the run in {slot!r} was made with {', '.join(strange[:MOST_ENTRIES])} applied" if strange else ""


def runs_without_chapter(
    chapters: Mapping[str, Chapter], recorded: Mapping[str, RecordedChapter]
) -> list[tuple[int, str]]:
    """Return (line, sentence) for each recorded run that no chapter shows, and for each value of a first run that its
    chapter does not set."""
    found: list[tuple[int, str]] = []
    for ident, entry in recorded.items():
        chapter = chapters.get(ident)
        if chapter is None:
            found.append((entry.line, f"there is no chapter {ident[:ID]!r} in this course"))
            continue
        found += [
            (entry.line, f"{ident!r}: {why}") for s, run in entry.runs.items() if (why := misfit(chapter, s, run))
        ]
        if strange := sorted(entry.first.keys() - _tunables(chapter)):
            named = ", ".join(strange[:_MOST_NAMED])
            found.append((entry.line, f'{ident!r}: "first" has {named}, which the chapter does not set'))
    return found


def _tunables(chapter: Chapter) -> set[str]:
    """Return the ids of the tunables that a chapter sets."""
    return {word.partition("=")[0] for word in chapter.tunables}


def _chapter(entry: Any, line: int) -> RecordedChapter:
    _expect(isinstance(entry, dict), "the chapter's entry must be an object")
    source, emulated = _text(entry.get("source"), "source", _MOST_SOURCE), entry.get("emulated", False)
    _expect(isinstance(emulated, bool), '"emulated" must be true or false')
    runs = entry.get("runs")
    _expect(
        isinstance(runs, dict) and set(runs) <= set(SLOTS) and "measure" in runs,
        '"runs" must have "measure" and may have "again"',
    )
    read = _emulated_run if emulated else _timed_run
    found: dict[str, RecordedRun] = {slot: read(slot, runs[slot], source) for slot in SLOTS if slot in runs}
    first = entry.get("first", {})
    _expect(isinstance(first, dict) and len(first) <= _MOST_FIRST, '"first" must be an object of tunables')
    settings = {_text(ident, "first", ID): _text(value, f"first: {ident}", ID) for ident, value in first.items()}
    return RecordedChapter(source, found, line, emulated, settings)


def _timed_run(slot: str, entry: Any, source: str) -> RecordedRun:
    """Return a run that was recorded on a real machine, so that its times are valid."""
    run = _run(slot, entry)
    values = {name: entry[name] for name in FIGURES if entry.get(name) is not None}
    for name, value in values.items():
        _expect(_is_number(value), f"{slot}: {name} must be a time in ns")
    _expect({"min", "max", "p50"} <= values.keys(), f'{slot}: "min", "p50" and "max" are needed')
    rising = [values[name] for name in FIGURES if name in values and name.startswith("p")]
    _expect(rising == sorted(rising) and values["min"] <= rising[0], f"{slot}: the percentiles must rise or stay equal")
    begins = entry.get("transit_from")
    _expect(begins is None or (begins == READY and run.workload == "ring"), f'{slot}: unknown "transit_from"')
    seen = _seen(slot, entry["seen"], source) if "seen" in entry else None
    seen = dataclasses.replace(seen, seconds=run.duration_s) if seen is not None else None
    return dataclasses.replace(run, values=values, seen=seen, transit_from=begins)


def _emulated_run(slot: str, entry: Any, source: str) -> RecordedRun:
    """Return a run that was recorded on an emulated machine, with counts and without times."""
    run = _run(slot, entry)
    timed = [*(set(entry) - _OF_EMULATED), *(name for name in run.counts if not counts_alone(figure_with_id(name)))]
    _expect(not timed, f"{slot}: runs of an emulated machine must not have times: {', '.join(sorted(timed))[:NAME]}")
    _expect(bool(run.counts), f'{slot}: "counts" is missing or empty')
    seen = _counted(slot, entry["seen"], source) if "seen" in entry else None
    return dataclasses.replace(run, seen=seen)


def _run(slot: str, entry: Any) -> RecordedRun:
    """Return a run with the fields that each recorded run has: the way it was made, and its counts."""
    _expect(isinstance(entry, dict), f"{slot} must be an object")
    applied = entry.get("applied", [])
    _expect(
        isinstance(applied, list) and all(isinstance(a, dict) and isinstance(a.get("id"), str) for a in applied),
        f'{slot}: "applied" must be a list of {{"id": …, "value": …}}',
    )
    count = _whole(entry.get("count"), f"{slot}: count", 1)
    noise, duration_s = entry.get("noise", ""), entry.get("duration_s", 0.0)
    _expect(noise in ("", None, *NOISE_KINDS) if isinstance(noise, str | None) else False, f"{slot}: unknown noise")
    _expect(_is_number(duration_s) and duration_s <= _MOST_S, f'{slot}: "duration_s" must be a number of seconds')
    strange = set(entry) - _KEYS
    _expect(not strange, f"{slot}: unknown key {', '.join(sorted(map(repr, strange)))[:NAME]}")
    return RecordedRun(
        _text(entry.get("label"), f"{slot}: label", ID),
        _text(entry.get("workload"), f"{slot}: workload", WORD),
        frozenset(one["id"] for one in applied),
        count,
        {},
        noise,
        float(duration_s),
        _counts(slot, entry.get("counts", {})),
    )


def _counts(slot: str, counts: Any) -> dict[str, float]:
    _expect(isinstance(counts, dict) and len(counts) <= _MOST_COUNTS, f'{slot}: "counts" must be an object of figures')
    for name, value in counts.items():
        try:
            figure_with_id(name)
        except KeyError:
            raise ValueError(f'{slot}: "counts" has the unknown figure {name[:ID]!r}') from None
        _expect(_is_number(value), f'{slot}: "counts": {name[:ID]} must be a number of at least 0')
    return {name: float(value) for name, value in counts.items()}


def _seen(slot: str, entry: Any, source: str) -> SeenCauses:
    _must_have(f'{slot}: "seen"', entry, {"causes", *_TOTALS})
    stalls, stalled_ns, unknown_ns, others = (_whole(entry[name], f'{slot}: "seen": {name}') for name in _TOTALS)
    found = _listed(slot, [_cause(f'{slot}: "seen"', one, stalls) for one in _causes(slot, entry)])
    known = sum(one.total_ns or 0 for one in found) + unknown_ns
    _expect(known <= stalled_ns, f'{slot}: "seen": the causes took more time than all stalls')
    run = f"{RECORDED}-{slot}"
    return SeenCauses(run, "trace", found, stalls, stalled_ns, unknown_ns, others, recorded=source)


def _counted(slot: str, entry: Any, source: str) -> SeenCauses:
    _must_have(f'{slot}: "seen"', entry, {"causes", "others"})
    others = _whole(entry["others"], f'{slot}: "seen": others')
    found = _listed(slot, [_counted_cause(f'{slot}: "seen"', one) for one in _causes(slot, entry)])
    return SeenCauses(f"{RECORDED}-emulated-{slot}", "emulated", found, 0, 0, 0, others, recorded=source)


def _causes(slot: str, entry: dict[str, Any]) -> list[Any]:
    causes = entry["causes"]
    _expect(isinstance(causes, list) and len(causes) <= MOST, f'{slot}: "seen" can have at most {MOST} causes')
    return list(causes)


def _listed(slot: str, found: list[Suspect]) -> tuple[Suspect, ...]:
    """Return the causes in the alphabetical order of their labels. The tasks without a name come last."""
    _expect(len({one.id for one in found}) == len(found), f'{slot}: "seen" has a cause twice')
    return tuple(sorted(found, key=lambda one: (one.name == ANOTHER_TASK, one.label.casefold(), one.id)))


def _cause(where: str, entry: Any, stalls: int) -> Suspect:
    kind, name, own = _named(where, entry, _CAUSE, CAUSE_KINDS)
    count = _whole(entry["count"], f"{where}: count")
    _expect(count <= stalls, f"{where}: a cause was in more stalls than there were")
    return suspect(kind, name, count, _whole(entry["total_ns"], f"{where}: total_ns"), own)


def _counted_cause(where: str, entry: Any) -> Suspect:
    kind, name, own = _named(where, entry, _CAUSE - {"total_ns"}, _COUNTED_KINDS)
    return dataclasses.replace(
        cause_from_counters(kind, name, _whole(entry["count"], f"{where}: count", 1)), own_load=own
    )


def _named(where: str, entry: Any, keys: set[str], kinds: tuple[str, ...]) -> tuple[str, str, bool]:
    """Return three fields of a cause: kind, name, and True for the chapter's own load."""
    _must_have(f"{where}: a cause", entry, keys)
    kind, name, own = entry["kind"], entry["name"], entry["own_load"]
    _expect(isinstance(kind, str) and kind in kinds, f"{where}: unknown kind of cause")
    named = isinstance(name, str) and len(name) <= NAME and name.isprintable()
    _expect(named, f'{where}: "name" must be printable text of at most {NAME} characters')
    of_tasks = kind in ("task", TASKS)
    _expect(isinstance(own, bool) and (not own or of_tasks), f'{where}: "own_load" can be true only for a task')
    return kind, name, own


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= MOST_NS


def _whole(value: Any, what: str, least: int = 0) -> int:
    _expect(type(value) is int and least <= value <= MOST_NS, f"{what} must be a whole number of at least {least}")
    return int(value)


def _text(value: Any, what: str, most: int) -> str:
    good = isinstance(value, str) and 0 < len(value) <= most and value.isprintable()
    _expect(good, f"{what} must be printable text of at most {most} characters")
    return str(value)


def _must_have(what: str, entry: Any, keys: set[str]) -> None:
    _expect(isinstance(entry, dict) and set(entry) == keys, f"{what} must have exactly {', '.join(sorted(keys))}")


def _expect(good: bool, message: str) -> None:
    if not good:
        raise ValueError(message)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


# -- a chapter's runs --------------------------------------------------------------------------------------------------


def recorded_chapter(chapter: Chapter, course_dir: str = "", course_id: str = BUILTIN_ID) -> RecordedChapter | None:
    """Return a chapter's runs that were recorded on another machine; None without a first run. First read the file in
    the course's folder. For the built-in course, also read the file among the assets. Runs that do not fit the chapter
    are left out, and so are values of tunables that the chapter does not set.
    """
    builtin = course_id == BUILTIN_ID
    for place in (*([Path(course_dir)] if course_dir else []), *([assets()] if builtin else [])):
        entry = _read(place, _stamp(place / FILE)).get(chapter.id)
        runs = {s: r for s, r in entry.runs.items() if not misfit(chapter, s, r)} if entry is not None else {}
        if entry is not None and "measure" in runs:
            first = {ident: value for ident, value in entry.first.items() if ident in _tunables(chapter)}
            return dataclasses.replace(entry, runs=runs, first=first)
    return None


@lru_cache(maxsize=4)
def _read(folder: Path, stamp: tuple[int, int]) -> dict[str, RecordedChapter]:
    del stamp
    return read_recorded(folder, Problems())


def _stamp(path: Path) -> tuple[int, int]:
    """Return a file's time of change in ns and its size in bytes. Return (0, 0) if the file cannot be read. A screen
    asks for the runs at each redraw. So the file is read again only when this pair has changed.
    """
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def recorded_runs(chapter: Chapter, course_dir: str = "", course_id: str = BUILTIN_ID) -> Curves:
    """Return the curves of a chapter's first and second run on another machine. If the built-in course has no recorded
    times for the chapter, return published curves."""
    entry = recorded_chapter(chapter, course_dir, course_id)
    if entry is not None and not entry.emulated:
        shown = tuple(
            with_role(_curve(f"recorded-{chapter.id}-{slot}", run), ROLES_OF_SLOTS.get(slot))
            for slot, run in entry.runs.items()
        )
        return shown, "; ".join(filter(None, [entry.source, _other_length(chapter, entry)]))
    return published_before_and_after(chapter.id) if course_id == BUILTIN_ID else ((), "")


def with_only_read(
    path: Sequence[PathEntry], course: Course, progress: Callable[[str], ChapterProgress]
) -> tuple[PathEntry, ...]:
    """Return the chapters of a path; those that the learner has only read are marked (``PathEntry.only_read``).
    ``progress``: the function that returns a chapter's progress by its id."""

    def only_read(one: PathEntry) -> bool:
        chapter = course.chapter(one.chapter_id)
        if not (one.done and one.rehearsed and one.measures) or chapter is None or progress(chapter.id).runs:
            return False
        place = (chapter, course.source, course.id)
        return recorded_chapter(*place) is None and not recorded_runs(*place)[0]

    return tuple(dataclasses.replace(one, only_read=only_read(one)) for one in path)


def _other_length(chapter: Chapter, entry: RecordedChapter) -> str:
    """Return a clause that names the length of the recorded runs if the lesson measures longer or shorter; else ""."""
    for slot, run in entry.runs.items():
        asked = chapter.measurement(slot)
        wanted_s = asked.length_s if asked is not None else 0.0
        if run.duration_s and wanted_s and abs(run.duration_s / wanted_s - 1) > _SAME_LENGTH:
            return f"each run took {run.duration_s:.0f} s, and this chapter measures {wanted_s:.0f} s"
    return ""


def recorded_in(step: StepName, chapter: Chapter, course_dir: str, course_id: str) -> Curves:
    """Return the recorded curves that a step shows, and their source."""
    if step not in ("measure", "again", "compare"):
        return (), ""
    curves, source = recorded_runs(chapter, course_dir, course_id)
    if step == "measure":
        return curves[:1], source
    lacking = len(curves) == 1 and chapter.measurement("again") is not None
    return curves, f"{source}; no run after the change was recorded" if lacking else source


def _curve(key: str, run: RecordedRun) -> RunCurve:
    origin = f"{RECORDED}, {HANDOFF}" if _as_run(run).by_handoff else RECORDED
    return RunCurve(key, run.label, curve_from_percentiles(run.label, run.values, run.count, origin), None)


def _figures(run: RecordedRun) -> dict[str, float]:
    """Return all figures of a run by the ids of ``stats.figures``."""
    times = {name.removeprefix("p"): value for name, value in run.values.items() if name in _BY_ID}
    return {**times, **{figure_with_id(name).id: value for name, value in run.counts.items()}}


_BY_ID = ("max", *(f"p{name}" for name in PERCENTILES))


def _as_run(run: RecordedRun) -> Run:
    """Return a run object that has the figures of a recorded run, and no other figures."""
    main = KINDS[run.workload].histogram if run.workload in KINDS else ""
    return bare_run(
        **picked(run, "label", "workload", "duration_s", "transit_from"),
        noise=run.noise or None,
        histograms={main: _summary(run)} if run.values else {},
        applied=tuple({"id": ident} for ident in sorted(run.applied)),
    )


def _summary(run: RecordedRun) -> HistogramSummary:
    whole = {name: round(value) for name, value in run.values.items() if name != "mean"}
    percentiles = {name: whole.get(f"p{name}") for name in PERCENTILES}
    return HistogramSummary("ns", run.count, whole["min"], whole["max"], run.values.get("mean"), percentiles)
