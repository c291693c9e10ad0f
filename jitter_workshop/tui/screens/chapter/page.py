"""Hold the state of a chapter's page: the learner's step, the run that is being made, and the curves to draw."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cached_property
from typing import Literal

from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.chapters.commands import HandCommands
from jitter_workshop.flow.chapters.guess import named_last
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.measuring.curves import (
    ORIGIN,
    PUBLISHED_WORKLOAD,
    ROLES_OF_SLOTS,
    label_with_quantity,
    scale_curve,
    told_apart_by_clock,
    with_role,
)
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.by_hand import ByHandView
from jitter_workshop.model.course import SLOTS, StepName
from jitter_workshop.model.run import HUNTED, apart_from_proofs
from jitter_workshop.model.walk import ApplyView, CpuView, Fact, PlanView, RunCurve
from jitter_workshop.presenter.course import next_step
from jitter_workshop.presenter.runs.curves import newest_imported
from jitter_workshop.presenter.text.lines import Lines
from jitter_workshop.presenter.text.prose import prose
from jitter_workshop.stats.effect import tail_of
from jitter_workshop.stats.figures import FROM_DUE_TIME, TRANSIT
from jitter_workshop.tui.background import Measuring
from jitter_workshop.tui.screens.common.base import HostChangeScreen
from jitter_workshop.tui.widgets.sheet import Pane

NarrowView = Literal["lesson", "work"]
"""The views of a narrow screen: the chapter's text, or the step's figures."""


ApplyOutcome = tuple[ApplyView, tuple[Fact, ...]] | WorkshopError
"""The outcome of an apply at this visit of the step: the result and the checks after it, or the error."""


@dataclasses.dataclass(eq=False)
class Observing:
    """Hold the state of the present observation of the learner's program.

    ``rest_s``: the remaining seconds of the observation. 0 means that the observation is over, and that its trace is
    being evaluated. ``left``: a function to call if the user stops the evaluation; the screen then does not wait for
    its result.
    """

    rest_s: float
    left: Callable[[], None]
    stopping: bool = False

    def stop(self) -> None:
        """Ask the observation to end now, and do not wait."""
        self.stopping = True
        if not self.rest_s:
            self.left()


class ChapterPage:
    """Hold the state that all steps of a chapter share. ``walk``: the chapter's session, which is independent of the
    screen. ``screen``: the screen that shows the chapter and starts threads."""

    def __init__(self, walk: ChapterWalk, screen: HostChangeScreen) -> None:
        self.walk = walk
        self.screen = screen
        self.frame = screen.frame
        self.workshop = screen.workshop
        self.run: Measuring | None = None
        self.observing: Observing | None = None
        """The present observation of the learner's program; None while nothing is observed."""
        self.view: NarrowView = "work"
        self.table = False
        self.highlight: int | None = None
        """The index of the highlighted curve; None for the newest."""
        self.with_imports = False
        self.offers_mount = False
        """True if the command that mounts the kernel's trace is on the screen."""
        self.planned: PlanView | None = None
        """The plan on the screen. It is made once a visit, so that exactly the shown plan is applied."""
        self.cpus: tuple[PlanView, CpuView] | None = None
        """The plan on the screen, and the CPUs as they were read for this plan; None before."""
        self.drawn: CpuView | None = None
        """The CPUs that the page of the present step draws, as they were when the step was entered."""
        self.mask_opened = False
        """True if the page on which the learner writes a mask was opened since this screen was made."""
        self.tried: ApplyOutcome | None = None
        self.commands = HandCommands(walk)
        """The by-hand commands of this visit of the step *explain*."""
        self.by_hand: ByHandView | None = None
        """The newest look at the writes that the learner makes by hand; None while nothing is watched."""

    @property
    def step(self) -> StepName:
        """Return the name of the step on the screen."""
        return self.walk.current

    def lesson(self, width: int) -> Lines:
        """Return the page of the present step."""
        return prose(next_step.page(self.walk, self.step, self.workshop.course), width, cpus=self.drawn)

    def tell_work(self, text: str, *, to: Literal["start", "plan"] | None = "start") -> None:
        """Show ``text`` above the keys, and scroll the figures.

        ``to``: ``start`` to scroll to their beginning; ``plan`` if the text is about a plan, to whose end a narrow
        screen scrolls; None to scroll nowhere.
        """
        self.view = "work"
        self.screen.tell(text)
        figures = self.screen.query_one("#data", Pane)
        if to == "start":
            figures.scroll_home(animate=False)
        elif to == "plan" and not self.screen.wide:
            figures.scroll_end(animate=False)

    def cpus_of(self, planned: PlanView) -> CpuView:
        """Return the state of the host's CPUs, read once for each plan. A later call with the same plan reads
        nothing."""
        if self.cpus is None or self.cpus[0] is not planned:
            self.cpus = planned, self.walk.cpus.view()
        return self.cpus[1]

    # -- what kind of chapter it is --------------------------------------------------------------------------------

    @property
    def marking(self) -> bool:
        """Return True if the guess is a mark on the chart, False if it is one of several answers."""
        task = self.walk.chapter.prediction
        return task is not None and task.kind == "mark"

    @property
    def lock_reason(self) -> str:
        """Return the reason why the guess can no longer be changed; "" while it can be changed."""
        task = self.walk.chapter.prediction
        if task is None:
            return ""
        if self.walk.guess.measured:
            return "This is measured, so the guess is fixed."
        # A guess counts only before the answer is known.
        if self.walk.runs.run_in(task.slot) is not None:
            return ""
        return "Answered: the right answer is below." if self.walk.guess.outcome() is not None else ""

    @property
    def asked(self) -> str | None:
        """Return the percentile by which the chapter judges its runs; None for the workload's usual figure."""
        return self.walk.chapter.judged_percentile

    # -- curves ----------------------------------------------------------------------------------------------------

    def recorded(self) -> tuple[tuple[RunCurve, ...], str]:
        """Return the recorded curves of the present step, and their source. Return ((), "") if there are no recorded
        curves."""
        return self.walk.runs.recorded_curves(self.step)

    def curves(self, *, imports: bool = False, last: bool = False) -> list[RunCurve]:
        """Return the curves of this host, in the order of the legend.

        The order is: published curves, imported curves, this chapter's runs, and the run that is being made.
        ``imports``: add the imported curves, if the learner has asked for them. ``last``: before this chapter's first
        run, add the learner's last run of the same workload.
        """
        slots = [m.slot for m in self.walk.chapter.measurements]
        # If one run has several curves already, a curve of another machine would only be in the way.
        several = self.walk.runs.by_several_clocks
        of_messages = all(self.walk.measuring.workload(slot) == "ring" for slot in slots) and not several
        imported = newest_imported(self.imported) if self.with_imports and imports else ()
        own, live = self.walk.runs.curves(), self._live()
        before = self.run is None and not own
        earlier = self.walk.guess.last_curve() if before and last else None
        measured = [*([earlier] if earlier is not None else []), *own, *live]
        # One of the published curves of messages gives the scale. Two runs of one's own give it, too.
        scaled = len(measured) < len(SLOTS)
        published = scale_curve() if self.screen.shows_published and of_messages and scaled else ()
        shown = [*published, *imported, *measured]
        # The chapter with several clocks names each of them.
        return shown if several else list(told_apart_by_clock(shown))

    def _live(self) -> list[RunCurve]:
        """Return the curves of the run that is being made, named as they will be after its end; [] before the first
        block has ended."""
        now = self.run.progress if self.run is not None else None
        if self.run is None or now is None:
            return []
        label, role = self.run.request.label or "this run", ROLES_OF_SLOTS.get(self.run.slot or "")
        if not self.walk.runs.by_several_clocks:
            drawn = now.latency
            sent = now.curve.count if now.curve.count < drawn.count else None
            live = dataclasses.replace(drawn, label=label, sent=sent)
            return [with_role(RunCurve("live", label, live, None, from_due=now.due is not None), role)]
        transit = label_with_quantity(with_role(RunCurve("live", label, now.curve, None), role), TRANSIT)
        if now.due is None:
            return [transit]
        # Of a later run only the latency from the due time is compared.
        due = with_role(RunCurve("live-due", label, now.due, None), "due" if role == "before" else role)
        due = label_with_quantity(due, FROM_DUE_TIME)
        return [transit, due] if role == "before" else [due]

    def own_curves(self) -> list[RunCurve]:
        """Return the learner's curves that this chapter can show now: those of its runs, or before them the learner's
        last run of the same workload. Return [] on a recording."""
        if self.walk.host.rehearsed:
            return []
        return [shown for shown in self.curves(last=True) if not shown.curve.elsewhere]

    def newest_of_others(self) -> list[RunCurve]:
        """Return the curve of the learner's newest whole run of any chapter, as the only item, for a page that has no
        curve of its own yet. Return [] without such a run, on a recording and in a hunt."""
        if self.walk.host.rehearsed or self.walk.hunts:
            return []
        runs = self.workshop.context.runs
        whole = (r for r in reversed(apart_from_proofs(runs.every())) if r.complete and HUNTED not in r.notes)
        found = next((shown for run in whole if (shown := runs.curve(run)) is not None), None)
        return [] if found is None else [named_last(found)]

    @property
    def told_at(self) -> float:
        """Return the percentile whose value the legend shows. It is that of the guess, else the default percentile of
        the chapter's workload, or of the published curves if the step shows these.
        """
        recorded = self.recorded()[0]
        if recorded and all(shown.curve.origin == ORIGIN for shown in recorded):
            return float(tail_of(PUBLISHED_WORKLOAD, self.asked))
        slot = next((m.slot for m in self.walk.chapter.measurements), None)
        return float(tail_of(self.walk.measuring.workload(slot), self.asked))

    @cached_property
    def imported(self) -> tuple[RunCurve, ...]:
        """Return the curves that were imported into this session. They are read only once, because reading a fine
        histogram takes time."""
        return self.workshop.context.runs.imported()

    # -- requests --------------------------------------------------------------------------------------------------

    def request(self, slot: StepName) -> MeasureRequest:
        """Return the request for a step's run. Raise WorkshopError if this host cannot make the run."""
        return self.as_set(self.walk.measuring.request(slot))

    def as_set(self, request: MeasureRequest) -> MeasureRequest:
        """Return ``request`` with the learner's preferred run length. The field ``hunted`` of the result is True if a
        hidden noise runs.

        The length is not changed on a class host. It is also not changed if the chapter asks for a length other than
        ``quick``.
        """
        request = dataclasses.replace(request, hunted=self.workshop.hunts.hiding)
        if self.workshop.context.class_view is not None:
            return request
        wanted = self.frame.preferences.preset
        return dataclasses.replace(request, preset=wanted) if request.preset == "quick" else request
