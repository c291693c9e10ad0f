"""Choose recall questions for a learner, and ask each one again after some visits.

A visit is the start of a chapter at which questions are asked. The rule comes from Leitner's card boxes (S. Leitner,
"So lernt man lernen", 1972). There are five boxes, and a new question counts as in box 1. A right answer moves a
question to the next box. A wrong answer moves the question to box 1. A question comes back after its box's number of
visits (WAITS). A question that is missed twice in a row waits one visit longer. A skipped question stays in its box,
or goes to the box NEVER if it was never answered; it comes back after SKIPPED_WAIT visits or later.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jitter_workshop.model.session import RecallBoxes, RecallCard

WAITS = (1, 4, 8, 12, 16)
"""The number of visits until a question comes back, for each box from box 1 on. After a right answer, a question is
never asked before the next three chapters."""
MISSED_AGAIN_WAIT = 2
"""The number of visits until a question comes back that was missed before, and is missed again."""
SKIPPED_WAIT = 4
"""The least number of visits until a skipped question comes back."""
NEVER = 0
"""The box of a question that was skipped and never answered."""
AT_ONCE = 2
"""The largest number of questions at one visit."""


@dataclass(frozen=True, slots=True)
class Askable:
    """Hold a question that may be asked. ``key``: its key in the session. ``chapter``: the number of its chapter."""

    key: str
    chapter: int


def due_questions(deck: Sequence[Askable], boxes: RecallBoxes) -> tuple[str, ...]:
    """Return the keys of the recall questions to ask at this visit, at most AT_ONCE.

    The questions are about different chapters, as long as there are several. Questions of box 1 come first: their last
    answer was wrong. After them, due questions and new questions alternate. New questions come from the chapter of
    which the fewest questions have been asked so far. If several chapters are equal in this, the last of them in the
    course is taken. Due questions that were never answered come last. ``deck``: all questions that may be asked, in
    the order of the course.
    """
    order = {one.key: place for place, one in enumerate(deck)}
    chapter = {one.key: one.chapter for one in deck}
    known = {one.key: boxes.cards[one.key] for one in deck if one.key in boxes.cards}
    due = [key for key, card in known.items() if card.due <= boxes.visits]
    missed = sorted((k for k in due if known[k].box == 1), key=lambda k: (known[k].due, order[k]))
    old = sorted((k for k in due if known[k].box > 1), key=lambda k: (known[k].due, known[k].box, order[k]))
    passed = sorted((k for k in due if known[k].box <= NEVER), key=lambda k: (known[k].due, order[k]))
    new = _new_questions([one for one in deck if one.key not in known], Counter(chapter[key] for key in known), order)
    ranked = [*missed, *_in_turns(old, new), *passed]
    first_of_chapter = {chapter[key]: key for key in reversed(ranked)}
    apart = [key for key in ranked if first_of_chapter[chapter[key]] == key]
    return tuple([*apart, *(key for key in ranked if key not in apart)][:AT_ONCE])


def _new_questions(left: list[Askable], asked: Counter[int], order: Mapping[str, int]) -> list[str]:
    """Return the keys of the questions ``left``, in the order in which they are asked. ``asked``: chapter → number of
    its questions that were asked already. ``order``: key → place in the course."""
    found: list[str] = []
    while left:
        one = min(left, key=lambda one: (asked[one.chapter], -one.chapter, order[one.key]))
        left.remove(one)
        asked[one.chapter] += 1
        found.append(one.key)
    return found


def _in_turns(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Return one list that takes its elements from both lists in turn. The rest of the longer list comes last."""
    longest = max(len(first), len(second))
    return [one for n in range(longest) for one in (*first[n : n + 1], *second[n : n + 1])]


def boxes_after_answer(boxes: RecallBoxes, key: str, right: bool) -> RecallBoxes:
    """Return the boxes after the question ``key`` was answered at the present visit. ``right``: True for a right
    answer."""
    before = boxes.cards.get(key)
    box = min(max(before.box if before is not None else 1, 1) + 1, len(WAITS)) if right else 1
    again = not right and before is not None and before.box == 1
    card = RecallCard(box, boxes.visits + (MISSED_AGAIN_WAIT if again else WAITS[box - 1]))
    return dataclasses.replace(boxes, cards={**boxes.cards, key: card})


def boxes_after_skip(boxes: RecallBoxes, keys: Iterable[str]) -> RecallBoxes:
    """Return the boxes after the questions ``keys`` were asked and not answered at the present visit. Each stays in its
    box, or goes to the box NEVER if it has none. It comes back after SKIPPED_WAIT visits or later."""
    cards = dict(boxes.cards)
    for key in keys:
        cards[key] = RecallCard(cards[key].box if key in cards else NEVER, boxes.visits + SKIPPED_WAIT)
    return dataclasses.replace(boxes, cards=cards)


def visited(boxes: RecallBoxes) -> RecallBoxes:
    """Return the boxes after one more visit, which is a chapter's start at which questions are asked."""
    return dataclasses.replace(boxes, visits=boxes.visits + 1)


def wait(boxes: RecallBoxes, key: str) -> int | None:
    """Return the number of visits until the question ``key`` comes back. Return None if this question was never
    asked."""
    card = boxes.cards.get(key)
    return None if card is None else max(card.due - boxes.visits, 0)
