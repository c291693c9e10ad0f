"""Show a message that has to be read: what was not done, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.text import clean
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.sheet import Pane, Sheet


class ErrorDialog(Page):
    """Show a WorkshopError: title, message, advice. ``y`` copies the text; so does selecting it."""

    scope: ClassVar[Scope] = "dialog"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("dialog"))

    def __init__(self, error: WorkshopError) -> None:
        super().__init__()
        self.error = error
        self._copied = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"), Pane():
            yield Sheet(self._lines, id="dialog-sheet")

    def _lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield from wrap(Text(clean(self.error.title, 80), "bold bad"), width, "✗ ")
        yield Text()
        yield from wrap(Text(clean(self.error.message, 1_000), "text"), width)
        if self.error.advice:
            yield Text()
            yield from wrap(Text(clean(self.error.advice, 1_000), "text"), width, "→ ")
        yield Text()
        copied = "in the clipboard, where this terminal allows it" if self._copied else "y copies this text"
        yield from wrap(Text(f"Esc closes · {copied}", "dim"), width)
        yield Text()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(f"{self.error.title}: {self.error.sentence()}")
        self._copied = True
        self.query_one("#dialog-sheet", Sheet).show(self._lines)

    def action_up(self) -> None:
        self.query_one(Pane).scroll_relative(y=-3, animate=False)

    def action_down(self) -> None:
        self.query_one(Pane).scroll_relative(y=3, animate=False)
