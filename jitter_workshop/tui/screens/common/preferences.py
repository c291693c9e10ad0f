"""Show the preferences: three lines, changed in place and saved at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from textual import events

from jitter_workshop import paths
from jitter_workshop.model.text import PATH, clean
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.session.preferences import CHOICES
from jitter_workshop.tui.screens.common.base import Page

_TITLES: dict[str, tuple[str, str]] = {
    "theme": ("Theme", "dark, light, or black with bright colours"),
    "preset": (
        "Length of a run",
        "quick: 20 blocks of 0.25 s; standard: 40 blocks of 1 s. A chapter with longer runs says why",
    ),
    "show_published": ("Curves of 2015", "draw the published laptop at home and in the first chapter"),
}
"""The name and the meaning of each preference."""
_YES_NO = {True: "yes", False: "no"}
_NAME = 19
"""The width of the column of the preferences' names."""


class PreferencesPage(Page, scope="preferences"):
    """Show every preference with its values; the present value is marked."""

    def __init__(self) -> None:
        super().__init__()
        self._cursor = 0
        self._rows: list[int | None] = []

    def lines(self, width: int) -> Iterable[Text]:
        preferences = self.frame.preferences
        lines = [Text("PREFERENCES", "bold text"), Text()]
        self._rows = [None] * len(lines)
        for number, (key, choices) in enumerate(CHOICES.items()):
            title, meaning = _TITLES[key]
            view = self.frame.workshop.context.class_view
            if key == "preset" and view is not None:
                meaning = f"in this class each run is '{view.host.described.preset}'; your value applies elsewhere"
            under = number == self._cursor
            line = Text("▸ " if under else "  ", "accent")
            line.append(f"{title:<{_NAME - 2}}", "bold text" if under else "text")
            made = [line]
            for choice in choices:
                chosen = choice == getattr(preferences, key)
                shown = f"{'●' if chosen else '○'} {_YES_NO.get(choice, choice)}  "
                if line.cell_len + len(shown.rstrip()) > width:
                    line = Text(" " * _NAME)
                    made.append(line)
                line.append(shown, "accent" if chosen else "dim")
            made += wrap(Text(meaning, "dim"), width, "  ")
            lines += [*made, Text()]
            self._rows += [*[number] * len(made), None]
        return [*lines, *wrap(Text(f"Kept in {clean(paths.config_file(), PATH)}", "dim"), width)]

    def key_words(self) -> str:
        return "↑ ↓ choose · Enter changes · Esc closes"

    def action_change(self, by: int) -> None:
        """Switch the preference under the cursor to its next value; for -1, to its previous value."""
        key = list(CHOICES)[self._cursor]
        choices = CHOICES[key]
        now = choices.index(getattr(self.frame.preferences, key))
        value: Any = choices[(now + by) % len(choices)]
        self.frame.change_preferences(**{key: value})
        self.redraw()

    def action_vertical(self, by: int) -> None:
        self._cursor = min(max(self._cursor + by, 0), len(CHOICES) - 1)
        self.redraw()

    def on_click(self, event: events.Click) -> None:
        position = event.get_content_offset(self.sheet("#page-sheet"))
        if position is None:
            return
        row = self._rows[position.y] if 0 <= position.y < len(self._rows) else None
        if row is not None:
            self._cursor = row
            self.action_change(+1)
