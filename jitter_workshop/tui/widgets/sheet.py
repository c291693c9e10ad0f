"""Show a sheet of styled text that is laid out for its width, and a pane in which sheets scroll."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar, cast

from rich.style import Style
from rich.text import Span
from rich.text import Text as RichText
from textual import events
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from jitter_workshop.model.palette import Palette
from jitter_workshop.presenter.text.pages import in_pages
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.core.theme import PaintedApp

LinesOfWidth = Callable[[int], Iterable[Text]]
"""A function that returns lines for a width in cells; no line may be wider."""


def in_colours(line: Text, palette: Palette) -> RichText:
    """Return a line as Textual draws it: the palette's colours replace the roles."""
    styles = _styles(palette)
    drawn = RichText(line.plain, styles[line.style], no_wrap=True)
    drawn.spans = [Span(span.start, span.end, styles[span.style]) for span in line.spans]
    return drawn


class _Styles(dict[str, Style]):
    """Store styles in the colours of one palette. The dict's key is the roles of a text, such as ``bold text``. A
    style is computed when its key is used for the first time.
    """

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette

    def __missing__(self, words: str) -> Style:
        self[words] = style = Style.parse(" ".join(map(self._word, words.split())))
        return style

    def _word(self, word: str) -> str:
        if word == "under":
            return f"on {self._palette.panel}" if self._palette.panel else ""
        return str(getattr(self._palette, word, word))


# A palette is looked up once for a line: its hash takes as long as the line.
_styles = functools.cache(_Styles)


class Sheet(Widget):
    """Show lines that a function makes for the present width. The sheet is as high as its lines.

    ``paged``: True to divide the lines into pages as high as the pane around the sheet.
    """

    DEFAULT_CSS = "Sheet { width: 1fr; height: auto; }"

    def __init__(self, build: LinesOfWidth, *, id: str | None = None, paged: bool = False) -> None:
        super().__init__(id=id)
        self._build = build
        self._paged = paged
        self._page_rows = 0
        """The rows of a page; 0 if the lines are not divided into pages, or before the first layout."""
        self.blank_end = 0
        """The number of blank lines at the end that only fill the last page."""
        self._made_for: tuple[int, str, int] | None = None
        self._lines: list[RichText] = []
        self._shown: tuple[int, list[RichText]] | None = None
        """The width and the lines as they were before a renewal; None if no renewal waits to be painted."""

    def renew(self) -> None:
        """Make the lines again, and paint the sheet if a line has changed. The screen's layout is computed again only
        if the number of lines has changed."""
        if self._made_for is not None and self._shown is None:
            self._shown = self._made_for[0], self._lines
            self.call_next(self._paint)
        elif self._shown is None:
            self._lay_out()
        self._made_for = None

    def _paint(self) -> None:
        if self._shown is None:
            return
        (width, before), self._shown = self._shown, None
        # The lines of a hidden sheet are made when it is shown.
        seen = self.screen.is_current and all(node.display for node in self.ancestors_with_self)
        now = self.lines(width) if seen else []
        if not seen or len(now) != len(before):
            self._lay_out()
        elif any(line.style != old.style or line != old for line, old in zip(now, before, strict=True)):
            self.refresh()

    def _lay_out(self) -> None:
        # Textual keeps the height that it found after an earlier renewal until that renewal's own layout is over.
        self._box_model_cache.clear()
        self.refresh(layout=True)

    def lines(self, width: int) -> list[RichText]:
        """Return the lines for a width. The lines are made once for each width and palette, and then kept."""
        palette = cast(PaintedApp, self.app).palette
        if self._made_for != (width, palette.name, self._page_rows):
            made, self.blank_end = in_pages(list(self._build(max(width, 1))), self._page_rows)
            self._lines = [in_colours(line, palette) for line in made]
            for line in self._lines:
                line.truncate(max(width, 1), overflow="ellipsis")
            self._made_for = width, palette.name, self._page_rows
        return self._lines

    def count(self, width: int) -> int:
        """Return the number of lines for a width if they are not divided into pages."""
        return sum(1 for _ in self._build(max(width, 1)))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # A pane that may be as high as its text asks first for the height without pages: its own is then 0.
        self._page_rows = container.height if self._paged and isinstance(self.parent, Pane) else 0
        return len(self.lines(width))

    def render(self) -> RichText:
        return RichText("\n", no_wrap=True, end="").join(self.lines(self.content_size.width))

    def for_glossary(self) -> str:
        """Return the text whose terms the glossary explains."""
        return self.plain()

    def plain(self) -> str:
        """Return the sheet's text without styles (for tests and for copying)."""
        return "\n".join(line.plain for line in self.lines(self.content_size.width or 80))


class ListSheet(Sheet):
    """Show a list of lines that can be clicked."""

    @dataclass
    class Clicked(Message):
        """Report that a line was clicked."""

        line: int

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self)
        if position is not None:
            event.stop()
            self.post_message(self.Clicked(position.y))


W = TypeVar("W", bound=Widget)


def panel(widget: W, title: str = "") -> W:
    """Make a widget a panel with a title, and return it. The frame and the title are shown only if the screen has room
    for two panels side by side.
    """
    widget.border_title = title or None
    return widget.add_class("panel")


class Pane(VerticalScroll, can_focus=False):
    """Show sheets that can be scrolled. The screen's keys scroll the pane, so the pane needs no focus. An empty column
    separates the text from the scroll bar."""

    DEFAULT_CSS = """
    Pane { width: 1fr; height: 1fr; scrollbar-size-vertical: 1; }
    Pane > Sheet { padding: 0 1 0 0; }
    """

    @dataclass
    class Resized(Message):
        """Report that the pane has another size, is shown again, or has another number of lines."""

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Put the scroll bar where the text is. Textual moves a bar only while it is shown, so a bar that was hidden
        while the pane went back to its first line would come back at its old place."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Paint the pane again after each scroll. Textual compares old and new places. If the region of a hidden widget
        is read after the scroll, and a layout follows, both places are the new ones, so Textual itself would paint
        nothing (``textual._compositor``, ``full_map`` and ``reflow``)."""
        super().watch_scroll_y(old_value, new_value)
        if round(old_value) != round(new_value):
            self.refresh()

    @property
    def text_height(self) -> int:
        """Return the number of lines until the end of the text, without the blank lines that fill the last page."""
        sheets = list(self.query_children(Sheet))
        return self.virtual_size.height - (sheets[-1].blank_end if sheets else 0)

    @property
    def more_below(self) -> bool:
        """Return True if the pane is on the screen and has lines below the visible ones."""
        rows = self.scrollable_content_region.height
        return bool(self.region.area) and self.scroll_offset.y + rows < self.text_height

    @property
    def page_shown(self) -> str:
        """Return the page that is shown, such as ``page 1 of 2``; "" if all of the text is seen at once."""
        rows = self.scrollable_content_region.height
        if rows < 1 or self.text_height <= rows:
            return ""
        pages = -(-self.text_height // rows)
        return f"page {min(self.scroll_offset.y // rows + 1, pages) if self.more_below else pages} of {pages}"

    def turn_page(self, by: int) -> None:
        """Show the next page (+1) or the one before (-1). If the pane shows parts of two pages, show the later or the
        earlier one of these first."""
        rows = max(self.scrollable_content_region.height, 1)
        top = self.scroll_offset.y
        page = top // rows + 1 if by > 0 else -(-top // rows) - 1
        self.scroll_to(y=page * rows, animate=False)

    @property
    def seen_to(self) -> int:
        """Return the number of lines from the text's first line to the last visible line. Return 0 if the pane is not
        on the screen.
        """
        return self.scroll_offset.y + self.scrollable_content_region.height if self.region.area else 0

    @property
    def count_of_text(self) -> int:
        """Return the number of lines that are not blank. It does not depend on the pages."""
        return self._count_of_text(None)

    @property
    def read_to(self) -> int:
        """Return the number of lines that are not blank, from the text's first line to the last visible line. Return 0
        if the pane is not on the screen."""
        return self._count_of_text(self.seen_to)

    def _count_of_text(self, rows: int | None) -> int:
        lines = [line for one in self.query_children(Sheet) for line in one.lines(one.content_size.width)]
        return sum(1 for line in lines[:rows] if line.plain.strip())
