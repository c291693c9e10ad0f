"""Start, show, stop and store the runs of a chapter on its screen."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial

from jitter_workshop.errors import WaitStopped, WorkshopError
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.turns.classhost import TurnOver, as_sentence
from jitter_workshop.model.course import CONTROL, SLOTS, TREATED, StepName
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import SENTENCE, clean, cleaned_sentence
from jitter_workshop.presenter.classes import class_host
from jitter_workshop.presenter.runs import causes
from jitter_workshop.presenter.runs.run import STOPPED_WAITING, remark, stopped, write_to_be_shown
from jitter_workshop.tui.background import Measuring
from jitter_workshop.tui.screens.chapter.page import ChapterPage
from jitter_workshop.tui.widgets.sheet import Sheet


class BackgroundRuns:
    """Make the runs of a chapter on a thread. ``page``: the chapter's state, in which the present run is stored.
    ``draw_chart``: a function that draws the chart again."""

    def __init__(self, page: ChapterPage, draw_chart: Callable[[], None]) -> None:
        self._page = page
        self._draw_chart = draw_chart
        self._after_first_look: Callable[[str, bool], None] | None = None
        """The function to call after a run that :meth:`look_first` makes; None for any other run."""
        self._said_before = ""
        """The sentences on the run before a control run, which the control run's sentences follow."""

    # -- starting --------------------------------------------------------------------------------------------------

    def measure(self, slot: StepName) -> None:
        """Make a step's run."""
        try:
            request = self._page.request(slot)
        except WorkshopError as error:
            self._page.frame.show_error(error)
            return
        self.make(slot, request)

    def look_first(self, slot: StepName, after: Callable[[str, bool], None]) -> None:
        """Make a step's run without a trace, and do not store it as the run of the step: the learner's guess stays
        open. ``after``: what follows when the run has ended in any way. Its arguments are a sentence on the run, and
        True if the run is complete."""
        try:
            request = dataclasses.replace(self._page.request(slot), evidence=False)
        except WorkshopError as error:
            self._page.frame.show_error(error)
            return
        self.make(None, request, after)

    def make(
        self,
        slot: str | None,
        request: MeasureRequest,
        after: Callable[[str, bool], None] | None = None,
        key: str = "m",
    ) -> None:
        """Make a run, and store it as the chapter's run for ``slot``. If ``slot`` is None, the run is not stored as
        the run of a step. On a class host, the run begins when it is this user's turn. ``after``: what follows when a
        run without a slot has ended. If the run begins with a write that the learner was not shown, only show it, and
        say that ``key`` measures.
        """
        if not self._page.walk.measuring.may_begin(request):
            self._page.screen.tell(f"{write_to_be_shown(request)} {key} measures.")
            return
        self._after_first_look = after
        self._page.frame.class_turn.with_turn(partial(self._make_now, slot, request))

    def show_causes(self) -> None:
        """Open the causes of this chapter's newest traced run. If there is no traced run, make one for this purpose.
        That run is not the run of any step.
        """
        page, walk, workshop = self._page, self._page.walk, self._page.workshop
        try:
            run = walk.runs.traced_run()
            further = walk.measuring.traced_request() if run is None and not walk.hunts else None
        except WorkshopError as error:
            self._page.frame.show_error(error)
            return
        if run is not None and workshop.context.runs.traced(run):
            self.show_causes_of(run)
        elif run is not None:
            page.screen.tell(clean(run.notes.get("evidence", causes.NO_TRACE), SENTENCE))
        elif further is not None and workshop.context.mount_command:
            # Without the trace the run would be spent for nothing.
            page.offers_mount = True
            page.screen.tell(causes.mounting(workshop.context.mount_command, "y copies the command; v checks again."))
        elif further is not None:
            self.make(None, page.as_set(further), key="v")
        else:
            page.screen.tell(causes.MEASURE_FIRST)

    def show_causes_of(self, run: Run) -> None:
        """Open the screen with the causes of a run. If the screen has a page about the chapter's subject, this page is
        shown first.
        """
        from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen

        self._page.screen.app.push_screen(EvidenceScreen(run, self._page.walk.chapter.evidence))

    def _make_now(self, slot: str | None, request: MeasureRequest) -> None:
        page, screen = self._page, self._page.screen
        page.table, page.highlight, page.view = False, None, "work"
        running = page.run = Measuring(
            screen=screen,
            drawn=screen.redraw,
            block_drawn=self._block_drawn,
            tell=screen.tell,
            slot=slot,
            request=request,
        )
        screen.tell("")
        # The worker of the run before a control run may not have ended yet, and has nothing left to do.
        alone = slot != CONTROL
        screen.run_worker(partial(self._run, running), thread=True, exclusive=alone, group="measure")

    def _run(self, running: Measuring) -> None:
        """Make a run on the worker's thread, and give the screen its result or error."""
        page = self._page
        beside = page.walk.runs.run_in("again")
        try:
            run = page.workshop.measure(running.request, running, running.cancel, running.queued)
            if running.slot == TREATED and run.complete and beside is not None:
                page.workshop.hunts.weigh(beside, run)
            if running.slot in SLOTS and page.walk.runs.to_read(run):
                # Before the result is shown: from its trace a run has the same disturbers on every page.
                self._read(run, running)
        except WorkshopError as error:
            page.screen.call_later(self._failed, error)
        else:
            page.screen.call_later(self._done, running.slot, run)

    def _read(self, run: Run, running: Measuring) -> None:
        """Read the trace of the finished run, and show the progress. Esc stops the reading; a later step then reads the
        trace."""
        screen = self._page.screen

        def told(done: int, total: int) -> None:
            if running.stopping:
                raise Stopped("reading the trace was stopped")
            screen.call_later(screen.tell, f"{causes.READING} Block {done} of {total}.")

        with contextlib.suppress(Stopped):
            self._page.walk.runs.read_figures(run, progress=told)

    def _block_drawn(self) -> None:
        self._draw_chart()
        # The table is of the same blocks as the figure above it.
        table = ("#data-sheet",) if self._page.table else ()
        for changing in ("#progress", "#say", *table):
            self._page.screen.query_one(changing, Sheet).renew()
        self._page.frame.class_turn.look_between_blocks()

    # -- ending ----------------------------------------------------------------------------------------------------

    def _over(self) -> bool:
        """Clear the state of the present run. Return True if the learner stopped the run."""
        running, self._page.run = self._page.run, None
        if running is not None:
            running.end()
        return running is not None and running.stopping

    def _done(self, slot: str | None, run: Run) -> None:
        """Keep a run that is complete, or that was stopped after some blocks."""
        page, frame = self._page, self._page.frame
        stopping = self._over()
        if slot is not None:
            try:
                page.walk.record(slot, run)
            except WorkshopError as error:
                frame.show_error(error)
        # The step says whether a cure helped.
        said = remark(run) if slot != TREATED else ""
        if disturbed := class_host.disturbance_sentence(page.workshop.context.class_view, run):
            said = f"{said} {disturbed}".strip()
        if not run.complete:
            said = stopped(run)
        if slot is None:
            said = clean(run.notes.get("evidence", ""), SENTENCE) or said
        before, self._said_before = self._said_before if slot == CONTROL else "", ""
        said = " ".join(filter(None, (before, *page.workshop.after_run, said)))
        page.screen.tell(said)
        after, self._after_first_look = self._after_first_look, None
        if after is not None and slot is None:
            after(said, run.complete)
        frame.run_over()
        if run.complete and not stopping:
            self._go_on_with_control(slot, said)
        if slot is None and page.workshop.context.runs.traced(run):
            self.show_causes_of(run)

    def _go_on_with_control(self, slot: str | None, said: str) -> None:
        """Make the control run after the run of ``slot``, if the chapter has one. The page has told both. ``said``: the
        sentences on the run of ``slot``, which are told again after the control run."""
        try:
            request = self._page.walk.measuring.control_request(slot)
        except WorkshopError as error:
            self._page.frame.show_error(error)
            return
        if request is not None:
            self._said_before = said
            self.make(CONTROL, self._page.as_set(request))

    def _failed(self, error: WorkshopError) -> None:
        """Tell why the run failed. If the learner stopped the run, or if the learner's turn ended, a sentence above
        the keys says so. Any other error opens a dialog.
        """
        frame = self._page.frame
        told = self._over() or isinstance(error, TurnOver)
        said = " ".join(filter(None, (*self._page.workshop.after_run, _stopped_sentence(error) if told else "")))
        self._page.screen.tell(said)
        after, self._after_first_look = self._after_first_look, None
        if after is not None:
            after(said, False)
        frame.class_turn.look()
        if not told:
            frame.show_error(error)
        frame.run_over()


def _stopped_sentence(error: WorkshopError) -> str:
    """Return a sentence for a run that was stopped before its first block was finished."""
    if isinstance(error, WaitStopped):
        return STOPPED_WAITING
    if isinstance(error, TurnOver):
        return f"{as_sentence(clean(error.sentence(), SENTENCE))}."
    return cleaned_sentence(error.sentence(), SENTENCE)
