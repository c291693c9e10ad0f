"""Ask about the hidden noise: name it among the suspects, or choose where to measure after an action against it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.text import Text

from jitter_workshop.flow.chapters.hunt import Finding, Hunt
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import hunt_words as words
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.tui.screens.common.dialogs import ChoosingPage

MOST_CPUS = 8
"""Other CPUs to choose from: a thread that steps aside needs one, not a list of hundreds."""
_ACTING = "↑ ↓ {numbers} choose · Enter measures · y copies · Esc goes back"
_NAMING = "↑ ↓ {numbers} choose · Enter names it · g gives up · Esc looks on"
_ANSWERED = "Esc closes"


class SuspectsPage(ChoosingPage, scope="suspects"):
    """Show the suspects of a hunt that goes on. A wrong answer leaves it going on; the right one, and giving up, end
    it."""

    def __init__(self, hunt: Hunt) -> None:
        super().__init__()
        self._hunt = hunt
        self._finding: Finding | None = None
        self._cleared: set[str] = set()

    @property
    def _over(self) -> bool:
        return not words.unanswered(self._hunt)

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        if not self._over:
            yield Text("Which one is it?", "bold text")
            yield Text()
            for index, suspect in enumerate(self._hunt.suspects):
                here, cleared = index == self.cursor, suspect.id in self._cleared
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

    def key_words(self) -> str:
        return _ANSWERED if self._over else _NAMING.format(numbers=words.numbers(len(self._hunt.suspects)))

    def choose(self, index: int) -> None:
        if not self._over and 0 <= index < len(self._hunt.suspects):
            self.cursor = index
            self._finding = None
            self.redraw()

    def action_agree(self) -> None:
        if self._over:
            self.dismiss(None)
            return
        kind = self._hunt.suspects[self.cursor].id
        self._finding = self.frame.workshop.hunts.answer(kind)
        if not self._finding.right:
            self._cleared.add(kind)
        self.redraw()

    def action_give_up(self) -> None:
        if not self._over:
            self._finding = self.frame.workshop.hunts.give_up()
            self.redraw()


class CuresPage(ChoosingPage, scope="cures"):
    """Show actions against the noise, and choose the CPU to measure on once more. ``cpus``: those to which the measured
    thread can step aside. ``measure`` is told which of them was chosen, None for the CPU of before."""

    def __init__(self, cpus: Sequence[int], measure: Callable[[int | None], None]) -> None:
        super().__init__()
        self._choices: tuple[int | None, ...] = (None, *cpus[:MOST_CPUS])
        self._commands = words.cures(cpus[0] if cpus else None)
        self._measure = measure
        self._copied = False

    def lines(self, width: int) -> Iterable[Text]:
        yield Text()
        yield Text("Do something against it, then measure", "bold text")
        yield Text()
        yield from wrap(Text(words.ELSEWHERE, "text"), width)
        for command, what in self._commands:
            yield from wrap(Text(f"$ {command}", "code"), width, "  ", "    ")
            yield from wrap(Text(what, "dim"), width, "    ", "    ")
        yield Text()
        for index, cpu in enumerate(self._choices):
            here = index == self.cursor
            style = "bold accent" if here else "text"
            yield Text(f"{'▸' if here else ' '} {index + 1} {words.place(cpu)}", style=style)

    def key_words(self) -> str:
        keys = _ACTING.format(numbers=words.numbers(len(self._choices)))
        return "The commands are in the clipboard, where this terminal allows it." if self._copied else keys

    def choose(self, index: int) -> None:
        if 0 <= index < len(self._choices):
            self.cursor = index
            self._copied = False
            self.redraw()

    def action_copy(self) -> None:
        self.app.copy_to_clipboard("\n".join(command for command, _ in self._commands))
        self._copied = True
        self.redraw()

    def action_agree(self) -> None:
        cpu = self._choices[self.cursor]
        self.dismiss(None)
        self._measure(cpu)
