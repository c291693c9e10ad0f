"""Handle a class host line by line: show the queue, take the turn or give it back, and go to the instructor's step."""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import UsageError, WaitStopped
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.turns.classhost import DAY_S, take_turn
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.plain.run import queued, stopping
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.classes.class_host import title_of, unknown_chapter
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course.action_meanings import beside_a_word

HELP = (
    ("turn", "show who has the turn, and who waits"),
    ("take", "take the turn of this machine, or wait for it"),
    ("give", "end your turn, and restore its changes"),
    ("go", beside_a_word(meanings.GO_TO_INSTRUCTOR)),
)


class Jump(Exception):
    """Signal that the learner wants to go to the instructor's chapter and step."""

    def __init__(self, chapter: str, step: str) -> None:
        super().__init__(chapter)
        self.chapter = chapter
        self.step = step


def tell_class_changes(workshop: Workshop, talk: Talk) -> None:
    """Print what has changed in the class since the last prompt. While the learner has the turn, always print how much
    time is left."""
    view = workshop.context.class_view
    if view is None:
        return
    view.look()
    if view.ended:
        view.find_end()
        talk.tell(f"! {clean(view.lost, SENTENCE)}", "", "  ")
    told = (view.standing, view.banner)
    if told == talk.class_told and not view.has_turn:
        return
    before, talk.class_told = talk.class_told, told
    talk.tell(f"{'●' if view.has_turn else '○'} {clean(view.brief, SENTENCE)}", "", "  ")
    if view.banner is not None and (before is None or before[1] != view.banner):
        talk.tell(f"◆ {view.banner_words(title_of(view, workshop.course))} (go takes you there)", "", "  ")


def class_menu(workshop: Workshop) -> tuple[str, ...]:
    """Return the class's commands, such as "take: the turn", for the menu below the list of chapters. Return ()
    without a class."""
    view = workshop.context.class_view
    if view is None:
        return ()
    there = ("go: to the instructor",) if view.banner is not None and view.banner.chapter else ()
    return ("turn: who waits", "give: end your turn" if view.has_turn else "take: the turn", *there)


def class_commands(workshop: Workshop) -> tuple[tuple[str, str], ...]:
    """Return the class commands and their meaning, for help; () on a host without a class."""
    return HELP if workshop.context.class_view is not None else ()


def obey_class_command(workshop: Workshop, talk: Talk, answer: str) -> bool:
    """Carry out a class command (turn, take, give, go). Return False for other answers. Raise WorkshopError if the
    command fails. Raise Jump if the command is ``go``."""
    view = workshop.context.class_view
    if view is None or answer not in [word for word, _ in HELP]:
        return False
    view.look()
    if answer == "turn":
        talk.tell(clean(view.holder, SENTENCE))
        for row in view.queue():
            talk.tell(row.line, "  ", "     ")
        if more := view.unseen():
            talk.tell(more, "     ")
    elif answer == "take":
        if view.has_turn:
            talk.tell("You have the turn already.")
        elif have_turn(workshop, talk):
            view.look()
    elif answer == "give":
        workshop.context.agent_connection.give_turn()
        talk.tell("Your turn has ended.")
    else:
        said = view.banner
        if said is None or not said.chapter:
            raise UsageError("the instructor is in no chapter now")
        if workshop.course.chapter(said.chapter) is None:
            raise UsageError(unknown_chapter(said.chapter))
        raise Jump(said.chapter, said.step)
    return True


def have_turn(workshop: Workshop, talk: Talk) -> bool:
    """Wait for the turn of a class host, and return True as soon as this user has it. Return True at once on a host
    without a class. Return False if the learner stops waiting. Raise HostError if the turn cannot be taken.

    The signals HUP and TERM end the wait. They then have their usual effect on this process.
    """
    view = workshop.context.class_view
    if view is None or workshop.context.agent_connection.has_turn:
        return True
    with stopping() as token:
        try:
            take_turn(workshop.context.agent_connection, DAY_S, token, partial(queued, talk), view.people)
        except WaitStopped:
            talk.tell("Stopped waiting. Nothing was done.")
            return False
    return True
