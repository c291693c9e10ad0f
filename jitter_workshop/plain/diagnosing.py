"""Show the step ``diagnose`` line by line: the list of causes, the learner's answer, and its judgement."""

from __future__ import annotations

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.plain import answering
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import diagnosis as words


def diagnosis_prompt(walk: ChapterWalk) -> str:
    """Return the prompt below the list of causes."""
    seen = walk.diagnosis.ready
    return answering.answer_prompt(len(seen.suspects) if seen is not None else 0, words.SKIP)


def show_question(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Show the question and the list of causes, or the answer that was given before."""
    diagnosis = walk.diagnosis
    if not diagnosis.open:
        talk.tell(words.NOT_RECORDED)
        return
    if diagnosis.ready is None:
        talk.tell(words.READING)
    seen = diagnosis.read()
    if seen is None:
        return
    talk.tell(words.diagnosis_question(seen))
    # After the answer, the list has a line for this time.
    unnamed = words.unnamed(seen) if diagnosis.answered() is None else ""
    answered = diagnosis.answered()
    notes = (unnamed, words.uneven(seen, answered), words.in_guest(seen, answered))
    for told in filter(None, () if seen.quiet else notes):
        talk.tell(told)
    talk.say("")
    if (needs := words.without_trace(seen)) and not seen.quiet:
        talk.tell(needs)
        talk.say("")
    if diagnosis.answered() is not None:
        _tell_judged(workshop, walk, talk)
        return
    if not seen.quiet:
        talk.tell(f"{words.head_of_list(seen).capitalize()}:")
    for number, one in enumerate(() if seen.quiet else seen.suspects, 1):
        often = words.seen_often(seen, one)
        talk.tell(f"{words.cause(one, False)}{f', {often}' if often else ''}", f"  {number}  ", "     ")
    if seen.stall is not None and not seen.quiet:
        talk.say("", *words.one_stall(seen.stall, talk.width), "")


def take_diagnosis(workshop: Workshop, walk: ChapterWalk, talk: Talk, answer: str) -> bool:
    """Take a number as the learner's answer, and tell the judgement. Return False for any other input."""
    seen = walk.diagnosis.ready
    if not walk.diagnosis.asks or seen is None:
        return False
    place = answering.index_of_answer(answer, len(seen.suspects))
    if place is None:
        if answering.is_number(answer):
            talk.tell(answering.no_such(len(seen.suspects)))
        return answering.is_number(answer)
    walk.diagnosis.answer(seen.suspects[place].id)
    _tell_judged(workshop, walk, talk)
    return True


def _tell_judged(workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
    """Tell the judgement, then each cause with its time."""
    diagnosis = walk.diagnosis
    seen, found = diagnosis.ready, diagnosis.answered()
    if seen is None or found is None:
        return
    talk.tell(f"You named: {found.chosen.label}.")
    talk.tell(words.judged_diagnosis(found, seen, walk.chapter, workshop.course), "", "  ")
    talk.say("", *words.suspect_lines(seen, -1, found, talk.width), "")
