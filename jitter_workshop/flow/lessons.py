"""The chapters of a course as a list for this host, and the mistakes in a course."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jitter_workshop.course.loader import check_course
from jitter_workshop.course.problems import Problem
from jitter_workshop.flow import tour

__all__ = ["ChapterLine", "Problem", "chapters", "problems"]


@dataclass(frozen=True, slots=True)
class ChapterLine:
    """One line of ``lessons list`` (DESIGN §9). ``here``: yes, or recorded where it cannot be done on this host (with
    the ``reason``). ``setting`` is None where the chapter sets nothing."""

    id: str
    title: str
    minutes: int
    here: Literal["yes", "recorded"]
    setting: bool | None
    curve: bool
    summary: str
    reason: str


def chapters(session_name: str | None, course_dir: Path | None, root: Path) -> tuple[ChapterLine, ...]:
    """The chapters in the order for this host."""
    return tuple(
        ChapterLine(
            id=e.chapter_id,
            title=e.title,
            minutes=e.minutes,
            here="yes" if e.here else "recorded",
            setting=e.setting,
            curve=e.curve,
            summary=e.summary,
            reason=e.reason,
        )
        for e in tour.take(session_name, course_dir, root).path
    )


def problems(course_dir: Path | None) -> tuple[Problem, ...]:
    """Every mistake in a course. Raises LessonError when there is no such folder."""
    return check_course(course_dir)
