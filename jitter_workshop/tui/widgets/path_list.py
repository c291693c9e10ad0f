"""Show the path for this host: chapters with their marks, one under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.widget import Widget

from jitter_workshop.flow.chapters.path import in_groups
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.tui.widgets.sheet import Sheet

_COLUMNS = ("setting", "curve", "guess")
_COLUMN_WIDTH = 9

HEADINGS = {
    "here": "PATH FOR THIS HOST",
    "recording": "ON A RECORDING",
    "neither": "NOT ON THIS HOST AS IT IS",
    "left_out": "NOT IN THIS CLASS",
}


class PathList(Sheet):
    """Show the chapters to do here, those that can only be seen on a recording, and the rest, each group below its
    heading."""

    @dataclass
    class Chosen(Message):
        """Report that a chapter was clicked twice, or clicked while under the cursor."""

        entry: PathEntry

    def __init__(self, entries: Sequence[PathEntry], *, id: str | None = None) -> None:
        super().__init__(self._path, id=id)
        self._entries: tuple[PathEntry, ...] = tuple(entries)
        self._cursor = 0

    @property
    def entry(self) -> PathEntry | None:
        """Return the chapter under the cursor; None without chapters."""
        return self._entries[self._cursor] if self._entries else None

    def show_entries(self, entries: Sequence[PathEntry]) -> None:
        """Show new entries; the cursor stays in range."""
        self._entries = tuple(entries)
        self._cursor = min(self._cursor, max(len(self._entries) - 1, 0))
        self.renew()

    def put_cursor(self, chapter_id: str) -> None:
        """Move the cursor to a chapter."""
        for index, entry in enumerate(self._entries):
            if entry.chapter_id == chapter_id:
                self._cursor = index
        self.renew()

    def move(self, by: int) -> None:
        """Move the cursor and keep it in sight."""
        if not self._entries:
            return
        self._cursor = max(0, min(self._cursor + by, len(self._entries) - 1))
        self.renew()
        row = self._rows().index(self._cursor)
        if self.parent is not None and isinstance(self.parent, Widget):
            self.parent.scroll_to_region(Region(0, max(row - 1, 0), 1, 3), animate=False)

    def _rows(self) -> list[int | str]:
        """Return the content of each line: an index into the entries, a title, or (indented) the text below a title."""
        rows: list[int | str] = []
        for group in in_groups(self._entries):
            said_once = [f"  {clean(group.reason, 200)}"] if group.reason else []
            rows += [HEADINGS[group.state], *said_once, *(index for index, _ in group.entries)]
        return rows or [HEADINGS["here"]]

    def _aside(self, index: int) -> str:
        """Return why a chapter cannot be done here; "" if its group already says so."""
        group = next(g for g in in_groups(self._entries) if any(index == i for i, _ in g.entries))
        return "" if group.reason else self._entries[index].reason

    def _path(self, width: int) -> Iterable[Text]:
        for row in self._rows():
            yield self._title(row, width) if isinstance(row, str) else self._chapter(row, width)

    def _title(self, title: str, width: int) -> Text:
        line = Text(title, style="dim" if title.startswith(" ") else "bold dim")
        line.truncate(max(width, 1), overflow="ellipsis")
        if title == self._rows()[0]:
            heads = "".join(f"{name:^{_COLUMN_WIDTH}}" for name in _COLUMNS)
            line.append(" " * max(width - line.cell_len - len(heads), 1))
            line.append(heads, "dim")
        return line

    def _chapter(self, index: int, width: int) -> Text:
        entry = self._entries[index]
        under = index == self._cursor
        sign = "▸" if under else "●" if entry.done else "◐" if entry.started else "○" if entry.here else "◌"
        marks = (entry.setting, True if entry.curve else None, entry.guess)
        room = width - _COLUMN_WIDTH * len(_COLUMNS)
        open_here = entry.here and entry.in_class
        style = "bold text" if under else "text" if open_here else "dim"
        line = Text()
        line.append(f"{sign} ", "accent" if under else "good" if entry.done else "dim")
        line.append(clean(entry.title, 40), style)
        aside = clean(self._aside(index), 60)
        if not aside:
            aside = "done" if entry.done else f"at {entry.next_step}" if entry.started else f"{entry.minutes} min"
        line.append("   " + aside, "dim")
        line.truncate(max(room - 1, 1), overflow="ellipsis")
        line.append(" " * max(room - line.cell_len, 0))
        for name, mark in zip(_COLUMNS, marks, strict=True):
            shown = _sign(name, mark)
            colour = {"✓": "good", "✗": "bad"}.get(shown, "dim")
            line.append(f"{shown:^{_COLUMN_WIDTH}}", colour)
        if under:
            line.stylize("under")
        return line

    def on_click(self, event: events.Click) -> None:
        rows = self._rows()
        row = rows[event.y] if 0 <= event.y < len(rows) else ""
        if isinstance(row, int):
            event.stop()
            again = row == self._cursor
            self._cursor = row
            self.renew()
            if again or event.chain > 1:
                self.post_message(self.Chosen(self._entries[row]))


def _sign(column: str, mark: bool | None) -> str:
    """Return ✓ for yes, ✗ for a guess that was not near, · for not yet, – if the chapter has none."""
    if mark:
        return "✓"
    if column == "guess":
        return "·" if mark is None else "✗"
    return "–" if column == "setting" and mark is None else "·"
