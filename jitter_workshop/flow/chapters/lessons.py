"""List the chapters of a course for this host."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jitter_workshop.flow.chapters import tour


@dataclass(frozen=True, slots=True)
class ChapterLine:
    """Hold one line of ``lessons list`` (DESIGN §9). ``here``: yes, or recorded where it cannot be done on this host
    (with the ``reason``). ``setting`` is None where the chapter sets nothing; ``notes`` then says so."""

    id: str
    title: str
    minutes: int
    here: Literal["yes", "recorded"]
    setting: bool | None
    curve: bool
    summary: str
    reason: str
    done: bool = False
    notes: dict[str, str] = field(default_factory=dict)


def chapters(session_name: str | None, course_dir: Path | None, root: Path) -> tuple[ChapterLine, ...]:
    """Return the chapters in the order for this host."""
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
            done=e.done,
            notes={"setting": "this chapter sets nothing"} if e.setting is None else {},
        )
        for e in tour.take(session_name, course_dir, root).path
    )
