"""Explain the terms on the present screen, each in one sentence."""

from __future__ import annotations

from collections.abc import Iterable

from jitter_workshop.presenter.text.glossary import explained
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.screens.common.base import Page
from jitter_workshop.tui.widgets.sheet import Sheet


class GlossaryPage(Page, scope="dialog"):
    """Show what each term of the screen or page below means."""

    def lines(self, width: int) -> Iterable[Text]:
        below = self.app.screen_stack[-2]
        shown = (one for one in below.query(Sheet) if one.region.area)
        return explained("\n".join(sheet.for_glossary() for sheet in shown), width)

    def key_words(self) -> str:
        return "↑ ↓ scroll · y copies · Esc closes"

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self.sheet("#page-sheet").plain())
