"""Wait for the turn of a class host: show its holder and the queue. Esc closes the page and keeps the place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from jitter_workshop.presenter import class_words
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_KEYS = "Esc reads on and keeps the place · x leaves the queue"


class TurnPage(Page):
    """Show the queue, kept up to date. ``came``: the turn came while it was shown. The app waits; the page only
    shows."""

    scope: ClassVar[Scope] = "queue"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("queue"))

    def __init__(self) -> None:
        super().__init__()
        self.came = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"):
            with Pane():
                yield Sheet(self._lines, id="turn-sheet")
            yield Sheet(self._key_lines, id="question-keys")

    def show_class(self) -> None:
        """Show the class as it was seen last."""
        if self.is_mounted:
            self.query_one("#turn-sheet", Sheet).show(self._lines)

    def over(self, *, came: bool) -> None:
        """Close the page, because the wait is over."""
        self.came = came
        self.dismiss(None)

    def action_leave_queue(self) -> None:
        """Give the place up; the page closes after that."""
        self.frame.class_turn.leave_queue()

    def action_up(self) -> None:
        self.query_one(Pane).scroll_relative(y=-3, animate=False)

    def action_down(self) -> None:
        self.query_one(Pane).scroll_relative(y=3, animate=False)

    def _lines(self, width: int) -> Iterable[Text]:
        view = self.frame.workshop.class_view
        yield Text()
        if view is not None:
            yield from class_words.waiting_lines(view, width)

    def _key_lines(self, width: int) -> Iterable[Text]:
        yield from wrap(Text(_KEYS, "dim"), width)
        yield Text()
