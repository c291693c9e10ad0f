"""Applying a chapter's plan from its screen, and giving it back."""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.text import tally
from jitter_workshop.model.walk import PlanView
from jitter_workshop.presenter.settings_words import came_back
from jitter_workshop.tui.screens.chapter.run import ChapterRun
from jitter_workshop.tui.screens.chapter.state import Tried
from jitter_workshop.tui.widgets.sheet import Pane


class ChapterSettings(ChapterRun):
    """The settings of a chapter. They are written on a thread; what came of it is shown on the screen's own."""

    def _apply(self) -> None:
        """Make the plan that is on the screen."""
        if self._planned is None:
            return
        self.frame.class_turn.with_turn(self._apply_now)

    def _apply_now(self) -> None:
        if self._planned is None:
            return
        shown = self._planned
        changes = shown.changes
        self._tell(f"Applying: {tally(one.tunable for one in changes)}…" if changes else "Reading the settings again…")
        self.have_done(partial(self._apply_and_look, shown), self._applied, self._not_applied)

    def _apply_and_look(self, shown: PlanView) -> Tried:
        view = self.walk.apply(shown)
        # What a chapter looks at ends with its tunables' own assessments.
        return Tried(view, self.walk.look()[-len(self.walk.chapter.tunables) :])

    def _applied(self, tried: Tried) -> None:
        notice = self.workshop.agent_session.notice
        self._came_of_it(tried, f"{notice[:1].upper()}{notice[1:]}" if notice else "")

    def _not_applied(self, error: WorkshopError) -> None:
        self._came_of_it(Tried(error=error), "")

    def _came_of_it(self, tried: Tried, message: str) -> None:
        self._tried = tried
        self._view = "work"
        self._tell(message)
        self.query_one("#data", Pane).scroll_home(animate=False)

    def action_boots(self) -> None:
        """Plan boot parameters for every boot, or for the next one alone."""
        way = self.walk.boots.way()
        if self.run_under_way is not None or self.frame.at_work or way is None or not self._other_boots:
            return
        if way.root_first and not way.once:
            self._tell("Reading with root's rights…")
            self.have_done(lambda: self.walk.boots.choose(once=True), self._turned, self._not_planned)
            return
        self.walk.boots.choose(once=not way.once)
        self._turned()

    def _turned(self, _: None = None) -> None:
        """The plan is another one now."""
        self._planned = None
        self._view = "work"
        self._tell("")
        self.query_one("#data", Pane).scroll_home(animate=False)

    def _not_planned(self, error: WorkshopError) -> None:
        self._tell(f"Not planned: {error.sentence()}.")

    def action_undo(self) -> None:
        """Give this chapter's settings back."""
        if self.run_under_way is not None:
            return
        if not self._sets or not self.walk.applied:
            self._tell("Nothing of this chapter's stands on this host.")
            return
        self._tell("Giving back…")
        self.have_done(self.walk.undo, self._undone, self._not_undone)

    def _undone(self, result: RestoreResult) -> None:
        self._tried = self._planned = None
        self._tell(came_back(result))

    def _not_undone(self, error: WorkshopError) -> None:
        self._tell(f"Not given back: {error.sentence()}.")
