"""Change settings from home: give all back, or apply again what this session had applied, each after a question."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.text import clean, fell_away
from jitter_workshop.model.walk import PlanView
from jitter_workshop.presenter import settings_lines
from jitter_workshop.presenter.lines import wrap
from jitter_workshop.presenter.settings_words import (
    GIVEN_BACK_MEANWHILE,
    NO_RIGHTS,
    as_root,
    came_back,
    counted,
    named,
    stands,
)
from jitter_workshop.tui.screens.common.question import Question
from jitter_workshop.tui.screens.host.host_change_screen import HandWork
from jitter_workshop.tui.widgets.keybar import Shown


class HomeSettings(HandWork):
    """Change the host from the home screen. ``_renew`` shows everything again."""

    _hands_message = ""
    _stood: tuple[dict[str, str], ...] = ()
    """The tunables that were applied when the message was set."""

    def _renew(self) -> None:
        raise NotImplementedError

    def said_of_hands(self) -> list[str]:
        """Return the result of the last key, the changes applied on this host, and those that could be applied
        again."""
        said = [self._hands_message] if self._hands_message else []
        if self.frame.at_work:
            return said
        # The message of a key holds only until the host changes again: a lease may run out, a chapter may apply.
        if self.workshop.standing() != self._stood:
            self._hands_message, said = "", []
        standing = stands(self.workshop.written())
        said += [f"{standing}.   u gives all back"] if standing else []
        again = self.workshop.resumable()
        if again and not standing and self.workshop.agent_session.holding:
            said.append(GIVEN_BACK_MEANWHILE)
        if again:
            said.append(
                f"This session had applied {named(word.partition('=')[0] for word in again)}.   a applies again"
            )
        return said

    def hands_keys(self) -> tuple[Shown, ...]:
        """Return the key to give back if anything is applied, else the key to apply again if there is anything."""
        if self.workshop.standing():
            return (("home.undo", ""),)
        return (("home.resume", ""),) if self.workshop.resumable() else ()

    def _say_of_hands(self, message: str) -> None:
        self._remember(message)
        self._renew()

    def _remember(self, message: str) -> None:
        self._hands_message = message
        self._stood = self.workshop.standing()

    # -- giving all back -------------------------------------------------------------------------------------------

    def action_undo(self) -> None:
        standing = self.workshop.standing()
        if not standing:
            self._say_of_hands("No setting of this host is changed by this tool.")
            return

        def about(width: int) -> Iterable[Text]:
            for number, one in enumerate(standing, start=1):
                line = Text(f"{clean(one['id'], 40)}", "text")
                line.append(f" = {clean(one['value'], 200)}" if one.get("value") else "", "dim")
                yield from wrap(line, width, f"{number:>3}  ")

        keys = "Enter gives all of this back · Esc leaves it as it is"
        self.app.push_screen(Question("Give back all that is applied on this host?", about, keys, self._undo_all))

    def _undo_all(self) -> None:
        self._hands_message = "Giving back…"
        self.have_done(self.workshop.undo_all, self._undone, self._failed)
        self._renew()

    def _undone(self, result: RestoreResult) -> None:
        self._remember(came_back(result))

    # -- applying again --------------------------------------------------------------------------------------------

    def action_resume(self) -> None:
        words = self.workshop.resumable()
        if not words:
            self._say_of_hands("There is nothing to apply again.")
            return
        try:
            view: PlanView = self.workshop.resume_plan()
        except WorkshopError as error:
            self.frame.show_error(error)
            return

        def about(width: int) -> Iterable[Text]:
            return settings_lines.plan(view, words, self.workshop.recorded, width)

        barred = self.workshop.agent_session.rights == "none"
        enter = NO_RIGHTS if barred else f"Enter applies this, {as_root(self.workshop)}"
        keys = f"{enter} · ↑ ↓ scroll · Esc changes nothing"
        title = "Apply again what this session had applied?"
        self.app.push_screen(
            Question(title, about, keys, lambda: self.frame.class_turn.with_turn(lambda: self._resume(view)))
        )

    def _resume(self, view: PlanView) -> None:
        self._hands_message = "Applying…"
        self.have_done(lambda: self.workshop.resume(view), self._resumed, self._failed)
        self._renew()

    def _resumed(self, result: ApplyResult) -> None:
        said = [f"Applied and read back: {counted([one.tunable for one in result.applied])}."]
        said += [fell_away(result.ended)] if result.ended else []
        said += [f"Refused: {clean(one.path or one.tunable, 100)}: {clean(one.reason, 200)}." for one in result.refused]
        said += ["Part of it takes effect with the next boot."] if result.needs_reboot else []
        self._remember(" ".join(said))

    def _failed(self, error: WorkshopError) -> None:
        self._hands_message = ""
        self.frame.show_error(error)

    def work_over(self) -> None:
        self._renew()
