"""Ask a question that has to be answered before something happens: give back, apply again, leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from jitter_workshop.model.text import clean
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.sheet import Build, Pane, Sheet


class Question(Page):
    """Show ``title``, the lines of ``about``, and the keys with their effects. ``agree`` is called after Enter,
    ``keep`` after k (None: k does nothing). Escape changes nothing."""

    scope: ClassVar[Scope] = "question"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("question"))

    def __init__(
        self, title: str, about: Build, keys: str, agree: Callable[[], None], keep: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        self._title_text = title
        self._about = about
        self._keys = keys
        self._agree = agree
        self._keep = keep

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"):
            with Pane():
                yield Sheet(self._lines, id="question-sheet")
            yield Sheet(self._key_lines, id="question-keys")

    def _lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield from wrap(Text(clean(self._title_text, 120), "bold text"), width)
        yield Text()
        yield from self._about(width)

    def _key_lines(self, width: int) -> Iterable[Text]:
        yield from wrap(Text(self._keys, "dim"), width)
        yield Text()

    def _answer(self, call: Callable[[], None]) -> None:
        self.dismiss(None)
        self.app.call_next(call)

    def action_agree(self) -> None:
        self._answer(self._agree)

    def action_keep(self) -> None:
        if self._keep is not None:
            self._answer(self._keep)

    def action_up(self) -> None:
        self.query_one(Pane).scroll_relative(y=-3, animate=False)

    def action_down(self) -> None:
        self.query_one(Pane).scroll_relative(y=3, animate=False)
