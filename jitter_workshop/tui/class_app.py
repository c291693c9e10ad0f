"""What a class host adds to the app: a look at the class now and then, the turn, and the way to the instructor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.timer import Timer

if TYPE_CHECKING:
    from jitter_workshop.flow.workshop import Workshop

EVERY_S = 2.0
"""So often the class is looked at: two small files, never while something is measured."""


class ClassApp(App[None]):
    """The app's part that knows of classes."""

    workshop: Workshop
    at_work: bool
    _class_timer: Timer | None = None
    _stop_run: Callable[[], None] | None = None

    def begin_work(self) -> None:
        raise NotImplementedError

    def end_work(self) -> None:
        raise NotImplementedError

    def going_on(self) -> None:
        raise NotImplementedError

    def go_to_chapter(self, chapter_id: str, step: str = "") -> None:
        raise NotImplementedError

    @property
    def stop_run(self) -> Callable[[], None] | None:
        """Set while something is measured: stops it without waiting for it."""
        return self._stop_run

    @stop_run.setter
    def stop_run(self, stop: Callable[[], None] | None) -> None:
        self._stop_run = stop
        # No timer of ours wakes while a block is measured.
        if self._class_timer is not None and stop is not None:
            self._class_timer.pause()
        elif self._class_timer is not None:
            self._class_timer.resume()

    def begin_class(self) -> None:
        """Look at the class from now on, where this is a class host."""
        if self.workshop.class_view is not None:
            self.workshop.class_view.look()
            self._class_timer = self.set_interval(EVERY_S, self.look_at_class)

    def look_at_class(self) -> None:
        """Whose turn is it, where is the instructor?"""
        from jitter_workshop.tui.screens.base import WorkshopScreen

        view = self.workshop.class_view
        if view is None or self.stop_run is not None:
            return
        if view.to_post():
            self.run_worker(view.post, thread=True, group="post")
        if not view.look():
            return
        if isinstance(self.screen, WorkshopScreen):
            self.screen.show_class()

    def action_turn(self) -> None:
        """Take the turn of a class host, or give it back."""
        view = self.workshop.class_view
        if view is None or self.screen.is_modal or self.at_work:
            return
        if not view.has_turn:
            from jitter_workshop.tui.screens.turn import TurnPage

            self.push_screen(TurnPage())
            return
        self.begin_work()
        self.run_worker(self._give_turn, thread=True)

    def _give_turn(self) -> None:
        self.workshop.hands.give_turn()
        self.call_from_thread(self._gave_turn)

    def _gave_turn(self) -> None:
        self.end_work()
        self.look_at_class()
        self.going_on()

    def action_jump(self) -> None:
        """Go to the chapter and step where the instructor is."""
        view = self.workshop.class_view
        if view is not None and view.banner is not None and view.banner.chapter and not self.screen.is_modal:
            self.go_to_chapter(view.banner.chapter, view.banner.step)
