"""Find chapters that ask the learner a question which an earlier chapter asks, too: such a question teaches nothing
new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitter_workshop.model.course import BOUNDED, Chapter


def asked(chapter: Chapter) -> tuple[object, ...] | None:
    """Return a value that is equal for two chapters if their guesses ask the same. It is made of the kind of the guess,
    its figures, and the bounds of its answers.

    If both guesses are marks on a curve, only the workload and the percentile are compared: if they are equal, the
    learner points at the same place of the same curve. If both are choices that no figure decides, only the words of
    the question are compared. Return None for a chapter without a guess.
    """
    task = chapter.prediction
    if task is None:
        return None
    if task.kind == "mark":
        measured = chapter.measurement(task.slot or "")
        return "mark", measured.workload if measured is not None else None, task.percentile
    if task.by == "falls":
        return "falls", frozenset(a.figure for a in task.answers)
    if task.by in BOUNDED:
        own = chapter.shows.figure if chapter.shows is not None else None
        return task.by, own if task.by == "factor" else task.figure, tuple(a.up_to for a in task.answers)
    return "choice", _words(task.question)


def alike(chapters: Sequence[Chapter]) -> Iterator[tuple[int, Chapter]]:
    """Yield each chapter that asks what an earlier one asks: its index, and the first chapter that asks it."""
    first: dict[tuple[object, ...], Chapter] = {}
    for index, chapter in enumerate(chapters):
        question = asked(chapter)
        if question is None:
            continue
        if question in first:
            yield index, first[question]
        else:
            first[question] = chapter


def recalled_twice(chapters: Sequence[Chapter]) -> Iterator[tuple[int, int, Chapter]]:
    """Yield each recall question with the same words as an earlier one. The three values are the index of its chapter,
    the index of the question in this chapter, and the chapter of the earlier question."""
    first: dict[str, Chapter] = {}
    for index, chapter in enumerate(chapters):
        for number, one in enumerate(chapter.recall):
            words = _words(one.question)
            if words in first:
                yield index, number, first[words]
            first.setdefault(words, chapter)


def _words(question: str) -> str:
    return " ".join(question.lower().split())
