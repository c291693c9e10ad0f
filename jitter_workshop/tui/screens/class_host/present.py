"""Show ``class present``: one page for the projector, in large letters and few colours. The page shows the chapter and
step at which the instructor is.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import ClassVar, cast

from rich.text import Text as RichText
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widget import Widget

from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.classes.presenting import Presented, outermost, presented
from jitter_workshop.model.text import many
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.report.pictures.bigtext import LEAST_ROWS, big
from jitter_workshop.tui.core.theme import PaintedApp
from jitter_workshop.tui.widgets.sheet import Sheet

EVERY_S = 3.0
_LOW = 20
"""Below this height the curves need all the room."""
_TALL = 36
"""From this height on the instructor's words are in large letters, too."""


class ClassChart(Widget):
    """Show every member's curve. The lowest, the middle and the highest curve have names, and all other curves are
    faint."""

    DEFAULT_CSS = "ClassChart { width: 1fr; height: 1fr; }"

    def __init__(self, shown: Presented, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shown = shown

    def show(self, shown: Presented) -> None:
        self._shown = shown
        self.refresh()

    def render(self) -> RichText:
        width, height = self.content_size
        palette = cast(PaintedApp, self.app).palette
        if not self._shown.curves:
            return RichText(self._shown.told, palette.dim)
        from jitter_workshop.chart import canvas

        crowd, named = outermost([one.curve for one in self._shown.curves], self._shown.by)
        legend = canvas.legend_lines(named, theme=palette.name, width=width)
        chart = canvas.draw_curves(
            [*crowd, *named], width, max(height - len(legend), canvas.LEAST_HEIGHT), palette.name, crowd=len(crowd)
        )
        return RichText("\n", no_wrap=True, end="").join([chart, *legend])


class PresentApp(PaintedApp):
    """Show the page for the projector. The key q closes the page; Ctrl-T switches to the next theme."""

    CSS = """
    Screen { layout: vertical; background: $background; }
    #present-head { height: auto; padding: 1 2; }
    #present-chart { height: 1fr; padding: 0 2; }
    #present-foot { height: auto; padding: 0 2 1 2; dock: bottom; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "quit", "leave"),
        Binding("ctrl+t", "next_theme", "next theme"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, first: Presented, titles: dict[str, str]) -> None:
        super().__init__("high-contrast")
        self._shown = first
        self._titles = titles
        self._error = ""

    def compose(self) -> ComposeResult:
        yield Sheet(self._head, id="present-head")
        yield ClassChart(self._shown, id="present-chart")
        yield Sheet(self._foot, id="present-foot")

    def on_mount(self) -> None:
        self._show()
        self.set_interval(EVERY_S, self._look)

    def on_resize(self) -> None:
        self._show()

    def action_next_theme(self) -> None:
        self.paint(self.next_palette)
        self._show()

    def _look(self) -> None:
        self.run_worker(self._read, thread=True, exclusive=True)

    def _read(self) -> None:
        """Read the state of the class. Runs on a thread, because reading the board may take long."""
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
        for sheet in self.query(Sheet):
            sheet.renew()
        self.query_one(ClassChart).show(self._shown)

    def _head(self, width: int) -> Iterable[Text]:
        """Yield a title, and below it the present step with the instructor's words. The title is the chapter's title
        or, if there is no chapter, the name of the class."""
        shown = self._shown
        for line in self._title(shown.title or shown.name, width):
            yield Text(line, style="bold text")
        where = " · ".join(word for word in (shown.step, shown.text) if word)
        if not where:
            return
        yield Text()
        large = big(where, width, LEAST_ROWS) if self.size.height >= _TALL else ()
        if len(large) > 1:
            for line in large:
                yield Text(line, style="accent")
        else:
            yield from wrap(Text(where, "bold accent"), width)

    def _title(self, title: str, width: int) -> tuple[str, ...]:
        """Return the lines of a title in large letters, for readers in the last row. A long title takes two lines. On
        a screen with few rows, the letters have normal size.
        """
        if self.size.height < _LOW:
            return (title,)
        large = big(title, width, max(self.size.height // 6, LEAST_ROWS))
        return large if len(large) > 1 else big(title, width, 2 * LEAST_ROWS)

    def _foot(self, width: int) -> Iterable[Text]:
        yield from wrap(self._shown.turn, width)
        count = many(len(self._shown.curves), "member")
        told = self._error or (f"{count}: {self._shown.told}" if self._shown.curves else "")
        if told:
            yield from wrap(Text(told, "dim"), width)


def run_present() -> int:
    """Show the page for the projector until the user closes it, and return 0. Raise HostError if the host has no class,
    or if the user is not an instructor."""
    titles = {chapter.id: chapter.title for chapter in load_course(None).chapters}
    PresentApp(presented(titles), titles).run()
    return 0
