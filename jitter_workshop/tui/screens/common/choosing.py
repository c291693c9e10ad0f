"""Provide pages on which one of a few numbered lines is chosen."""

from __future__ import annotations

from textual import events

from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.sheet import Pane


class ChoosingPage(Page):
    """Choose a line with up, down and the digits. A subclass handles the choice in :meth:`_choose`, which also gets
    indices of lines that do not exist."""

    _cursor = 0

    def _choose(self, index: int) -> None:
        raise NotImplementedError

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character in "123456789":
            self._choose(int(event.character) - 1)

    def action_up(self) -> None:
        self._choose(self._cursor - 1)

    def action_down(self) -> None:
        self._choose(self._cursor + 1)

    def action_page_up(self) -> None:
        self.query_one(Pane).scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self.query_one(Pane).scroll_page_down(animate=False)
