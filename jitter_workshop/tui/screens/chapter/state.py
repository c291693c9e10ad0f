"""The state of a chapter's screen: where the learner is, what was tried, and which curves belong there."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.course import StepName
from jitter_workshop.model.walk import ApplyView, Fact, PlanView, RunCurve
from jitter_workshop.presenter import imported_words
from jitter_workshop.tui.background.measuring import Measuring
from jitter_workshop.tui.screens.host.host_change_screen import HandWork
from jitter_workshop.tui.widgets.chart import Mark

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.walk import ChapterSession
    from jitter_workshop.flow.measuring.request import MeasureRequest
    from jitter_workshop.model.proof import Proof

SLOTS: tuple[StepName, ...] = ("measure", "again")
AFTER: tuple[StepName, ...] = ("again", "compare", "explain")
FIRST_MARK_NS = 10_000

View = Literal["lesson", "work"]


@dataclasses.dataclass(frozen=True, slots=True)
class Tried:
    """An apply that was tried at this visit of its step: what came of it, or why nothing did."""

    view: ApplyView | None = None
    checks: tuple[Fact, ...] = ()
    error: WorkshopError | None = None


class ChapterState(HandWork):
    """What a chapter's screen knows. How it is shown, and what keys do, is in the classes built on it."""

    def __init__(self, walk: ChapterSession, *, measure: bool = False, said: str = "") -> None:
        """``measure``: measure at once. ``said``: what is told first."""
        super().__init__()
        self.walk = walk
        self._measure_at_once = measure
        self._said_first = said
        self.run_under_way: Measuring | None = None
        self._view: View = "work"
        self._table = False
        self._published: bool | None = None
        self._imports: tuple[RunCurve, ...] | None = None
        self._with_imports = False
        self._highlight: int | None = None
        self._message = ""
        self._tried: Tried | None = None
        self._planned: PlanView | None = None
        self._choice = 0
        self.proof: Proof | None = None
        """The chapter's newest one, where it is at its compare step."""
        self.mark_ns = FIRST_MARK_NS

    @property
    def step(self) -> StepName:
        """The step on the screen."""
        return self.walk.current

    @property
    def _sets(self) -> bool:
        """Does this chapter set something on this host?"""
        return self.walk.chapter.changes == "tunables" and not self.walk.rehearsed

    @property
    def _places(self) -> bool:
        """Does this chapter bind threads to CPUs on this host?"""
        return self.walk.chapter.changes == "placement" and not self.walk.rehearsed

    def _to_hide(self, step: StepName) -> bool:
        """Is a noise to be hidden before a step of this chapter is measured?"""
        return step == "again" and self.walk.hunts and not self.workshop.hiding and self.walk.run_in(step) is None

    @property
    def _reading_first(self) -> bool:
        """On a narrow screen, is a page read before what it is about: a question's before its chart, a plan's?"""
        about = self.step == "predict" or (self.step == "plan" and self._alone)
        return about and not self.wide and self._view == "lesson"

    @property
    def _alone(self) -> bool:
        """Does a narrow screen show a question, a plan or what came of it without the page above?"""
        if self.step == "predict":
            return self.walk.chapter.prediction is not None
        return self.step in ("plan", "apply") and self.walk.chapter.changes == "tunables"

    @property
    def _reboot_first(self) -> bool:
        """Does everything after this step wait for a reboot?"""
        return self.step == "apply" and self._sets and self.walk.awaits_reboot

    @property
    def _other_boots(self) -> bool:
        """Can the plan be turned between one boot and every boot?"""
        if not self._sets or self._tried is not None or self.step not in ("plan", "apply") or self.walk.awaits_reboot:
            return False
        way = self.walk.boots.way()
        return way is not None and (way.root_first or not way.why_not)

    @property
    def _marking(self) -> bool:
        task = self.walk.chapter.prediction
        return task is not None and task.kind == "mark"

    @property
    def _locked(self) -> bool:
        return bool(self._lock_reason)

    @property
    def _lock_reason(self) -> str:
        """Why the guess cannot be changed any more, or ""."""
        task = self.walk.chapter.prediction
        if task is None:
            return ""
        if self.walk.run_in(task.slot) is not None:
            return "Measured already: the guess stays as it was."
        # A guess counts only before one knows.
        return "Answered: what is right stands below." if self.walk.outcome() is not None else ""

    @property
    def _with_chart(self) -> bool:
        """Is the chart what this step is about now?"""
        if self._table:
            return False
        if self.step == "predict":
            return self._marking
        if self.step in SLOTS and not self.walk.rehearsed:
            return self.run_under_way is not None or self.walk.run_in(self.step) is not None
        if self.walk.rehearsed:
            return bool(self._recorded()[0])
        return self.step == "compare"

    @property
    def _shows_published(self) -> bool:
        return self.frame.settings.show_published if self._published is None else self._published

    @property
    def _of_transit(self) -> bool:
        """Does the chapter measure messages, so that its curves compare with the published ones?"""
        return all(m.workload == "ring" for m in self.walk.chapter.measurements)

    def look_for_proof(self) -> None:
        """Read which proof there is to tell of: on entering the step, and on coming back from proving."""
        from jitter_workshop.flow.proving.chapter_proof import newest

        self.proof = newest(self.workshop, self.walk) if self.step == "compare" and not self.walk.rehearsed else None

    @property
    def offers_proof(self) -> bool:
        """Can what this chapter changes be proven here, and was it not yet?"""
        from jitter_workshop.flow.proving.chapter_proof import why_not

        return self.step == "compare" and self.proof is None and not why_not(self.workshop, self.walk)

    def _recorded(self) -> tuple[tuple[RunCurve, ...], str]:
        """A rehearsed chapter's curves of another machine, and which that was."""
        return self.walk.recorded_curves(self.step)

    def _curves(self) -> list[RunCurve]:
        if self.walk.rehearsed and self.step != "predict":
            return list(self._recorded()[0])
        # One published curve, of messages in transit, gives the scale; all of them are on the screen of all curves.
        published = self.workshop.published()[:1] if self._shows_published and self._of_transit else ()
        imported = imported_words.newest(self._imported()) if self._with_imports and self.step == "compare" else ()
        curves = [*published, *imported, *self.walk.curves()]
        running = self.run_under_way
        if running is not None and running.progress is not None:
            label = running.request.label or "this run"
            curve = dataclasses.replace(running.progress.curve, label=label)
            curves.append(RunCurve("live", label, curve, None))
        return curves

    def _imported(self) -> tuple[RunCurve, ...]:
        """What was imported into this session, read once: a fine histogram takes a while."""
        if self._imports is None:
            self._imports = self.workshop.imported()
        return self._imports

    def _marks(self) -> list[Mark]:
        task, kept = self.walk.chapter.prediction, self.walk.progress.prediction
        if task is None or task.kind != "mark":
            return []
        percentile = float(task.percentile or "99.9")
        if self.step == "predict":
            return [(percentile, self.mark_ns)]
        return [(percentile, kept.value_ns)] if kept is not None and kept.value_ns is not None else []

    def _request(self, slot: StepName) -> MeasureRequest:
        return self._as_set(self.walk.request(slot))

    def _as_set(self, request: MeasureRequest) -> MeasureRequest:
        """A chapter's run with the length that the learner's settings ask for; on a class host the class says it."""
        request = dataclasses.replace(request, hunted=self.workshop.hiding)
        if self.workshop.class_view is not None:
            return request
        wanted = self.frame.settings.preset
        return dataclasses.replace(request, preset=wanted) if request.preset == "quick" else request
