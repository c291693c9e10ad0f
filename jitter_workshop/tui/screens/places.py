"""Find chapters, checks and steps for the command palette, by their names and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

from textual.command import Hit, Hits, Provider

from jitter_workshop.flow.host_ops.host_status import titles, treating
from jitter_workshop.model.text import LABEL, REASON, clean
from jitter_workshop.tui.core.frame import Frame
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.host.status import StatusScreen

PalettePlace = tuple[str, str, Callable[[], object]]
"""The type of a place in the command palette. It has three parts: the name that is shown and searched, a sentence on
the place, and the function that goes there."""

_LEAST = 0.1
"""The score of a place that has all the typed words, but in another order."""


class PlaceFinder(Provider):
    """Find chapters, steps and checks whose names contain every typed word. Without a typed word, find nothing."""

    async def search(self, query: str) -> Hits:
        typed, matcher = query.casefold().split(), self.matcher(query)
        for title, about, go in self._places():
            if all(word in title.casefold() for word in typed):
                yield Hit(matcher.match(title) or _LEAST, matcher.highlight(title), go, title, about)

    def _places(self) -> Iterator[PalettePlace]:
        """Yield the steps of the chapter on the screen, then all chapters, then all checks of the status."""
        frame, screen = cast(Frame, self.app), self.screen
        if isinstance(screen, ChapterScreen):
            for step in screen.walk.chapter.steps:
                yield f"Step: {step}", "Go to this step of the chapter", partial(screen.go_to_step, step)
        for number, entry in enumerate(frame.workshop.path(), 1):
            title = f"Chapter {number}: {clean(entry.title, LABEL)}"
            yield title, clean(entry.summary, REASON), partial(frame.go_to_chapter, entry.chapter_id)
        treated = treating(frame.workshop.course)
        for ident, name in titles():
            _, chapter = treated.get(ident, ("", ""))
            about = "Show this check in the status"
            if chapter:
                about += f"; the chapter '{clean(chapter, LABEL)}' is about it"
            yield f"{name} ({ident})", about, partial(self._check, ident)

    def _check(self, ident: str) -> None:
        """Open the status with the cursor on the check ``ident``. A status screen that is open already is closed
        first."""
        if isinstance(self.app.screen, StatusScreen):
            self.app.pop_screen()
        self.app.push_screen(StatusScreen(ident))
