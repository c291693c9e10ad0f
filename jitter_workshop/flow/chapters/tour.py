"""Collect the host, the path and the progress for a tour without a terminal. The tour measures nothing, writes nothing
and takes no lock."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.course.loader import load_course
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters.path import next_chapter, whole_path
from jitter_workshop.flow.chapters.recorded import with_only_read
from jitter_workshop.flow.chapters.session_context import current_chapter, look_at, progress_of
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.recordings import Recordings
from jitter_workshop.flow.host_ops.settings import States
from jitter_workshop.flow.measuring.host_warnings import warnings
from jitter_workshop.flow.measuring.isolated_set import room
from jitter_workshop.flow.turns.classhost import class_chapters
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import host_line
from jitter_workshop.model.course import Course
from jitter_workshop.model.session import ChapterProgress, Session
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.journal import applied_tunables


@dataclass(frozen=True, slots=True)
class Tour:
    """Hold what the plain tour prints. ``session`` is None if the user has no session yet."""

    course: Course
    host_name: str
    host_line: str
    notices: tuple[str, ...]
    session: Session | None
    path: tuple[PathEntry, ...]
    next_entry: PathEntry | None


def take_tour(session_name: str | None = None, course_dir: Path | None = None, root: Path = Path("/")) -> Tour:
    """Return what the plain tour prints: the host, the path and the learner's progress. If the session cannot be read
    or does not exist, a notice gives the reason. Raise LessonError if the course has mistakes."""
    course = load_course(course_dir)
    host_root = HostRoot(root)
    topology, host = look_at(host_root)
    notices = [] if host_root.recorded else list(warnings(host))
    session: Session | None = None
    store = SessionStore(paths.sessions_dir())
    try:
        wanted = session_name if session_name is not None else store.current_id()
        session = store.find(wanted) if wanted is not None else None
    except SessionError as error:
        notices.append(f"Your progress cannot be shown: {error.sentence()}.")
    of_class = () if host_root.recorded else class_chapters()
    rights = AgentConnection().rights

    def progress(ident: str) -> ChapterProgress:
        return progress_of(session, course.id, ident) if session is not None else ChapterProgress()

    path = whole_path(
        course,
        room(host_root, topology, may_place=rights == "root"),
        host_root.recorded,
        Recordings(course.source),
        of_class,
        progress,
        States(host_root, topology).of,
        may_change=rights != "none",
        standing=None if host_root.recorded else {one["id"] for one in applied_tunables(host_root)},
    )
    path = with_only_read(path, course, progress)
    current = current_chapter(session, course.id) if session is not None else None
    return Tour(
        course=course,
        host_name=host.name,
        host_line=host_line(host),
        notices=tuple(notices),
        session=session,
        path=path,
        next_entry=next_chapter(path, current, of_class),
    )
