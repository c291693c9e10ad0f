"""``class present``: one page for the projector, in large letters and few colours, that follows the instructor."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType

from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.presenting import Presented, presented
from jitter_workshop.report.bigtext import big
from jitter_workshop.tui.theme import PALETTES, THEMES, Palette, textual_theme
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.prose import wrap
from jitter_workshop.tui.widgets.sheet import Sheet

EVERY_S = 3.0


class PresentApp(App[None]):
    """One page; q leaves, ^t is the next theme."""

    CSS = """
    Screen { layout: vertical; }
    #present-head { height: auto; padding: 1 2; }
    #present-chart { height: 1fr; padding: 0 2; }
    #present-foot { height: auto; padding: 0 2; dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "leave"),
        Binding("ctrl+t", "next_theme", "next theme"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, first: Presented, titles: dict[str, str]) -> None:
        super().__init__()
        self._shown = first
        self._titles = titles
        self._error = ""
        self.animation_level = "none"
        for name in THEMES:
            self.register_theme(textual_theme(name))
        self.theme = "workshop-high-contrast"

    @property
    def palette(self) -> Palette:
        """The colours in force."""
        return PALETTES[self.theme.removeprefix("workshop-")]

    def compose(self) -> ComposeResult:
        yield Sheet(self._head, id="present-head")
        yield ChartView(id="present-chart")
        yield Sheet(self._foot, id="present-foot")

    def on_mount(self) -> None:
        self._show()
        self.set_interval(EVERY_S, self._look)

    def action_next_theme(self) -> None:
        names = list(THEMES)
        now = names.index(self.theme.removeprefix("workshop-"))
        self.theme = f"workshop-{names[(now + 1) % len(names)]}"
        self._show()

    def _look(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True)

    def _read(self) -> None:
        try:
            found = presented(self._titles)
            error = ""
        except WorkshopError as refusal:
            found, error = self._shown, refusal.sentence()
        if (found, error) != (self._shown, self._error):
            self.call_from_thread(partial(self._now, found, error))

    def _now(self, found: Presented, error: str) -> None:
        self._shown, self._error = found, error
        self._show()

    def _show(self) -> None:
        self.query_one("#present-head", Sheet).show(self._head)
        self.query_one("#present-foot", Sheet).show(self._foot)
        self.query_one(ChartView).show_curves(self._shown.curves, empty=self._shown.told)

    def _head(self, width: int, palette: Palette) -> Iterable[Text]:
        shown = self._shown
        rows = max(self.size.height // 6, 4)
        for line in big(shown.title or shown.name, width, rows):
            yield Text(line, style=f"bold {palette.text}", no_wrap=True)
        where = " · ".join(word for word in (shown.step, shown.text) if word)
        if where:
            yield Text()
            yield from wrap(Text(where, style=f"bold {palette.accent}"), width)

    def _foot(self, width: int, palette: Palette) -> Iterable[Text]:
        yield from wrap(Text(self._shown.turn, style=palette.text), width)
        told = self._error or (self._shown.told if self._shown.curves else "")
        if told:
            yield from wrap(Text(told, style=palette.dim), width)


def run_present() -> int:
    """Show the page until its viewer leaves. Raises HostError where this is no class host, or the caller no
    instructor."""
    titles = {chapter.id: chapter.title for chapter in load_course(None).chapters}
    PresentApp(presented(titles), titles).run()
    return 0
