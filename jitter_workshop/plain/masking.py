"""Check masks that the learner types line by line at the step ``apply``."""

from __future__ import annotations

from jitter_workshop.course.masks import judge
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import masks as words
from jitter_workshop.presenter.course.typed import parse_mask


def show(walk: ChapterWalk, talk: Talk) -> None:
    """Show the task to write a mask of CPUs, if the lesson has such a task."""
    if walk.chapter.mask is not None:
        talk.say(*words.task(walk.chapter.mask, 1, 1, talk.width))
        talk.tell(words.LINE_BY_LINE)
        talk.say("")


def heard(walk: ChapterWalk, talk: Talk, typed: str) -> bool:
    """Judge a mask that the learner typed, and print the result. If nothing was typed, print the task again. Return
    False if the chapter has no such task. Raise UsageError if the typed text is not a mask."""
    task = walk.chapter.mask
    if task is None:
        return False
    if not typed:
        show(walk, talk)
        return True
    answer = parse_mask(typed)
    talk.say("", *words.judged(task, judge(task.wanted, answer), talk.width), "")
    return True
