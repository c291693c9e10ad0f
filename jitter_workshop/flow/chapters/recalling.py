"""Ask recall questions about finished chapters before a chapter begins, and store the answers."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable
from dataclasses import dataclass

from jitter_workshop.course import recall
from jitter_workshop.flow.chapters.session_context import key_of
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import RecallQuestion


@dataclass(frozen=True, slots=True)
class Asked:
    """Hold a recall question, with its answers in the order on the screen. ``key``: the key of the question in the
    session. ``chapter``: the title of the chapter that the question is about."""

    key: str
    chapter: str
    question: RecallQuestion


@dataclass(frozen=True, slots=True)
class RecallResult:
    """Hold the result of an answer. ``visits``: the question is asked again after the start of this number of further
    chapters. ``known``: False if the learner said that the answer is not known.
    """

    right: bool
    visits: int
    known: bool = True


def questions_to_ask(workshop: Workshop, walk: ChapterWalk) -> tuple[Asked, ...]:
    """Return the questions to ask before the chapter's first step.

    The questions are about chapters that the learner has done. The path of this host can differ from the order of the
    course, so such a chapter may come later in the course. A chapter that was only read asks nothing. Return () in
    three cases:

    - The learner is not at the first step.
    - The questions were asked already.
    - The learner has done no other chapter with questions.
    """
    if walk.progress.recalled or walk.current != walk.chapter.steps[0]:
        return ()
    done = [
        (number, chapter)
        for number, chapter in enumerate(workshop.course.chapters, 1)
        if chapter.recall and chapter.id != walk.chapter.id and workshop.context.progress(chapter.id).done
    ]
    if not done:
        return ()
    found: dict[str, tuple[int, Asked]] = {}
    only_read = {entry.chapter_id for entry in workshop.path() if entry.only_read}
    for number, chapter in done:
        if chapter.id not in only_read:
            for question in chapter.recall:
                key = f"{key_of(workshop.context.course_id, chapter.id)}/{question.id}"
                found[key] = number, Asked(key, chapter.title, question)
    deck = [recall.Askable(key, number) for key, (number, _) in found.items()]
    boxes = workshop.context.session.recall
    seed = f"{workshop.context.session.id}/{boxes.visits}"
    return tuple(_mixed(found[key][1], seed) for key in recall.due_questions(deck, boxes))


def _mixed(one: Asked, seed: str) -> Asked:
    """Return a question with its answers in a mixed order. The order depends only on ``seed`` and the question, so
    every screen shows the same order. ``seed``: a text for the session and the visit."""
    order = list(range(len(one.question.answers)))
    random.Random(f"{seed}/{one.key}").shuffle(order)
    answers = tuple(one.question.answers[n] for n in order)
    right = order.index(one.question.right)
    return dataclasses.replace(one, question=dataclasses.replace(one.question, answers=answers, right=right))


def judge_recall(workshop: Workshop, one: Asked, choice: int | None) -> RecallResult:
    """Judge the learner's answer to a recall question, and store the result in the session. ``choice``: the index of
    the answer, from 0; None if the learner does not know it. The question then comes back as early as after a wrong
    answer."""
    right = choice == one.question.right
    boxes = recall.boxes_after_answer(workshop.context.session.recall, one.key, right)
    workshop.context.save(dataclasses.replace(workshop.context.session, recall=boxes))
    return RecallResult(right, recall.wait(boxes, one.key) or 0, known=choice is not None)


def record_asked(workshop: Workshop, walk: ChapterWalk, skipped: Iterable[Asked] = ()) -> None:
    """Record that this chapter's questions were asked. ``skipped``: those of them that have no answer."""
    boxes = recall.boxes_after_skip(workshop.context.session.recall, (one.key for one in skipped))
    workshop.context.save(dataclasses.replace(workshop.context.session, recall=recall.visited(boxes)))
    workshop.context.save_progress(walk.chapter.id, dataclasses.replace(walk.progress, recalled=True))
