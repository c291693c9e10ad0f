"""The workshop as one object: a session, a course and this host."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.flow.measure import MeasureRequest
from jitter_workshop.flow.walk import Walk
from jitter_workshop.model.course import Course
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.observe import RunObserver
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import Session
from jitter_workshop.model.topology import Topology
from jitter_workshop.model.walk import PathEntry, RunCurve


class Workshop:
    """Open with ``Workshop.open``; raises WorkshopError when the course or the state folder cannot be used."""

    course: Course
    host: HostSummary
    topology: Topology
    notices: tuple[str, ...]
    """What the learner should be told at the start: damaged files set aside, another workshop on this session, battery,
    a read-only session."""

    @classmethod
    def open(cls, session_name: str | None = None, course_dir: Path | None = None, root: Path = Path("/")) -> Workshop:
        raise NotImplementedError

    @property
    def session(self) -> Session:
        raise NotImplementedError

    def host_line(self) -> str:
        """One line: ``KVM guest · 2 CPUs, hot: 1 · no cpufreq · steal 0.4 % · not root``."""
        raise NotImplementedError

    def path(self) -> tuple[PathEntry, ...]:
        """The chapters in the order for this host: with something to do here first, then those on a recording."""
        raise NotImplementedError

    def next_chapter(self) -> PathEntry | None:
        """The next useful step; None when all is done."""
        raise NotImplementedError

    def walk(self, chapter_id: str) -> Walk:
        """Enter a chapter. Raises UsageError for an unknown id."""
        raise NotImplementedError

    def measure(self, request: MeasureRequest, observer: RunObserver, cancel: object) -> Run:
        """Measure and keep the run in the session (see ``flow.measure.measure``)."""
        raise NotImplementedError

    def runs(self) -> tuple[Run, ...]:
        """All runs of the session, oldest first."""
        raise NotImplementedError

    def curves(self, run_ids: tuple[str, ...] | None = None) -> tuple[RunCurve, ...]:
        """Curves of runs (all when None), oldest first."""
        raise NotImplementedError

    def published(self) -> tuple[RunCurve, ...]:
        """The curves of 2015, marked as published."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of the session's lock."""
        raise NotImplementedError
