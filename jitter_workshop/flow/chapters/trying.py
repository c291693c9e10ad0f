"""Test whether a chapter shows its effect on this host.

Each round makes the first run, applies the change, makes the second run, restores the settings and compares both runs.
The runs are made as on the chapter's screen. No question and no guess is asked.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.attribution import explain_or_load
from jitter_workshop.flow.chapters.session_context import SessionContext, look_at
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop, find_chapter
from jitter_workshop.flow.measuring.arrival import InterruptStays, arrival_plan
from jitter_workshop.flow.measuring.placement_plan import same_writes
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Course, Shows, StepName
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Run, RunObserver
from jitter_workshop.model.text import ID, SENTENCE, clean, cleaned_sentence
from jitter_workshop.model.walk import PlanView
from jitter_workshop.session.store import SessionStore
from jitter_workshop.stats.figures import Figure, KnownRun, as_said, figure_with_id
from jitter_workshop.tuning.planning import digest

Half = Literal["before", "after"]
MOST_ROUNDS = 100
NINE_OF_TEN = 0.9
"""The share of rounds in which a chapter has to show its effect."""


@dataclass(frozen=True, slots=True)
class TrialRound:
    """Hold one round of a trial.

    - ``before``, ``after``: the figures of the first and the second run; None for a run without the figure.
    - ``ratio``: the factor between the two figures, or None.
    - ``why``: the reason why a run does not have the figure, or "".
    """

    before: float | None
    after: float | None
    ratio: float | None
    shown: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Hold the result of a chapter's trial.

    - ``before``, ``after``, ``ratio``: medians over all rounds; None if there was no round, or if a run lacks the
      figure.
    - ``rounds``: the number of rounds.
    - ``shown``: True if the factor was at least ``at_least`` in nine of ten rounds.
    - ``why``: a sentence with the result, or the reason why this host cannot show the effect.
    """

    chapter: str
    figure: str
    unit: str
    at_least: float
    rises: bool
    before: float | None
    after: float | None
    ratio: float | None
    rounds: int
    shown: bool
    why: str
    each: tuple[TrialRound, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """Hold the functions that a trial calls, and the length of its runs.

    - ``plan``: a function that receives the next round's writes, if they differ from those of the round before.
    - ``round_done``: receives the figure, the number of the round and its result.
    - ``observer``: observes the runs.
    - ``queued``: receives the reason for a wait.
    - ``duration_s``: the length of each run in s; None for the length in the lesson.
    """

    plan: Callable[[PlanView], None]
    round_done: Callable[[Figure, int, TrialRound], None]
    observer: RunObserver
    queued: Callable[[str], None]
    duration_s: float | None = None


def try_chapter(
    chapter_id: str,
    rounds: int,
    trial: Trial,
    cancel: CancelToken,
    course_dir: Path | None = None,
    session_name: str | None = None,
    half: Half | None = None,
) -> TrialResult:
    """Try a chapter on this host, and return the result.

    The settings are restored after each round, and also after an exception. The runs are stored only if
    ``session_name`` names a session.

    A change that takes effect at a boot is tried in two halves, with a boot between them. The half ``before`` stores
    the first runs in the session. The half ``after`` measures the second runs and compares. Neither half makes the
    change; the user makes it between the halves.

    Raise UsageError if an argument is invalid, or if the lesson names no effect of the chapter. Raise HostError if a
    change is refused, MeasureError if a run fails.
    """
    if not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(f"a chapter is tried in 1 to {MOST_ROUNDS} rounds, not {rounds}")
    course = load_course(course_dir)
    shows_of(course, chapter_id)
    if half is not None and session_name is None:
        raise UsageError(
            "a trial in halves needs a session for the runs of the first half", "name a session with --session"
        )
    with _workshop(course, session_name) as workshop:
        return try_in(workshop, chapter_id, rounds, trial, cancel, half)


def shows_of(course: Course, chapter_id: str) -> Shows:
    """Return the effect that a chapter names in its lesson. Raise UsageError if the chapter names none."""
    chapter = find_chapter(course, chapter_id)
    if chapter.shows is None:
        advice = f"these chapters can be tried: {', '.join(c.id for c in course.chapters if c.shows is not None)}"
        raise UsageError(f"the chapter {chapter.id} does not name a figure that its change improves", advice)
    return chapter.shows


def try_in(
    workshop: Workshop, chapter_id: str, rounds: int, trial: Trial, cancel: CancelToken, half: Half | None = None
) -> TrialResult:
    """Try a chapter in a workshop that is open already. If the kernel refuses to move the interrupt of the chapter's
    load, begin again, with another load or without this write. The arguments and errors are those of
    :func:`try_chapter`."""
    try:
        return _try(workshop, chapter_id, rounds, trial, cancel, half)
    except InterruptStays as stays:
        trial.queued(f"{cleaned_sentence(stays.message)} The trial begins again without this write.")
    return try_in(workshop, chapter_id, rounds, trial, cancel, half)


def _try(
    workshop: Workshop, chapter_id: str, rounds: int, trial: Trial, cancel: CancelToken, half: Half | None
) -> TrialResult:
    own, walk = shows_of(workshop.course, chapter_id), workshop.walk(chapter_id)
    if half is not None and not walk.chapter.reboot:
        both = f"the change of {chapter_id} needs no reboot, so one command tries both halves"
        raise UsageError(both, "leave out --half")
    shows = walk.runs.shows
    if (reason := walk.runs.unshown or _not_here(walk, half)) is not None or shows is None:
        return _judged(chapter_id, shows or own, (), reason or "")
    runs = _Runs(workshop, walk, shows, trial, cancel)
    if half == "before":
        walk.restart()
        for _ in range(rounds):
            runs.measured("measure")
        reason = "The first half is measured. Apply the settings, reboot, and go on with '--half after'."
        return _judged(chapter_id, shows, (), reason)
    # Read before the first round: while the change is applied, nothing is left to be held.
    held = walk.host.held
    if barred := walk.measuring.barred_load():
        trial.queued(barred)
    found: list[TrialRound] = []
    for before, after in runs.in_rounds(rounds) if half is None else runs.after_a_boot(rounds):
        found.append(_compared(shows, before, after))
        trial.round_done(figure_with_id(shows.figure), len(found), found[-1])
    return _judged(chapter_id, shows, tuple(found), held=held)


@dataclass(frozen=True, slots=True)
class _Runs:
    """Make the runs of one trial. ``shown_arrivals``: the ids of the writes before a run that were shown already."""

    workshop: Workshop
    walk: ChapterWalk
    shows: Shows
    trial: Trial
    cancel: CancelToken
    shown_arrivals: set[str] = field(default_factory=set)

    def in_rounds(self, rounds: int) -> Iterator[tuple[KnownRun, KnownRun]]:
        """Yield the runs before and after the chapter's change, round by round. The change is restored after each
        round."""
        walk, shown = self.walk, None
        if self.shows.settle_s:
            self.trial.queued(f"Each round first waits {self.shows.settle_s:g} s until a restored value takes effect.")
        for _ in range(rounds):
            # A timer that the kernel armed for the new value still runs after a restore, also after that of an
            # earlier trial or of an open workshop.
            self.cancel.wait(self.shows.settle_s)
            walk.restart()
            before = self.measured("measure")
            try:
                if walk.sets:
                    plan = walk.plan()
                    if not same_writes(plan, shown):
                        self.trial.plan(plan)
                    shown = plan
                    walk.apply(plan)
                after = self.measured("again")
            finally:
                if walk.sets and walk.host.applied:
                    walk.restore()
            yield before, after

    def after_a_boot(self, rounds: int) -> Iterator[tuple[KnownRun, KnownRun]]:
        """Yield pairs of a stored run from before the boot and a new run after it. Raise UsageError if the session has
        fewer than ``rounds`` stored runs."""
        self.walk.restart()
        asked = self.walk.measuring.request("measure")
        known = self.workshop.context.runs.every()
        kept = [r for r in known if r.complete and (r.label, r.workload) == (asked.label, asked.workload)]
        if len(kept) < rounds:
            raise UsageError(
                f"the session has {len(kept)} runs of the first half, but {rounds} rounds need {rounds} runs",
                "before you apply the settings, measure more runs with --half before",
            )
        for run in kept[-rounds:]:
            yield self._reported(run), self.measured("again")

    def measured(self, step: StepName) -> KnownRun:
        """Measure a step, and return the run. It is traced if the chapter's figure comes from the trace."""
        request, trial = self.walk.measuring.request(step), self.trial
        length = request.duration_s if trial.duration_s is None else trial.duration_s
        request = dataclasses.replace(request, evidence=figure_with_id(self.shows.figure).traced, duration_s=length)
        if request.arrival is not None and digest(request.arrival) not in self.shown_arrivals:
            self.shown_arrivals.add(digest(request.arrival))
            trial.plan(arrival_plan(request.arrival))
        self.walk.measuring.note_shown(request)
        try:
            run = self.workshop.measure(request, trial.observer, self.cancel, trial.queued)
        finally:
            for trouble in self.workshop.after_run:
                trial.queued(trouble)
        if self.cancel.reason is not None:
            # Stopped after some blocks, the run is returned: nothing may be applied or compared after it.
            raise Cancelled(self.cancel.reason)
        self.walk.record(step, run)
        return self._reported(run)

    def _reported(self, run: Run) -> KnownRun:
        """Return a run together with the report on its trace. The report is left out if the chapter's figure does not
        need it, or if there is no trace."""
        needed = figure_with_id(self.shows.figure).traced and self.workshop.context.handle.has_trace(run.id)
        report = explain_or_load(self.workshop.context.handle, run) if needed else None
        return KnownRun(run, report if isinstance(report, EvidenceReport) else None)


@contextmanager
def _workshop(course: Course, session_name: str | None) -> Iterator[Workshop]:
    """Open a workshop with a session; restore the host and close the workshop at the end. ``session_name``: None for a
    temporary session."""
    with TemporaryDirectory(prefix="jitter-workshop-try-") as folder:
        root = HostRoot()
        topology, host = look_at(root)
        store = SessionStore(Path(folder)) if session_name is None else SessionStore()
        handle = store.open_or_create(session_name or "try", clean(host.name, ID) or "host")
        context = SessionContext(handle, root, host, topology, course_dir=course.source, course_id=course.id)
        workshop = Workshop(course, context)
        try:
            yield workshop
        finally:
            workshop.close()


def _not_here(walk: ChapterWalk, half: Half | None) -> str | None:
    """Return the reason why this host cannot show the chapter's effect now; None if it can."""
    if walk.host.rehearsed:
        return walk.host.reason
    if walk.chapter.reboot and half is None:
        return "This chapter's change takes effect at a boot: try it with '--half before', reboot, then '--half after'."
    if half == "after":
        in_effect = walk.host.state == "good"
        return None if in_effect else "The chapter's settings are not in effect: apply them, reboot, and try again."
    if walk.sets and walk.host.applied:
        return (
            "A setting of this chapter is applied already, and a trial would restore this setting. Restore this "
            "setting first."
        )
    if walk.chapter.changes == "tunables" and walk.host.state == "good":
        return "This chapter's settings are good already on this host: there is nothing to change."
    return None


def _compared(shows: Shows, before: KnownRun, after: KnownRun) -> TrialRound:
    one = figure_with_id(shows.figure)
    factor, reached = as_said(shows, before, after)
    why = "" if factor is not None else _lacking(one, before if one.of(before) is None else after)
    return TrialRound(one.of(before), one.of(after), factor, reached, why)


def _lacking(one: Figure, seen: KnownRun) -> str:
    """Return the reason why a run does not have a figure."""
    if not one.traced or seen.report is not None:
        return f"This host's runs do not have the figure: {one.title}."
    reason = clean(seen.run.notes.get("evidence", "no trace was recorded"), SENTENCE)
    return f"Only the kernel's trace shows the figure ({one.title}), and one of the runs has no trace: {reason}"


def _judged(
    chapter_id: str, shows: Shows, found: tuple[TrialRound, ...], reason: str = "", held: str = ""
) -> TrialResult:
    """Return the result of a trial. ``found``: its rounds. ``reason``: the reason why there are no rounds, or "".
    ``held``: the reason why the change has hardly any effect on this host, or "". The result mentions this reason if
    the effect was not shown."""
    one = figure_with_id(shows.figure)
    times = sum(tried.shown for tried in found)
    shown = bool(found) and times >= NINE_OF_TEN * len(found)
    direction = "rose" if shows.rises else "fell"
    told = f"{one.title}: {direction} by a factor of {shows.at_least:g} or more in {times} of {len(found)} rounds"
    told += f"; {held}" if held and not shown else ""
    why = reason or next((tried.why for tried in found if tried.why), told)
    return TrialResult(
        chapter=chapter_id,
        figure=one.written,
        unit=one.unit,
        at_least=shows.at_least,
        rises=shows.rises,
        before=_median([tried.before for tried in found]),
        after=_median([tried.after for tried in found]),
        ratio=_median([tried.ratio for tried in found]),
        rounds=len(found),
        shown=shown,
        why=why,
        each=found,
    )


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known and len(known) == len(values) else None
