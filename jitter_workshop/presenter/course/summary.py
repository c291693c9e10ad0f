"""Show the course from its first step to its last: the gain of each step, and what is still open."""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.flow.chapters.course_summary import MEASURES, Bought, CourseSummary
from jitter_workshop.flow.chapters.course_summary import MOST_DRAWN as MOST_DRAWN
from jitter_workshop.flow.chapters.course_summary import comparable_curves as comparable_curves
from jitter_workshop.flow.host_ops.host_status import Finding
from jitter_workshop.model.effect import Effect
from jitter_workshop.model.run import HUNTED
from jitter_workshop.model.text import ID, LABEL, LINE, SENTENCE, SHORT, WORD, capital, clean, tally
from jitter_workshop.presenter.course.hunt import past_hunts
from jitter_workshop.presenter.host.changes import NOTHING_APPLIED
from jitter_workshop.presenter.runs.effect_words import describe_effect
from jitter_workshop.presenter.text.lines import cpus_in_short, items, table_lines, wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.check_words import value_in_words
from jitter_workshop.stats.comparison import NEAR, NEAR_MEANS
from jitter_workshop.stats.sample_size import FEW_STALLS, FEW_TOLD, of_curve
from jitter_workshop.stats.scale import nice_ns, ratio_text

NOTHING_SET = "This is a recorded host, so no setting was changed on it."
NOTE = (
    "Single runs are described here, not judged. Even two runs with the same settings differ. A chapter's run and the "
    "run before it differ in more than the settings."
)
NO_STEPS = "Nothing is measured yet. Your first run adds a curve here, and each chapter's second run adds one more."
HOW = "m on the home screen measures your first curve."
NO_STEPS_HERE = "Nothing is measured yet, and on a recorded host nothing can be measured."


def step_table(summary: CourseSummary, width: int) -> Iterator[tuple[int, Text]]:
    """Yield the lines of the table with each step's gain, as (number, line): 0 for the head, else the step's number.
    Below the row of a step stand its chapter's figure before and after the change, and then the rows of ratios."""
    rows: list[tuple[str, ...]] = [("WHAT EACH STEP CHANGED", *MEASURES)]
    numbers = [0]
    for number, step in enumerate(summary.steps, 1):
        found = step_rows(step, number)
        rows += found
        numbers += [number] * len(found)
    last = 0
    for number, line in zip(numbers, table_lines(rows, width, right=range(1, len(MEASURES) + 1)), strict=True):
        yield number, line
        if number != last and (changed := summary.steps[number - 1].changed) is not None:
            for told in wrap(Text(_of_chapter(changed), "text"), width, "  ", "    "):
                yield number, told
        last = number


def step_rows(step: Bought, number: int) -> list[tuple[str, ...]]:
    """Return up to three rows of a step: its values, and two rows of ratios. A row of ratios names the row by which the
    values are divided: the nearest comparable row above, then the first row. It is left out if no ratio is known, or if
    it would divide by the same row as the other."""
    load = ", beside a hidden noise" if HUNTED in step.run.notes else ""
    load = load or (f", beside {clean(step.run.noise, WORD)}" if step.run.noise else "")
    load += f", {step.run.mark}" if step.run.mark else ""
    few = _rest_on_few(step)
    values = [f"{FEW_STALLS if one in few else ''}{nice_ns(ns)}" for one, ns in zip(MEASURES, step.values, strict=True)]
    rows: list[tuple[str, ...]] = [(f"{number} {clean(step.name, LABEL)}{load}", *values)]
    divided = {} if step.before is None else {step.before: step.to_before}
    for index, ratios in (divided | {0: step.to_first}).items():
        if any(ratio is not None for ratio in ratios):
            rows.append((f"  ÷ row {index + 1}", *map(_told, ratios)))
    return rows


def _rest_on_few(step: Bought) -> set[str]:
    """Return those of ``MEASURES`` beyond which few stalls of a step's run lie."""
    return {f"p{percentile}" for percentile, mark in of_curve(step.shown).items() if mark == FEW_STALLS}


def _of_chapter(changed: Effect) -> str:
    told = describe_effect(changed)
    return told if told[1:2].isdigit() else capital(told)


def _told(ratio: float | None) -> str:
    """Return a ratio as text. The ratio 1 becomes NEAR: the clock cannot tell the two values apart."""
    return NEAR if ratio == 1 else ratio_text(ratio)


def describe_step_run(step: Bought) -> str:
    """Describe in one line how a step's run was made."""
    run = step.run
    parts = [f"'{clean(step.shown.label, ID)}'", clean(run.workload, WORD)]
    parts += ["not pinned"] if run.placement.mode == "none" else ["pinned"]
    parts += ["a hidden noise awake"] if HUNTED in run.notes else []
    parts += [f"{clean(run.noise, WORD)} awake"] if run.noise else []
    parts += [clean(run.sched, WORD)] if run.sched != "other" else []
    parts += ["set then: " + ", ".join(clean(one, LABEL) for one in step.applied)] if step.applied else []
    parts += ["other tasks used these CPUs"] if run.disturbed else []
    text = " · ".join(parts)
    if step.unlike:
        # The first difference explains it; the others (payload, pacing) mostly follow from it.
        text += f". Not comparable with the first: {clean(step.unlike[0], LINE)}"
    return text + "."


def summary_notes(summary: CourseSummary, width: int) -> Iterator[Text]:
    """Yield the lines below the table of steps. They are notes on the runs, the changes applied now, the open chapters
    and checks, and the results of guesses."""
    if summary.steps:
        titles = ", ".join(clean(title, LABEL) for title in summary.half)
        half = f"These chapters have no second run yet, so nothing can be compared: {titles}." if titles else ""
        ratios = {ratio for step in summary.steps for ratio in (*step.to_before, *step.to_first)}
        few = FEW_TOLD if any(map(_rest_on_few, summary.steps)) else ""
        for line in filter(None, (half, few, NEAR_MEANS if 1 in ratios else "", NOTE)):
            yield from wrap(line, width, style="dim")
        yield Text()
    where = ", ON A RECORDING" if summary.recorded else ""
    for title, told in (
        ("APPLIED ON THIS HOST NOW", applied_lines(summary)),
        (f"CHAPTERS: {summary.done} OF {summary.chapters} DONE{where}", open_chapters(summary)),
        ("WHAT COULD STILL BE BETTER", open_checks(summary)),
        ("YOUR GUESSES", guesses(summary)),
    ):
        yield from (*wrap(title, width, style="bold dim"), *items(told, width), Text())


def applied_lines(summary: CourseSummary) -> list[str]:
    """Return the lines with the changes that are applied on the host now."""
    if summary.recorded:
        return [NOTHING_SET]
    if not summary.standing:
        return [NOTHING_APPLIED]
    return [f"Applied now: {tally(summary.written)}.", *(clean(one, LINE) for one in summary.standing)]


def open_chapters(summary: CourseSummary) -> list[str]:
    """Return lines on the chapters that are not done. Each chapter that was begun has a line of its own. Three more
    lines list the other chapters: those that can be done here, those that are taught on a recording, and those that
    cannot be done here."""
    every = (*summary.open_here, *summary.open_elsewhere)
    lines = [f"{clean(e.title, LABEL)}: at {e.next_step}" for e in every if e.started]
    for name, entries in (
        ("Not begun", summary.open_here),
        ("On a recording, not begun", [e for e in summary.open_elsewhere if e.rehearsed]),
        ("Not on this host as it is", [e for e in summary.open_elsewhere if not e.rehearsed]),
    ):
        titles = [clean(e.title, LABEL) for e in entries if not e.started]
        lines += [f"{name}: {', '.join(titles)}"] if titles else []
    return lines or [f"All {summary.chapters} chapters are done."]


def open_check(finding: Finding) -> str:
    """Return a line with a check that could be better, and its chapter."""
    told = cpus_in_short(value_in_words(finding.check))
    between = "" if not told else " " if told.startswith("→") else ": "
    where = f"chapter '{clean(finding.chapter, LABEL)}'" if finding.chapter_id else "no chapter"
    drifted = " · drifted" if finding.check.drifted is not None else ""
    return f"{clean(finding.check.id, SHORT)}{between}{clean(told, LINE)}{drifted} · {where}"


def open_checks(summary: CourseSummary) -> list[str]:
    """Return a line for each check that could be better. If the host could not be read, return a single line with the
    reason."""
    if summary.unread:
        return [f"The host could not be read: {clean(summary.unread, SENTENCE)}."]
    return [open_check(f) for f in summary.improvable] or ["No check of this host could be better."]


def guesses(summary: CourseSummary) -> list[str]:
    """Return lines on the results of the guesses and the hunts. A hunt is a search for a hidden noise."""
    lines = []
    results = (("Right", summary.near), ("Near", summary.beside), ("Wrong", summary.far))
    for name, titles in results:
        told = f" ({', '.join(clean(t, LABEL) for t in titles)})" if titles else ""
        if titles or name != "Near":
            lines.append(f"{name}: {len(titles)}{told}")
    if summary.unjudged:
        lines.append(f"Chapters without a judged guess: {summary.unjudged}")
    if hunted := past_hunts(summary.hunts):
        lines.append(f"The hunt: {hunted}")
    return lines
