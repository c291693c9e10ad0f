"""Hide, name and cure noises, and keep the outcomes. A hunt has a thread of its own, because its noise dies with the
thread that started it."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.chapters import mitigation
from jitter_workshop.flow.chapters.hunt import Finding, Hunt, HuntState, suspects
from jitter_workshop.flow.chapters.session_context import SessionContext
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.measuring.placement_plan import placed_on
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.noise import NOISES, Noise
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress, HuntOutcome
from jitter_workshop.model.spec import Placement
from jitter_workshop.model.text import clean, many

MOST_KEPT = 100
"""Most hunts that a chapter's progress remembers, the newest."""


def kept(progress: ChapterProgress, outcome: HuntOutcome) -> ChapterProgress:
    """Return the progress with one more hunt that ended."""
    return dataclasses.replace(progress, hunts=(*progress.hunts, outcome)[-MOST_KEPT:])


def caught(hunts: Sequence[HuntOutcome]) -> bool | None:
    """Return True if any of them was named; None where none ended."""
    return any(outcome.named for outcome in hunts) if hunts else None


class Hiding:
    """Keep a hunt of a chapter alive, from its beginning to :meth:`close`. Raises the errors of ``begin``."""

    def __init__(self, begin: Callable[[], Hunt], chapter_id: str = "") -> None:
        self.chapter_id = chapter_id
        # The screen and the thread of a run both ask for the noise's state: one at a time.
        self._asking = threading.Lock()
        # Its one thread lives until it is shut down, or the process ends.
        self._thread = ThreadPoolExecutor(1, "hunt")
        try:
            self.hunt = self._thread.submit(begin).result()
        except BaseException:
            self._thread.shutdown()
            raise

    @property
    def state(self) -> HuntState:
        with self._asking:
            return self.hunt.state

    def close(self) -> None:
        """End the noise; return once it has ended."""
        self._thread.submit(self.hunt.close).result()
        self._thread.shutdown()


class Hunts:
    """Hide noises beside the runs of chapters, one at a time; have them named, and keep the outcomes."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self._hiding: Hiding | None = None
        self.hide = Hunt

    @property
    def hunt(self) -> Hunt | None:
        """Return the newest hunt, unless it was ended; it may be answered already."""
        return self._hiding.hunt if self._hiding is not None else None

    @property
    def hiding(self) -> bool:
        """Return True if a hidden noise runs now."""
        return self._hiding is not None and self._hiding.state == "running"

    def suspects(self, walk: ChapterSession) -> tuple[Noise, ...]:
        """Return the kinds that can be hidden in a chapter on this host. Raises HostError, UsageError."""
        return suspects(*self._ground(walk))

    def begin(self, walk: ChapterSession) -> Hunt:
        """Hide a noise beside the runs of a chapter, in the place of the one before; takes a second. Raises HostError,
        UsageError, MeasureError."""
        self.end()
        placement, allowed = self._ground(walk)
        self._hiding = Hiding(lambda: self.hide(placement, allowed), walk.chapter.id)
        # Runs beside an earlier noise leave their slots; they stay in the session.
        runs = {slot: run for slot, run in walk.progress.runs.items() if slot not in ("again", TREATED)}
        progress = dataclasses.replace(walk.progress, runs=runs, weighed={})
        self._context.save_progress(walk.chapter.id, progress)
        return self._hiding.hunt

    def answer(self, kind: str) -> Finding:
        """Answer the hunt; the right answer ends it, and is kept with the chapter's progress. Raises UsageError for a
        kind that is not a suspect, and if nothing is hidden.
        """
        return self._settle(lambda hunt: hunt.answer(kind))

    def other_cpus(self, beside: Run | None) -> tuple[int, ...]:
        """Return the CPUs to which the measured thread of a run could move now."""
        self._context.look_again()
        return mitigation.other_cpus(self._context.topology.allowed, beside)

    def weigh(self, beside: Run, treated: Run) -> None:
        """Compare, by the traces of two runs, the time that the hidden noise took before and after a cure. Keep the
        result with the chapter's progress. Takes a second or two. A damaged trace counts as none.
        """
        hiding = self._hiding
        if hiding is None:
            return
        hunt, context = hiding.hunt, self._context
        try:
            both = [context.causes(run) for run in (beside, treated) if context.traced(run)]
        except SessionError:
            both = []
        found = mitigation.weighed([hunt.took(report) for report in both if isinstance(report, EvidenceReport)])
        if found is not None:
            progress = dataclasses.replace(context.progress(hiding.chapter_id), weighed={treated.id: found})
            context.save_progress(hiding.chapter_id, progress, entered=False)
        if hunt.outcome is None:
            hunt.cured = found is not None and mitigation.gone(found)

    def give_up(self) -> Finding:
        """Give up and return the answer. Raises UsageError where nothing is hidden."""
        return self._settle(Hunt.reveal)

    def end(self) -> None:
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
            raise UsageError("no noise is hidden now", "hide a noise first")
        finding = answer(hiding.hunt)
        if hiding.hunt.outcome is not None:
            progress = kept(self._context.progress(hiding.chapter_id), hiding.hunt.outcome)
            self._context.save_progress(hiding.chapter_id, progress, entered=False)
        return finding

    def _ground(self, walk: ChapterSession) -> tuple[Placement, CpuSet]:
        """Return the placement of a chapter's runs, and the CPUs from which they can be disturbed."""
        context = self._context
        if context.recorded:
            raise HostError("no noise can be hidden on a recorded host", "leave out --root")
        if not walk.hunts:
            raise UsageError("this chapter hides no noise")
        # A run reads the host when it begins, so this must be as new: else noise and run are on different CPUs.
        context.look_again()
        isolated = CpuSet(context.host.isolated)
        return placed_on(context.root, context.topology, walk.request("again"), isolated)[0], context.topology.allowed

    def beside(self, request: MeasureRequest) -> MeasureRequest:
        """Return the request, marked as one beside a hidden noise where one runs."""
        return dataclasses.replace(request, hunted=True) if self.hiding else request


def remembered(hunts: Sequence[HuntOutcome], most: int = 6) -> str:
    """Return the hunts that ended, in a sentence, newest first; "" for none."""
    if not hunts:
        return ""
    caught = sum(outcome.named for outcome in hunts)
    told = [_outcome(outcome) for outcome in reversed(hunts)][:most]
    more = f"; and {len(hunts) - most} before" if len(hunts) > most else ""
    return f"{caught} of {many(len(hunts), 'hidden noise')} found: {'; '.join(told)}{more}."


def _outcome(outcome: HuntOutcome) -> str:
    title = next((noise.title for noise in NOISES if noise.id == outcome.kind), clean(outcome.kind, 30))
    stopped = "stopped, and " if outcome.stopped else "stopped, and " if outcome.cured else ""
    if outcome.named:
        return f"{title} ({stopped}named at {tries(outcome.wrong_answers)})"
    return f"{title} ({stopped}not named)"


def tries(wrong_answers: int) -> str:
    """Return the try at which a noise was named."""
    return f"try {wrong_answers + 1}" if wrong_answers else "the first try"
