"""List the commands of the line-by-line workshop, on the path and in a chapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.model.course import OPEN, SLOTS
from jitter_workshop.plain import hunt as hunting
from jitter_workshop.plain import own_program as of_program
from jitter_workshop.plain import proving
from jitter_workshop.plain.settings import NEXT_BOOT
from jitter_workshop.plain.talk import Talk

_LEAVES = ("q", "leave the workshop (the next start goes on from here)")

GLOSSARY = ("g", "explain the terms of this page (at every question)")


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
    yield "r", "the report of this session, as a file"
    yield "status", "this host's checks, and what can be better"
    yield "summary", "a summary of the whole course"
    yield "explain", "what took your program's time; explain PID chooses the process"
    yield "practice", "a machine with a real kernel to practise on, where you are root"
    yield "load", "look at the load of this host, for a second or two"
    yield "undo", "restore the old values"
    yield "again", "apply the earlier changes again, as one plan"
    yield _LEAVES


def chapter_help(walk: ChapterSession, proves: bool) -> Iterator[tuple[str, str]]:
    """Yield the commands of a chapter and their meaning. ``proves``: this chapter's change can be proven."""
    yield "Enter", "the next useful step"
    yield "b, back", "one step back"
    yield f"1-{len(walk.chapter.steps)}", "go to a step by its number; at a question a number is an answer"
    yield GLOSSARY
    yield "h, hint", "a hint"
    yield "c, chart", "the chart of this chapter"
    yield "o", "the chart with curves of a laptop of 2015"
    if not walk.hunts:
        yield "i", "at 'compare': the chart with the imported curves of other tools"
    yield "t, table", "the numbers as a table"
    if any(walk.measuring.measures(step) for step in SLOTS):
        yield "m", "measure anew (in a measuring step)"
        yield "v", "what took the time (measures one more run if no run has a trace)"
        yield "w", "let a noise run during the measurements, or end the noise"
    yield from hunting.HELP if walk.hunts else ()
    yield from of_program.HELP if walk.chapter.program else ()
    if len(walk.chapter.by_hand) > OPEN:
        yield "more", "at 'explain': the next commands to run by hand"
    if walk.chapter.mask is not None:
        yield "mask", "at 'apply': check a mask, such as mask f0, without writing it to the host"
    if walk.chapter.changes == "tunables" and not walk.host.rehearsed:
        yield "hand", "at 'apply': type the writes into a root shell yourself, while the workshop watches"
        yield "take", "take over the writes that you typed; stop ends the watch"
        yield "undo", "restore what this chapter changed"
    if walk.chapter.reboot and not walk.host.rehearsed:
        yield "every", "plan boot parameters for every boot"
        yield NEXT_BOOT, "plan boot parameters for the next boot only"
    yield "anew" if walk.hunts else "r", "begin this chapter anew"
    yield from proving.HELP if proves else ()
    yield "home", "leave this chapter for the list of chapters, where status and summary are"
    yield _LEAVES
    yield "✓", "behind a step: done; a step without a sign is still to come, or you have skipped it"
    if walk.host.rehearsed:
        yield "◌", "behind a step: seen on a recording, where nothing is measured or written"
