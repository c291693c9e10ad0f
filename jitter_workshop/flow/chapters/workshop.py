"""Hold the workshop as one object: a session, a course and this host."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from jitter_workshop import paths
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.chapters.path import NOT_MEASURED, next_chapter, whole_path
from jitter_workshop.flow.chapters.session_context import (
    SessionContext,
    current_chapter,
    progress_of,
)
from jitter_workshop.flow.host_ops.company import with_company_of_host
from jitter_workshop.flow.host_ops.host_status import Findings, find_checks
from jitter_workshop.flow.host_ops.hotcpus import choose_hot
from jitter_workshop.flow.host_ops.recordings import Recordings
from jitter_workshop.flow.host_ops.settings import Seen, StateHere, States, plan_view, planned
from jitter_workshop.flow.turns.classhost import turn_for
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.course import Chapter, Course
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import Run, RunObserver
from jitter_workshop.model.session import ChapterProgress, Session
from jitter_workshop.model.text import ID, SHORT, clean
from jitter_workshop.model.walk import Grade, PathEntry, PlanView
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.journal import AppliedBy, active, applied_by, read_journals, word_of

ONLY_TIMES = "this chapter's change affects only times, which mean nothing on an emulated machine"
"""The reason why a chapter cannot show its change on an emulated machine."""
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)

if TYPE_CHECKING:
    from jitter_workshop.flow.chapters.hunt import Hunts
    from jitter_workshop.flow.chapters.walk import ChapterWalk
    from jitter_workshop.flow.measuring.request import MeasureRequest


class Workshop:
    """Lead through a course in an open session. ``context``: the session and its host. ``Workshop.open`` raises
    WorkshopError if the course or the state folder cannot be used."""

    def __init__(self, course: Course, context: SessionContext) -> None:
        self.course, self.context = course, context
        self._hunts: Hunts | None = None
        self._states: States | None = None
        self._recordings = Recordings(course.source)
        self.after_run = list[str]()
        """Sentences on what went wrong at the end of the newest run, such as a value that was not restored."""

    @classmethod
    def open(cls, session_name: str | None = None, course_dir: Path | None = None, root: Path = Path("/")) -> Self:
        """Open a session together with a course. ``session_name`` and ``root``: those of ``SessionContext.open``.
        ``course_dir``: None for the built-in course."""
        course = load_course(course_dir, keep=True)
        return cls(course, SessionContext.open(course, session_name, HostRoot(root)))

    @property
    def named(self) -> str:
        """Return the session's name if the learner chose it, else "". A name made of host and day was not chosen. On a
        recorded host always return ""."""
        name, host = self.context.session.name, clean(self.context.session.host, ID)
        day = name.removeprefix(f"{host} ")
        return "" if self.context.recorded or (name != day and _DAY.fullmatch(day)) else name

    @cached_property
    def other_sessions(self) -> tuple[Session, ...]:
        """Return the learner's other sessions on live hosts, the most recently used first. Return () if they cannot be
        read."""
        try:
            return () if self.context.recorded else SessionStore(paths.sessions_dir()).others(self.context.session.id)
        except SessionError:
            return ()

    @property
    def hunts(self) -> Hunts:
        """Return the object that hides a noise while runs are measured."""
        if self._hunts is None:
            from jitter_workshop.flow.chapters.hunt import Hunts

            self._hunts = Hunts(self.context)
        return self._hunts

    @property
    def hides_a_noise(self) -> bool:
        """Return True if a hidden noise runs now, or one that the learner has already named."""
        return self._hunts is not None and self._hunts.hiding

    @property
    def noise_is_named(self) -> bool:
        """Return True if the learner has named the noise of the present hunt."""
        hunt = self._hunts.hunt if self._hunts is not None else None
        return hunt is not None and hunt.state == "named"

    def host_line(self) -> str:
        """Return the host in one line, such as ``KVM guest · 2 CPUs, hot (to keep free): 1 · no cpufreq · not
        root``."""
        try:
            hot = choose_hot(self.context.root, None, self.context.topology).cpus.cpus
        except (HostError, UsageError):
            hot = ()
        return host_line(self.context.host, hot)

    def look_at_load(self) -> HostLoad | None:
        """Measure the load of this host for a second or two. Return None on a recorded host, on a class host, or if a
        measurement begins meanwhile. On a class host, the load would be the runs of other members.
        """
        if self.context.recorded or self.context.class_view is not None:
            return None
        from jitter_workshop.flow.measuring.host_load import at_start

        return at_start()

    def path(self) -> tuple[PathEntry, ...]:
        """Return the chapters in the order for this host. Chapters that this host can do come first, then those taught
        on a recording, then all others."""
        # One look at the disk for all chapters: a session looks for its runs each time it is asked.
        session = self.context.session

        def progress(chapter_id: str) -> ChapterProgress:
            return progress_of(session, self.context.course_id, chapter_id)

        path = whole_path(
            self.course,
            self.context.room,
            self.context.root.recorded,
            self._recordings,
            self._of_class,
            progress,
            self._state,
            lambda chapter: self._guess(chapter, progress(chapter.id)),
            may_change=self.context.agent_connection.rights != "none",
            standing=None if self.context.recorded else {one["id"] for one in self.context.standing()},
        )
        if not any(entry.done and entry.rehearsed for entry in path):
            return path
        from jitter_workshop.flow.chapters.recorded import with_only_read

        return with_only_read(path, self.course, progress)

    @property
    def _of_class(self) -> tuple[str, ...]:
        """Return the ids of the class's chapters. Return () if the class has all chapters, or on a host without a
        class."""
        view = self.context.class_view
        return view.host.described.chapters if view is not None else ()

    def _guess(self, chapter: Chapter, progress: ChapterProgress) -> Grade | None:
        """Return the result of a chapter's guess, or of its hunts: ``right`` if one of them was won. Return None if
        nothing was judged."""
        if chapter.hunt:
            won = any(outcome.named for outcome in progress.hunts)
            return None if not progress.hunts else "right" if won else "wrong"
        if progress.prediction is None:
            return None
        outcome = self._walk(chapter).guess.outcome()
        return outcome.grade if outcome is not None else None

    def _state(self, chapter: Chapter) -> StateHere:
        """Return this host's state for a chapter's tunables. The tunables are read only once. So this is the state
        before the chapter's change, even if the change has been made since.
        """
        if self._states is None:
            self._states = States(self.context.root, self.context.topology)
        state = self._states.of(chapter)
        if not self.context.host.emulated or chapter.shows is None or state.held:
            return state
        from jitter_workshop.stats.figures import shows_on

        uncounted = shows_on(chapter.shows, emulated=True) is None
        return dataclasses.replace(state, held=ONLY_TIMES) if uncounted else state

    def newest_chapter(self) -> str | None:
        """Return the id of the chapter that the learner opened last; None before the first one."""
        return current_chapter(self.context.session, self.course.id)

    def next_chapter(self) -> PathEntry | None:
        """Return the chapter that Enter opens; None if all chapters are done."""
        return next_chapter(self.path(), self.newest_chapter(), self._of_class)

    def walk(self, chapter_id: str) -> ChapterWalk:
        """Return the object that leads through the chapter with this id. Raise UsageError for an unknown id."""
        return self._walk(find_chapter(self.course, chapter_id))

    def _walk(self, chapter: Chapter) -> ChapterWalk:
        from jitter_workshop.flow.chapters.walk import ChapterWalk

        chapter = with_company_of_host(chapter, self.context.root, self.context.fixed_noises)
        return ChapterWalk(chapter, self.context)

    def measure(
        self,
        request: MeasureRequest,
        observer: RunObserver,
        cancel: CancelToken,
        queued: Callable[[str], None] = lambda sentence: None,
    ) -> Run:
        """Measure, and store the run in the session. A run that cannot be stored, for example on a full disk, is kept
        in memory and returned. A notice then tells the learner. ``queued`` and the errors are those of
        ``flow.measuring.measure.measure_run``. Raise HostError on a recorded host, and if the run begins with a write
        that was not shown."""
        if self.context.recorded:
            raise HostError(NOT_MEASURED, "leave out --root")
        self.use_shown_write(request)
        from jitter_workshop.flow.measuring import measure as measuring
        from jitter_workshop.flow.measuring.arrival import InterruptStays, arriving

        people = self.context.class_view.people if self.context.class_view is not None else ()
        current = self.newest_chapter()
        title = next((one.title for one in self.course.chapters if one.id == current), "")
        doing = " · ".join(filter(None, (clean(title, SHORT), clean(request.label, SHORT))))
        self.after_run.clear()
        try:
            run = measuring.measure_run(
                self.hunts.beside(request),
                self.context.handle,
                observer,
                cancel,
                queued,
                self.context.agent_connection.place,
                self.context.agent_connection.tracer,
                turn=partial(turn_for, self.context.agent_connection, people=people, doing=doing, keep=True),
                around=partial(arriving, self.context.agent_connection, request, self._tell_after_run),
            )
        except measuring.RunNotKept as error:
            self._tell_after_run(f"{error.title}: {error.sentence()}.")
            run = error.run
        except measuring.MeasurementStopped as error:
            self.context.remember(error.run)
            raise
        except InterruptStays as stays:
            self.context.fixed_noises.add(request.noise or "")
            advice = "open the chapter again: it then has another load, or a run without this write"
            raise InterruptStays(stays.message, advice) from stays
        self.context.remember(run)
        return run

    def use_shown_write(self, request: MeasureRequest) -> None:
        """Forget the write that the learner was shown, because it counts for one run. Raise HostError if the request's
        run begins with another write."""
        shown, self.context.shown_write = self.context.shown_write, None
        if request.arrival is not None and request.arrival != shown:
            raise HostError(
                "this run begins with a write that was not shown", "go to the step 'measure', which shows it"
            )

    def _tell_after_run(self, sentence: str) -> None:
        self.after_run.append(sentence)
        self.context.troubles.append(sentence)

    def written(self) -> tuple[str, ...]:
        """Return the tunable's id for each write of this tool in effect, in order. A tunable that made several writes
        occurs several times.
        """
        return () if self.context.recorded else tuple(entry.tunable for entry in active(self.context.root))

    def of_others(self) -> dict[str, AppliedBy]:
        """Return tunable id → ``AppliedBy`` for each applied tunable that this workshop has not applied. Another
        workshop, a verb, or an earlier start of this workshop has applied it."""
        if self.context.recorded:
            return {}
        made = self.context.agent_connection.made
        by = applied_by(self.context.root, read_journals(self.context.root))
        return {ident: who for ident, who in by.items() if who.journal not in made}

    def findings(self) -> Findings:
        """Return the checks that ``status`` makes on this host.

        Each check has the first chapter that treats its setting. Reading the host takes a tenth of a second. Raise
        HostError if the host shows no CPU.
        """
        return find_checks(self.context.root.root, self.course)

    def restore_all(self) -> RestoreResult:
        """Restore all settings of this tool on this host, and update the marks of all chapters. Raise HostError if this
        fails, or on a recorded host."""
        return self._restore(())

    def let_noises_in(self) -> RestoreResult:
        """Restore the settings that keep hidden noises away (``Hunts.kept_away_by``), and update the marks of all
        chapters. Restore nothing if there are no such settings. Raise HostError if the restore fails, or on a recorded
        host."""
        return self.give_back(self.hunts.kept_away_by())

    def give_back(self, ids: tuple[str, ...]) -> RestoreResult:
        """Restore these tunables, which other chapters have applied, and update the marks of all chapters. Restore
        nothing for no ids. Raise HostError if the restore fails, or on a recorded host."""
        return self._restore(ids) if ids else RestoreResult((), (), False)

    def _restore(self, ids: tuple[str, ...]) -> RestoreResult:
        """Restore the tunables ``ids``; () for all tunables of this tool."""
        from jitter_workshop.flow.chapters.chapter_host import refuse_recorded

        refuse_recorded(self.context)
        result = self.context.agent_connection.restore(ids)
        self.context.note_stack(restored=ids or None)
        for chapter in self.course.chapters:
            self._walk(chapter).note_restored([one.tunable for one in result.restored])
        return result

    def resumable(self) -> tuple[str, ...]:
        """Return the settings that this session had applied and that are not in effect now, in order. Each setting is
        ``ID`` or ``ID=VALUE``. Return () on a recorded host."""
        if self.context.recorded:
            return ()
        standing = {one["id"] for one in self.context.standing()}
        return tuple(word_of(one) for one in self.context.session.stack if one["id"] not in standing)

    def resume_plan(self) -> PlanView:
        """Return one plan that applies all settings of :meth:`resumable`. Raise HostError if the host shows no CPU,
        UsageError for an invalid setting."""
        return plan_view(self._seen(), self.resumable(), self.context.recorded)

    def resume(self, shown: PlanView | None = None) -> ApplyResult:
        """Apply the settings of :meth:`resumable` again. ``shown``: make only the changes of this plan; None for all
        changes. Raise HostError if the agent fails, and the errors of :meth:`resume_plan`."""
        words, seen = self.resumable(), self._seen()
        changes = shown.changes if shown is not None else planned(seen, words).changes
        result = self.context.agent_connection.apply(words, seen.hot.cpus, changes)
        self.context.note_stack()
        return result

    def _seen(self) -> Seen:
        hot = choose_hot(self.context.root, None)
        return Seen(Host(self.context.root, hot.cpus), hot, (), "available")

    def close(self) -> RestoreResult:
        """End a hidden noise, restore the leased settings, and release the session's lock. The record of the applied
        settings stays in the session. At its next start, the workshop can offer to apply these settings again.
        """
        try:
            if self._hunts is not None:
                self._hunts.end()
            return self.context.leave()
        finally:
            self.context.handle.close()


def find_chapter(course: Course, chapter_id: str) -> Chapter:
    """Return a chapter by its id. Raise UsageError with the most similar id if the id is unknown."""
    chapter = course.chapter(chapter_id)
    if chapter is not None:
        return chapter
    known = [c.id for c in course.chapters]
    import difflib

    close = difflib.get_close_matches(chapter_id[:ID], known, n=1)
    advice = f"did you mean '{close[0]}'?" if close else f"chapters: {', '.join(known)}"
    raise UsageError(f"there is no chapter '{clean(chapter_id, ID)}'", advice)
