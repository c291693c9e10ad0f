"""Apply a chapter's plan from its screen, and give it back."""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.text import tally
from jitter_workshop.model.walk import PlanView
from jitter_workshop.presenter.changes import came_back
from jitter_workshop.tui.screens.chapter.page import ChapterPage, Tried


class ChapterChanges:
    """Write a chapter's settings on a thread, and show the result on the screen's own."""

    def __init__(self, page: ChapterPage) -> None:
        self._page = page
        self._screen = page.screen

    def apply(self) -> None:
        """Make the plan that is on the screen; on a class host once the turn has come."""
        if self._page.planned is not None:
            self._page.frame.class_turn.with_turn(self._apply_now)

    def _apply_now(self) -> None:
        shown = self._page.planned
        if shown is None:
            return
        changes = shown.changes
        told = f"Applying: {tally(one.tunable for one in changes)}…" if changes else "Reading the settings again…"
        self._screen.tell(told)
        self._screen.on_thread(partial(self._apply_and_look, shown), self._applied, self._not_applied)

    def _apply_and_look(self, shown: PlanView) -> Tried:
        walk = self._page.walk
        view = walk.apply(shown)
        # What a chapter looks at ends with its tunables' own assessments.
        return Tried(view, walk.host.look()[-len(walk.chapter.tunables) :])

    def _applied(self, tried: Tried) -> None:
        notice = self._page.workshop.agent_session.notice
        self._ended(tried, f"{notice[:1].upper()}{notice[1:]}" if notice else "")

    def _not_applied(self, error: WorkshopError) -> None:
        self._ended(Tried(error=error), "")

    def _ended(self, tried: Tried, message: str) -> None:
        self._page.tried = tried
        self._page.tell_work(message)

    def turn_boots(self) -> None:
        """Plan boot parameters for every boot, or for the next one alone."""
        boots = self._page.walk.host.boots
        way = boots.way()
        if way is None:
            return
        if way.root_first and not way.once:
            self._screen.tell("Reading with root's rights…")
            self._screen.on_thread(lambda: boots.choose(once=True), self._turned, self._not_planned)
            return
        boots.choose(once=not way.once)
        self._turned()

    def _turned(self, _: None = None) -> None:
        """Show the plan again after it has changed."""
        self._page.planned = None
        self._page.tell_work("")

    def _not_planned(self, error: WorkshopError) -> None:
        self._screen.tell(f"Not planned: {error.sentence()}.")

    def undo(self) -> None:
        """Give this chapter's settings back."""
        if not self._page.walk.sets or not self._page.walk.host.applied:
            self._screen.tell("Nothing of this chapter's stands on this host.")
            return
        self._screen.tell("Giving back…")
        self._screen.on_thread(self._page.walk.undo, self._undone, self._not_undone)

    def _undone(self, result: RestoreResult) -> None:
        self._page.tried = self._page.planned = None
        self._screen.tell(came_back(result))

    def _not_undone(self, error: WorkshopError) -> None:
        self._screen.tell(f"Not given back: {error.sentence()}.")
