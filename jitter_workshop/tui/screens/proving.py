"""Prove a chapter's change on a screen. The cost is shown first, then each round as it is made, and at the end the
verdict."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

from textual.app import ComposeResult
from textual.containers import Vertical

from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.proving import chapter_proof
from jitter_workshop.flow.proving.proof_run import Prover
from jitter_workshop.flow.turns.classhost import TurnOver
from jitter_workshop.model.proof import Proof, ProofPlan
from jitter_workshop.model.text import LABEL, PARAGRAPH, SENTENCE, clean
from jitter_workshop.presenter.proofs import proof as words
from jitter_workshop.presenter.text.lines import wrap
from jitter_workshop.presenter.text.prose import styled
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.background import Proving
from jitter_workshop.tui.screens.common.base import HostChangeScreen
from jitter_workshop.tui.widgets.keybar import Shown
from jitter_workshop.tui.widgets.sheet import Pane, Sheet, panel

_FRAME = 13
"""The number of lines of the page during a proof, without the picture of the rounds."""
_LEAST_ROWS, _MOST_ROWS = 5, 27


class ProvingScreen(HostChangeScreen, scope="proving"):
    """Show one proof of a chapter. ``proof``: the newest proof, whose verdict is shown first. If ``proof`` is None, the
    page begins with the cost of a proof."""

    def __init__(self, walk: ChapterWalk, proof: Proof | None = None) -> None:
        super().__init__()
        self.walk = walk
        self.proof = proof
        """The newest proof of this chapter."""
        self._page: Literal["cost", "rounds", "verdict"] = "cost" if proof is None else "verdict"
        self.under_way: Proving | None = None
        self._planned: tuple[Prover, ProofPlan] | None = None
        self._why_no_plan = ""
        self._chosen = 0
        self._asking: Literal["", "due", "shown"] = ""
        """True while the learner is asked whether to stop."""

    def body(self) -> ComposeResult:
        with Vertical(id="proof-main"), panel(Pane(id="proof-pane")):
            yield Sheet(self._lines, id="proof-sheet")
        yield Sheet(self._progress, id="proof-progress")
        yield Sheet(self.say_lines, id="say")

    def heading(self) -> str:
        return f"{clean(self.walk.chapter.title, LABEL)} · prove it"

    def on_mount(self) -> None:
        if self._page == "cost":
            self._read_plan()

    # -- display -------------------------------------------------------------------------------------------------------

    def redraw(self) -> None:
        self.set_class(self.under_way is not None, "-measuring")
        super().redraw()

    def _lines(self, width: int) -> Iterable[Text]:
        if self._page == "verdict" and self.proof is not None:
            return words.proof_verdict_lines(self.proof, width)
        running = self.under_way
        if self._page == "rounds" and running is not None:
            rows = min(max(self.size.height - _FRAME, _LEAST_ROWS), _MOST_ROWS)
            return words.rounds_so_far(running.seen, running.orders, running.step, self._rounds, rows, width)
        if self._planned is None:
            why = self._why_no_plan
            told = f"This change cannot be proven now: {why}." if why else "Reading the plan…"
            return wrap(Text(told, "text"), width)
        return words.proof_cost_lines(self._planned[1], width, self._choices, self._chosen, self.proof)

    def _progress(self, width: int) -> Iterable[Text]:
        running = self.under_way
        if running is None:
            return ()
        if running.stopping or running.gives_back:
            what = "Stopping, and restoring the settings…" if running.stopping else "Restoring the settings…"
            return [Text(what, "accent")]
        if running.waiting:
            return wrap(Text(f"{clean(running.waiting, SENTENCE)} Esc stops waiting.", "text"), width)
        return words.proof_progress_lines(
            running.step, running.progress, self._rounds, running.left_s, width, workload=running.workload
        )

    def say_lines(self, width: int) -> Iterable[Text]:
        running = self.under_way
        asked = running is not None and self._asking == "shown"
        said = words.stop_question(len(running.orders)) if running is not None and asked else self.said
        return wrap(styled(said, "text"), width, "▸ ", "  ") if said else ()

    # -- the cost ------------------------------------------------------------------------------------------------------

    def _read_plan(self) -> None:
        """Make the plan of the proof, and show it. On a class host, wait for this user's turn first, because the CPUs
        are assigned with the turn.
        """
        self.frame.class_turn.with_turn(self._read_plan_now, self._back)

    def _back(self) -> None:
        if self.proof is None:
            self.app.pop_screen()
        else:
            self._page = "verdict"
            self.redraw()

    def _read_plan_now(self) -> None:
        """Make the plan of the proof on a thread, and show its cost. While the plan is made, sudo may ask for a
        password. This works only if the plan is not made on the screen's thread.
        """
        self._page = "cost"
        self._planned = None
        self._why_no_plan = ""
        asked = words.asked_for(self.proof)
        self._chosen = self._choices.index(asked) if asked is not None else 0
        self.redraw()
        self.on_thread(partial(self._draw, self._rounds), self._drawn, self._not_drawn)

    def _draw(self, rounds: int) -> tuple[Prover, ProofPlan]:
        prover = chapter_proof.prover(self.workshop, self.walk, rounds)
        return prover, prover.plan()

    def _drawn(self, made: tuple[Prover, ProofPlan]) -> None:
        self._planned = made
        self.redraw()
        self.query_one(Pane).scroll_home(animate=False)

    def _not_drawn(self, error: WorkshopError) -> None:
        self._why_no_plan = clean(error.sentence(), PARAGRAPH)
        self.redraw()

    def _choose(self, index: int) -> None:
        if self._page == "cost" and self._planned is not None and 0 <= index < len(self._choices):
            self._chosen = index
            self.redraw()

    # -- the rounds ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        if self._planned is None:
            return
        prover, shown = self._planned
        self.said = self._asking = ""
        self._page = "rounds"
        running = self.under_way = Proving(
            screen=self,
            drawn=self._between_runs,
            block_drawn=self._between_blocks,
            tell=self.tell,
            left=self._stop,
            workload=shown.workload,
            ends_at=time.monotonic() + words.seconds(shown, self._rounds),
        )
        # The host is changed on this thread, too, so leaving waits until all is restored.
        self.frame.begin_work()
        self.redraw()
        self.query_one(Pane).scroll_home(animate=False)
        self.run_worker(partial(self._prove, running, prover, shown, self._rounds), thread=True, group="prove")

    def _prove(self, running: Proving, prover: Prover, shown: ProofPlan, rounds: int) -> None:
        """Prove the shown plan on the worker's thread, and give the screen the result."""
        try:
            if rounds != shown.rounds:
                prover, fresh = self._draw(rounds)
                if fresh.changes != shown.changes:
                    self.call_later(self._plan_changed, prover, fresh)
                    return
                shown = fresh
            proof = prover.prove(shown, running, running.cancel, running.queued)
        except WorkshopError as error:
            self.call_later(self._failed, error)
        else:
            self.call_later(self._done, proof)

    def _settle_question(self) -> None:
        """Show or remove the question about stopping the proof. This method is called only between two blocks."""
        if self._asking == "due":
            self._asking = "shown"
        self.sheet("#say").renew()
        self.refresh_keys()

    def _between_runs(self) -> None:
        self._settle_question()
        self.redraw()

    def _between_blocks(self) -> None:
        self.sheet("#proof-progress").renew()
        self.frame.class_turn.look_between_blocks()
        self._settle_question()

    def _stop(self) -> None:
        """Ask the proof to stop now. This is called after a key, or after a signal that ends the workshop."""
        if self.under_way is not None:
            code = self.frame.exit_code
            self.under_way.stop(signal.Signals(code - 128).name if code > 128 else "hand")

    def _over(self) -> bool:
        """Clean up after the proof's thread has ended. Return True if the user or a signal stopped the proof."""
        running, self.under_way = self.under_way, None
        if running is not None:
            running.end()
        try:
            chapter_proof.record_after_proof(self.workshop, self.walk)
        except WorkshopError as error:
            self.said = error.sentence()
        self.frame.end_work()
        return running is not None and running.stopping

    def _done(self, proof: Proof) -> None:
        self.proof = proof
        self._page = "verdict"
        self._over()
        self.show_title()
        self.redraw()
        self.query_one(Pane).scroll_home(animate=False)
        self.frame.run_over()

    def _failed(self, error: WorkshopError) -> None:
        stopped = self._over()
        app = self.frame
        if app.leaving:
            return
        self.show_title()
        self.said = words.STOPPED_EARLY if stopped else ""
        if isinstance(error, TurnOver):
            # The end of a turn is no error of the learner's: tell it, and make no plan without a turn.
            self._page = "cost"
            self._planned = None
            self._not_drawn(error)
            app.run_over()
            app.class_turn.look()
            return
        if not isinstance(error, Cancelled):
            app.show_error(error)
        app.run_over()
        if not app.leaving:
            self._read_plan()

    def _plan_changed(self, prover: Prover, plan: ProofPlan) -> None:
        self._over()
        self._planned = prover, plan
        self._page = "cost"
        self.tell("The plan has changed. Read the new plan. Enter begins the proof.")
        self.frame.run_over()

    # -- keys ----------------------------------------------------------------------------------------------------------

    def keys(self) -> Sequence[Shown]:
        if self.under_way is not None:
            if self.under_way.stopping:
                return ()
            if self._asking == "shown":
                return (("proving.enter", "stop and keep"), ("proving.close", "go on"))
            return (("proving.close", "stop waiting" if self.under_way.waiting else "stop…"),)
        if self.frame.at_work:
            return ()
        always: tuple[Shown, ...] = (("app.glossary", ""), ("app.help", ""), ("proving.close", ""))
        if self._page == "verdict":
            more = "more rounds" if words.asked_for(self.proof) else "prove again"
            return (("proving.again", more), ("proving.copy", ""), *always)
        if self._planned is None:
            return always
        return (("proving.enter", ""), ("proving.number", ""), *always)

    @property
    def _choices(self) -> tuple[int, ...]:
        return words.round_choices(self.proof)

    @property
    def _rounds(self) -> int:
        """Return the chosen number of rounds."""
        return self._choices[self._chosen]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if self.under_way is not None:
            return action in ("enter", "close")
        return super().check_action(action, parameters)

    def action_enter(self) -> None:
        running = self.under_way
        if running is not None:
            if self._asking == "shown" and not running.stopping:
                self._stop()
                self._asking = ""
                self.redraw()
        elif self._page == "cost":
            self._begin()

    def action_close(self) -> None:
        running = self.under_way
        if running is None:
            self.app.pop_screen()
        elif running.waiting and not running.stopping:
            self._stop()
            self.redraw()
        elif not running.stopping and not running.gives_back and self._asking != "due":
            self._asking = "" if self._asking == "shown" else "due"
            # Nothing is painted in a block, so the question is shown at its end, a quarter of a second later.
            if not running.in_block:
                self._settle_question()

    def action_again(self) -> None:
        if self._page == "verdict":
            self.said = ""
            self._read_plan()

    def action_copy(self) -> None:
        if self._page == "verdict":
            self.copy([self.sheet("#proof-sheet").plain()], "The verdict is")

    def digit(self, index: int) -> None:
        if not self.frame.at_work:
            self._choose(index)

    def action_vertical(self, by: int) -> None:
        if self._page == "cost":
            self._choose(self._chosen + by)
        else:
            super().action_vertical(by)
