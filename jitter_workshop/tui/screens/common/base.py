"""Provide the base of all full screens: a title line, a body, the keys, and one sentence when the terminal is too
small."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.screen import ModalScreen, Screen

from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean, many
from jitter_workshop.presenter import class_words
from jitter_workshop.presenter.lines import two_ends
from jitter_workshop.presenter.preferences import LEAST_HEIGHT, LEAST_WIDTH
from jitter_workshop.tui.widgets.keybar import KeyBar, Shown
from jitter_workshop.tui.widgets.sheet import Sheet

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.workshop import Workshop
    from jitter_workshop.tui.core.frame import Frame

WIDE, HUGE, TALL = 100, 140, 36
"""From these sizes on, more is shown side by side."""


def sized(screen: Screen[None]) -> None:
    """Give a screen the classes of its size. They add up (a huge screen is wide, too), unlike Textual's breakpoints."""
    width, height = screen.app.size
    screen.set_class(width < LEAST_WIDTH or height < LEAST_HEIGHT, "-small")
    screen.set_class(width >= WIDE, "-wide")
    screen.set_class(width >= HUGE, "-huge")
    screen.set_class(height >= TALL, "-tall")


class WorkshopScreen(Screen[None]):
    """Show a full screen of the workshop. Screens own their behaviour; the app only routes."""

    AUTO_FOCUS = ""

    @property
    def frame(self) -> Frame:
        return cast("Frame", self.app)

    @property
    def workshop(self) -> Workshop:
        return self.frame.workshop

    @property
    def palette(self) -> Palette:
        return self.frame.palette

    @property
    def wide(self) -> bool:
        """Return True if there is room for lesson and chart side by side."""
        return self.size.width >= WIDE

    def compose(self) -> ComposeResult:
        yield Sheet(self.title_lines, id="title")
        yield Sheet(self.class_lines, id="class-line")
        yield from self.body()
        yield KeyBar()
        yield Sheet(too_small, id="too-small")

    def body(self) -> ComposeResult:
        """Compose the part between title and keys."""
        raise NotImplementedError

    def keys(self) -> Sequence[Shown]:
        """Return the keys for the footer at this moment."""
        raise NotImplementedError

    def heading(self) -> str:
        """Return the left part of the title."""
        return "Jitter Workshop"

    def title_lines(self, width: int) -> Iterable[Text]:
        """Yield the title line: the screen, the host, and the number of applied tunables."""
        standing = len(self.workshop.standing())
        changed = f"{many(standing, 'tunable')} applied" if standing else "nothing changed"
        if self.workshop.hiding:
            changed = f"a hidden noise runs · {changed}" if standing else "a hidden noise runs"
        state = "a recorded host: to look at" if self.workshop.recorded else changed
        right = Text(f"{clean(self.workshop.host.name, 30)} · {state}", "dim")
        yield two_ends(Text(self.heading(), "bold text"), right, width)

    def class_lines(self, width: int) -> Iterable[Text]:
        """Return the turn and the instructor's place on a class host; () on other hosts."""
        view = self.workshop.class_view
        return class_words.lines(view, self.workshop.course, width) if view is not None else ()

    def show_class(self) -> None:
        """Show the class as it was seen last; show nothing on a host without a class."""
        if not self.query("#class-line"):
            return  # the line is being mounted or removed
        sheet = self.sheet("#class-line")
        sheet.set_class(self.workshop.class_view is None, "-empty")
        sheet.show(self.class_lines)
        self.refresh_keys()

    def going_on(self) -> None:
        """Show the title again after the process was stopped and goes on: host and lease may have changed."""
        self.sheet("#title").show(self.title_lines)

    def sheet(self, selector: str) -> Sheet:
        """Return a sheet of this screen by its id."""
        return self.query_one(selector, Sheet)

    def refresh_keys(self) -> None:
        """Put the keys of this moment into the footer."""
        self.call_next(self.query_one(KeyBar).show, self._with_class(tuple(self.keys())))

    def _with_class(self, keys: tuple[Shown, ...]) -> tuple[Shown, ...]:
        """Return the keys with those of the class behind the first one. While work is under way, return them
        unchanged."""
        view, app = self.workshop.class_view, self.frame
        if view is None or not keys or app.measuring or app.at_work:
            return keys
        return (keys[0], *class_words.keys(view), *keys[1:])

    def on_mount(self) -> None:
        sized(self)
        self.refresh_keys()
        self.show_class()

    def on_screen_resume(self) -> None:
        self.show_class()

    def on_resize(self) -> None:
        sized(self)


class Page(ModalScreen[None]):
    """Show a page over everything (help, settings): a frame with sheets, closed by Escape."""

    AUTO_FOCUS = ""

    def on_mount(self) -> None:
        sized(self)

    def on_resize(self) -> None:
        sized(self)

    @property
    def frame(self) -> Frame:
        return cast("Frame", self.app)

    def action_close(self) -> None:
        self.dismiss(None)


def too_small(width: int) -> Iterable[Text]:
    """Return the sentence for a terminal that is too small, broken to fit even 20 columns."""
    from jitter_workshop.presenter.lines import wrap

    sentence = f"The workshop needs {LEAST_WIDTH}×{LEAST_HEIGHT} characters. Enlarge the terminal; q leaves."
    return wrap(Text(sentence, "text"), width)
