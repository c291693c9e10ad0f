"""Find guesses and recall questions that repeat a question of an earlier chapter. A repeated question teaches nothing
new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jitter_workshop.model.course import BOUNDED, Chapter


def guess_key(chapter: Chapter) -> tuple[object, ...] | None:
    """Return a key for the chapter's guess; None for a chapter without a guess.

    Two guesses ask the same if their keys are equal. The kind of question decides what the key has:

    - If the learner marks a point on a curve, the key has the workload and the percentile.
    - If the learner chooses the figure that falls most, the key has the figures of the answers.
    - If the learner chooses a range of a figure, the key has the figure and the bounds.
    - If no figure decides which answer is right, the key has the words of the question.
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
    """Yield (index, first chapter) for each chapter whose guess repeats an earlier guess. ``index``: the index of the
    repeating chapter. ``first chapter``: the chapter that had this guess first."""
    first: dict[tuple[object, ...], Chapter] = {}
    for index, chapter in enumerate(chapters):
        question = guess_key(chapter)
        if question is None:
            continue
        if question in first:
            yield index, first[question]
        else:
            first[question] = chapter


def recalled_twice(chapters: Sequence[Chapter]) -> Iterator[tuple[int, int, Chapter]]:
    """Yield (chapter index, question index, earlier chapter) for each repeated recall question.

    The two indexes are those of the later chapter and of its question. The earlier chapter asked this question first.
    Questions are equal if they have the same words.
    """
    first: dict[str, Chapter] = {}
    for index, chapter in enumerate(chapters):
        for number, one in enumerate(chapter.recall):
            words = _words(one.question)
            if words in first:
                yield index, number, first[words]
            first.setdefault(words, chapter)


def _words(question: str) -> str:
    return " ".join(question.lower().split())
