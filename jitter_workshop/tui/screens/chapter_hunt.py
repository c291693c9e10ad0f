"""The hunt from a chapter's screen: hide a noise, see who took the time, name it."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.hunt import Hunt
from jitter_workshop.model.text import clean
from jitter_workshop.tui import hunt_words as words
from jitter_workshop.tui.screens.chapter_settings import ChapterSettings
from jitter_workshop.tui.screens.question import Question
from jitter_workshop.tui.theme import Palette
from jitter_workshop.tui.widgets.prose import wrap


class ChapterHunt(ChapterSettings):
    """A chapter's hidden noise. It begins on a thread, and ends with the chapter's screen at the latest."""

    def _leave(self) -> None:
        """Go home. A hidden noise ends first, so that the title there does not tell of it."""
        self.workshop.end_hunt()
        self.app.pop_screen()

    def on_unmount(self) -> None:
        if self.walk.hunts:
            self.workshop.end_hunt()

    def action_hunt(self) -> None:
        """Say what would be hidden, and hide it after Enter."""
        if self.run_under_way is not None or self.workshop_app.at_work:
            return
        if not self.walk.hunts:
            self._tell("Nothing is hidden in this chapter.")
            return
        if words.unanswered(self.workshop.hunt) and self.workshop.hiding:
            self._tell("A hidden noise runs already: i names it, or gives up.")
            return
        try:
            suspects = self.workshop.suspects(self.walk.chapter.id)
        except WorkshopError as error:
            self.workshop_app.show_error(error)
            return
        if not suspects:
            self._tell("This host can hide no noise: none of them could reach the measured CPU.")
            return

        def about(width: int, palette: Palette) -> Iterable[Text]:
            yield from wrap(Text(words.asked(suspects), style=palette.text), width)
            named = " · ".join(clean(suspect.title, 60) for suspect in suspects)
            yield from wrap(Text(named, style=f"bold {palette.text}"), width, "  ", "  ")
            yield Text()
            yield from wrap(Text(f"{words.BOUNDS} {words.YOURS}", style=palette.dim), width)

        keys = "Enter hides one of them · Esc does not"
        self.app.push_screen(Question("Hide a noise?", about, keys, self._hide))

    def _hide(self) -> None:
        self._tell("Hiding a noise…")
        chapter = self.walk.chapter.id
        self.have_done(lambda: self.workshop.begin_hunt(chapter), self._hidden, self._not_hidden)

    def _hidden(self, hunt: Hunt) -> None:
        further = "Enter measures beside it." if self.walk.run_in("again") is None else "m measures beside it."
        self._tell(f"{words.begun(hunt)} {further}")

    def _not_hidden(self, error: WorkshopError) -> None:
        self._tell("")
        self.workshop_app.show_error(error)

    def action_name(self) -> None:
        """Choose among the suspects."""
        from jitter_workshop.tui.screens.suspects import SuspectsPage

        hunt = self.workshop.hunt
        if not self.walk.hunts or hunt is None or not words.unanswered(hunt):
            self._tell("Nothing is hidden now. x hides a noise." if self.walk.hunts else "Nothing is hidden here.")
        elif self.run_under_way is None:
            self.app.push_screen(SuspectsPage(hunt), self._named)

    def _named(self, _: None) -> None:
        hunt = self.workshop.hunt
        over = f"{words.remembered(self.walk.progress.hunts, 1)} It is kept; x hides another noise."
        self._tell("" if words.unanswered(hunt) else over)
        self.sheet("#title").show(self.title_lines)
