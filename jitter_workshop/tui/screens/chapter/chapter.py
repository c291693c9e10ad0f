"""A chapter: the loop, the lesson, the chart; look, predict, measure, plan, apply, again, compare, explain."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast

from textual import events, on
from textual.binding import BindingType

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.session import Prediction
from jitter_workshop.presenter import imported_words
from jitter_workshop.presenter.settings_words import PLAN_OF_THESE_CPUS
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.chapter.hunt import ChapterHunt
from jitter_workshop.tui.screens.common.base import TALL
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.sheet import Pane

LEAST_NS, MOST_NS = 10, 10_000_000_000
FINE, COARSE = 10 ** (1 / 10), 10.0
"""How far a key moves the mark: ten steps a decade, or a whole one."""


class ChapterScreen(ChapterHunt):
    """One chapter under way: what its keys do."""

    scope: ClassVar[Scope] = "chapter"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("chapter"))

    def on_mount(self) -> None:
        self._enter_step()
        self.watch_the_noise()
        if said := self.walk.rebooted() or self._said_first:
            self._tell(said)
        if self._measure_at_once:
            self._go_and_measure()

    # -- going on --------------------------------------------------------------------------------------------------

    def action_enter(self) -> None:
        if self.run_under_way is not None:
            return
        if self._reading_first:
            self._view = "work"
            self._show()
            return
        if self._to_hide(self.step):
            self.action_hunt()
            return
        if self.walk.measures(self.step) and self.walk.run_in(self.step) is None:
            self._measure(self.step)
            return
        if self._reboot_first:
            self._leave()
            return
        if self.step == "apply" and self._sets and self._tried is None:
            self._apply()
            return
        try:
            if self._to_agree_anew():
                return
            if self.step == "predict" and not self._locked:
                self._keep_guess()
                if self._locked:
                    self._show_answer()
                    return
            following = self.walk.next()
        except WorkshopError as error:
            self._tell(error.sentence())
            return
        if following is None:
            self._leave()
        else:
            self._enter_step()

    def _show_answer(self) -> None:
        """An answer that no run decides: right or not, and why, before going on."""
        self._show()
        self.query_one("#data", Pane).scroll_end(animate=False)

    def _keep_guess(self) -> None:
        task = self.walk.chapter.prediction
        if task is None:
            return
        if task.kind == "mark":
            self.walk.predict(Prediction(percentile=task.percentile, value_ns=self.mark_ns))
        else:
            self.walk.predict(Prediction(choice=task.answers[self._choice].id))

    def action_back(self) -> None:
        if self.run_under_way is None and self.walk.back() is not None:
            self._enter_step()

    @on(LoopLine.Wanted)
    def _go_to(self, message: LoopLine.Wanted) -> None:
        if self.run_under_way is not None or self.frame.at_work:
            return
        try:
            if message.step == "again" and self._to_agree_anew():
                return
            self.walk.go(message.step)
        except WorkshopError as error:
            self._tell(error.sentence())
        else:
            self._enter_step()

    def action_home(self) -> None:
        if self.run_under_way is not None:
            self.run_under_way.stop()
            self._show()
        else:
            self._leave()

    # -- smaller keys ----------------------------------------------------------------------------------------------

    def action_lesson(self) -> None:
        """Narrow: turn between lesson and chart. Wide: both are there, and Tab chooses which of them scrolls."""
        if self.run_under_way is None and (self.wide or self._with_chart or self._table or self._alone):
            self._view = "work" if self._view == "lesson" else "lesson"
            self._show()

    def action_table(self) -> None:
        if self._table or self._with_chart:
            self._table = not self._table
            self._view = "work"
            self._show()

    def action_published(self) -> None:
        self._published = not self._shows_published
        self._show()

    def action_name(self) -> None:
        """Where nothing is hidden, the key lays imported curves beside the compared ones."""
        if self.step == "compare" and not self.walk.hunts:
            self.action_imported()
        else:
            super().action_name()

    def action_imported(self) -> None:
        """Show or hide other tools' curves."""
        if self.run_under_way is not None or self.step != "compare":
            return
        known = self._imported()
        self._with_imports = bool(known) and not self._with_imports
        self._highlight = None
        self._tell(imported_words.said(known, self._with_imports))

    def action_hint(self) -> None:
        hint = self.walk.hint()
        if hint is None:
            shown = self.walk.chapter.hints
            hint = f"No more hints. The last one was: {shown[-1]}" if shown else "This chapter has no hints."
        self._tell(hint)

    def action_copy(self) -> None:
        by_hand = self.walk.by_hand() if self.step == "explain" else ()
        if by_hand:
            self.app.copy_to_clipboard("\n".join(command for command, _ in by_hand))
            self._tell("The commands are in the clipboard, where this terminal allows it.")

    def action_cpus(self) -> None:
        """The same key proves at the compare step, where CPUs are chosen no more."""
        if self.step == "compare":
            self.action_prove()
        elif self.run_under_way is None and self.walk.chapter.changes == "placement":
            from jitter_workshop.tui.screens.host.cpus import CpuPicker

            before = self.walk.progress.chosen_cpus
            self.app.push_screen(CpuPicker(self.walk, self.workshop.topology), partial(self._cpus_chosen, before))

    def _cpus_chosen(self, before: dict[str, int], _: object = None) -> None:
        """Back from the choice of CPUs: another choice is another plan, which is shown before Enter agrees to it."""
        if self.walk.progress.chosen_cpus != before:
            self._show_plan_anew(PLAN_OF_THESE_CPUS if self.step in ("plan", "apply") else "")

    def action_prove(self) -> None:
        """The newest proof of this chapter, or what a first one costs."""
        if self.run_under_way is not None or self.frame.at_work or self.step != "compare":
            return
        from jitter_workshop.flow.proving.chapter_proof import why_not
        from jitter_workshop.tui.screens.proof.proving import ProvingScreen

        reason = why_not(self.workshop, self.walk)
        if reason and self.proof is None:
            self._tell(f"Nothing to prove: {reason}.")
        else:
            self.app.push_screen(ProvingScreen(self.walk, self.proof))

    def _vertical(self, direction: int) -> None:
        task = self.walk.chapter.prediction
        if self.step == "predict" and task is not None and not self._locked and not self._reading_first:
            if task.kind == "choice":
                self._choose(self._choice - direction)
            else:
                self._move_mark(FINE**direction)
            return
        pane = self._scrolled()
        pane.scroll_relative(y=-direction, animate=False)

    def _scrolled(self) -> Pane:
        chart_alone = self._with_chart and not (self.step == "compare" and self.size.height >= TALL)
        lesson = self._view == "lesson" or (self.wide and chart_alone)
        return cast(Pane, self.query_one("#lesson" if lesson else "#data"))

    def _move_mark(self, factor: float) -> None:
        self.mark_ns = round(min(max(self.mark_ns * factor, LEAST_NS), MOST_NS))
        self._show()

    def _choose(self, index: int) -> None:
        task = self.walk.chapter.prediction
        if task is not None and not self._locked and 0 <= index < len(task.answers):
            self._choice = index
            self._show()

    def _sideways(self, direction: int) -> None:
        if self.step == "predict" and self._marking and not self._locked and not self._reading_first:
            self._move_mark(COARSE**direction)
            return
        count = len(self._curves())
        if self._with_chart and count:
            now = count - 1 if self._highlight is None else self._highlight
            self._highlight = (now + direction) % count
            self._show()

    def on_key(self, event: events.Key) -> None:
        if event.character is None or event.character not in "123456789":
            return
        index = int(event.character) - 1
        if self.step == "predict" and not self._marking:
            self._view = "work"
            self._choose(index)
        elif self._with_chart and index < len(self._curves()):
            self._highlight = index
            self._show()

    def action_up(self) -> None:
        self._vertical(+1)

    def action_down(self) -> None:
        self._vertical(-1)

    def action_left(self) -> None:
        self._sideways(-1)

    def action_right(self) -> None:
        self._sideways(+1)

    def action_page_up(self) -> None:
        self._scrolled().scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        self._scrolled().scroll_page_down(animate=False)
