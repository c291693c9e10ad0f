"""Measuring from a chapter's screen: start, follow block by block, stop, keep."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from jitter_workshop.bench.cancel import stop_this_process
from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.chapters import traced_runs
from jitter_workshop.flow.measuring.placement_plan import same_writes
from jitter_workshop.flow.turns.classhost import TurnOver, as_sentence
from jitter_workshop.model.course import TREATED, StepName
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import class_words, hunt_words
from jitter_workshop.presenter.settings_words import PLAN_IS_ANOTHER
from jitter_workshop.report.text.run import remark
from jitter_workshop.tui.background.measuring import BlockMeasured, Calibrated, Measuring, Queued, RunDone, RunFailed
from jitter_workshop.tui.screens.chapter.show import ChapterShow
from jitter_workshop.tui.screens.chapter.state import AFTER, SLOTS
from jitter_workshop.tui.widgets.sheet import Pane

if TYPE_CHECKING:
    from jitter_workshop.flow.measuring.request import MeasureRequest


class ChapterRun(ChapterShow):
    """The runs of a chapter. The run is made on a thread; its messages are handled here, on the screen's own."""

    def _to_agree_anew(self) -> bool:
        """Whether going on from ``apply`` would agree to a placement that is not the one on the screen. It is on the
        screen then, and the next key agrees to it. Where no plan can be made there is nothing to agree to."""
        if self.step != "apply" or not self._places:
            return False
        try:
            if same_writes(self.walk.plan(), self._planned):
                return False
        except WorkshopError:
            return False
        self._show_plan_anew(PLAN_IS_ANOTHER)
        return True

    def _show_plan_anew(self, told: str) -> None:
        """Draw the plan anew, and bring it into view where a page stands above it."""
        self._planned = None
        self._view = "work"
        self._tell(told)
        if self.step in ("plan", "apply") and not self.wide:
            self.query_one("#data", Pane).scroll_end(animate=False)

    def _go_and_measure(self) -> None:
        """Go to the first measurement that is still to make, and make it. What was measured is never overwritten."""
        if self.walk.rehearsed:
            self._tell("Nothing is measured on a recording.")
            return
        missing = [s for s in SLOTS if s in self.walk.chapter.steps and self.walk.run_in(s) is None]
        if not missing:
            self._tell("This chapter's runs are made. To make one anew, go to its step and press m there.")
            return
        try:
            if missing[0] == "again" and self._to_agree_anew():
                return
            self.walk.go(missing[0])
        except WorkshopError as error:
            self._tell(error.sentence())
            return
        self._enter_step()
        if not self._to_hide(missing[0]):
            self._measure(missing[0])

    def action_again(self) -> None:
        if self.run_under_way is not None:
            return
        if self.walk.hunts and self.step == "again" and not self.workshop.hiding:
            self._tell(hunt_words.not_beside(self.workshop.hunt))
        elif self.walk.measures(self.step):
            self._measure(self.step)
        elif self.walk.hunts and self.workshop.hiding and self.walk.run_in("again") is not None:
            # Beside the noise that runs now, wherever the learner has read on to.
            self.walk.go("again")
            self._enter_step()
            self._measure("again")
        else:
            self._go_and_measure()

    def action_noise(self) -> None:
        if self.run_under_way is None and not self.walk.rehearsed and self.walk.offer_noise():
            self.walk.accept_noise()
            self._enter_step()
            self._measure("measure")

    def action_causes(self) -> None:
        """Who took the time: of this chapter's newest run that was traced; where none was, one more run with a trace,
        which takes no step's place."""
        if self.run_under_way is not None or self.walk.rehearsed:
            return
        if self.step not in AFTER and not self.walk.hunts:
            return
        try:
            run = traced_runs.shown(self.workshop, self.walk)
            further = traced_runs.once_more(self.walk) if run is None and not self.walk.hunts else None
        except WorkshopError as error:
            self.frame.show_error(error)
            return
        if run is not None and self.workshop.traced(run):
            self.frame.show_causes(run, self.walk.chapter.evidence)
        elif run is not None:
            self._tell(clean(run.notes.get("evidence", "This run has no trace."), 300))
        elif further is not None:
            self._make(None, self._as_set(further))
        else:
            self._tell("Measure first: without a run there is nothing to explain.")

    def _measure(self, slot: StepName) -> None:
        try:
            request = self._request(slot)
        except WorkshopError as error:
            self.frame.show_error(error)
            return
        self._make(slot, request)

    def _make(self, slot: str | None, request: MeasureRequest) -> None:
        """Make a run, and keep it in a slot (None: in none); on a class host once the turn has come."""
        self.frame.class_turn.with_turn(partial(self._make_now, slot, request))

    def _make_now(self, slot: str | None, request: MeasureRequest) -> None:
        """On a thread."""
        self._message = ""
        self._table = False
        self._highlight = None
        self._view = "work"
        running = Measuring(self, slot, request)
        self.run_under_way = running
        app = self.frame
        app.stop_run, app.suspend_run, app.run_goes_on = running.stop, running.suspend, self._goes_on
        self._show()
        self.run_worker(partial(self._run, running), thread=True, exclusive=True, group="measure")

    def _run(self, running: Measuring) -> None:
        """On the worker's thread: measure, and post what came of it."""
        beside = self.walk.run_in("again")
        try:
            run = self.workshop.measure(running.request, running, running.cancel, running.queued)
            if running.slot == TREATED and run.complete and beside is not None:
                self.workshop.weigh_cure(beside, run)
        except WorkshopError as error:
            self.post_message(RunFailed(error))
        else:
            self.post_message(RunDone(running.slot, run))

    @on(Queued)
    def _queued(self, message: Queued) -> None:
        if self.run_under_way is not None:
            self.run_under_way.waiting = message.sentence
            self._show()

    @on(Calibrated)
    def _calibrated(self, message: Calibrated) -> None:
        if self.run_under_way is not None:
            self.run_under_way.started_event = message.event

    @on(BlockMeasured)
    def _block_measured(self, message: BlockMeasured) -> None:
        running = self.run_under_way
        if running is None:
            message.painted.set()
            return
        running.progress = message.progress
        self._draw_chart()
        self.sheet("#progress").show(self._progress)
        self.frame.class_turn.look_between_blocks()
        # The runner goes on only once this frame was painted: no painting happens inside a block.
        self.frame.when_painted(self, message.painted.set)

    def _goes_on(self) -> None:
        """After a stop (Ctrl-Z) and SIGCONT."""
        running = self.run_under_way
        if running is not None and running.suspended:
            running.suspended = False
            self._message = "The run was stopped and goes on; a block that the stop cut is measured again."
            self.call_next(self._show)

    def _run_over(self) -> bool:
        running, app = self.run_under_way, self.frame
        self.run_under_way = None
        app.stop_run = app.suspend_run = app.run_goes_on = None
        if running is not None and running.suspended:
            # It ended before its runner could heed the wish: the terminal is given back already.
            stop_this_process()
        return running is not None and running.stopping

    @on(RunDone)
    def _run_done(self, message: RunDone) -> None:
        self._run_over()
        if message.slot is not None:
            try:
                self.walk.record(message.slot, message.run)
            except WorkshopError as error:
                self.frame.show_error(error)
        blocks = len(message.run.blocks)
        # Whether a cure helped is said by its step.
        self._message = remark(message.run) if message.slot != TREATED else ""
        if disturbed := class_words.disturbed(self.workshop.class_view, message.run):
            self._message = f"{self._message} {disturbed}".strip()
        if not message.run.complete:
            self._message = f"Stopped after {blocks} blocks; they are kept among the curves."
        if message.slot is None:
            self._message = clean(message.run.notes.get("evidence", ""), 300) or self._message
        self._show()
        self.frame.run_over()
        if message.slot is None and self.workshop.traced(message.run):
            self.frame.show_causes(message.run, self.walk.chapter.evidence)

    @on(RunFailed)
    def _run_failed(self, message: RunFailed) -> None:
        stopped = self._run_over()
        # Whose turn has ended did nothing wrong: it is told where results are.
        told = stopped or isinstance(message.error, TurnOver)
        self._message = _stopped_sentence(message.error) if told else ""
        self._show()
        self.frame.class_turn.look()
        if not told:
            self.frame.show_error(message.error)
        self.frame.run_over()


def _stopped_sentence(error: WorkshopError) -> str:
    """What came of a run that its learner stopped before there was anything to keep."""
    if isinstance(error, WaitStopped):
        return "Stopped waiting. Nothing was measured."
    sentence = clean(error.sentence(), 300)
    if isinstance(error, TurnOver):
        return f"{as_sentence(sentence)}."
    return f"{sentence[:1].upper()}{sentence[1:]}."
