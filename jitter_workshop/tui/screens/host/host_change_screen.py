"""Applying and giving back from a screen: on a thread of its own, one at a time, and nothing else meanwhile."""

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
"""What a screen still does while the host is being changed: scroll."""


class HandsDone(Message):
    """The work is over; ``tell`` shows what came of it."""

    def __init__(self, tell: Callable[[], None]) -> None:
        super().__init__()
        self.tell = tell


class HandWork(WorkshopScreen):
    """A screen that can have the host changed."""

    def have_done(
        self, work: Callable[[], T], then: Callable[[T], None], failed: Callable[[WorkshopError], None]
    ) -> None:
        """Do ``work`` on a thread; then, on the screen's own, ``then`` or ``failed``."""
        if self.frame.class_turn.queued:
            failed(HostError("you wait for the turn of this machine", "T shows the queue, which x leaves"))
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
        # Over before it is told: what is shown then is read anew, with all its keys.
        leaving = self.frame.leaving
        self.frame.end_work()
        if not leaving:
            message.tell()
            self.sheet("#title").show(self.title_lines)
            self.refresh_keys()
            self.work_over()

    def work_over(self) -> None:
        """Show what the host is now."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.frame.at_work and action not in _MEANWHILE:
            return False
        return super().check_action(action, parameters)
