"""Prove a chapter's change from its compare step: the plan, the proof on its thread, and the keys."""

from __future__ import annotations

import signal
import time
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.binding import BindingType

from jitter_workshop.bench.cancel import stop_this_process
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.proving import chapter_proof
from jitter_workshop.flow.proving.proof_run import Prover
from jitter_workshop.flow.turns.classhost import TurnOver
from jitter_workshop.model.proof import ProofPlan
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import proof_words as words
from jitter_workshop.tui.background.measuring import BlockMeasured, Calibrated, Queued
from jitter_workshop.tui.background.proving_run import (
    PlanChanged,
    ProofDone,
    ProofFailed,
    Proving,
    Restoring,
    RoundDone,
    SideBegins,
)
from jitter_workshop.tui.core.actions import Scope, bindings
from jitter_workshop.tui.screens.proof.proving_show import ProvingShow
from jitter_workshop.tui.widgets.sheet import Pane


class ProvingScreen(ProvingShow):
    """Show one proof of a chapter. With ``proof``, its verdict is shown first."""

    scope: ClassVar[Scope] = "proving"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("proving"))

    def on_mount(self) -> None:
        if self._page == "cost":
            self._read_plan()
        else:
            self._show()

    # -- the cost ------------------------------------------------------------------------------------------------------

    def _read_plan(self) -> None:
        """Have the plan drawn. On a class host wait for the turn first: the turn lends the CPUs that the plan needs."""
        self.frame.class_turn.with_turn(self._read_plan_now, self._back)

    def _back(self) -> None:
        if self.proof is None:
            self.app.pop_screen()
        else:
            self._page = "verdict"
            self._show()

    def _read_plan_now(self) -> None:
        """Draw the plan on a thread: settings are read by root, and sudo may have to ask for a password."""
        self._page = "cost"
        self._plan = self._prover = None
        self._why_no_plan = ""
        asked = words.asked_for(self.proof)
        self._chosen = self._choices.index(asked) if asked is not None else 0
        self._show()
        self.have_done(partial(self._draw, self._rounds), self._drawn, self._not_drawn)

    def _draw(self, rounds: int) -> tuple[Prover, ProofPlan]:
        prover = chapter_proof.prover(self.workshop, self.walk, rounds)
        return prover, prover.plan()

    def _drawn(self, made: tuple[Prover, ProofPlan]) -> None:
        self._prover, self._plan = made
        self._show()
        self.query_one(Pane).scroll_home(animate=False)

    def _not_drawn(self, error: WorkshopError) -> None:
        self._why_no_plan = clean(error.sentence(), 600)
        self._show()

    def _choose(self, index: int) -> None:
        if self._page == "cost" and self._plan is not None and 0 <= index < len(self._choices):
            self._chosen = index
            self._show()

    # -- the rounds ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        prover, shown = self._prover, self._plan
        if prover is None or shown is None:
            return
        self._message = ""
        self._forget_rounds()
        self._left_s, self._left_at = words.seconds(shown, self._rounds), time.monotonic()
        self._page = "rounds"
        running = Proving(self, shown.workload)
        self.under_way = running
        app = self.frame
        app.stop_run, app.suspend_run, app.run_goes_on = self._stop, running.suspend, self._goes_on
        # The host is changed on this thread, too, so leaving waits until all is given back.
        app.begin_work()
        self._show()
        self.query_one(Pane).scroll_home(animate=False)
        self.run_worker(partial(self._prove, running, prover, shown, self._rounds), thread=True, group="prove")

    def _prove(self, running: Proving, prover: Prover, shown: ProofPlan, rounds: int) -> None:
        """Prove the shown plan on the worker's thread, and post the result."""
        try:
            if rounds != shown.rounds:
                prover, fresh = self._draw(rounds)
                if fresh.changes != shown.changes:
                    self.post_message(PlanChanged(prover, fresh))
                    return
                shown = fresh
            proof = prover.prove(shown, running, running.cancel, running.queued)
        except WorkshopError as error:
            self.post_message(ProofFailed(error))
        else:
            self.post_message(ProofDone(proof))

    @on(Queued)
    def _queued(self, message: Queued) -> None:
        if self.under_way is not None:
            self.under_way.waiting = message.sentence
            self._show()

    @on(SideBegins)
    def _side_begins(self, message: SideBegins) -> None:
        running = self.under_way
        self._in_block = False
        if running is None:
            message.painted.set()
            return
        running.progress = None
        self._step = message.step
        self._left_s, self._left_at = message.step.left_s, time.monotonic()
        self._show()
        self.frame.when_painted(self, message.painted.set)

    @on(Calibrated)
    def _calibrated(self) -> None:
        # From here until the end of the first block nothing is painted.
        self._in_block = True

    @on(BlockMeasured)
    def _block_measured(self, message: BlockMeasured) -> None:
        running = self.under_way
        if running is None:
            message.painted.set()
            return
        running.progress = message.progress
        self.sheet("#proof-progress").show(self._progress)
        self.frame.class_turn.look_between_blocks()
        self._settle_question()
        self.frame.when_painted(self, message.painted.set)

    @on(RoundDone)
    def _round_done(self, message: RoundDone) -> None:
        self._in_block = False
        if self.under_way is None:
            message.painted.set()
            return
        self._seen, self._orders = message.seen, message.orders
        self._left_s, self._left_at = message.left_s, time.monotonic()
        self._settle_question()
        self._show()
        self.frame.when_painted(self, message.painted.set)

    @on(Restoring)
    def _gives_back(self) -> None:
        self._in_block = False
        self._restoring = True
        self._show()

    def _settle_question(self) -> None:
        """Show the question that is due, or remove it. Call it in a frame between two blocks."""
        if self._asking == "due":
            self._asking = "shown"
        if (self._asking == "shown") != self._asked:
            self._asked = self._asking == "shown"
            self._show_said()

    def _goes_on(self) -> None:
        """Go on after a stop (Ctrl-Z) and SIGCONT."""
        running = self.under_way
        if running is not None and running.suspended:
            running.suspended = False
            self._message = "It was stopped and goes on; the part that was cut is measured again."
            self.call_next(self._show)

    def _stop(self) -> None:
        """Ask the proof to end now: by a key, or because a signal ends the workshop."""
        if self.under_way is not None:
            code = self.frame.exit_code
            self.under_way.stop_by(signal.Signals(code - 128).name if code > 128 else "hand")

    def _over(self) -> bool:
        """Clean up after the thread has ended. Return True if the proof was stopped on request."""
        running, app = self.under_way, self.frame
        self.under_way = None
        app.stop_run = app.suspend_run = app.run_goes_on = None
        self._forget_rounds()
        if running is not None and running.suspended:
            # It ended before its runner could act on the request: the terminal is given back already.
            stop_this_process()
        try:
            chapter_proof.over(self.workshop, self.walk)
        except WorkshopError as error:
            self._message = error.sentence()
        app.end_work()
        return running is not None and running.stopping

    @on(ProofDone)
    def _done(self, message: ProofDone) -> None:
        self.proof = message.proof
        self._page = "verdict"
        self._over()
        self.sheet("#title").show(self.title_lines)
        self._show()
        self.query_one(Pane).scroll_home(animate=False)
        self.frame.run_over()

    @on(ProofFailed)
    def _failed(self, message: ProofFailed) -> None:
        stopped = self._over()
        app = self.frame
        if app.leaving:
            return
        self.sheet("#title").show(self.title_lines)
        self._message = "Stopped before a round was finished: there is nothing to judge." if stopped else ""
        if isinstance(message.error, TurnOver):
            # The end of a turn is no error of the learner's: tell it, and make no plan without a turn.
            self._page = "cost"
            self._plan = self._prover = None
            self._not_drawn(message.error)
            app.run_over()
            app.class_turn.look()
            return
        if not isinstance(message.error, Cancelled):
            app.show_error(message.error)
        app.run_over()
        if not app.leaving:
            self._read_plan()

    @on(PlanChanged)
    def _other_plan(self, message: PlanChanged) -> None:
        self._over()
        self._prover, self._plan = message.prover, message.plan
        self._page = "cost"
        self._tell("The plan has changed: look at it again. Enter begins.")
        self.frame.run_over()

    # -- keys ----------------------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.under_way is not None and action in ("enter", "close"):
            return True
        return super().check_action(action, parameters)

    def action_enter(self) -> None:
        running = self.under_way
        if running is not None:
            if self._asking == "shown" and not running.stopping:
                self._stop()
                self._asking = ""
                self._show()
        elif self._page == "cost" and self._plan is not None:
            self._begin()

    def action_close(self) -> None:
        running = self.under_way
        if running is None:
            self.app.pop_screen()
        elif running.waiting and not running.stopping:
            self._stop()
            self._show()
        elif not running.stopping and not self._restoring and self._asking != "due":
            self._asking = "" if self._asking == "shown" else "due"
            # Nothing is painted in a block, so the question is shown at its end, a quarter of a second later.
            if not self._in_block:
                self._settle_question()

    def action_again(self) -> None:
        if self.under_way is None and self._page == "verdict":
            self._message = ""
            self._read_plan()

    def action_copy(self) -> None:
        if self.under_way is None and self._page == "verdict":
            self.app.copy_to_clipboard(self.sheet("#proof-sheet").plain())
            self._tell("The verdict is in the clipboard, where this terminal allows it.")

    def on_key(self, event: events.Key) -> None:
        if event.character is not None and event.character in "123456789" and not self.frame.at_work:
            self._choose(int(event.character) - 1)

    def _move(self, by: int) -> None:
        if self.under_way is not None:
            return
        if self._page == "cost":
            self._choose(self._chosen + by)
        else:
            self.query_one(Pane).scroll_relative(y=by, animate=False)

    def action_up(self) -> None:
        self._move(-1)

    def action_down(self) -> None:
        self._move(+1)

    def action_page_up(self) -> None:
        if self.under_way is None:
            self.query_one(Pane).scroll_page_up(animate=False)

    def action_page_down(self) -> None:
        if self.under_way is None:
            self.query_one(Pane).scroll_page_down(animate=False)
