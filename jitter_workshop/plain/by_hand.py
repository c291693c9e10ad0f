"""Guide the learner through making a plan's writes by hand, and print what has changed on the host. On a terminal, the
host is read each second. Otherwise it is read after each Enter."""

from __future__ import annotations

import dataclasses

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.commands import HandCommands
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.by_hand import ByHandView, HandCommand
from jitter_workshop.model.course import OPEN
from jitter_workshop.model.text import PATH, SENTENCE, clean
from jitter_workshop.model.walk import PlanView
from jitter_workshop.plain.class_host import have_turn
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.course import chapter as chapter_view
from jitter_workshop.presenter.course.chapter import Fold
from jitter_workshop.presenter.host import by_hand as words
from jitter_workshop.presenter.text.lines import Lines, wrap


class PlainByHand:
    """Watch the writes of one chapter. ``view``: the state of the writes when the host was last read; None while
    nothing is watched."""

    def __init__(self, workshop: Workshop, walk: ChapterWalk, talk: Talk) -> None:
        self._workshop = workshop
        self._walk = walk
        self._talk = talk
        self.view: ByHandView | None = None
        self.taken = False
        """True once all of the plan was made by hand and taken over: nothing is left to apply."""

    def offer(self) -> str:
        """Return the menu's entry for making the writes by hand; "" if the plan's writes cannot be made by hand."""
        try:
            offered = self._walk.sets and not self._walk.by_hand.why_not(self._walk.plan())
        except WorkshopError:
            offered = False
        return "hand = type the writes · " if offered else ""

    def menu(self) -> str:
        """Return the menu while writes are watched."""
        take = "stop" if self._walk.by_hand.restoring else "take = take over your writes · stop"
        return f"Enter look again · {take} · restore · ? help · q quit"

    def begin(self, shown: PlanView | None) -> None:
        """Begin to watch the writes of the plan ``shown``, and print the lines to type. If ``shown`` is None, use the
        chapter's present plan."""
        plan = shown or self._walk.plan()
        if why := self._walk.by_hand.why_not(plan):
            self._talk.tell(words.not_for_hand(why))
        elif have_turn(self._workshop, self._talk):
            self._tell(self._walk.by_hand.begin(plan))

    def _tell(self, view: ByHandView) -> None:
        self.view = view
        self._talk.say("", *words.by_hand_step_lines(view, self._talk.width), "")
        self._talk.tell(" ".join(filter(None, (words.by_hand_sentence(view), words.guarded(view)))))

    def look(self) -> None:
        """Read the host, and print each write whose state has changed. Also print how many writes the learner has
        made."""
        self._talk.say(*self.changed())
        if self.view is not None:
            self._talk.tell(words.by_hand_sentence(self.view))

    def changed(self) -> Lines:
        """Read the host, and return a line for each write that has changed since the last reading."""
        if self.view is None:
            return []
        before, self.view = self.view, self._walk.by_hand.look()
        return words.changed(before, self.view, self._talk.width)

    def heard(self, answer: str) -> bool:
        """Carry out ``take``, ``stop`` or ``restore`` for the learner's writes by hand, and return True. Return False
        for any other command, or if there are no such writes. Also return False for a ``restore`` that the agent
        (root's process) has to carry out. After False, the caller must carry out the command."""
        if self.view is None or answer not in ("take", "stop", "restore"):
            return False
        by_hand, talk = self._walk.by_hand, self._talk
        if answer == "restore" and (by_hand.journalled or by_hand.restoring):
            if by_hand.restoring:
                self.look()
                return True
            return False  # the agent restores, as after an apply
        if answer == "restore":
            self._tell(by_hand.begin_restore())
        elif by_hand.restoring:
            by_hand.close()
            self.view = None
            talk.tell(words.OWED if by_hand.owed else words.ALL_BACK)
        else:
            self._take(wrong=answer == "take")
        return True

    def restore(self) -> bool:
        """Show the learner how to restore values by hand that this tool cannot restore itself. Return False if there
        are no such values."""
        if not self._walk.by_hand.owed:
            return False
        self._tell(self._walk.by_hand.begin_restore())
        return True

    def _take(self, wrong: bool) -> None:
        self._talk.say(*self.changed())
        if wrong and self.view is not None and self._walk.by_hand.asks_first(self.view):
            self._talk.tell(words.was_it_you(self.view, "'take'"))
            return
        view = self._walk.adopt(wrong)
        self.view = None
        self.taken = bool(view.applied) and not view.refused
        self._talk.tell(view.text)
        for where, reason in view.refused:
            self._talk.tell(f"! Not as planned: {clean(where, PATH)}: {clean(reason, SENTENCE)}", "", "  ")


class PlainCommands:
    """Show a chapter's commands that the learner types, three at a time. Tell which of them were run."""

    def __init__(self, walk: ChapterWalk, talk: Talk) -> None:
        self._commands = HandCommands(walk)
        self._talk = talk
        self._seen = self._commands.look()
        self.fold = Fold(more="more")

    def look(self) -> tuple[HandCommand, ...]:
        """Read the host, and return the commands with their states."""
        self._seen = self._commands.look()
        return self._seen

    def more(self) -> None:
        """Show the next commands; after the last ones, show the first ones again."""
        following = self.fold.first + OPEN
        self.fold = dataclasses.replace(self.fold, first=following if following < len(self._seen) else 0)
        self._talk.say("", *chapter_view.command_list_lines(self.look(), self._talk.width, self.fold), "")

    def changed(self) -> Lines:
        """Read the host, and return lines for each command that was run since the last reading, or for which another
        wrong value was found."""
        before, width = self._seen, self._talk.width
        told: Lines = []
        for was, now in zip(before, self.look(), strict=True):
            if now.state in ("done", "wrong") and (now.state, now.found) != (was.state, was.found):
                told += wrap(clean(now.command, PATH), width, "✓ " if now.state == "done" else "✗ ", "  ")
                told += chapter_view.command_found(now, width)
        return told
