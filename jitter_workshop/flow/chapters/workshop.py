"""Hold the workshop as one object: a session, a course and this host."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.attribution.causes import Progress, explained, unheard
from jitter_workshop.flow.chapters.chapter_host import refuse_recorded
from jitter_workshop.flow.chapters.hunting import caught
from jitter_workshop.flow.chapters.path import entry, in_order, next_entry
from jitter_workshop.flow.chapters.session_context import SessionContext, current_chapter, look_at, recorded_session
from jitter_workshop.flow.chapters.walk import ChapterSession
from jitter_workshop.flow.chapters.workshop_hunts import Hunts
from jitter_workshop.flow.classes.classview import ClassView
from jitter_workshop.flow.host_ops.agent_session import AgentSession
from jitter_workshop.flow.host_ops.findings import Findings, find
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.flow.host_ops.recordings import Recordings
from jitter_workshop.flow.host_ops.settings import Seen, missing_here, plan_view, planned
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring.curves import imported_curves, published_curves
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.turns.classhost import kept_turn
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.course import Chapter, Course
from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.observe import RunObserver
from jitter_workshop.model.run import Run, apart_from_proofs
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import clean
from jitter_workshop.model.topology import Topology
from jitter_workshop.model.walk import PathEntry, PlanView, RunCurve
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import active, word_of

MOST_STALLS = 40
"""Number of a run's worst stalls on its page of causes."""


class Workshop(Hunts):
    """Hold an open workshop. ``Workshop.open`` raises WorkshopError when course or state folder cannot be used."""

    course: Course

    def __init__(self, course: Course, context: SessionContext) -> None:
        self.course = course
        self._context = context
        self._without: dict[str, str] = {}
        self._recordings = Recordings(course.source)
        self._explained: tuple[str, EvidenceReport | CounterReport] | None = None

    @classmethod
    def open(cls, session_name: str | None = None, course_dir: Path | None = None, root: Path = Path("/")) -> Workshop:
        """Open the session of this name (made on first use), or the current one, or a first one named after host and
        day.

        ``root`` other than ``/``: a recorded host, which can be looked at. It has its own session.
        """
        course = load_course(course_dir)
        host_root = HostRoot(root)
        topology, host = look_at(host_root)
        store = SessionStore(paths.sessions_dir())
        name = clean(host.name, 40) or "host"
        if host_root.recorded:
            # A rehearsal must not take the place of this host's session.
            handle = store.open_or_create(session_name or recorded_session(name), name, recorded=True)
        elif session_name is not None:
            handle = store.open_or_create(session_name, name)
        else:
            handle = store.current_or_create(f"{name} {datetime.date.today():%Y-%m-%d}", name)
        context = SessionContext(handle, host_root, host, topology, course_dir=course.source, course_id=course.id)
        if not host_root.recorded:
            context.notices.extend(measuring.warnings(host))
        if handle.session.host and handle.session.host != name:
            there = clean(handle.session.host, 40)
            context.notices.append(
                f"This session was begun on {there}; this host is {name}. Their curves do not compare."
            )
        return cls(course, context)

    @property
    def context(self) -> SessionContext:
        """Return what the workshop shares with its chapters; a report is built from it."""
        return self._context

    @property
    def notices(self) -> tuple[str, ...]:
        """Return what the learner must know: damaged files set aside, another workshop on this session, battery, a
        read-only session, progress that could not be stored. It may grow."""
        return (*self._context.handle.notices, *self._context.notices)

    @property
    def read_only(self) -> SessionError | None:
        """Return the reason why nothing can be kept in this session, with advice; None where it can."""
        return self._context.handle.read_only_error()

    @property
    def host(self) -> HostSummary:
        """Return this host, as it was when the workshop opened or last changed something."""
        return self._context.host

    @property
    def topology(self) -> Topology:
        """Return its CPUs, as of then."""
        return self._context.topology

    @property
    def session(self) -> Session:
        """Return the session with its progress as it is now."""
        return self._context.session

    def host_line(self) -> str:
        """Return one line: ``KVM guest · 2 CPUs, hot: 1 · no cpufreq · steal 0.4 % · not root``."""
        return host_line(self.host, self._hot())

    def path(self) -> tuple[PathEntry, ...]:
        """Return the chapters in the order for this host: with something to do here first, then those on a
        recording."""
        return in_order(
            tuple(
                entry(
                    chapter,
                    self._context.progress(chapter.id),
                    self._guess(chapter),
                    self._context.room,
                    self._context.root.recorded,
                    self._missing(chapter),
                    self._recordings,
                )
                for chapter in self.course.chapters
            ),
            self._of_class,
        )

    @property
    def _of_class(self) -> tuple[str, ...]:
        """Return the chapters of a class host's class; () for all."""
        view = self._context.class_view
        return view.host.described.chapters if view is not None else ()

    def _guess(self, chapter: Chapter) -> bool | None:
        """Return True if a chapter's prediction was near, or one of its hunts was won; None for nothing to say."""
        if chapter.hunt:
            return caught(self._context.progress(chapter.id).hunts)
        outcome = ChapterSession(chapter, self._context).outcome()
        return outcome.near if outcome is not None else None

    def _missing(self, chapter: Chapter) -> str:
        """Return why this host has none of a chapter's tunables, or ""; read once, because that does not change."""
        if chapter.id not in self._without:
            self._without[chapter.id] = missing_here(self._context.root, chapter, self.topology)
        return self._without[chapter.id]

    def next_chapter(self) -> PathEntry | None:
        """Return the next useful chapter; None when all is done."""
        return next_entry(self.path(), self.course, current_chapter(self.session, self.course.id), self._of_class)

    def walk(self, chapter_id: str) -> ChapterSession:
        """Enter a chapter. Raises UsageError for an unknown id."""
        return ChapterSession(find_chapter(self.course, chapter_id), self._context)

    @property
    def class_view(self) -> ClassView | None:
        """Return the turn and the instructor's place, on a class host; None elsewhere."""
        return self._context.class_view

    def tell_board(self) -> None:
        """Tell a class host's board that a learner has come, so that it shows their work. Never waits."""
        self._context.tell_board()

    @property
    def _people(self) -> tuple[str, ...]:
        return self._context.class_view.people if self._context.class_view is not None else ()

    def _doing(self, request: MeasureRequest) -> str:
        """Return the words that users who wait for their turn read about this one."""
        current = current_chapter(self.session, self.course.id)
        title = next((one.title for one in self.course.chapters if one.id == current), "")
        return " · ".join(filter(None, (clean(title, 30), clean(request.label, 24))))

    @property
    def recorded(self) -> bool:
        """Return True for a recorded host, which can be looked at but not measured."""
        return self._context.root.recorded

    def measure(
        self,
        request: MeasureRequest,
        observer: RunObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Run:
        """Measure and keep the run in the session (see ``flow.measuring.measure.measure``, also for ``queued``). A run
        that the session could not store (a full disk) is returned and stays known until the workshop is left, with a
        notice."""
        if self.recorded:
            raise HostError("a recorded host can be looked at, not measured", "leave out --root")
        context = self._context
        try:
            run = measuring.measure(
                self._beside(request),
                context.handle,
                observer,
                cancel,
                queued,
                context.agent_session.place,
                context.agent_session.tracer,
                turn=partial(kept_turn, context.agent_session, people=self._people, doing=self._doing(request)),
            )
        except measuring.RunNotKept as error:
            context.notices.append(f"{error.title}: {error.sentence()}.")
            run = error.run
        except measuring.MeasurementStopped as error:
            context.remember(error.run)
            raise
        context.remember(run)
        return run

    # -- runs ------------------------------------------------------------------------------------------------------

    def runs(self) -> tuple[Run, ...]:
        """Return all runs of the session, oldest first."""
        return self._context.runs()

    def traced(self, run: Run) -> bool:
        """Return True if there is evidence of a run."""
        return self._context.traced(run)

    def causes(self, run: Run, progress: Progress = unheard) -> EvidenceReport | CounterReport:
        """Return the causes of a run's stalls, or its counters. Takes a second for every few hundred thousand events;
        the newest report is kept. Raises SessionError, and what ``progress`` raises."""
        if self._explained is None or self._explained[0] != run.id:
            self._explained = run.id, explained(self._context.handle, run, MOST_STALLS, progress)
        return self._explained[1]

    def curves(self, run_ids: tuple[str, ...] | None = None) -> tuple[RunCurve, ...]:
        """Return curves of runs (all but those of proofs when None), oldest first."""
        every = self.runs()
        runs = apart_from_proofs(every) if run_ids is None else tuple(run for run in every if run.id in run_ids)
        return self._context.curves(runs)

    def published(self) -> tuple[RunCurve, ...]:
        """Return the curves of 2015, marked as published."""
        return published_curves()

    def imported(self) -> tuple[RunCurve, ...]:
        """Return the curves imported into this session from other tools, oldest first, marked with the tool; only to
        look at."""
        return imported_curves(self._context.handle.imports())

    @property
    def agent_session(self) -> AgentSession:
        """Return the session with the agent, which applies and gives back."""
        return self._context.agent_session

    def standing(self) -> tuple[dict[str, str], ...]:
        """Return what this tool has set on this host and not given back, as ``{"id": …, "value": …}`` in order."""
        return () if self.recorded else self._context.standing()

    def written(self) -> tuple[str, ...]:
        """Return the standing writes of this tool on this host, each as the id of its tunable, in order."""
        return () if self.recorded else tuple(entry.tunable for entry in active(self._context.root))

    def findings(self) -> Findings:
        """Return the ``status`` of this host now, with the chapters that treat it; takes a tenth of a second. Raises
        HostError."""
        return find(self._context.root.root, self.course)

    def undo_all(self) -> RestoreResult:
        """Give everything back. Raises HostError."""
        refuse_recorded(self._context)
        result = self._context.agent_session.restore()
        self._context.note_stack(given_back=None)
        for chapter in self.course.chapters:
            ChapterSession(chapter, self._context).given_back([one.tunable for one in result.restored])
        return result

    def resumable(self) -> tuple[str, ...]:
        """Return what this session had applied and does not stand any more, as ``ID`` or ``ID=VALUE`` in order; () on a
        recorded host."""
        if self.recorded:
            return ()
        standing = {one["id"] for one in self.standing()}
        return tuple(word_of(one) for one in self.session.stack if one["id"] not in standing)

    def resume_plan(self) -> PlanView:
        """Return all of ``resumable`` as one plan. Raises UsageError, HostError."""
        return plan_view(self._seen(), self.resumable(), self.recorded)

    def resume(self, shown: PlanView | None = None) -> ApplyResult:
        """Apply ``resumable`` again: of its plan the ``shown`` changes, all of it where that is None. Raises HostError,
        UsageError."""
        words, seen = self.resumable(), self._seen()
        changes = shown.changes if shown is not None else planned(seen, words).changes
        result = self._context.agent_session.apply(words, seen.hot.cpus, changes)
        self._context.note_stack()
        return result

    def _seen(self) -> Seen:
        hot = choose_hot(self._context.root, None)
        return Seen(Host(self._context.root, hot.cpus), hot, (), "available")

    def close(self) -> RestoreResult:
        """Give back what is leased and release the session's lock. The session still records what it had applied, so
        that the next start can offer it again. A hidden noise ends first."""
        try:
            self.end_hunt()
            return self._context.leave()
        finally:
            self._context.handle.close()

    def _hot(self) -> tuple[int, ...]:
        """Return the hot CPUs, as ``status`` chooses them; () where this host shows none."""
        try:
            return choose_hot(self._context.root, None, self.topology).cpus.cpus
        except (HostError, UsageError):
            return ()


def find_chapter(course: Course, chapter_id: str) -> Chapter:
    """Return a chapter by its id. Raises UsageError that names the nearest one."""
    chapter = course.chapter(chapter_id)
    if chapter is not None:
        return chapter
    known = [c.id for c in course.chapters]
    close = difflib.get_close_matches(chapter_id[:40], known, n=1)
    advice = f"did you mean '{close[0]}'?" if close else f"chapters: {', '.join(known)}"
    raise UsageError(f"there is no chapter '{clean(chapter_id, 40)}'", advice)
