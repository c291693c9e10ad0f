"""Turn one chapter's ``lesson.toml`` and ``lesson.md`` into a :class:`~jitter_workshop.model.course.Chapter`.

The Markdown is cut into pages, one for each step. Markup that does more than show text (HTML, pictures) is refused.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from jitter_workshop.course.files import Problems, SourceText, nearest, read_source
from jitter_workshop.course.table import TomlTable, parse_table
from jitter_workshop.model.course import (
    BOUNDED,
    CHECK_FORMS,
    EVIDENCE,
    FORMAT_VERSION,
    LOOK_TOPICS,
    OF_A_FIGURE,
    PARTS,
    PLACEHOLDERS,
    SLOTS,
    WRITTEN_STEPS,
    Answer,
    By,
    Chapter,
    Check,
    CommandByHand,
    Company,
    DiagnosisAsks,
    GuessTask,
    HostState,
    MaskTask,
    Measurement,
    PageWhen,
    RecallQuestion,
    Shows,
    StepName,
    touches_before,
)
from jitter_workshop.model.noise import HIDEABLE, NOISE_KINDS
from jitter_workshop.model.picture import MOST_CPUS, is_picture, mask, parse_picture
from jitter_workshop.model.run import PERCENTILES
from jitter_workshop.model.spec import (
    DUTIES,
    LOCK_PRIORITY,
    LOCKS,
    MEMORY_OF,
    PRESETS,
    LockUse,
    MemoryUse,
    Pacing,
    WorkloadName,
)
from jitter_workshop.model.text import ID, NAME, PATH, SENTENCE, LineKind, split_code
from jitter_workshop.stats.figures import FIGURES, counts_alone, figure_with_id

ID_PATTERN = re.compile(r"[a-z][a-z0-9-]{0,39}")
PLACEMENTS = ("none", "auto")
WITHOUT = "none"
"""The word for a measurement without a noise, in a chapter that has company."""
CHANGES = ("nothing", "placement", "tunables")
DURATIONS_S = (0.5, 60.0)
EFFECTS = (1.1, 1000.0)
"""The least and the largest factor by which a chapter can say that its figure changes."""
MOST_SETTLE_S = 60.0
AT_MOST = (0.0, 60e9)
"""The least and the largest value of ``at_most`` in a check. The value has the unit of the check's figure."""
LIMITS = {"factor": (1.0, EFFECTS[1]), "ratio": (0.001, EFFECTS[1]), "value": (0.001, 60e9)}
"""Key that decides the guess → the least and the largest ``up_to`` of an answer. A value is in its figure's
unit."""
WORKLOADS: tuple[str, ...] = typing.get_args(WorkloadName)
HOST_STATES: tuple[str, ...] = typing.get_args(HostState)

_RECORDING = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_SCHED = re.compile(r"other|fifo:([1-9]|[1-4][0-9])")

_SET_AS_A_NUMBER = re.compile(r"""["']\{cpus\}["']|==\s*\{cpus\}""")
"""A pattern for the places where a command compares CPUs with one number: in quotes, or after ``==``."""
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
# The largest numbers of characters of a lesson's texts, one for each kind of text.
_POLICY = 10
"""The largest length of a scheduling policy with its priority."""
_TITLE = 40
"""The largest length of a chapter's title."""
_SHOWN = 100
"""The largest length of the words that show a chapter's company."""
_SUMMARY = 160
"""The largest length of a chapter's summary."""
_RECALL_ANSWER = 160
"""The largest length of an answer to a recall question."""
_NOTE = 200
"""The largest length of a reason why something is not shown or not checked, and of the CPUs of a mask."""
_ANSWER = 200
"""The largest length of an answer to the question of a guess."""
_QUESTION = 300
"""The largest length of a question."""
_WHY = 500
"""The largest length of the reason for a command by hand."""
_EXPLANATION = 1_200
"""The largest length of an explanation of an answer, and of a text that a page has under a condition."""

_PLACEHOLDER = re.compile(r"(?<!\$)\{([a-z_]+)\}")


def read_lesson(base: Path, folder: str, problems: Problems, known: Sequence[str] = ()) -> Chapter | None:
    """Return the chapter in the folder ``base/folder``; None if the chapter has a mistake. Add each mistake to
    ``problems``. ``known``: the ids of all tunables; () skips the check of ids.
    """
    before = len(problems.found)
    source = read_source(base, f"{folder}/lesson.toml", problems)
    text = read_source(base, f"{folder}/lesson.md", problems)
    table = parse_table(source, problems) if source else None
    pages, page_lines = read_pages(text, problems, base / folder) if text else ({}, {})
    if table is None:
        return None
    chapter = _chapter(table, pages, base / folder, known)
    table.finish()
    if text is not None:
        for step in chapter.steps:
            if not pages.get(step):
                problems.add(text.file, page_lines.get(step, 1), f"the page for {step!r} is missing or empty")
            elif step == "diagnose" and all(kind != "code" for _, kind in split_code(pages[step].splitlines())):
                said = "the page for 'diagnose' has no example: show a listing in fenced code, and explain it"
                problems.add(text.file, page_lines[step], said)
        for page, line in page_lines.items():
            if page not in chapter.steps:
                problems.add(text.file, line, f"this page is for {page!r}, which is not a step of this chapter")
    return plan_in_apply(chapter) if len(problems.found) == before else None


def plan_in_apply(chapter: Chapter) -> Chapter:
    """Return the chapter without the step ``plan``, which only older lessons have. The text of this step's page is put
    at the beginning of the page of ``apply``.
    """
    if "plan" not in chapter.steps:
        return chapter
    named: tuple[StepName, ...] = tuple("apply" if step == "plan" else step for step in chapter.steps)
    both = "\n\n".join(chapter.pages[step] for step in ("plan", "apply") if step in chapter.pages)
    return dataclasses.replace(
        chapter,
        steps=tuple(dict.fromkeys(named)),
        pages={**{step: page for step, page in chapter.pages.items() if step != "plan"}, "apply": both},
        page_when=tuple(
            dataclasses.replace(one, step="apply") if one.step == "plan" else one for one in chapter.page_when
        ),
    )


def check_version(table: TomlTable) -> None:
    """Add a mistake to the table's problems if the file has another format version than this program reads."""
    version = table.integer("format_version", 1, 1_000_000)
    if version is not None and version != FORMAT_VERSION:
        table.wrong("format_version", f"format_version is {version}, but this workshop reads only {FORMAT_VERSION}")


def _chapter(table: TomlTable, pages: dict[str, str], folder: Path, known: Sequence[str]) -> Chapter:
    check_version(table)
    ident = read_id(table)
    title = table.text("title", limit=_TITLE)
    summary = table.text("summary", limit=_SUMMARY)
    minutes = table.integer("minutes", 1, 600)
    hot_cpus = table.integer("hot_cpus", 1, 64)
    changes = table.choice("changes", CHANGES)
    steps = tuple(cast(StepName, s) for s in table.choices("steps", WRITTEN_STEPS))
    if list(steps) != sorted(steps, key=WRITTEN_STEPS.index):
        table.wrong("steps", f"steps must be in this order: {', '.join(WRITTEN_STEPS)}")
    if table.data.get("steps") == []:
        table.wrong("steps", "steps is empty")
    if "diagnose" in steps and "measure" not in steps:
        table.wrong("steps", "the step 'diagnose' asks about a run, but the step 'measure' is missing")
    company = _company(table)
    without_company = table.text("without_company", limit=_NOTE, required=False)
    if without_company and "company" in table.data:
        table.wrong("without_company", "this chapter has a [company], so remove the reason for having none")
    measurements = _measurements(table, steps, company)
    tunables = _tunables(table, changes, known)
    recordings = [_recording(table, key) for key in ("recording", "recording_after")]
    treats = table.texts("treats", limit=ID, most=40)
    _check_ids(table, "treats", treats, treats, "not the id of a tunable", known)
    program = bool(table.boolean("program"))
    if program and (measurements or not {"measure", "compare"} <= set(steps) or changes != "nothing"):
        table.wrong(
            "program",
            "a chapter on a program needs the steps 'measure' and 'compare', and no [[measurement]] or change",
        )
    hunt = bool(table.boolean("hunt"))
    if hunt and "again" not in steps:
        table.wrong("hunt", "a hunt needs the step 'again', which measures while the hidden noise runs")
    suspects = table.texts("suspects", limit=ID, most=20)
    for word in suspects:
        if word not in HIDEABLE:
            table.wrong_word("suspects", word, f"a hunt cannot hide {word!r}; it can hide only {', '.join(HIDEABLE)}")
    if suspects and (not hunt or len(suspects) < 2):
        table.wrong("suspects", "'suspects' lists the noises of a hunt: name at least two, and set hunt = true")
    if tunables and not all(recordings):
        table.wrong("tunables", "a chapter with tunables needs the keys 'recording' and 'recording_after'")
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
        by_hand=_by_hand(table, known),
        checks=_checks(table, measurements, tunables, known),
        evidence=table.choices("evidence", EVIDENCE, required=False),
        tunables=tunables,
        recording=recordings[0],
        recording_after=recordings[1],
        reboot=bool(table.boolean("reboot")),
        page_when=_page_when(table, steps, folder),
        treats=treats,
        hunt=hunt,
        suspects=suspects,
        look=table.choices("look", LOOK_TOPICS, required=False),
        learnt=table.texts("learnt", most=8),
        shows=_shows(table, steps),
        recall=_recall(table),
        company=company or _shared(measurements),
        mask=_mask(table, steps),
        program=program,
        without_company=without_company,
        asks=_asks(table, steps, changes != "nothing" or _differ(measurements)),
    )


def read_id(table: TomlTable) -> str:
    """Return the ``id`` of a course or chapter, which users type after ``--chapter``."""
    ident = table.text("id", limit=ID)
    if ident and not ID_PATTERN.fullmatch(ident):
        table.wrong("id", "an id begins with a letter and has only small letters, digits and hyphens")
    return ident


def _company(table: TomlTable) -> Company | None:
    """Return the noise that the chapter makes during its runs, from the table [company]. Return None if there is no
    such table, or if its noise is invalid."""
    inner = table.table("company")
    if inner is None:
        return None
    kind = inner.choice("noise", NOISE_KINDS)
    shown = inner.text("shown", limit=_SHOWN)
    control = inner.text("control", limit=ID, required=False)
    fixed = inner.table("if_fixed")
    if_fixed = None
    if fixed is not None:
        other, told = fixed.choice("noise", NOISE_KINDS), fixed.text("shown", limit=_SHOWN)
        fixed.finish()
        if other and other == kind:
            fixed.wrong("noise", f"the noise {kind} is the chapter's first load already: name another noise")
        if_fixed = Company(other, told, control=control) if other else None
    inner.finish()
    own = [one.get("noise") for one in table.data.get("measurement", []) if isinstance(one, dict)]
    if kind and own and all(other is not None and other != kind for other in own):
        inner.wrong(
            "noise", f'the noise {kind} never runs: each [[measurement]] names a different noise, or "{WITHOUT}"'
        )
    if control and not any(one.get("slot") == "again" for one in table.data.get("measurement", [])):
        inner.wrong("control", "a control run follows the run of the step 'again', which this chapter does not measure")
    return Company(kind, shown, if_fixed, control=control) if kind else None


def _shared(measurements: tuple[Measurement, ...]) -> Company | None:
    """Return the noise of an older lesson that has no table [company]. Such a lesson names the noise in each
    measurement. Return None if the measurements name no noise, or different noises."""
    kinds = {one.noise for one in measurements}
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    return Company(kind) if kind else None


def _measurements(table: TomlTable, steps: tuple[StepName, ...], company: Company | None) -> tuple[Measurement, ...]:
    found: list[Measurement] = []
    for inner in table.tables("measurement", most=len(SLOTS)):
        slot = inner.choice("slot", SLOTS)
        label = inner.text("label", limit=ID)
        workload = inner.choice("workload", WORKLOADS)
        placement = inner.choice("placement", PLACEMENTS)
        preset = inner.choice("preset", PRESETS)
        noise = inner.choice("noise", (*NOISE_KINDS, WITHOUT), required=False)
        if noise is None and company is not None:
            noise = company.noise
        sched = inner.text("sched", limit=_POLICY, required=False)
        if sched and not _SCHED.fullmatch(sched):
            inner.wrong("sched", "sched must be 'other', or 'fifo:1' to 'fifo:49'")
        pacing = inner.choice("pacing", typing.get_args(Pacing), required=False)
        duration = inner.number("duration_s", *DURATIONS_S)
        duty = inner.integer("duty", 1, 100, required=False)
        if duty is not None and duty not in DUTIES:
            inner.wrong("duty", f"duty must be one of {', '.join(map(str, DUTIES))}")
        elif duty is not None and workload not in (None, "spin"):
            inner.wrong("duty", f"only the workload spin has a duty, not {workload}")
        memory = cast("MemoryUse | None", inner.choice("memory", tuple(MEMORY_OF), required=False))
        if memory is not None and workload not in (None, MEMORY_OF[memory]):
            inner.wrong("memory", f"only the workload {MEMORY_OF[memory]} has the memory {memory!r}, not {workload}")
        lock = cast("LockUse | None", inner.choice("lock", LOCKS, required=False))
        if lock is not None and workload not in (None, "wakeup"):
            inner.wrong("lock", f"only the workload wakeup takes a lock, not {workload}")
        if pacing is not None and workload not in (None, "ring"):
            inner.wrong("pacing", f"only the workload ring has a pacing, not {workload}")
        inner.finish()
        if slot in [m.slot for m in found]:
            inner.wrong("slot", f"{slot!r} has two measurements: remove one of them")
        elif slot and slot not in steps:
            inner.wrong("slot", f"this measurement is for {slot!r}, which is not a step of this chapter")
        elif slot and workload and placement and preset:
            priority = int(sched.partition(":")[2] or 0) if sched and _SCHED.fullmatch(sched) else 0
            if lock is not None and (priority < LOCK_PRIORITY or placement == "none"):
                inner.wrong("lock", f'a lock needs sched = "fifo:{LOCK_PRIORITY}" or more, and placement = "auto"')
            found.append(
                Measurement(
                    slot,
                    label,
                    workload,
                    placement,
                    preset,
                    None if noise == WITHOUT else noise,
                    priority,
                    pacing,
                    duration,
                    duty or 100,
                    memory or "none",
                    lock or "none",
                )
            )
    if len(found) == len(table.data.get("measurement", [])) and table.data.get("program") is not True:
        for slot in SLOTS:
            if slot in steps and slot not in [m.slot for m in found]:
                table.wrong("steps", f"the step {slot!r} has no [[measurement]]")
    return tuple(found)


def _prediction(
    table: TomlTable, steps: tuple[StepName, ...], measurements: tuple[Measurement, ...]
) -> GuessTask | None:
    inner = table.table("prediction")
    if inner is None:
        if "predict" in steps:
            table.wrong("steps", "the step 'predict' has no [prediction]")
        return None
    kind = inner.choice("kind", ("mark", "choice"))
    question = inner.text("question", limit=_QUESTION)
    slot = inner.choice("slot", SLOTS, required=kind == "mark")
    percentile = inner.choice("percentile", PERCENTILES, required=kind == "mark")
    by = inner.choice("by", typing.get_args(By), required=False)
    named = _figure(inner, required=by in OF_A_FIGURE)
    answers = _answers(inner, kind or "choice", by)
    inner.finish()
    if named is not None and by not in OF_A_FIGURE:
        inner.wrong("figure", f"only a prediction with by = {_either(OF_A_FIGURE)} can have 'figure'")
    if by == "value" and (kind != "choice" or slot is None):
        inner.wrong("by", "by = \"value\" needs a prediction of the kind 'choice' with a slot")
        return None
    if by == "program" and (slot is not None or table.data.get("program") is not True):
        inner.wrong("by", 'by = "program" needs a chapter with program = true, and a prediction without a slot')
        return None
    if by == "program" and (kind != "choice" or any(one.id not in PARTS for one in answers)):
        inner.wrong("answer", f'with by = "program" each answer has one of the ids {", ".join(PARTS)}')
        return None
    if by not in (None, "value", "program") and (kind != "choice" or slot != "again"):
        inner.wrong("by", f"by = \"{by}\" needs a prediction of the kind 'choice' with the slot 'again'")
        return None
    if slot and slot not in [m.slot for m in measurements]:
        inner.wrong("slot", f"the prediction is about {slot!r}, but no step measures this slot")
    if kind is None or (kind == "mark" and slot is None):
        return None
    if slot is None and by is None and not any(a.right for a in answers):
        inner.wrong("answer", "without a slot, one answer needs right = true")
    return GuessTask(
        kind=cast(typing.Literal["mark", "choice"], kind),
        question=question,
        slot=cast("StepName | None", slot),
        answers=answers,
        percentile=percentile,
        by=cast(By | None, by),
        figure=named,
    )


def _answers(prediction: TomlTable, kind: str, by: str | None) -> tuple[Answer, ...]:
    tables = prediction.tables("answer", most=9)
    answers: list[Answer] = []
    for inner in tables:
        ident = read_id(inner)
        if ident and ident in [a.id for a in answers]:
            inner.wrong("id", f"two answers have the id {ident!r}")
        text = inner.text("text", limit=_ANSWER)
        explanation = inner.text("explanation", limit=_EXPLANATION)
        right = inner.boolean("right")
        up_to = inner.integer("up_to_ns", 1, 60_000_000_000, required=False)
        if kind == "choice" and up_to is not None:
            inner.wrong("up_to_ns", "only a prediction of the kind 'mark' has up_to_ns")
        named = _figure(inner, required=False)
        bound = inner.number("up_to", *LIMITS.get(by or "", LIMITS["value"]))
        for key, value, wanted in (("figure", named, ("falls",)), ("up_to", bound, BOUNDED)):
            if value is not None and by not in wanted:
                inner.wrong(key, f"only a prediction with by = {_either(wanted)} can have '{key}'")
        inner.finish()
        answers.append(Answer(ident, text, explanation, right, up_to, named, bound))
    if not tables:
        prediction.wrong(None, "a prediction needs at least one [[prediction.answer]]")
    elif kind == "mark":
        if not _grow([a.up_to_ns for a in answers]):
            said = (
                "each answer needs a larger up_to_ns than the answer before, and the last answer must have no up_to_ns"
            )
            prediction.wrong("answer", said)
    elif len(tables) < 2:
        prediction.wrong("answer", "a choice needs at least two answers")
    elif by == "falls" and [a.figure for a in answers].count(None) != 1:
        prediction.wrong("answer", "exactly one answer must have no figure: this answer is right if no figure falls")
    elif by in BOUNDED and not _grow([a.up_to for a in answers]):
        said = "each answer needs a larger up_to than the answer before, and the last answer must have no up_to"
        prediction.wrong("answer", said)
    return tuple(answers)


def _either(words: Sequence[str]) -> str:
    """Return the words in quotes, joined by ``or``: ``"ratio" or "value"``."""
    return " or ".join(f'"{word}"' for word in words)


def _grow(bounds: Sequence[float | None]) -> bool:
    """Return True if the answers' upper bounds rise and only the last bound is missing."""
    limits = [bound for bound in bounds if bound is not None]
    return bounds[-1] is None and None not in bounds[:-1] and limits == sorted(set(limits))


def _recall(table: TomlTable) -> tuple[RecallQuestion, ...]:
    """Return the recall questions of this chapter, which later chapters ask."""
    found: list[RecallQuestion] = []
    for inner in table.tables("recall", most=6):
        before = len(table.problems.found)
        ident = read_id(inner)
        question = inner.text("question", limit=_QUESTION)
        answers = inner.texts("answers", limit=_RECALL_ANSWER)
        right = inner.integer("right", 1, 4)
        explanation = inner.text("explanation", limit=SENTENCE)
        inner.finish()
        if ident and ident in [one.id for one in found]:
            inner.wrong("id", f"two recall questions have the id {ident!r}")
        if not 3 <= len(answers) <= 4 or len(set(answers)) < len(answers):
            inner.wrong("answers", "a recall question has three or four different answers")
        elif right is not None and right > len(answers):
            inner.wrong("right", f"there is no answer {right}: the answers are counted from 1")
        if len(_SENTENCE_END.findall(explanation)) > 2:
            inner.wrong("explanation", "the explanation of a recall question has at most two sentences")
        if right is not None and len(table.problems.found) == before:
            found.append(RecallQuestion(ident, question, answers, right - 1, explanation))
    return tuple(found)


def _differ(measurements: Sequence[Measurement]) -> bool:
    """Return True if the runs differ in something that can end a cause: the priority, the lock, or that the program
    touched its memory before."""
    return len({(m.sched_priority, m.lock) for m in measurements}) > 1 or touches_before(measurements)


def _asks(table: TomlTable, steps: tuple[StepName, ...], changes: bool) -> DiagnosisAsks:
    """Return what the step ``diagnose`` asks, from the table [diagnosis]. Return ``most`` if there is no such table, or
    if it has a mistake. ``changes``: True if the chapter changes something that can end a cause."""
    inner = table.table("diagnosis")
    if inner is None:
        return "most"
    asks = inner.choice("asks", typing.get_args(DiagnosisAsks))
    inner.finish()
    if "diagnose" not in steps:
        inner.wrong("asks", "[diagnosis] is about the step 'diagnose', which is not a step of this chapter")
    elif asks == "ends" and not changes:
        inner.wrong("asks", 'this chapter changes nothing that could end a cause: ask for the cause that took "most"')
    return cast(DiagnosisAsks, asks or "most")


def _mask(table: TomlTable, steps: tuple[StepName, ...]) -> MaskTask | None:
    """Return the task to write a CPU mask, from the table [mask]. Return None if the table is missing or has a
    mistake."""
    inner = table.table("mask")
    if inner is None:
        return None
    cpus = inner.integer("cpus", 2, MOST_CPUS)
    out = inner.text("out", limit=_NOTE)
    explanation = inner.text("explanation", limit=SENTENCE, required=False)
    inner.finish()
    if not {"plan", "apply"} & set(steps):
        inner.wrong("cpus", "the learner writes a mask at the step 'apply', but this step is missing")
    if len(_SENTENCE_END.findall(explanation)) > 2:
        inner.wrong("explanation", "the explanation of a mask has at most two sentences")
    if cpus is None or not out:
        return None
    try:
        wanted = mask(cpus, out)
    except ValueError as error:
        inner.wrong("out", str(error))
        return None
    if len(wanted.out) in (0, cpus):
        inner.wrong("out", "'out' must take at least one CPU out of the mask, and leave at least one in it")
    return MaskTask(wanted, explanation)


def _by_hand(table: TomlTable, known: Sequence[str]) -> tuple[CommandByHand, ...]:
    found: list[CommandByHand] = []
    for inner in table.tables("by_hand"):
        command = inner.text("command", limit=PATH)
        why = inner.text("why", limit=_WHY)
        check = inner.text("check", limit=PATH, required=False)
        reads = bool(inner.boolean("reads"))
        unchecked = inner.text("unchecked", limit=_NOTE, required=False)
        if "\n" in command:
            inner.wrong("command", "a command must be on one line")
        for key, text in (("command", command), ("why", why), ("check", check)):
            for name in _PLACEHOLDER.findall(text):
                if name not in PLACEHOLDERS:
                    inner.wrong(key, f"unknown placeholder {{{name}}}{nearest(name, PLACEHOLDERS)}")
        if _SET_AS_A_NUMBER.search(command):
            inner.wrong("command", "this command needs one CPU, but {cpus} can be a list such as 2-3: use {cpu} here")
        if check and reads:
            inner.wrong("check", "a command that only reads changes nothing, so it cannot have a check")
        if unchecked and (check or reads):
            inner.wrong("unchecked", "this command has 'reads' or 'check', so it cannot have 'unchecked'")
        form, colon, what = check.partition(":")
        if colon and (form not in CHECK_FORMS or not what.strip()):
            forms = ", ".join(f"{one}:…" for one in CHECK_FORMS)
            inner.wrong("check", f"a check is the id of a tunable, or one of {forms}{nearest(form, CHECK_FORMS)}")
        elif form == "holds" and not all((*what.partition("="), *map(str.strip, what.splitlines()))):
            inner.wrong("check", "write holds:PATH=LINE, with the path of a file and a line that the file must have")
        elif form != "holds" and "\n" in check:
            inner.wrong("check", "only a check holds:PATH=LINE can have more than one line")
        ident = check.partition("=")[0]
        if check and not colon and known and ident not in known:
            inner.wrong("check", f"there is no tunable {ident!r}{nearest(ident, known)}")
        inner.finish()
        found.append(CommandByHand(command, why, check, reads, unchecked))
    return tuple(found)


def _checks(
    table: TomlTable, measurements: tuple[Measurement, ...], tunables: tuple[str, ...], known: Sequence[str]
) -> tuple[Check, ...]:
    found: list[Check] = []
    ids = [word.partition("=")[0] for word in tunables]
    # A misspelt tunable in the chapter's list is reported once; a check with the right spelling is no second mistake.
    mistyped = bool(known) and any(ident not in known for ident in ids)
    for inner in table.tables("check"):
        mark = inner.choice("mark", ("curve", "setting"))
        tunable = inner.text("tunable", limit=ID, required=False) or None
        slot = inner.choice("slot", SLOTS, required=tunable is None)
        placement = inner.choice("placement", PLACEMENTS, required=False)
        at_most = inner.number("at_most", *AT_MOST)
        named = _figure(inner, required=at_most is not None)
        inner.finish()
        if slot and slot not in [m.slot for m in measurements]:
            inner.wrong("slot", f"the check is for {slot!r}, but no step measures this slot")
        if named is not None and figure_with_id(named).traced:
            inner.wrong("figure", f"only a trace shows {named}, and no mark may need a trace: choose another figure")
        elif named is not None and ("at_most" not in inner.data or slot is None):
            inner.wrong("figure", "a check of a figure needs a slot and at_most")
        if tunable is not None and (mark != "setting" or slot):
            inner.wrong("tunable", "a check of a tunable must have the mark 'setting' and no slot")
        elif tunable is not None and tunable not in ids and not (mistyped and tunable in known):
            inner.wrong("tunable", f"{tunable!r} is not among the chapter's tunables{nearest(tunable, ids)}")
        elif mark and (slot or tunable):
            kind = cast(typing.Literal["curve", "setting"], mark)
            found.append(Check(kind, cast("StepName | None", slot), placement, tunable, named, at_most))
    if tunables and not any(check.tunable for check in found):
        table.wrong("tunables", "a chapter with tunables needs a [[check]] with a tunable")
    return tuple(found)


def _tunables(table: TomlTable, changes: str | None, known: Sequence[str]) -> tuple[str, ...]:
    """Return the chapter's tunables, each as ``ID`` or ``ID=VALUE``."""
    words = table.texts("tunables", limit=NAME, most=20) if "tunables" in table.data else ()
    if changes == "tunables" and not words:
        table.wrong("changes", "a chapter that changes tunables must list them: tunables = […]")
    if words and changes != "tunables":
        table.wrong("tunables", f"this chapter changes {changes!r}, so it cannot have tunables")
    _check_ids(table, "tunables", words, [word.partition("=")[0] for word in words], "neither ID nor ID=VALUE", known)
    return words


def _shows(table: TomlTable, steps: tuple[StepName, ...]) -> Shows | None:
    """Return the effect that a lesson promises, from the table [shows]. Return None if the table is missing or has a
    mistake."""
    inner = table.table("shows")
    if inner is None:
        return None
    named = _figure(inner, required=True)
    at_least = inner.number("at_least", *EFFECTS, required=True)
    rises = inner.boolean("rises")
    settle_s = inner.number("settle_s", 0.0, MOST_SETTLE_S)
    counted, uncounted = _counted(inner, named)
    latency = inner.boolean("latency")
    inner.finish()
    if not {"measure", "again"} <= set(steps):
        inner.wrong("figure", "a figure is compared between the steps 'measure' and 'again': add the missing step")
    if not named or at_least is None:
        return None
    return Shows(named, at_least, bool(rises), settle_s or 0.0, counted, uncounted, latency is not False)


def _counted(table: TomlTable, named: str | None) -> tuple[Shows | None, str]:
    """Return the counted effect for emulated machines, and the reason why there is none. On an emulated machine counts
    are valid, but times are not. ``named``: the figure of the chapter's effect. Add a mistake if the lesson has both an
    effect and a reason. Also add a mistake if ``named`` is a count and the lesson has one of them.
    """
    uncounted = table.text("uncounted", limit=_NOTE, required=False)
    inner = table.table("counted")
    if named is not None and counts_alone(figure_with_id(named)) and (uncounted or inner is not None):
        table.wrong("uncounted" if uncounted else "counted", f"{named} is counted on every machine, so remove this key")
    if inner is None:
        return None, uncounted
    if uncounted:
        table.wrong("uncounted", "[shows.counted] names a counted figure, so remove this reason")
    own = _figure(inner, required=True)
    at_least = inner.number("at_least", *EFFECTS, required=True)
    rises = inner.boolean("rises")
    inner.finish()
    if own is not None and not counts_alone(figure_with_id(own)):
        inner.wrong(
            "figure",
            f"{own} depends on times, which mean nothing on an emulated machine: name a figure that is a count",
        )
    return (Shows(own, at_least, bool(rises)) if own and at_least is not None else None), uncounted


def _figure(table: TomlTable, *, required: bool) -> str | None:
    """Return the ``figure`` of a table, None if the table has none or its name is unknown."""
    ident = table.text("figure", limit=NAME, required=required)
    if not ident:
        return None
    try:
        return figure_with_id(ident).id
    except KeyError:
        known = f"{', '.join(FIGURES)}, work:FUNCTION"
        table.wrong("figure", f"unknown figure {ident!r}{nearest(ident, tuple(FIGURES))}; known: {known}")
        return None


def _check_ids(
    table: TomlTable, key: str, words: Sequence[str], ids: Sequence[str], unlike: str, known: Sequence[str]
) -> None:
    """Add a mistake for each invalid, unknown or repeated tunable id in the list ``key``. ``words``: the entries of
    this list. ``ids``: for each entry, the tunable id in it. ``unlike``: the message for an invalid id. ``known``: the
    ids of all tunables; () skips the check for unknown ids.
    """
    for word, ident in zip(words, ids, strict=True):
        if not ID_PATTERN.fullmatch(ident):
            table.wrong_word(key, word, f"{word!r} is {unlike}")
        elif known and ident not in known:
            close = difflib.get_close_matches(ident, known, n=1, cutoff=0.5)
            meant = f"; did you mean {close[0]!r}?" if close else "; 'jitter-workshop status' lists them"
            table.wrong_word(key, word, f"there is no tunable {ident!r}{meant}")
    if len(set(ids)) < len(ids):
        table.wrong(key, f"{key} lists one tunable twice")


def _recording(table: TomlTable, key: str) -> str:
    name = table.text(key, limit=ID, required=False)
    if name and not _RECORDING.fullmatch(name):
        table.wrong(key, "the name of a recording may have only small letters, digits and hyphens")
    return name


def _page_when(table: TomlTable, steps: tuple[StepName, ...], folder: Path) -> tuple[PageWhen, ...]:
    found: list[PageWhen] = []
    for inner in table.tables("page_when", most=30):
        step = inner.choice("step", WRITTEN_STEPS)
        when = inner.choice("when", HOST_STATES)
        text = inner.text("text", limit=_EXPLANATION)
        check_text(table.source.file, _first_line(inner, text), text, table.problems, folder)
        inner.finish()
        if step and step not in steps:
            inner.wrong("step", f"this text is for {step!r}, which is not a step of this chapter")
        elif step and when and text:
            found.append(PageWhen(step, cast(HostState, when), text))
    return tuple(found)


def _first_line(inner: TomlTable, text: str) -> int:
    """Return the number of the line on which the value of the key "text" begins.

    A multi-line string often begins on the line below the key. ``text`` (the argument): the value of this key.
    """
    start = inner.line("text")
    lines = inner.source.text.split("\n")
    first = text.partition("\n")[0]
    return next((n for n in range(start, min(start + 3, len(lines) + 1)) if first in lines[n - 1]), start)


MAX_PAGE_LINES = 60

_WEB = re.compile(r"https?://[^/?#:@]")
_ELSEWHERE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\#?]")
_FENCE_LIKE = re.compile(r"\s*(?:(?:[>*+-]|\d{1,9}[.)])\s*)*(?:```|~~~)")
_HEADING = re.compile(r"^##\s+(.*?)\s*#*\s*$")
_LEAD = re.compile(r"^\s*(?:(?:>|(?:[*+-]|\d{1,9}[.)])(?=\s))\s*)*")
"""The marks of quotes and lists in front of a line's text."""
_LINK = re.compile(r"\]\(\s*<?([^)>\s]*)")
_REFERENCE = re.compile(r"^\[[^\]]+\]:\s*<?([^>\s]+)", re.MULTILINE)
_HTML = re.compile(r"<[A-Za-z/!?][^>]*>|^<[A-Za-z/!?]", re.MULTILINE)
_AUTOLINK = re.compile(r"<https?://[^\s<>]+>")
_ESCAPED_OR_CODE = re.compile(r"\\[^\n]|(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)


def read_pages(
    source: SourceText, problems: Problems, folder: Path | None = None
) -> tuple[dict[str, str], dict[str, int]]:
    """Return two values: step → Markdown of its page, and step → line number of its heading.

    A line ``## step`` begins a page, except in a code block. Before the first page, only blank lines and a ``# Title``
    are allowed. A link without a web address must lead to a file in ``folder``, the chapter's folder. Add mistakes to
    ``problems``.
    """
    pages: dict[str, list[str]] = {}
    starts: dict[str, int] = {}
    current: list[str] | None = None
    markup = _Markup(source.file, 1, problems, folder)
    for number, (line, kind) in enumerate(split_code(source.text.split("\n")), start=1):
        heading = _HEADING.match(line) if kind == "text" else None
        markup.take(number, "" if heading else line, kind)
        if heading:
            step, current = heading.group(1).lower(), []
            if step not in WRITTEN_STEPS:
                problems.add(source.file, number, f"unknown step {step[:ID]!r}{nearest(step, WRITTEN_STEPS)}")
            elif step in pages:
                message = f"{step!r} has a second page; the first is on line {starts[step]}"
                problems.add(source.file, number, message)
            else:
                pages[step], starts[step] = current, number
        elif current is not None:
            current.append(line)
        elif line.strip() and not line.startswith("# "):
            problems.add(source.file, number, "there is text before the first page; a page begins with `## step`")
            current = []
    markup.end()
    for step, lines in pages.items():
        if len(lines) > MAX_PAGE_LINES:
            problems.add(source.file, starts[step], f"the page {step!r} is longer than {MAX_PAGE_LINES} lines")
    return {step: "\n".join(lines).strip() for step, lines in pages.items()}, starts


def page_places(base: Path, folder: str) -> tuple[str, dict[str, int]]:
    """Return the name of a chapter's ``lesson.md`` in messages, and step → line number of its page's heading. The
    second value is {} if the file cannot be read."""
    file = f"{folder}/lesson.md"
    ignored = Problems()
    source = read_source(base, file, ignored)
    return file, read_pages(source, ignored)[1] if source else {}


def check_text(file: str, line: int, text: str, problems: Problems, folder: Path | None = None) -> None:
    """Check Markdown that is added to a page, by the rules for pages.

    ``text``: the Markdown. ``line``: the number of the line of ``file`` on which the Markdown begins.
    """
    markup = _Markup(file, line, problems, folder)
    for number, (part, kind) in enumerate(split_code(text.split("\n")), start=line):
        markup.take(number, part, kind)
    markup.end()


class _Markup:
    """Check the links and the markup of a page, line by line. A link must lead to the web or to a file in the chapter's
    folder. Pictures and HTML are mistakes, because a terminal cannot show them. The lines of a paragraph are checked
    together, because a link may continue on the next line."""

    def __init__(self, file: str, line: int, problems: Problems, folder: Path | None) -> None:
        self._file = file
        self._problems = problems
        self._folder = folder
        self._block: list[str] = []
        self._first = line
        self._open = 0
        self._picture = ""
        self._figures: list[str] = []

    def take(self, number: int, line: str, kind: LineKind) -> None:
        if kind == "fence":
            self._check_picture()
            self._picture = line.strip("`~ ") if not self._open else ""
            self._figures = []
            self._open = 0 if self._open else number
        elif kind == "code":
            self._figures.append(line)
        if kind == "text" and line.strip():
            if _FENCE_LIKE.match(line):
                message = "a code block begins with ``` at the start of a line; at most one word may follow"
                self._problems.add(self._file, number, message)
            self._first = self._first if self._block else number
            self._block.append(line[_LEAD.match(line).end() :])  # type: ignore[union-attr]  # it also matches an empty text
        else:
            self._check()

    def end(self) -> None:
        self._check()
        if self._open:
            self._problems.add(self._file, self._open, "this code block has no closing ```")

    def _check_picture(self) -> None:
        """Add a mistake if the code block that ends here is meant as a picture but cannot be drawn."""
        if self._open and is_picture(self._picture):
            try:
                parse_picture(self._picture, self._figures)
            except ValueError as error:
                self._problems.add(self._file, self._open, str(error))

    def _check(self) -> None:
        # Removed text keeps its line ends, so that a later mistake keeps its line number.
        plain = _ESCAPED_OR_CODE.sub(lambda found: "\n" * found[0].count("\n"), "\n".join(self._block))
        self._block = []
        if (at := plain.find("![")) >= 0:
            self._wrong(plain, at, "a page cannot have pictures: use text only")
        for found in (*_LINK.finditer(plain), *_REFERENCE.finditer(plain)):
            target = found[1]
            if wrong := "" if _WEB.match(target) else _wrong_link(target, self._folder):
                beside = "a link must begin with https:// or http://, or name a file beside this page"
                self._wrong(plain, found.start(1), f"{beside}: {wrong}")
        if tag := _HTML.search(_AUTOLINK.sub("", plain)):
            self._wrong(plain, tag.start(), "a page cannot have HTML tags; to show a tag, write it in `backticks`")

    def _wrong(self, plain: str, at: int, message: str) -> None:
        self._problems.add(self._file, self._first + plain.count("\n", 0, at), message)


def _wrong_link(target: str, folder: Path | None) -> str:
    """Return what is wrong with a link that has no web address, or "" if the link is right."""
    shown = repr(target[:ID])
    if folder is None or not target or _ELSEWHERE.match(target):
        return f"not {shown}"
    try:
        place, own = (folder / target).resolve(), folder.resolve()
        if not place.is_relative_to(own):
            return f"{shown} lies outside the chapter's folder"
        return "" if place.is_file() else f"there is no {shown} in the chapter's folder"
    except (OSError, RuntimeError, ValueError):
        return f"{shown} cannot be found"
