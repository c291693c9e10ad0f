"""Show the line of the steps. A click on a step opens the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message

from jitter_workshop.model.course import StepName
from jitter_workshop.model.walk import StepView
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.widgets.sheet import Sheet

_BESIDE_PAGE = 2
"""The blanks before the page of the step."""


class LoopLine(Sheet):
    """Show the steps of a chapter in one line.

    A ✓ follows each step that is done. A ◌ follows each step that was seen on a recording. If the steps do not fit with
    these signs, only their brighter names tell that. The present step has ▸ and capital letters. The page of the step,
    such as ``page 1 of 2``, stands at the right end if the line has room for it.
    """

    @dataclass
    class Clicked(Message):
        """Report that a step was clicked."""

        step: StepName

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(self._line, id=id)
        self._steps: tuple[StepView, ...] = ()
        self._page = ""
        self._spans: list[tuple[int, int, StepName]] = []

    def show_steps(self, steps: Sequence[StepView]) -> None:
        """Show the steps, each with its state."""
        self._steps = tuple(steps)
        self.renew()

    def show_page(self, page: str) -> None:
        """Show which page of the step is seen; "" for nothing."""
        if page != self._page:
            self._page = page
            self.renew()

    def _line(self, width: int) -> list[Text]:
        line = Text()
        self._spans = []
        steps = [step for step in self._steps if step.state != "left_out"]
        shown = [step.shown for step in steps]
        room = width - (len(self._page) + _BESIDE_PAGE if self._page else 0)
        if sum(map(len, shown)) + len(shown) - 1 > room:
            room = width
        gap = next((n for n in (3, 2) if sum(map(len, shown)) + n * (len(shown) - 1) <= room), 1) * " "
        if sum(map(len, shown)) + len(shown) - 1 > room:
            shown = [step.shown if step.state == "now" else step.name for step in steps]
        for step, text in zip(steps, shown, strict=True):
            if self._spans:
                line.append(gap)
            self._spans.append((line.cell_len, line.cell_len + len(text), step.name))
            style = {"now": "bold accent", "done": "text", "seen": "text"}.get(step.state, "dim")
            line.append(text, style)
            if text.endswith("✓"):
                line.stylize("good", line.cell_len - 1)
        if self._page and room < width:
            line.append(self._page.rjust(width - line.cell_len), "bold cool")
        return [line]

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self)
        if position is None:
            return
        for start, end, step in self._spans:
            if start <= position.x < end:
                event.stop()
                self.post_message(self.Clicked(step))
