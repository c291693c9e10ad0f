"""Test that a pane asks to be painted after each scroll. Textual alone paints nothing if the region of a hidden widget
is read after the scroll and a layout follows: the text stood still while the keys said that its end was read."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult

from jitter_workshop.model.palette import MONO
from jitter_workshop.presenter.text.lines import Lines
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

ROWS, LINES = 10, 60


class Scrolled(App[None]):
    palette = MONO

    def compose(self) -> ComposeResult:
        with Pane():
            yield Sheet(lambda _: _lines())


def _lines() -> Lines:
    return [Text(f"line {n}") for n in range(LINES)]


@pytest.mark.parametrize(("top", "painted"), [(20, True), (LINES - ROWS, True), (5, False)])
async def test_a_pane_asks_to_be_painted_after_a_scroll(top: int, painted: bool) -> None:
    app = Scrolled()
    async with app.run_test(size=(40, ROWS)) as pilot:
        pane = app.query_one(Pane)
        pane.scroll_to(y=5, animate=False, immediate=True)
        await pilot.pause()
        pane._exchange_repaint_regions()
        pane.scroll_to(y=top, animate=False, immediate=True)
        assert bool(pane._exchange_repaint_regions()) is painted
