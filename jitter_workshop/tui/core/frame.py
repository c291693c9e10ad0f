"""Hold what all screens share, so that no screen imports the app."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import ClassVar, Protocol

from textual.binding import BindingType
from textual.driver import Driver
from textual.screen import Screen

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.session import preferences
from jitter_workshop.tui.core.actions import bindings
from jitter_workshop.tui.core.theme import PaintedApp
from jitter_workshop.tui.terminal.driver import QuietDriver


class ClassTurn(Protocol):
    """Take turns on a host that a class shares: wait for this learner's turn, begin it, and end it."""

    @property
    def queued(self) -> bool: ...
    def with_turn(self, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None: ...
    def leave_queue(self) -> None: ...
    def look(self) -> None: ...
    def look_between_blocks(self) -> None: ...
    def pause(self, paused: bool) -> None: ...


class Frame(PaintedApp):
    """Hold the state that all screens share: the workshop, the preferences, and the present run or change.

    The app sets ``class_turn`` and defines how to open each screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("app"))
    class_turn: ClassTurn

    def __init__(self, workshop: Workshop, driver: type[Driver]) -> None:
        self.preferences, self.preferences_notice = preferences.load()
        super().__init__(self.preferences.theme, driver)
        self.workshop = workshop
        self.exit_code = 0
        self.leaving = False
        self.stop_run: Callable[[], None] | None = None
        """A function that stops the measurement without waiting; None while nothing is measured."""
        self.suspend_run: Callable[[], None] | None = None
        """A function that suspends the measurement and then this process, without waiting; None while nothing is
        measured.
        """
        self.run_goes_on: Callable[[], None] | None = None
        """A function that is called when the process continues after a stop; None while nothing is measured."""
        self.at_work = False
        """True while a thread changes this host. Then no other work begins, and leaving waits for the end."""
        self.load_to_tell: HostLoad | None = None
        """The load that a page tells before the next run; None if there is none, or if it was told at home."""
        self._after_work: Callable[[], None] | None = None
        self._after_run: Callable[[], None] | None = None

    @property
    def notices(self) -> list[str]:
        """Return notices about the session and the preferences, as sentences."""
        return [said for said in (*self.workshop.context.notices, self.preferences_notice) if said]

    @property
    def measuring(self) -> bool:
        """Return True while a run is being made."""
        return self.stop_run is not None

    def begin_run(self, stop: Callable[[], None], suspend: Callable[[], None], goes_on: Callable[[], None]) -> None:
        """Keep the functions that stop, suspend and continue the run that begins."""
        self.stop_run, self.suspend_run, self.run_goes_on = stop, suspend, goes_on
        # The run's result names what disturbed it.
        self.load_to_tell = None
        self.class_turn.pause(True)

    def end_run(self) -> None:
        """Forget the functions of a run, because the run has ended."""
        self.stop_run = self.suspend_run = self.run_goes_on = None
        self.class_turn.pause(False)

    def run_over(self) -> None:
        """Handle the end of a run, after its result is shown. If the user asked during the run to leave, leave now."""
        after, self._after_run = self._after_run, None
        if after is not None:
            after()

    def begin_work(self) -> None:
        """Prevent other work from beginning, because a thread is about to change the host."""
        self.at_work = True

    def end_work(self) -> None:
        """Allow other work again. If the user asked to leave meanwhile, leave now."""
        self.at_work = False
        after, self._after_work = self._after_work, None
        if after is not None:
            after()

    def when_painted(self, screen: Screen[None], callback: Callable[[], object]) -> None:
        """Call ``callback`` once the screen's next frame has been sent to the terminal. The call may come on the output
        thread."""

        def frame_made() -> None:
            driver = self._driver
            if isinstance(driver, QuietDriver):
                driver.when_written(callback)
            else:
                callback()

        screen.call_after_refresh(frame_made)

    def change_preferences(self, **changes: object) -> None:
        """Change preferences, use the new values at once, and save them."""
        self.preferences = dataclasses.replace(self.preferences, **changes)  # type: ignore[arg-type]
        self.paint(self.preferences.theme)
        try:
            preferences.save(self.preferences)
        except WorkshopError as error:
            self.show_error(error)

    # -- the way between screens, which the app knows --------------------------------------------------------------

    def open_chapter(self, chapter_id: str, *, measure: bool = False, step: str = "") -> None:
        """Open a chapter at its current step, or at ``step`` if the chapter has that step and the learner may enter it.
        ``measure``: measure at once."""
        raise NotImplementedError

    def go_to_chapter(self, chapter_id: str, step: str = "") -> None:
        """Close all screens except the home screen, then open a chapter. ``step``: the step to open; "" for the
        chapter's current step."""
        raise NotImplementedError

    def show_error(self, error: WorkshopError) -> None:
        """Show a dialog with an error: what was not done, and what the user can do. The text can be copied."""
        raise NotImplementedError

    def going_on(self) -> None:
        """Draw the screen again, because the host may have changed. This is called when this process continues after a
        stop, and when a class turn has ended.
        """
        raise NotImplementedError
