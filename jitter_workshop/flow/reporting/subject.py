"""Collect the subject of a report: a session, its reported runs, and whether this host is the session's host."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.flow.attribution import unheard
from jitter_workshop.flow.chapters.session_context import SessionContext, look_at
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.host_ops.change_log import snapshot
from jitter_workshop.flow.host_ops.host_status import host_mismatch, known_boots
from jitter_workshop.flow.proving.proof_recovery import with_present_state
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Course
from jitter_workshop.model.curve import ImportedRun, PercentileCurve
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.run import Run
from jitter_workshop.model.screening import Screening
from jitter_workshop.model.session import ChapterProgress, Session
from jitter_workshop.model.status import HostEvent, Snapshot
from jitter_workshop.model.text import ID, LABEL, clean
from jitter_workshop.session import history
from jitter_workshop.session.store import OpenSession

HERE = Path("/")

BuildProgress = Callable[[str, int, int], None]
"""The callback for progress. Its arguments are the current work in words, the amount done, and the total. An exception
from the callback ends the building of the report.
"""


class NothingToReport(SessionError):
    """Report that the session has no run: a report of it would be empty."""

    title = "There is nothing to report yet"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"session {clean(name, LABEL)} has no runs to report on",
            "measure first: 'jitter-workshop measure', or a chapter of the workshop",
        )


@dataclass(slots=True)
class ReportSubject:
    """Hold the subject of a report: a session, and what is reported of it.

    - ``walks``: the chapters that were begun, in the order of the course.
    - ``runs``: the reported runs, oldest first.
    - ``chosen``: True if the user picked the runs by id.
    - ``first``, ``after``: the host's status before the session's first change, and its present or last known status.
    - ``elsewhere``: the reason why this host's present state is not reported; "" if this is the session's host.
    - ``notes``: the notes of the document.
    - ``drawn``: run id → curve, for the runs in the charts made so far.
    """

    context: SessionContext
    course: Course
    walks: tuple[ChapterWalk, ...]
    runs: tuple[Run, ...]
    chosen: bool
    proofs: tuple[Proof, ...]
    screenings: tuple[Screening, ...]
    imports: tuple[ImportedRun, ...]
    events: tuple[HostEvent, ...]
    first: Snapshot | None
    after: Snapshot | None
    elsewhere: str
    progress: BuildProgress
    notes: dict[str, str]
    drawn: dict[str, PercentileCurve] = field(default_factory=dict)

    @property
    def session(self) -> Session:
        return self.context.session

    @property
    def root(self) -> HostRoot:
        return self.context.root

    @property
    def recorded(self) -> str:
        """Return the name of the recorded host that the report is about; "" if the report is about a live host."""
        if self.root.recorded:
            return clean(self.context.host.name, ID) or "host"
        return clean(self.session.host, ID) or "host" if self.session.recorded else ""

    def run(self, ident: str | None) -> Run | None:
        return next((run for run in self.runs if run.id == ident), None) if ident else None


def subject_of(
    given: Workshop | OpenSession,
    root: Path = HERE,
    *,
    course_dir: Path | None = None,
    runs: Sequence[str] = (),
    progress: BuildProgress = unheard,
) -> ReportSubject:
    """Return the subject of a report; nothing is written. Raise NothingToReport if there is no run. Raise SessionError
    or LessonError if the session or the course cannot be read.

    - ``given``: a workshop, or an open session without a workshop.
    - ``root``: the host, for a session without a workshop.
    - ``course_dir``: the course, for a session without a workshop; None: the built-in course.
    - ``runs``: ids of the runs to report, () for all. With ids, chapters and proofs are left out.
    - ``progress``: is called during slow work, mainly while traces are explained.
    """
    context: SessionContext
    if isinstance(given, Workshop):
        course, context = given.course, given.context
    else:
        course, place = load_course(course_dir), HostRoot(root)
        topology, host = look_at(place)
        context = SessionContext(given, place, host, topology, course_dir=course.source, course_id=course.id)
    every = context.runs.every()
    picked = tuple(run for run in every if run.id in runs) if runs else every
    folder = context.handle.folder
    events, damaged = history.read_history(folder)
    first, no_first = history.first(folder)
    kept = history.last(folder)
    # This host's journal tells if the change of a killed proof is restored by now.
    proofs = context.handle.proofs() if context.root.recorded else with_present_state(context.handle, context.root)
    walks = (ChapterWalk(chapter, context) for chapter in course.chapters)
    boots = known_boots(picked, events, (first, kept[0]))
    notes = {}
    if runs:
        notes = dict.fromkeys(("before", "after"), "this report is about single runs")
    elif first is None:
        rehearsal = context.root.recorded or context.session.recorded
        notes = {"before": "a recorded host never changes, so it has only one status" if rehearsal else no_first}
    if damaged:
        notes["events"] = "; ".join(damaged)
    elsewhere = _elsewhere(context, boots)
    after, no_after = (None, "") if runs else _after(context, elsewhere, kept)
    if no_after:
        notes["after"] = no_after
    subject = ReportSubject(
        context=context,
        course=course,
        walks=() if runs else tuple(walk for walk in walks if walk.progress != ChapterProgress()),
        runs=picked,
        chosen=bool(runs),
        proofs=() if runs else proofs,
        screenings=() if runs else context.handle.screenings(),
        imports=() if runs else context.handle.imports(),
        events=() if runs else events,
        first=None if runs else first,
        after=after,
        elsewhere=elsewhere,
        progress=progress,
        notes=notes,
    )
    # The runs of a command are not kept: its proof alone is enough for a report.
    of_command = any(proof.command for proof in subject.proofs) or any(one.command for one in subject.screenings)
    if not subject.runs and not of_command and not (subject.recorded and subject.walks):
        raise NothingToReport(subject.session.name)
    return subject


def _elsewhere(context: SessionContext, boots: Collection[str]) -> str:
    """Return the reason why this host is not the session's host. Return "" if it is the session's host."""
    session, root = context.session, context.root
    here = clean(context.host.name, ID) or "host"
    if root.recorded or session.recorded:
        there = clean(session.host, ID)
        same = root.recorded and (not there or there == here)
        return "" if same else "this report is about a recorded host, but the host's recording was not found"
    return host_mismatch(session, here, root, boots)


def _after(context: SessionContext, elsewhere: str, kept: tuple[Snapshot | None, str]) -> tuple[Snapshot | None, str]:
    """Return the present status of the session's host, and "". If this machine is another host, or if the host cannot
    be read, return the session's last status and the reason. The status is None if the session has none.
    ``kept``: the last status as :func:`history.last` returns it."""
    why = elsewhere
    if not why:
        try:
            return snapshot(context.root), ""
        except WorkshopError as error:
            why = f"the host could not be read: {error.sentence()}"
    last, none = kept
    return last, f"{why}; {none}" if last is None else f"this is the last kept status, of {last.at}: {why}"
