"""Apply and give back from a screen: on a thread, one at a time, with no other work meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from textual import on
from textual.message import Message

from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.tui.screens.common.base import WorkshopScreen

T = TypeVar("T")

_MEANWHILE = frozenset({"up", "down", "page_up", "page_down"})
"""The keys that still work while the host is being changed: scrolling."""


class HandsDone(Message):
    """Report that the work is over; ``tell`` shows its result."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self.tell = tell


class HandWork(WorkshopScreen):
    """Show a screen that can have the host changed."""

    def have_done(
        self, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[WorkshopError], None]
    ) -> None:
        """Do ``work`` on a thread. Then call ``then`` or ``failed`` on the screen's own thread."""
        if self.frame.class_turn.queued:
            failed(HostError("you wait for the turn of this machine", "T shows the queue; x leaves it"))
            return

        def on_thread() -> None:
            try:
                tell = partial(then, work())
            except WorkshopError as error:
                tell = partial(failed, error)
            self.post_message(HandsDone(tell))

        self.frame.begin_work()
        self.refresh_keys()
        self.run_worker(on_thread, thread=True, group="hands")

    @on(HandsDone)
    def _hands_done(self, message: HandsDone) -> None:
        message.stop()
        # The work is ended before its result is told, so that the screen is read again with all its keys.
        leaving = self.frame.leaving
        self.frame.end_work()
        if not leaving:
            message.tell()
            self.sheet("#title").show(self.title_lines)
            self.refresh_keys()
            self.work_over()

    def work_over(self) -> None:
        """Show the host as it is now."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.frame.at_work and action not in _MEANWHILE:
            return False
        return super().check_action(action, parameters)
