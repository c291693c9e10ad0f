"""Hide, name and cure noises for the workshop, without knowing the order of its chapters."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.attribution.causes import Progress, unheard
from jitter_workshop.flow.chapters import mitigation
from jitter_workshop.flow.chapters.hunt import Finding, Hunt, Suspect, suspects
from jitter_workshop.flow.chapters.hunting import Hiding, anew, kept
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.measuring.placement_plan import placed_on
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.run import Run
from jitter_workshop.model.spec import Placement


class Hunts:
    """Hold the workshop's hunts; a base class of the workshop."""

    _context: SessionContext
    _hiding: Hiding | None = None

    @property
    def recorded(self) -> bool:
        raise NotImplementedError

    def walk(self, chapter_id: str) -> ChapterSession:
        raise NotImplementedError

    def traced(self, run: Run) -> bool:
        raise NotImplementedError

    def causes(self, run: Run, progress: Progress = unheard) -> EvidenceReport | CounterReport:
        raise NotImplementedError

    @property
    def hunt(self) -> Hunt | None:
        """Return the hunt that was begun last and not left; it may be answered already."""
        return self._hiding.hunt if self._hiding is not None else None

    @property
    def hiding(self) -> bool:
        """Return True if a hidden noise runs now."""
        return self._hiding is not None and self._hiding.state == "running"

    def suspects(self, chapter_id: str) -> tuple[Suspect, ...]:
        """Return the kinds that can be hidden in a chapter on this host. Raises HostError, UsageError."""
        return suspects(*self._ground(chapter_id))

    def begin_hunt(self, chapter_id: str) -> Hunt:
        """Hide a noise beside the runs of a chapter, in the place of the one before; takes a second. Raises HostError,
        UsageError, MeasureError."""
        self.end_hunt()
        placement, allowed = self._ground(chapter_id)
        self._hiding = Hiding(lambda: self._hide(placement, allowed), chapter_id)
        self._context.save_progress(chapter_id, anew(self._context.progress(chapter_id)))
        return self._hiding.hunt

    def name_noise(self, kind: str) -> Finding:
        """Answer the hunt; the right answer ends it, and is kept with the chapter's progress. Raises UsageError for a
        kind that is none of its suspects, and where nothing is hidden."""
        return self._settle(lambda hunt: hunt.answer(kind))

    def aside(self, beside: Run | None) -> tuple[int, ...]:
        """Return the CPUs to which the measured thread of a run could step aside now."""
        self._context.look_again()
        return mitigation.other_cpus(self._context.topology.allowed, beside)

    def weigh_cure(self, beside: Run, treated: Run) -> None:
        """Compare by the traces of two runs what the hidden noise took before and after a cure, and keep it with the
        chapter's progress. Takes a second or two. A damaged trace counts as none."""
        hiding = self._hiding
        if hiding is None:
            return
        hunt = hiding.hunt
        try:
            both = [self.causes(run) for run in (beside, treated) if self.traced(run)]
        except SessionError:
            both = []
        found = mitigation.weighed([hunt.took(report) for report in both if isinstance(report, EvidenceReport)])
        if found is not None:
            progress = self._context.progress(hiding.chapter_id)
            kept_now = dataclasses.replace(progress, weighed={treated.id: found})
            self._context.save_progress(hiding.chapter_id, kept_now, entered=False)
        if hunt.outcome is None:
            hunt.cured = found is not None and mitigation.gone(found)

    def give_up(self) -> Finding:
        """Give up and return the answer. Raises UsageError where nothing is hidden."""
        return self._settle(Hunt.reveal)

    def end_hunt(self) -> None:
        """End the noise, and forget the hunt. May be called again."""
        hiding = self._hiding
        if hiding is not None and hiding.state == "stopped":
            self.give_up()  # the learner ended the noise without naming it; that result is kept, too
        self._hiding = None
        if hiding is not None:
            hiding.close()

    def _settle(self, answer: Callable[[Hunt], Finding]) -> Finding:
        hiding = self._hiding
        if hiding is None or hiding.state == "answered":
            raise UsageError("nothing is hidden now", "hide a noise first")
        finding = answer(hiding.hunt)
        if hiding.hunt.outcome is not None:
            progress = kept(self._context.progress(hiding.chapter_id), hiding.hunt.outcome)
            self._context.save_progress(hiding.chapter_id, progress, entered=False)
        return finding

    def _hide(self, placement: Placement, allowed: CpuSet) -> Hunt:
        return Hunt(placement, allowed)

    def _ground(self, chapter_id: str) -> tuple[Placement, CpuSet]:
        """Return the placement of a chapter's runs, and the CPUs from which they can be disturbed."""
        walk, context = self.walk(chapter_id), self._context
        if self.recorded:
            raise HostError("a recorded host can be looked at, but no noise can be hidden on it", "leave out --root")
        if not walk.hunts:
            raise UsageError("this chapter hides no noise")
        # A run reads the host when it begins, so this must be as new: else noise and run are on different CPUs.
        context.look_again()
        isolated = CpuSet(context.host.isolated)
        return placed_on(context.root, context.topology, walk.request("again"), isolated)[0], context.topology.allowed

    def _beside(self, request: MeasureRequest) -> MeasureRequest:
        return dataclasses.replace(request, hunted=True) if self.hiding else request
