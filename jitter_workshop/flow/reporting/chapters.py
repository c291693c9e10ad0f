"""Collect a report's chapters: guesses, runs, settings and lessons, as the session keeps them. It judges nothing
anew."""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.flow.chapters.hunting import remembered
from jitter_workshop.flow.chapters.session_context import key_of
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.measuring.comparing import compare_runs, stack_notes
from jitter_workshop.flow.reporting.subject import Subject
from jitter_workshop.model.report import ReportedChapter
from jitter_workshop.model.session import Prediction
from jitter_workshop.model.text import clean
from jitter_workshop.stats.scale import nice_ns


def chapters(subject: Subject) -> tuple[ReportedChapter, ...]:
    """Return the chapters that were begun, in the order of the course. Those of another course stand in ``notes``."""
    if strangers := _of_other_courses(subject):
        subject.notes["chapters"] = strangers
    return tuple(_chapter(subject, walk) for walk in subject.walks())


def _chapter(subject: Subject, walk: ChapterSession) -> ReportedChapter:
    chapter, progress = walk.chapter, walk.progress
    first, second = (subject.run(progress.runs.get(slot)) for slot in ("measure", "again"))
    comparison, text = None, ""
    if first is not None and second is not None:
        view = compare_runs(first, second)
        # Where all was good and nothing had to be set, a note that nothing was set would mislead.
        strayed = stack_notes(chapter, first, second) if second.applied or not progress.marks.get("setting") else ()
        comparison, text = view.comparison, " ".join([*strayed, view.headline])
    return ReportedChapter(
        id=chapter.id,
        title=chapter.title,
        question=chapter.prediction.question if chapter.prediction is not None else "",
        guess=_guess(walk, progress.prediction),
        outcome=walk.outcome(),
        runs={slot: ident for slot, ident in progress.runs.items() if subject.run(ident) is not None},
        comparison=comparison,
        comparison_text=text,
        setting=None if chapter.changes == "nothing" else progress.marks.get("setting", False),
        curve=progress.marks.get("curve", False),
        done=progress.done,
        rehearsed=not progress.runs and (subject.session.recorded or (not subject.elsewhere and walk.rehearsed)),
        learnt=tuple(filter(None, (remembered(progress.hunts), *(chapter.learnt if progress.done else ())))),
    )


def _guess(walk: ChapterSession, prediction: Prediction | None) -> str:
    """Return the guess in words; "" for none."""
    task = walk.chapter.prediction
    if prediction is None or task is None:
        return ""
    if task.kind == "mark":
        value = prediction.value_ns
        return f"{nice_ns(value)} at p{prediction.percentile or task.percentile}" if value is not None else ""
    given = next((a.text for a in task.answers if a.id == prediction.choice), None)
    return given if given is not None else "an answer that the lesson no longer has"


def _of_other_courses(subject: Subject) -> str:
    """Return a sentence with the chapters that this course does not have; "" for none."""
    course = subject.workshop.course
    known = {key_of(course.id, chapter.id) for chapter in course.chapters}
    strange = list(_strange(subject, known))
    if subject.chosen or not strange:
        return ""
    names = ", ".join(strange[:12]) + (f" and {len(strange) - 12} more" if len(strange) > 12 else "")
    return f"of another course, so not shown here (name it with --course): {names}"


def _strange(subject: Subject, known: set[str]) -> Iterator[str]:
    for key in subject.session.chapters:
        if key not in known:
            yield clean(key, 60)
