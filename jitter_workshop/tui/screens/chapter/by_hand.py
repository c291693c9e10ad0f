"""Watch the learner make the writes of a plan by hand. The workshop reads the host every second. It records the
learner's writes in the same way as its own, so that it can restore the old values.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from textual.worker import Worker

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.by_hand import ByHandView
from jitter_workshop.model.walk import ApplyView, PlanView
from jitter_workshop.presenter.host import by_hand as words
from jitter_workshop.tui.screens.chapter.page import ApplyOutcome, ChapterPage
from jitter_workshop.tui.screens.chapter.steps import Step

LOOK_EVERY_S = 1.0
"""Interval between two looks at the host, in s."""


class ChapterByHand:
    """Watch the writes that a learner makes by hand in one chapter. The host is read on a thread; this class writes
    nothing to the host. ``now``: a function that returns the step on the screen."""

    def __init__(self, page: ChapterPage, now: Callable[[], Step], enter_step: Callable[[], None]) -> None:
        self._page = page
        self._now = now
        self._enter_step = enter_step
        self._walk = page.walk
        self._screen = page.screen
        self._looking: Worker[None] | None = None

    def watch(self) -> None:
        """Read the host every LOOK_EVERY_S seconds while the learner works, and show what has changed."""
        if self._walk.sets or any(one.check for one in self._walk.chapter.by_hand):
            self._screen.set_interval(LOOK_EVERY_S, self._look)

    def switch(self) -> None:
        """Begin to watch the plan on the screen, or stop watching it."""
        page, by_hand = self._page, self._walk.by_hand
        if by_hand.opened:
            self._stop()
            return
        if not self._now().shows_plan or page.tried is not None or page.planned is None:
            self._screen.tell("At the step 'apply', d lets you make the writes yourself.")
            return
        if why := by_hand.why_not(page.planned):
            self._screen.tell(words.not_for_hand(why))
            return
        page.frame.class_turn.with_turn(partial(self._begin, page.planned))

    def _begin(self, shown: PlanView) -> None:
        self._screen.tell("First the old values are written to the journal…")
        self._screen.on_thread(partial(self._walk.by_hand.begin, shown), self._began, self._not_begun)

    def _began(self, view: ByHandView) -> None:
        self._page.by_hand = view
        self._page.tell_work("")

    def _not_begun(self, error: WorkshopError) -> None:
        self._page.planned = None
        self._page.tell_work(f"Not watched: {error.sentence()}.")

    def _look(self) -> None:
        page, step = self._page, self._now()
        if page.run is not None or page.frame.at_work:
            return
        if step.shows_commands:
            self._look_for_commands()
        elif step.shows_plan and page.by_hand is not None:
            self._look_for_writes()

    def _look_for_writes(self) -> None:
        """Look which writes of the plan the learner has made."""

        def look() -> None:
            with contextlib.suppress(WorkshopError):
                self._screen.call_later(self._seen, self._walk.by_hand.look())

        self._on_thread(look)

    def _look_for_commands(self) -> None:
        """Look which by-hand commands the learner has run."""
        commands = self._page.commands
        if not commands.checks_any:
            return

        def look() -> None:
            before = commands.listed()
            with contextlib.suppress(WorkshopError):
                if commands.look() != before:
                    self._screen.call_later(self._screen.redraw)

        self._on_thread(look)

    def _on_thread(self, look: Callable[[], None]) -> None:
        """Run ``look`` on a thread. Do nothing if the previous look has not ended, so that slow looks do not pile
        up."""
        if self._looking is None or self._looking.is_finished:
            self._looking = self._screen.run_worker(look, thread=True, group="by_hand")

    def _seen(self, view: ByHandView) -> None:
        """Show what was read from the host. Show nothing if the watch ended while the host was read."""
        page = self._page
        if self._walk.by_hand.opened and page.by_hand is not None and view != page.by_hand:
            page.by_hand = view
            self._screen.tell("")

    def enter(self) -> None:
        """Record the writes that the learner has made, as if the workshop had made them. If the learner is restoring
        old values by hand, stop watching, and record nothing. If the learner has made no write yet, or must confirm a
        write first, only show a sentence.
        """
        view = self._page.by_hand
        if view is None:
            return
        if self._walk.by_hand.restoring:
            self._stop()
        elif not view.count("done", "hidden", "wrong") and not view.complete:
            self._screen.tell(words.NOTHING_YET)
        elif self._walk.by_hand.asks_first(view):
            self._screen.tell(words.was_it_you(view, "Enter"))
        else:
            self._screen.on_thread(self._adopt, self._adopted, self._adopted)

    def _adopt(self) -> ApplyOutcome:
        view = self._walk.adopt(wrong=True)
        return view, self._walk.host.look()[-len(self._walk.chapter.tunables) :]

    def _adopted(self, tried: ApplyOutcome) -> None:
        self._page.by_hand = None
        self._page.tried = tried
        self._page.tell_work("")

    def _stop(self) -> None:
        """Stop watching, and record the learner's writes as applied. Show a plan of the remaining writes. If the
        learner was restoring old values by hand, show a sentence instead. The sentence tells if all old values are
        restored.
        """
        if self._walk.by_hand.restoring:
            done = self._page.by_hand is not None and self._page.by_hand.complete
            self._walk.by_hand.close()
            self._stopped(words.ALL_BACK if done else words.OWED)
            return
        self._screen.on_thread(self._walk.adopt, self._left, self._not_begun)

    def _left(self, view: ApplyView) -> None:
        self._stopped(view.text if view.applied else "The workshop no longer watches. No write was made.")

    def _stopped(self, text: str) -> None:
        self._page.by_hand = self._page.planned = None
        self._page.tell_work(text)

    @property
    def can_restore(self) -> bool:
        """Return True if the key u can restore values that were changed by hand, or help the learner to restore
        them."""
        by_hand = self._walk.by_hand
        return by_hand.owed or (by_hand.opened and by_hand.journalled)

    def restore(self) -> bool:
        """Begin to restore by hand the values that only the learner can restore. Return False if there are none."""
        by_hand = self._walk.by_hand
        if (by_hand.opened and by_hand.journalled) or not by_hand.owed:
            return False
        try:
            view = by_hand.begin_restore()
            if not self._now().shows_plan:
                self._walk.go("apply")
                self._enter_step()
        except WorkshopError as error:
            self._screen.tell(error.sentence())
        else:
            self._began(view)
        return True

    def end(self) -> None:
        """Stop watching, because the learner leaves the chapter."""
        self._page.by_hand = None
        self._walk.by_hand.leave()
