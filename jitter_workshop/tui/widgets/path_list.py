"""Show the path for this host: the chapters with their marks, and a cursor on one chapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.app import ComposeResult
from textual.geometry import Region, Spacing
from textual.message import Message
from textual.widget import Widget

from jitter_workshop.flow.chapters.path import in_groups
from jitter_workshop.model.text import ID, REASON, SENTENCE, clean
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.presenter.course.path import (
    PATH_HEADINGS,
    kind_heading,
    path_words,
    result_told,
    state_sign,
)
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.widgets.sheet import Pane, Sheet

_BETWEEN = " · "
HEAD_ROWS = 1
"""The number of lines of the path's head (#path-head in workshop.tcss)."""
_GAP = 3
"""The spaces before the column on the chapters' kinds and results, if there is room."""
_NARROW = 66
"""Below this width, a chapter's minutes are shown only for the chapter under the cursor, in the line below the path."""


class PathList(Sheet):
    """Show the chapters in three groups, each below a heading.

    The groups are: chapters that can be done here, chapters that can be seen on a recording, and all others.
    """

    class Chosen(Message):
        """Report that the chapter under the cursor was clicked. A click on any other chapter only moves the cursor to
        that chapter.
        """

    class Moved(Message):
        """Report that the cursor is on another chapter."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(self._path, id=id)
        self._entries: tuple[PathEntry, ...] = ()
        self._cursor = 0

    @property
    def entry(self) -> PathEntry | None:
        """Return the chapter under the cursor; None if there are no chapters."""
        return self._entries[self._cursor] if self._entries else None

    def show_entries(self, entries: Sequence[PathEntry], at: PathEntry | None) -> None:
        """Show new entries. The cursor moves to the entry ``at``; if ``at`` is None, the cursor stays."""
        self._entries = tuple(entries)
        same = min(self._cursor, max(len(entries) - 1, 0))
        self._cursor = next((n for n, one in enumerate(entries) if at and one.chapter_id == at.chapter_id), same)
        self.renew()
        self.screen.query_one("#path-head", Sheet).renew()
        # The pane has its height only after the layout.
        self.call_after_refresh(self.into_sight)

    def move(self, by: int) -> None:
        """Move the cursor by this number of chapters and scroll until the cursor is visible."""
        if not self._entries:
            return
        self._put(max(0, min(self._cursor + by, len(self._entries) - 1)))
        self.into_sight()

    def move_page(self, by: int) -> None:
        """Move the cursor by as many pages of visible rows as ``by`` says."""
        self.move(by * max(len(self._visible()) - 1, 1))

    def move_to_end(self, by: int) -> None:
        """Move the cursor to the first chapter (-1) or to the last one (+1)."""
        self.move(by * len(self._entries))

    def follow(self) -> None:
        """Move the cursor to the nearest visible chapter, if the user has scrolled its own row out of sight."""
        seen = [index for index, _ in self._visible() if index is not None]
        if seen and self._cursor not in seen:
            self._put(min(seen, key=lambda index: abs(index - self._cursor)))

    def _put(self, index: int) -> None:
        self._cursor = index
        self.renew()
        self.post_message(self.Moved())

    def _visible(self) -> list[tuple[int | None, str]]:
        """Return the rows of :meth:`_rows` that are on the screen."""
        if not isinstance(self.parent, Widget):
            return []
        top = self.parent.scroll_offset.y
        return self._rows()[top : top + self.parent.scrollable_content_region.height - HEAD_ROWS]

    def into_sight(self) -> None:
        """Scroll until the chapter under the cursor and its neighbours are visible."""
        if not self._entries:
            return
        row = [index for index, _ in self._rows()].index(self._cursor)
        # The lines above the first chapter are seen with it.
        first = max(row - 1, 0) if self._cursor else 0
        if isinstance(self.parent, Widget):
            region = Region(0, first + HEAD_ROWS, 1, row + 2 - first)
            self.parent.scroll_to_region(region, spacing=Spacing(HEAD_ROWS), animate=False)

    def _rows(self) -> list[tuple[int | None, str]]:
        """Return each line of the path as a pair: the index of a chapter, and a text.

        For a chapter, the text is the reason why the chapter cannot be done here. The text is "" if there is no reason,
        or if one line gives the reason for the whole group. Such a line is below the group's heading. The index is None
        for a heading, and for a line with a group's reason.
        """
        rows: list[tuple[int | None, str]] = []
        for number, group in enumerate(in_groups(self._entries)):
            rows += [(None, PATH_HEADINGS[group.state])] if number else []
            rows += [(None, f"  {clean(group.reason, REASON)}")] if group.reason else []
            rows += [(index, "" if group.reason else entry.reason) for index, entry in group.entries]
        return rows

    def head(self, width: int) -> Iterable[Text]:
        """Yield the line above the path, with a heading and the titles of the columns. The heading is that of the
        group to which the first visible line belongs.
        """
        groups = in_groups(self._entries)
        title = PATH_HEADINGS[groups[0].state if groups else "here"]
        top = self.parent.scroll_offset.y if isinstance(self.parent, Widget) else 0
        for index, said in self._rows()[:top]:
            title = said if index is None and not said.startswith(" ") else title
        yield self._title(title, width, chance=title == PATH_HEADINGS["here"])

    def tells_minutes(self, width: int) -> bool:
        """Return True if the row of the chapter under the cursor has its minutes, or its progress instead of them.
        ``width``: that of the row."""
        return self.entry is not None and self.entry.here and width >= _NARROW

    def for_glossary(self) -> str:
        """Return the text in which the glossary looks for terms. The titles of the chapters are left out."""
        return path_words(self._entries)

    def _path(self, width: int) -> Iterable[Text]:
        for index, said in self._rows():
            yield self._title(said, width) if index is None else self._chapter(index, said, width)

    def _title(self, title: str, width: int, *, chance: bool = False) -> Text:
        """Return a line with a heading. ``chance``: True if this line also has the title of the column on the chapters'
        kinds and results."""
        line = Text(title, style="dim" if title.startswith(" ") else "bold dim")
        line.truncate(max(width, 1), ellipsis=True)
        start = self._chances_start(width)
        if chance and line.cell_len + 2 <= start:
            line.append(" " * (start - line.cell_len))
            line.append(kind_heading(self._entries), "dim")
        return line

    def _chapter(self, index: int, reason: str, width: int) -> Text:
        entry = self._entries[index]
        under = index == self._cursor
        state = "▸" if under else state_sign(entry)
        open_here = entry.here and entry.in_class
        style = "bold text" if under else "text" if open_here else "dim"
        line = Text()
        line.append(f"{state} ", "accent" if under else "good" if state == "●" else "dim")
        line.append(clean(entry.title, ID), style)
        line.append(" " * max(self._titles + 2 - line.cell_len, 0))
        if why := clean(reason, SENTENCE):
            # The part before the colon is the reason, the rest explains it; a comma may end the shortest form.
            forms = (why, why.partition(": ")[0], why.partition(": ")[0].partition(", ")[0])
            line.append(f"  {next((one for one in forms if line.cell_len + 3 + len(one) <= width), forms[-1])}", "dim")
        elif entry.here:
            whole, start = self._whole(width), self._chances_start(width)
            aside = f"  {_aside(entry, whole):<{self._asides(whole)}}" if width >= _NARROW else ""
            # A long title is cut, never the minutes behind it.
            line.truncate(max(start - 1 - len(aside), 1), ellipsis=True)
            line.append(f"{aside:<{max(start - line.cell_len, 0)}}")
            # Beside results, a forecast is quiet.
            results = any(one.done or one.result is not None for one in self._entries)
            forecast = entry.result is None and not entry.done
            for number, (told, style) in enumerate(self._told(entry, width)):
                line.append(_BETWEEN if number else "", "dim")
                line.append(told, "dim" if results and forecast else style)
        line.truncate(max(width - 1, 1), ellipsis=True)
        line.append(" " * max(width - line.cell_len, 0))
        if under:
            line.stylize("under")
        return line

    def _told(self, entry: PathEntry, width: int) -> list[tuple[str, str]]:
        """Return the words of a row on the chapter's kind or result, each with its style. If a row of ``width`` has no
        room for the longest of them and for the longest title, only the first words of each row are shown."""
        told = result_told(entry)
        return told if self._titles + 2 + self._aside_width(width) + self._chance_width(True) < width else told[:1]

    def _chance_width(self, whole: bool) -> int:
        """Return the width of the column on the chapters' kinds and results. ``whole``: with all words of a row."""
        rows = [[told for told, _ in result_told(one)] for one in self._entries]
        return max(len(_BETWEEN.join(row if whole else row[:1])) for row in (*rows, [kind_heading(self._entries)]))

    def _whole(self, width: int) -> bool:
        """Return True if a row of this width has room for the name of a begun chapter's step."""
        return self._titles + 2 + 2 + self._asides(whole=True) + 2 + self._chance_width(False) < width

    def _aside_width(self, width: int) -> int:
        """Return the width of the column with minutes or progress, with the blanks in front of it."""
        return 2 + self._asides(self._whole(width)) if width >= _NARROW else 0

    def _chances_start(self, width: int) -> int:
        """Return the position in a row at which the column on the chapters' kinds and results begins."""
        before = self._titles + 2 + self._aside_width(width)
        whole = before + self._chance_width(True) < width
        return max(min(before + _GAP, width - 1 - self._chance_width(whole)), 1)

    def _asides(self, whole: bool) -> int:
        """Return the width of the column with minutes or progress. ``whole``: as in :func:`_aside`."""
        return max((len(_aside(entry, whole)) for entry in self._entries if entry.here), default=0)

    @property
    def _titles(self) -> int:
        """Return the width of the column with titles: the length of the longest title."""
        return max((len(clean(entry.title, ID)) for entry in self._entries), default=0)

    def on_click(self, event: events.Click) -> None:
        rows = self._rows()
        row = rows[event.y][0] if 0 <= event.y < len(rows) else None
        if row is not None:
            event.stop()
            again = row == self._cursor
            self._put(row)
            if again or event.chain > 1:
                self.post_message(self.Chosen())


def _aside(entry: PathEntry, whole: bool) -> str:
    """Return the minutes of a chapter, or the learner's progress in a begun chapter.

    ``whole``: True if there is room for the name of the step.
    """
    if entry.done:
        return "done"
    if entry.started:
        return f"at {entry.next_step}" if whole else "begun"
    return f"{entry.minutes} min"


class PathPane(Pane):
    """Scroll the list of chapters below a fixed heading line. The chapter under the cursor is always visible: when the
    pane shrinks, the list is scrolled, and when the mouse scrolls the list, the cursor goes with it."""

    def compose(self) -> ComposeResult:
        path = PathList(id="path")
        yield Sheet(path.head, id="path-head")
        yield path

    def on_resize(self) -> None:
        self.query_one(PathList).into_sight()

    def on_mouse_scroll_down(self) -> None:
        self.call_after_refresh(self.query_one(PathList).follow)

    def on_mouse_scroll_up(self) -> None:
        self.call_after_refresh(self.query_one(PathList).follow)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.query_one("#path-head", Sheet).renew()
