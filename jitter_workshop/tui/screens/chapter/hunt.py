"""The hunt from a chapter's screen: hide a noise, see who took the time, name it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from rich.text import Text

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters import mitigation
from jitter_workshop.flow.chapters.hunt import Hunt, HuntState
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.palette import Palette
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import hunt_words as words
from jitter_workshop.presenter.prose import wrap
from jitter_workshop.tui.screens.chapter.settings import ChapterSettings
from jitter_workshop.tui.screens.common.question import Question

LOOK_EVERY_S = 1.0


class ChapterHunt(ChapterSettings):
    """A chapter's hidden noise. It begins on a thread, and ends with the chapter's screen at the latest."""

    def _leave(self) -> None:
        """Go home. A hidden noise ends first, so that the title there does not tell of it."""
        self.workshop.end_hunt()
        self.app.pop_screen()

    _hunt_seen: HuntState | None = None

    def watch_the_noise(self) -> None:
        """Say within a second that the noise was ended, as somebody does from another terminal; not during a run."""
        if self.walk.hunts:
            self.set_interval(LOOK_EVERY_S, self._look_for_it)

    def _look_for_it(self) -> None:
        if self.run_under_way is not None or self.frame.at_work:
            return
        hunt = self.workshop.hunt
        before, self._hunt_seen = self._hunt_seen, hunt.state if hunt is not None else None
        if before == "running" and self._hunt_seen in ("stopped", "over"):
            self._tell(words.ended(hunt, self.walk.run_in("again") is not None))

    def on_unmount(self) -> None:
        if self.walk.hunts:
            self.workshop.end_hunt()

    def action_hunt(self) -> None:
        """Say what would be hidden, and hide it after Enter."""
        if self.run_under_way is not None or self.frame.at_work:
            return
        if not self.walk.hunts:
            self._tell("Nothing is hidden in this chapter.")
            return
        if words.unanswered(self.workshop.hunt) and self.workshop.hiding:
            self._tell("A hidden noise runs already: i names it, or gives up.")
            return
        if self.walk.run_in("measure") is None:
            self._tell(words.FIRST_QUIET)
            return
        try:
            suspects = self.workshop.suspects(self.walk.chapter.id)
        except WorkshopError as error:
            self.frame.show_error(error)
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
        hide = partial(self.frame.class_turn.with_turn, self._hide)
        self.app.push_screen(Question("Hide a noise?", about, keys, hide))

    def _hide(self) -> None:
        self._tell("Hiding a noise…")
        chapter = self.walk.chapter.id
        self.have_done(lambda: self.workshop.begin_hunt(chapter), self._hidden, self._not_hidden)

    def _hidden(self, hunt: Hunt) -> None:
        self._hunt_seen = hunt.state
        self.walk.go("again")
        self._enter_step()
        self._tell(f"{words.begun(hunt)} Enter measures beside it.")

    def _not_hidden(self, error: WorkshopError) -> None:
        self._tell("")
        self.frame.show_error(error)

    def action_name(self) -> None:
        """Choose among the suspects."""
        from jitter_workshop.tui.screens.chapter.suspects import SuspectsPage

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

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Where nothing can be hidden the key of a cure is that of everywhere else: the report.
        return False if action == "cure" and not self.walk.hunts else super().check_action(action, parameters)

    def action_cure(self) -> None:
        """Measure once more, with what the learner did against the noise."""
        from jitter_workshop.tui.screens.chapter.mitigations import CuresPage

        if self.run_under_way is not None or self.frame.at_work:
            return
        beside = self.walk.run_in("again")
        if not self.walk.hunts or beside is None or not words.unanswered(self.workshop.hunt):
            self._tell(words.NO_CURE if self.walk.hunts else "Nothing is hidden in this chapter.")
            return
        cpus = self.workshop.aside(beside)
        self.app.push_screen(CuresPage(cpus, self._try_cure))

    def _try_cure(self, cpu: int | None) -> None:
        try:
            request = mitigation.request(self.walk, cpu)
            self.walk.go("compare")
        except WorkshopError as error:
            self.frame.show_error(error)
            return
        self._enter_step()
        self._make(TREATED, self._as_set(request))
