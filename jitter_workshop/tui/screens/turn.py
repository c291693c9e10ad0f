"""Waiting for the turn of a class host: where one stands, until it comes or Escape gives the place up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.message import Message

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.classhost import DAY_S, take_turn
from jitter_workshop.model.text import clean
from jitter_workshop.tui.actions import Scope, bindings
from jitter_workshop.tui.screens.base import Page
from jitter_workshop.tui.theme import Palette
from jitter_workshop.tui.widgets.prose import wrap
from jitter_workshop.tui.widgets.sheet import Sheet

_EVERY_S = 1.0


class TurnPage(Page):
    """Asks for the turn as soon as it is shown."""

    scope: ClassVar[Scope] = "dialog"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("dialog"))

    @dataclass
    class Over(Message):
        """The wait is over; ``error``: why the turn did not come, None where it did."""

        error: WorkshopError | None = None

    def __init__(self) -> None:
        super().__init__()
        self._cancel = CancelToken()

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"):
            yield Sheet(self._lines, id="turn-sheet")

    def on_mount(self) -> None:
        self.set_interval(_EVERY_S, self._look)
        self.run_worker(self._wait, thread=True)

    def on_unmount(self) -> None:
        self._cancel.cancel("the workshop was left")

    def action_close(self) -> None:
        """Escape: give the place up."""
        self._cancel.cancel("Escape")

    def _wait(self) -> None:
        error: WorkshopError | None = None
        try:
            take_turn(self.workshop_app.workshop.hands, DAY_S, self._cancel)
        except WorkshopError as refusal:
            error = refusal
        finally:
            self._cancel.close()
        self.post_message(self.Over(error))

    @on(Over)
    def _over(self, message: Over) -> None:
        app = self.workshop_app
        self.dismiss(None)
        app.look_at_class()
        if message.error is not None and not isinstance(message.error, WaitStopped):
            app.call_next(app.show_error, message.error)

    def _look(self) -> None:
        view = self.workshop_app.workshop.class_view
        if view is not None and view.look():
            self.query_one("#turn-sheet", Sheet).show(self._lines)

    def _lines(self, width: int, palette: Palette) -> Iterable[Text]:
        view = self.workshop_app.workshop.class_view
        yield Text()
        yield Text("Waiting for the turn", style=f"bold {palette.text}")
        yield Text()
        yield from wrap(Text(clean(view.turn if view is not None else "", 300), style=palette.text), width)
        yield Text()
        yield from wrap(Text("The turn begins by itself. Esc gives the place up.", style=palette.dim), width)
        yield Text()
