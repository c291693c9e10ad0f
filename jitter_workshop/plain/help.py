"""List the commands of the line-by-line workshop, on the path and in a chapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import OPEN, SLOTS
from jitter_workshop.plain import hunt as hunting
from jitter_workshop.plain import own_program as of_program
from jitter_workshop.plain import proving
from jitter_workshop.plain.settings import NEXT_BOOT
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from jitter_workshop.presenter.course.chapter import AFTER_A_STEP, DONE, SEEN
from jitter_workshop.presenter.course.path import HALF_DOT

_LEAVES = ("q", beside_a_word(meanings.LEAVE))

GLOSSARY = ("g", f"{beside_a_word(meanings.WORDS)} (at every question)")


def tell_help(talk: Talk, words: Iterable[tuple[str, str]]) -> None:
    for key, does in words:
        talk.tell(f"{key:<9} {does}", "  ", "            ")


def path_help(chapters: int) -> Iterator[tuple[str, str]]:
    """Yield each command of the chapter list, with its meaning. ``chapters``: the number of chapters."""
    yield "Enter", "the next useful step"
    yield f"1-{chapters}", "open a chapter by its number"
    yield GLOSSARY
    yield "c", "the chart of all runs"
    yield "heat", "a heat map of the newest run: latency over time"
    yield "r", beside_a_word(meanings.REPORT)
    yield "status", f"{beside_a_word(meanings.STATUS)}, and the chapter about each"
    yield "summary", beside_a_word(meanings.SUMMARY)
    yield "explain", f"{beside_a_word(meanings.EXPLAIN)}; explain PID chooses the process"
    yield "practice", beside_a_word(meanings.PRACTICE)
    yield "load", beside_a_word(meanings.LOAD)
    yield "restore", beside_a_word(meanings.RESTORE_ALL)
    yield "again", beside_a_word(meanings.APPLY_AGAIN)
    yield _LEAVES
    yield "◐", HALF_DOT


def chapter_help(walk: ChapterWalk, proves: bool) -> Iterator[tuple[str, str]]:
    """Yield the commands of a chapter and their meaning. ``proves``: this chapter's change can be proven."""
    yield "Enter", "the next useful step"
    yield "b, back", beside_a_word(meanings.BACK)
    yield f"1-{len(walk.chapter.steps)}", "go to a step by its number; at a question a number is an answer"
    yield GLOSSARY
    yield "h, hint", beside_a_word(meanings.HINT)
    yield "c, chart", "the chart of this chapter"
    yield "o", f"the chart with {meanings.CURVES_OF_2015}"
    if not walk.hunts:
        yield "i", f"at 'compare': the chart with {meanings.IMPORTED_CURVES}"
    yield "t, table", beside_a_word(meanings.TABLE)
    if any(walk.measuring.measures(step) for step in SLOTS):
        yield "m", "make or repeat the run of a measuring step"
        yield "v", beside_a_word(meanings.CAUSES)
        yield "w", beside_a_word(meanings.NOISE)
    yield from hunting.HELP if walk.hunts else ()
    yield from of_program.HELP if walk.chapter.program else ()
    if len(walk.chapter.by_hand) > OPEN:
        yield "more", beside_a_word(meanings.MORE_COMMANDS)
    if walk.chapter.mask is not None:
        yield "mask", "at 'apply': check a mask, such as mask f0, without writing it to the host"
    if walk.chapter.changes == "tunables" and not walk.host.rehearsed:
        yield "hand", beside_a_word(meanings.BY_HAND)
        yield "take", "take over the writes that you typed; stop ends the watch"
        yield "restore", beside_a_word(meanings.RESTORE)
    if walk.chapter.reboot and not walk.host.rehearsed:
        yield "every", "plan boot parameters for every boot"
        yield NEXT_BOOT, beside_a_word(meanings.NEXT_BOOT)
    yield "anew" if walk.hunts else "r", "begin this chapter anew"
    yield from proving.HELP if proves else ()
    yield "home", "leave this chapter for the list of chapters, where status and summary are"
    yield _LEAVES
    yield "✓", f"{AFTER_A_STEP}: {DONE}"
    if walk.host.rehearsed:
        yield "◌", f"{AFTER_A_STEP}: {SEEN}"
