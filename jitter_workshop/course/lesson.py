"""Turns one chapter's ``lesson.toml`` and ``lesson.md`` into a :class:`~jitter_workshop.model.course.Chapter`."""

from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import cast

from jitter_workshop.course.files import read_source
from jitter_workshop.course.pages import read_pages
from jitter_workshop.course.problems import Problems, nearest
from jitter_workshop.course.table import Table, parse_table
from jitter_workshop.model.course import (
    FORMAT_VERSION,
    LOOK_TOPICS,
    NOISE_KINDS,
    PLACEHOLDERS,
    STEPS,
    Answer,
    ByHand,
    Chapter,
    Check,
    Measurement,
    PredictionTask,
    StepName,
)
from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.spec import PRESETS, WorkloadName

ID_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,39}")
SLOTS = ("measure", "again")
PLACEMENTS = ("none", "auto")
CHANGES = ("nothing", "placement", "tunables")
WORKLOADS: tuple[str, ...] = typing.get_args(WorkloadName)

_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")


def read_lesson(base: Path, folder: str, problems: Problems) -> Chapter | None:
    """The chapter in ``base/folder``; None when mistakes (noted in ``problems``) leave nothing usable."""
    before = len(problems.found)
    source = read_source(base, f"{folder}/lesson.toml", problems)
    text = read_source(base, f"{folder}/lesson.md", problems)
    table = parse_table(source, problems) if source else None
    pages, page_lines = read_pages(text, problems) if text else ({}, {})
    if table is None:
        return None
    chapter = _chapter(table, pages)
    table.finish()
    if text is not None:
        for step in chapter.steps:
            if not pages.get(step):
                problems.add(text.file, page_lines.get(step, 1), f"the page for {step!r} is missing or empty")
        for page, line in page_lines.items():
            if page not in chapter.steps:
                problems.add(text.file, line, f"a page for {page!r}, which is not among the chapter's steps")
    return chapter if len(problems.found) == before else None


def check_version(table: Table) -> None:
    """Files of a newer format are refused, not guessed at."""
    version = table.integer("format_version", 1, 1_000_000)
    if version is not None and version != FORMAT_VERSION:
        table.wrong("format_version", f"format_version {version}; this workshop reads {FORMAT_VERSION}")


def _chapter(table: Table, pages: dict[str, str]) -> Chapter:
    check_version(table)
    ident = read_id(table)
    title = table.text("title", limit=40)
    summary = table.text("summary", limit=160)
    minutes = table.integer("minutes", 1, 600)
    hot_cpus = table.integer("hot_cpus", 1, 64)
    changes = table.choice("changes", CHANGES)
    steps = tuple(cast(StepName, s) for s in table.choices("steps", STEPS))
    if list(steps) != sorted(steps, key=STEPS.index):
        table.wrong("steps", f"steps must keep the order of the loop: {', '.join(STEPS)}")
    if table.data.get("steps") == []:
        table.wrong("steps", "steps is empty")
    measurements = _measurements(table, steps)
    return Chapter(
        id=ident,
        title=title,
        summary=summary,
        minutes=minutes or 1,
        hot_cpus=hot_cpus or 1,
        changes=cast(typing.Literal["nothing", "placement", "tunables"], changes or "nothing"),
        steps=steps,
        pages=pages,
        measurements=measurements,
        prediction=_prediction(table, steps, measurements),
        hints=table.texts("hints", most=8),
        by_hand=_by_hand(table),
        checks=_checks(table, measurements),
        look=table.choices("look", LOOK_TOPICS, required=False),
        learnt=table.texts("learnt", most=8),
    )


def read_id(table: Table) -> str:
    """The ``id`` of a course or chapter: what is typed after ``--chapter``."""
    ident = table.text("id", limit=40)
    if ident and not ID_PATTERN.fullmatch(ident):
        table.wrong("id", "an id begins with a letter and holds small letters, digits and hyphens")
    return ident


def _measurements(table: Table, steps: tuple[StepName, ...]) -> tuple[Measurement, ...]:
    found: list[Measurement] = []
    for inner in table.tables("measurement", most=len(SLOTS)):
        slot = inner.choice("slot", SLOTS)
        label = inner.text("label", limit=40)
        workload = inner.choice("workload", WORKLOADS)
        placement = inner.choice("placement", PLACEMENTS)
        preset = inner.choice("preset", PRESETS)
        noise = inner.choice("noise", NOISE_KINDS, required=False)
        inner.finish()
        if slot in [m.slot for m in found]:
            inner.wrong("slot", f"a second measurement for {slot!r}")
        elif slot and slot not in steps:
            inner.wrong("slot", f"a measurement for {slot!r}, which is not among the chapter's steps")
        elif slot and workload and placement and preset:
            found.append(Measurement(slot, label, workload, placement, preset, noise))
    if len(found) == len(table.data.get("measurement", [])):
        for slot in SLOTS:
            if slot in steps and slot not in [m.slot for m in found]:
                table.wrong("steps", f"the step {slot!r} has no [[measurement]]")
    return tuple(found)


def _prediction(
    table: Table, steps: tuple[StepName, ...], measurements: tuple[Measurement, ...]
) -> PredictionTask | None:
    inner = table.table("prediction")
    if inner is None:
        if "predict" in steps:
            table.wrong("steps", "the step 'predict' has no [prediction]")
        return None
    kind = inner.choice("kind", ("mark", "choice"))
    question = inner.text("question", limit=300)
    slot = inner.choice("slot", SLOTS)
    percentile = inner.choice("percentile", PERCENTILES, required=kind == "mark")
    answers = _answers(inner, kind or "choice")
    inner.finish()
    if slot and slot not in [m.slot for m in measurements]:
        inner.wrong("slot", f"the prediction is about {slot!r}, which is not measured")
    if kind is None or slot is None:
        return None
    return PredictionTask(
        kind=cast(typing.Literal["mark", "choice"], kind),
        question=question,
        slot=cast(StepName, slot),
        answers=answers,
        percentile=percentile,
    )


def _answers(prediction: Table, kind: str) -> tuple[Answer, ...]:
    tables = prediction.tables("answer", most=9)
    answers: list[Answer] = []
    for inner in tables:
        ident = read_id(inner)
        if ident and ident in [a.id for a in answers]:
            inner.wrong("id", f"a second answer with the id {ident!r}")
        text = inner.text("text", limit=200)
        explanation = inner.text("explanation", limit=1200)
        right = inner.boolean("right")
        up_to = inner.integer("up_to_ns", 1, 60_000_000_000, required=False)
        if kind == "choice" and up_to is not None:
            inner.wrong("up_to_ns", "up_to_ns belongs to a prediction of the kind 'mark'")
        inner.finish()
        answers.append(Answer(ident, text, explanation, right, up_to))
    if not tables:
        prediction.wrong(None, "a prediction needs at least one [[prediction.answer]]")
    elif kind == "mark":
        bounds = [a.up_to_ns for a in answers]
        limits = [b for b in bounds if b is not None]
        if bounds[-1] is not None or None in bounds[:-1] or limits != sorted(set(limits)):
            prediction.wrong("answer", "answers to a mark need growing up_to_ns, and the last one none")
    elif len(tables) < 2:
        prediction.wrong("answer", "a choice needs at least two answers")
    return tuple(answers)


def _by_hand(table: Table) -> tuple[ByHand, ...]:
    found: list[ByHand] = []
    for inner in table.tables("by_hand"):
        command = inner.text("command", limit=300)
        why = inner.text("why", limit=500)
        if "\n" in command:
            inner.wrong("command", "a command is one line")
        for key, text in (("command", command), ("why", why)):
            for name in _PLACEHOLDER.findall(text):
                if name not in PLACEHOLDERS:
                    inner.wrong(key, f"unknown placeholder {{{name}}}{nearest(name[:40], PLACEHOLDERS)}")
        inner.finish()
        found.append(ByHand(command, why))
    return tuple(found)


def _checks(table: Table, measurements: tuple[Measurement, ...]) -> tuple[Check, ...]:
    found: list[Check] = []
    for inner in table.tables("check"):
        mark = inner.choice("mark", ("curve", "setting"))
        slot = inner.choice("slot", SLOTS)
        placement = inner.choice("placement", PLACEMENTS, required=False)
        inner.finish()
        if slot and slot not in [m.slot for m in measurements]:
            inner.wrong("slot", f"a check of {slot!r}, which is not measured")
        if mark and slot:
            found.append(Check(cast(typing.Literal["curve", "setting"], mark), cast(StepName, slot), placement))
    return tuple(found)
