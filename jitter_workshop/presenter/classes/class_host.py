"""Describe a class host on the screen: a line on the turn, a line on the instructor's chapter, and the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.flow.turns.classhost import rounded_duration
from jitter_workshop.model.evidence import load_called
from jitter_workshop.model.text import ID, LABEL, MOST_PHRASES, SENTENCE, SHORT, clean
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text

if TYPE_CHECKING:
    from jitter_workshop.flow.classes.classview import ClassView
    from jitter_workshop.model.course import Course
    from jitter_workshop.model.run import Run

MOST_LINES = 2
NEARLY_OVER_S = 60.0
"""A turn's line is highlighted when fewer seconds than this are left."""


def class_lines(view: ClassView, course: Course, width: int) -> Iterable[Text]:
    """Yield the line about the turn, then the line with the instructor's chapter. If the learner has just lost the
    turn, the reason comes first."""
    if view.lost:
        yield from wrap(clean(view.lost, SENTENCE), width, "○ ", "  ")[:MOST_LINES]
    yield turn_line(view)
    if where := view.banner_words(title_of(view, course)):
        yield Text.assemble(("◆ ", "accent"), (where, "text"))


def turn_line(view: ClassView) -> Text:
    """Return the line of the turn: ``●`` if the learner has the turn, else ``○``."""
    if view.has_turn:
        nearly = view.left_s is not None and view.left_s < NEARLY_OVER_S
        colour = "bad" if nearly else "accent"
        return Text.assemble(("● ", colour), (view.brief, f"bold {colour if nearly else 'text'}"))
    return Text.assemble(("○ ", "dim"), (clean(view.brief, SENTENCE), "text" if view.waits else "dim"))


def title_of(view: ClassView, course: Course) -> str:
    """Return the title of the instructor's chapter; "" if there is none, or if this course does not have it."""
    wanted = view.banner.chapter if view.banner is not None else ""
    return next((clean(chapter.title, LABEL) for chapter in course.chapters if chapter.id == wanted), "")


def unknown_chapter(chapter: str) -> str:
    """Return the message for an instructor's chapter that this course does not have. ``chapter``: its id."""
    return f"the instructor is at '{clean(chapter, ID)}', which this course does not have"


def class_keys(view: ClassView) -> Sequence[tuple[str, str]]:
    """Return the keys that a class adds to the footer, each as (action, label). An empty label means the action's usual
    label."""
    turn = "give turn back" if view.has_turn else "the queue" if view.waits else "take the turn"
    there = view.banner is not None and bool(view.banner.chapter)
    return (("app.turn", turn), *((("app.jump", ""),) if there else ()))


def disturbance_sentence(view: ClassView | None, run: Run) -> str:
    """Return a sentence that names other tasks that ran on a run's CPUs. Return "" if no other tasks ran there, or if
    this host has no class. In a class such tasks are unusual, because only the user with the turn may use these
    CPUs."""
    if view is None or not run.disturbed:
        return ""
    named = ", ".join(f"{load_called(load, SHORT)} ({load.cpu_percent:g} %)" for load in run.disturbed[:MOST_PHRASES])
    return f"This run was disturbed: {named} also ran on its CPUs."


def waiting_lines(view: ClassView, width: int) -> Iterable[Text]:
    """Yield the page for waiting: the member who has the turn, then the queue in its order."""
    yield Text("Waiting for the turn", "bold text")
    yield Text()
    yield from wrap(clean(view.holder, SENTENCE), width)
    yield Text()
    room = max(width - 24, 10)
    for row in view.queue():
        colour = "bold text" if row.own else "dim"
        sign = "▸" if row.own else " "
        who = clean(row.who, room)
        yield Text.assemble((f"{sign} {row.number:>2}  ", "accent"), (f"{who:<{room}}  {row.at_most:>16}", colour))
    if more := view.unseen():
        yield Text(f"      {more}", "dim")
    yield Text()
    limit = (
        f"A turn lasts at most {rounded_duration(view.host.described.longest_turn_s)}. "
        if not view.host.instructor
        else ""
    )
    yield from wrap(Text(f"{limit}Your turn begins by itself, even while you read or predict.", "dim"), width)
