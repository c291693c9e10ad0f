"""Measure from a chapter's screen: start a run, follow it block by block, stop it, keep it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from jitter_workshop.bench.cancel import stop_this_process
from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.chapters import traced_runs
from jitter_workshop.flow.turns.classhost import TurnOver, as_sentence
from jitter_workshop.model.course import TREATED, StepName
from jitter_workshop.model.text import clean
from jitter_workshop.presenter import class_words
from jitter_workshop.report.text.run import remark
from jitter_workshop.tui.background.measuring import BlockMeasured, Measuring, RunDone, RunFailed
from jitter_workshop.tui.screens.chapter.page import AFTER, ChapterPage
from jitter_workshop.tui.screens.common.base import WorkshopScreen

if TYPE_CHECKING:
    from jitter_workshop.flow.measuring.request import MeasureRequest


class ChapterRuns:
    """Make the runs of a chapter on a thread; the screen hands its messages over to here.

    ``screen`` gives threads and messages, ``page`` keeps the run that is under way.
    """

    def __init__(self, page: ChapterPage, screen: WorkshopScreen) -> None:
        self._page = page
        self._screen = screen

    # -- starting --------------------------------------------------------------------------------------------------

    def measure(self, slot: StepName) -> None:
        """Make a step's run."""
        try:
            request = self._page.request(slot)
        except WorkshopError as error:
            self._screen.frame.show_error(error)
            return
        self.make(slot, request)

    def make(self, slot: str | None, request: MeasureRequest) -> None:
        """Make a run and keep it in a slot, None for no slot; on a class host once the turn has come."""
        self._screen.frame.class_turn.with_turn(partial(self._make_now, slot, request))

    def show_causes(self) -> None:
        """Show the causes of this chapter's newest traced run; without one, trace one more run, which is of no step."""
        page, walk, workshop = self._page, self._page.walk, self._page.workshop
        if page.run is not None or walk.rehearsed or (page.step not in AFTER and not walk.hunts):
            return
        try:
            run = traced_runs.shown(workshop, walk)
            further = traced_runs.once_more(walk) if run is None and not walk.hunts else None
        except WorkshopError as error:
            self._screen.frame.show_error(error)
            return
        if run is not None and workshop.traced(run):
            self._screen.frame.show_causes(run, walk.chapter.evidence)
        elif run is not None:
            page.screen.tell(clean(run.notes.get("evidence", "This run has no trace."), 300))
        elif further is not None:
            self.make(None, page.as_set(further))
        else:
            page.screen.tell("Measure first: without a run there is nothing to explain.")

    def _make_now(self, slot: str | None, request: MeasureRequest) -> None:
        page, frame = self._page, self._screen.frame
        page.message, page.table, page.highlight, page.view = "", False, None, "work"
        running = Measuring(self._screen, slot, request)
        page.run = running
        frame.stop_run, frame.suspend_run, frame.run_goes_on = running.stop, running.suspend, self._goes_on
        page.screen.show()
        self._screen.run_worker(partial(self._run, running), thread=True, exclusive=True, group="measure")

    def _run(self, running: Measuring) -> None:
        """On the worker's thread: measure, and post the result."""
        page = self._page
        beside = page.walk.run_in("again")
        try:
            run = page.workshop.measure(running.request, running, running.cancel, running.queued)
            if running.slot == TREATED and run.complete and beside is not None:
                page.workshop.weigh_cure(beside, run)
        except WorkshopError as error:
            self._screen.post_message(RunFailed(error))
        else:
            self._screen.post_message(RunDone(running.slot, run))

    # -- following -------------------------------------------------------------------------------------------------

    def block_measured(self, message: BlockMeasured) -> bool:
        """Keep a block's progress; False where the run is over. The runner waits until its frame was painted, so that
        nothing is painted inside a block."""
        if self._page.run is None:
            message.painted.set()
            return False
        self._page.run.progress = message.progress
        return True

    def _goes_on(self) -> None:
        """Go on after a stop (Ctrl-Z) and SIGCONT."""
        running = self._page.run
        if running is not None and running.suspended:
            running.suspended = False
            self._page.message = "The run was stopped and goes on; a block that the stop cut is measured again."
            self._screen.call_next(self._page.screen.show)

    # -- ending ----------------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        """Forget the run that was under way; tell whether the learner stopped it."""
        running, frame = self._page.run, self._screen.frame
        self._page.run = None
        frame.stop_run = frame.suspend_run = frame.run_goes_on = None
        if running is not None and running.suspended:
            # It ended before its runner could heed the wish: the terminal is given back already.
            stop_this_process()
        return running is not None and running.stopping

    def done(self, message: RunDone) -> None:
        """Keep a run that ended by itself or was stopped after some blocks."""
        page, frame, run = self._page, self._screen.frame, message.run
        self._over()
        if message.slot is not None:
            try:
                page.walk.record(message.slot, run)
            except WorkshopError as error:
                frame.show_error(error)
        # The step says whether a mitigation helped.
        page.message = remark(run) if message.slot != TREATED else ""
        if disturbed := class_words.disturbed(page.workshop.class_view, run):
            page.message = f"{page.message} {disturbed}".strip()
        if not run.complete:
            page.message = f"Stopped after {len(run.blocks)} blocks; they are kept among the curves."
        if message.slot is None:
            page.message = clean(run.notes.get("evidence", ""), 300) or page.message
        page.screen.show()
        frame.run_over()
        if message.slot is None and page.workshop.traced(run):
            frame.show_causes(run, page.walk.chapter.evidence)

    def failed(self, message: RunFailed) -> None:
        """Say why there is no run. The end of a turn is no mistake: it is told where results are."""
        page, frame = self._page, self._screen.frame
        told = self._over() or isinstance(message.error, TurnOver)
        page.message = _stopped_sentence(message.error) if told else ""
        page.screen.show()
        frame.class_turn.look()
        if not told:
            frame.show_error(message.error)
        frame.run_over()


def _stopped_sentence(error: WorkshopError) -> str:
    """Say what came of a run that its learner stopped before there was anything to keep."""
    if isinstance(error, WaitStopped):
        return "Stopped waiting. Nothing was measured."
    sentence = clean(error.sentence(), 300)
    if isinstance(error, TurnOver):
        return f"{as_sentence(sentence)}."
    return f"{sentence[:1].upper()}{sentence[1:]}."
