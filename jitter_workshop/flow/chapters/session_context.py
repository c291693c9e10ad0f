"""Hold the data for a learner's work: an open session, this host, and the runs up to now."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from jitter_workshop import paths
from jitter_workshop.course.loader import BUILTIN_ID
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters.session_runs import SessionRuns
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.host_ops.hotcpus import class_cpus
from jitter_workshop.flow.measuring.host_warnings import warnings
from jitter_workshop.flow.measuring.isolated_set import CpuBudget, room, with_allowed
from jitter_workshop.host.cpu.topology import read_topology, usable_cpus
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.model.change import Change, RestoreResult
from jitter_workshop.model.course import Course
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary, Topology
from jitter_workshop.model.record import picked
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress, Session
from jitter_workshop.model.text import ID, clean
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.tuning.journal import applied_tunables

if TYPE_CHECKING:
    from jitter_workshop.flow.classes.classview import ClassView
    from jitter_workshop.flow.classes.posting import Poster
    from jitter_workshop.flow.measuring.request import MeasureRequest


@dataclass(slots=True)
class SessionContext:
    """Hold the state that the workshop and its chapters share.

    - ``host``, ``topology``: this host, as it was read last.
    - ``look``: the function that reads ``host`` and ``topology`` again after the workshop has changed the host.
    - ``shown_write``: the write before a run that the learner was shown last; None before, and after a run.
    - ``fixed_noises``: the kinds of noise whose interrupt the kernel refused to move since the workshop started.
    - ``troubles``: messages about failures that do not stop the workshop, such as progress that could not be stored.
      The learner must see them.
    """

    handle: OpenSession
    root: HostRoot
    host: HostSummary
    topology: Topology
    troubles: list[str] = field(default_factory=list)
    shown_write: Change | None = None
    fixed_noises: set[str] = field(default_factory=set)
    agent_connection: AgentConnection = field(default_factory=AgentConnection)
    course_dir: str = ""
    course_id: str = BUILTIN_ID
    look: Callable[[HostRoot], tuple[Topology, HostSummary]] = field(default_factory=lambda: look_at)
    _room: CpuBudget | None = None
    _usable: tuple[CpuSet, CpuSet] | None = None
    """The result of ``usable_cpus`` when the host was read; None if it was not asked for."""
    _stood: tuple[dict[str, str], ...] | None = None
    _unsaved: Session | None = None
    class_view: ClassView | None = None
    """On a class host: the state of the turn, and the instructor's place in the course. None on other hosts."""
    poster: Poster | None = None
    """On a class host: the object that posts this session to the board of the class. None on other hosts."""

    runs: SessionRuns = field(init=False)
    """The runs of the session, with their curves and causes."""

    def __post_init__(self) -> None:
        self.runs = SessionRuns(self.handle)
        self.agent_connection.change_log = ChangeLog(self.handle, self.root)
        if not self.root.recorded and Path(paths.CLASS_FILE).exists():
            from jitter_workshop.flow.classes.classview import open_view
            from jitter_workshop.flow.classes.posting import Poster

            self.class_view = open_view(self.agent_connection)
            self.poster = Poster(self.handle) if self.class_view is not None else None

    @classmethod
    def open(cls, course: Course, session_name: str | None, root: HostRoot) -> Self:
        """Open a session for a course on a host. Raise SessionError if the session cannot be opened.

        ``session_name``: the session, which is made if it does not exist. If it is None, open the current session, or
        make one that is named after host and day. A recorded ``root`` has its own session and cannot be measured or
        changed.
        """
        usable = usable_cpus(root)
        topology, host = look_at(root)
        store = SessionStore(paths.sessions_dir())
        name = clean(host.name, ID) or "host"
        if root.recorded:
            # A rehearsal must not take the place of this host's session.
            handle = store.open_or_create(session_name or recorded_session(name), name, recorded=True)
        elif session_name is not None:
            handle = store.open_or_create(session_name, name)
        else:
            handle = store.current_or_create(f"{name} {datetime.date.today():%Y-%m-%d}", name)
        made = cls(handle, root, host, topology, course_dir=course.source, course_id=course.id)
        made._usable = usable
        if not root.recorded:
            made.troubles.extend(warnings(host))
        if handle.session.host and handle.session.host != name:
            there = clean(handle.session.host, ID)
            told = (
                f"This session was begun on {there}, but this host is {name}. Do not compare the curves of these two "
                "hosts."
            )
            made.troubles.append(told)
        return made

    def of_class(self, request: MeasureRequest) -> MeasureRequest:
        """Return the request. On a class host, replace the preset ``quick`` with the preset of the class."""
        if self.class_view is None or request.preset != "quick":
            return request
        return dataclasses.replace(request, preset=self.class_view.host.described.preset)

    @property
    def notices(self) -> tuple[str, ...]:
        """Return messages for the learner. Each message is about one of these:

        - Damaged files were set aside.
        - Another workshop uses this session.
        - The machine runs on battery.
        - The session is read-only.
        - Progress could not be stored.
        """
        return (*self.handle.notices, *self.troubles)

    @property
    def recorded(self) -> bool:
        """Return True if the host is a recorded one, which can be read but not measured."""
        return self.root.recorded

    @property
    def mount_command(self) -> str:
        """Return the command that mounts the kernel's trace; "" if the user does not need it.

        The user does not need it in three cases:

        - The trace is mounted.
        - This host has no trace.
        - The agent can mount the trace. On a class host, the agent may not mount it. Without root's rights, there is no
          agent.
        """
        from jitter_workshop.agent.tracing import own_view
        from jitter_workshop.agent.tracing.instances import mount_command

        agent = self.class_view is None and self.agent_connection.rights != "none"
        own = agent and own_view.can_be_had(self.root)
        return "" if self.recorded or own else mount_command(self.root)

    @property
    def session(self) -> Session:
        """Return the stored session. If progress could not be stored, add this progress from memory."""
        if self._unsaved is None:
            return self.handle.session
        progress = picked(self._unsaved, "chapters", "current_chapter", "stack", "course", "recall")
        return dataclasses.replace(self.handle.session, **progress)

    def save(self, session: Session) -> None:
        """Store the session. On a class host, also ask for a post to the board. If storing fails, keep the progress in
        memory, and report the failure once.
        """
        try:
            self.handle.save(session)
            self._unsaved = None
        except SessionError as error:
            if self._unsaved is None:
                self.troubles.append(f"Your progress cannot be saved: {error.sentence()}.")
            self._unsaved = session
        self.tell_board()

    def note_stack(self, restored: Collection[str] | None = ()) -> None:
        """Record in the session which settings are applied on this host now. Earlier settings that are not in effect
        any more stay recorded, so that the learner can apply them again. ``restored``: ids of restored tunables,
        which are removed from the record; None removes all earlier settings."""
        standing = self.standing()
        ids = {one["id"] for one in standing}
        before = () if restored is None else self.session.stack
        kept = tuple(one for one in before if one["id"] not in ids and one["id"] not in (restored or ()))
        self.save(dataclasses.replace(self.session, stack=(*kept, *standing)))
        self.look_again()

    def standing(self) -> tuple[dict[str, str], ...]:
        """Return the settings that this tool has applied to this host and not restored; () on a recorded host. They are
        in the order in which they were applied, as ``{"id": …, "value": …}``. If these settings have changed since the
        last call of this method, also read the host again.
        """
        if self.recorded:
            return ()
        found = applied_tunables(self.root)
        if self._stood is not None and found != self._stood:
            self.look_again()
        self._stood = found
        return found

    def leave(self) -> RestoreResult:
        """Restore the leased settings, and end the change log and the posts to a class board. Never raise an error."""
        result = self.agent_connection.close()
        self.agent_connection.change_log.end()
        if self.poster is not None:
            self.poster.close()
        if self.agent_connection.change_log.trouble:
            self.troubles.append(f"{self.agent_connection.change_log.trouble}.")
        return result

    def look_again(self) -> None:
        """Read the host again, because another terminal may have changed the isolated CPUs."""
        self._usable = usable_cpus(self.root)
        self.topology, self.host = self.look(self.root)
        self._room = None

    def look_if_moved(self) -> bool:
        """Read the host again if its isolated or usable CPUs have changed. Return True in this case. A run reads the
        isolated and usable CPUs at its start. The plan on the screen must have the same CPUs.
        """
        if self.recorded or self._usable is None or usable_cpus(self.root) == self._usable:
            return False
        self.look_again()
        return True

    @property
    def room(self) -> CpuBudget:
        """Return the number of CPUs that one run may use."""
        if self._room is None:
            self._room = room(self.root, self.topology, may_place=self.agent_connection.rights == "root")
        return self._room

    def progress(self, chapter_id: str) -> ChapterProgress:
        return progress_of(self.session, self.course_id, chapter_id)

    def save_progress(self, chapter_id: str, progress: ChapterProgress, *, entered: bool = True) -> None:
        """Save a chapter's progress. ``entered``: True makes this chapter the learner's current one."""
        session = self.session
        chapters = {**session.chapters, key_of(self.course_id, chapter_id): progress}
        session = dataclasses.replace(session, chapters=chapters)
        if entered:
            session = dataclasses.replace(session, course=self.course_id, current_chapter=chapter_id)
        self.save(session)

    def remember(self, run: Run) -> None:
        """Keep a run in memory (``SessionRuns.remember``). On a class host, also ask for a post to the board."""
        self.runs.remember(run)
        self.tell_board()

    def tell_board(self) -> None:
        """Ask for a post of this session to the board of a class host, and return at once. Do nothing on other
        hosts."""
        if self.poster is not None:
            self.poster.wanted()


def progress_of(session: Session, course_id: str, chapter_id: str) -> ChapterProgress:
    """Return the progress in a chapter of a course. The course is needed, because two courses may have chapters with
    the same id."""
    return session.chapters.get(key_of(course_id, chapter_id), ChapterProgress())


def current_chapter(session: Session, course_id: str) -> str | None:
    """Return the id of the learner's current chapter; None if it belongs to another course."""
    return session.current_chapter if (session.course or BUILTIN_ID) == course_id else None


def key_of(course_id: str, chapter_id: str) -> str:
    """Return the key of a chapter's progress: ``COURSE/CHAPTER``, or ``CHAPTER`` in the built-in course. An id has no
    slash, so the two forms cannot be confused."""
    return chapter_id if course_id == BUILTIN_ID else f"{course_id}/{chapter_id}"


def recorded_session(host: str) -> str:
    """Return the default name of the session on a recorded host."""
    return f"{host} (recorded)"


def look_at(root: HostRoot) -> tuple[Topology, HostSummary]:
    """Return a host's CPUs and its summary. On a class host, the allowed CPUs include the class's hot CPUs, because a
    member may use them during a turn."""
    topology = read_topology(root)
    of_class = class_cpus(root)
    if of_class:
        topology = with_allowed(topology, of_class)
    return topology, summarise_host(root, topology)
