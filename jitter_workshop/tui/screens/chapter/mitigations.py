"""Show actions against a hidden noise, and choose the CPU to measure on once more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from jitter_workshop.presenter import hunt_words as words
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.common.choosing import ChoosingPage
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

MOST_CPUS = 8
"""Other CPUs to choose from: a thread that steps aside needs one, not a list of hundreds."""
_KEYS = "↑ ↓ {numbers} choose · Enter measures · y copies · Esc goes back"


class CuresPage(ChoosingPage):
    """``cpus``: those to which the measured thread can step aside. ``measure`` is told which of them was chosen, None
    for the CPU of before."""

    scope: ClassVar[Scope] = "cures"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("cures"))

    def __init__(self, cpus: Sequence[int], measure: Callable[[int | None], None]) -> None:
        super().__init__()
        self._choices: tuple[int | None, ...] = (None, *cpus[:MOST_CPUS])
        self._commands = words.cures(cpus[0] if cpus else None)
        self._measure = measure
        self._copied = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="frame"):
            with Pane():
                yield Sheet(self._lines, id="cures-sheet")
            yield Sheet(self._key_lines, id="question-keys")

    def _lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield Text("Do something against it, then measure", "bold text")
        yield Text()
        yield from wrap(Text(words.ELSEWHERE, "text"), width)
        for command, what in self._commands:
            yield from wrap(Text(f"$ {command}", "code"), width, "  ", "    ")
            yield from wrap(Text(what, "dim"), width, "    ", "    ")
        yield Text()
        for index, cpu in enumerate(self._choices):
            here = index == self._cursor
            style = "bold accent" if here else "text"
            yield Text(f"{'▸' if here else ' '} {index + 1} {words.place(cpu)}", style=style)

    def _key_lines(self, width: int) -> Iterable[Text]:
        keys = _KEYS.format(numbers=words.numbers(len(self._choices)))
        said = "The commands are in the clipboard, where this terminal allows it." if self._copied else keys
        yield from wrap(Text(said, "dim"), width)
        yield Text()

    def _redraw(self) -> None:
        self.query_one("#cures-sheet", Sheet).show(self._lines)
        self.query_one("#question-keys", Sheet).show(self._key_lines)

    def _choose(self, index: int) -> None:
        if 0 <= index < len(self._choices):
            self._cursor = index
            self._copied = False
            self._redraw()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(command for command, _ in self._commands))
        self._copied = True
        self._redraw()

    def action_agree(self) -> None:
        cpu = self._choices[self._cursor]
        self.dismiss(None)
        self._measure(cpu)
