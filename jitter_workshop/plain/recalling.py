"""Ask recall questions line by line before a chapter's first step."""

from __future__ import annotations

from jitter_workshop.flow.chapters import recalling
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import recall as words

_NOT_KNOWN = "0"
"""The input of a learner who does not know the answer."""


def ask_recall_questions(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Ask the recall questions that are due now, if there are any. Raise Leave or EOFError if the learner leaves the
    workshop. In this case, the same questions are asked at the next start of this chapter."""
    found, skipped = recalling.questions_to_ask(workshop, walk), list[recalling.Asked]()
    for number, one in enumerate(found, 1):
        talk.say("", *words.question(one, number, len(found), talk.width), "")
        answer = _answer(one, talk)
        if not answer:
            skipped.append(one)
            talk.tell(words.SKIPPED)
        else:
            choice = None if answer == _NOT_KNOWN else int(answer) - 1
            talk.say(*words.recall_outcome_lines(one, recalling.judge_recall(workshop, one, choice), talk.width))
    if found:
        recalling.record_asked(workshop, walk, skipped)


def _answer(one: recalling.Asked, talk: Talk) -> str:
    """Return the number of the learner's answer, _NOT_KNOWN, or "" for a skipped question."""
    numbers = ["", _NOT_KNOWN, *(str(n) for n in range(1, len(one.question.answers) + 1))]
    while (answer := talk.ask(words.recall_prompt(one))) not in numbers:
        talk.tell(words.not_a_number(one))
    return answer
