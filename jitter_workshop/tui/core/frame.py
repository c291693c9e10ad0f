"""Hold what all screens share, so that no screen imports the app."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Protocol

from textual.binding import BindingType
from textual.screen import Screen

from jitter_workshop.errors import WorkshopError
from jitter_workshop.presenter import preferences
from jitter_workshop.tui.core.actions import bindings
from jitter_workshop.tui.core.theme import PaintedApp
from jitter_workshop.tui.terminal.driver import QuietDriver

if TYPE_CHECKING:
    from textual.driver import Driver

    from jitter_workshop.flow.chapters.workshop import Workshop


class ClassTurn(Protocol):
    """Wait for the turn of a class host, hold it and give it back."""

    @property
    def queued(self) -> bool: ...
    def with_turn(self, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None: ...
    def leave_queue(self) -> None: ...
    def look(self) -> None: ...
    def look_between_blocks(self) -> None: ...
    def pause(self, paused: bool) -> None: ...


class Frame(PaintedApp):
    """Hold what all screens share: the workshop, the preferences, the run or the change under way.

    The app makes ``class_turn`` and knows the way between screens.
    """

    BINDINGS: ClassVar[list[BindingType]] = list(bindings("app"))
    class_turn: ClassTurn

    def __init__(self, workshop: Workshop, driver: type[Driver]) -> None:
        self.settings, self.settings_notice = preferences.load()
        super().__init__(self.settings.theme, driver)
        self.workshop = workshop
        self.exit_code = 0
        self.leaving = False
        self.stop_run: Callable[[], None] | None = None
        """Set while something is measured: stops it without waiting for it."""
        self.suspend_run: Callable[[], None] | None = None
        """Set while something is measured: freezes it and then this process, without waiting for that."""
        self.run_goes_on: Callable[[], None] | None = None
        """Set while something is measured: told when the process goes on after a stop."""
        self.at_work = False
        """Is this host being changed, on a thread? Then nothing else begins, and leaving waits for the end of it."""
        self._after_work: Callable[[], None] | None = None
        self._after_run: Callable[[], None] | None = None

    @property
    def measuring(self) -> bool:
        """Return True while a run is under way."""
        return self.stop_run is not None

    def begin_run(self, stop: Callable[[], None], suspend: Callable[[], None], goes_on: Callable[[], None]) -> None:
        """Keep the ways to stop and to freeze the run that begins."""
        self.stop_run, self.suspend_run, self.run_goes_on = stop, suspend, goes_on
        self.class_turn.pause(True)

    def end_run(self) -> None:
        """Forget the run, which has ended."""
        self.stop_run = self.suspend_run = self.run_goes_on = None
        self.class_turn.pause(False)

    def run_over(self) -> None:
        """Ask who wanted to leave during the run, which is over and shown."""
        after, self._after_run = self._after_run, None
        if after is not None:
            after()

    def begin_work(self) -> None:
        """Keep other work away: the host is about to be changed on a thread."""
        self.at_work = True

    def end_work(self) -> None:
        """Let other work in again, and let who wanted to leave meanwhile leave now."""
        self.at_work = False
        after, self._after_work = self._after_work, None
        if after is not None:
            after()

    def when_painted(self, screen: Screen[None], callback: Callable[[], object]) -> None:
        """Call back once the screen's next frame has left for the terminal; perhaps on the output thread."""

        def frame_made() -> None:
            driver = self._driver
            if isinstance(driver, QuietDriver):
                driver.when_written(callback)
            else:
                callback()

        screen.call_after_refresh(frame_made)

    def change_settings(self, **changes: object) -> None:
        """Change preferences, let them take effect, and keep them."""
        self.settings = dataclasses.replace(self.settings, **changes)  # type: ignore[arg-type]
        self.paint(self.settings.theme)
        try:
            preferences.save(self.settings)
        except WorkshopError as error:
            self.show_error(error)

    # -- the way between screens, which the app knows --------------------------------------------------------------

    def open_chapter(self, chapter_id: str, *, measure: bool = False, step: str = "") -> None:
        """Enter a chapter where it is to be gone on with, or at ``step`` where it has that and one may go there; with
        ``measure``, measure at once."""
        raise NotImplementedError

    def go_to_chapter(self, chapter_id: str, step: str = "") -> None:
        """Leave everything but the home screen and enter a chapter, at a step where one is named."""
        raise NotImplementedError

    def show_error(self, error: WorkshopError) -> None:
        """Show a dialog that says what was not done and what to do; its text can be copied."""
        raise NotImplementedError

    def going_on(self) -> None:
        """Show the host again: the process was stopped and goes on, or a turn has ended."""
        raise NotImplementedError
