"""Explain the terms of a page in the room that the page leaves free."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.app import ComposeResult
from textual.containers import Vertical

from jitter_workshop.presenter.text.glossary import fitting_term_lines
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.widgets.sheet import Sheet, panel

_LEAST_ROWS, _FRAME = 5, 2
"""The least rows in which terms are explained: fewer look like a rest of the page. The rows of the frame."""


class WordsBeside(Vertical):
    """Show terms with their meanings, only whole ones, in as many rows as the layout gives. ``text``: a function that
    returns the page's text."""

    def __init__(self, text: Callable[[], str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text = text

    def compose(self) -> ComposeResult:
        yield panel(Sheet(self._terms, id="words-sheet"), "Words")

    def renew(self) -> None:
        """Show the terms of the present page."""
        sheet = self.query_one(Sheet)
        sheet.renew()
        sheet.display = bool(sheet.lines(self.size.width))

    def on_resize(self) -> None:
        self.renew()

    def _terms(self, width: int) -> Iterable[Text]:
        rows = self.size.height - _FRAME
        return fitting_term_lines(self._text(), width, rows) if rows >= _LEAST_ROWS else ()
