"""Naming the hidden noise: the suspects, and what an answer was worth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from jitter_workshop.flow.chapters.hunt import Finding, Hunt
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import hunt_words as words
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.choosing import ChoosingPage
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_KEYS = "↑ ↓ {numbers} choose · Enter names it · g gives up · Esc looks on"
_ANSWERED = "Esc closes"


class SuspectsPage(ChoosingPage):
    """The suspects of a hunt that goes on. A wrong answer leaves it going on; the right one, and giving up, end it."""

    scope: ClassVar[Scope] = "suspects"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("suspects"))

    def __init__(self, hunt: Hunt) -> None:
        super().__init__()
        self._hunt = hunt
        self._finding: Finding | None = None
        self._cleared: set[str] = set()

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"):
            with Pane():
                yield Sheet(self._lines, id="suspects-sheet")
            yield Sheet(self._key_lines, id="question-keys")

    @property
    def _over(self) -> bool:
        return not words.unanswered(self._hunt)

    def _lines(self, width: int) -> Iterable[Text]:
        yield Text()
        if not self._over:
            yield Text("Which one is it?", "bold text")
            yield Text()
            for index, suspect in enumerate(self._hunt.suspects):
                here, cleared = index == self._cursor, suspect.id in self._cleared
                sign = "✗" if cleared else " "
                style = "bold accent" if here else "dim" if cleared else "text"
                title = clean(suspect.title, 60)
                yield Text(f"{'▸' if here else ' '} {index + 1} {sign} {title}", style=style)
            yield Text()
        finding = self._finding
        if finding is None:
            yield from wrap(Text(words.standing(self._hunt), "dim"), width)
            return
        colour = "good" if finding.right else "text"
        yield from wrap(Text(clean(words.verdict(finding, self._hunt), 120), style=f"bold {colour}"), width)
        for heading, sentence in words.reasons(finding, self._hunt):
            if heading:
                yield Text()
                yield Text(heading, "dim")
            yield from wrap(Text(clean(sentence, 400), "text"), width)

    def _key_lines(self, width: int) -> Iterable[Text]:
        keys = _ANSWERED if self._over else _KEYS.format(numbers=words.numbers(len(self._hunt.suspects)))
        yield from wrap(Text(keys, "dim"), width)
        yield Text()

    def _redraw(self) -> None:
        self.query_one("#suspects-sheet", Sheet).show(self._lines)
        self.query_one("#question-keys", Sheet).show(self._key_lines)

    def _choose(self, index: int) -> None:
        if not self._over and 0 <= index < len(self._hunt.suspects):
            self._cursor = index
            self._finding = None
            self._redraw()

    def action_agree(self) -> None:
        if self._over:
            self.dismiss(None)
            return
        kind = self._hunt.suspects[self._cursor].id
        self._finding = self.frame.workshop.name_noise(kind)
        if not self._finding.right:
            self._cleared.add(kind)
        self._redraw()

    def action_give_up(self) -> None:
        if not self._over:
            self._finding = self.frame.workshop.give_up()
            self._redraw()
