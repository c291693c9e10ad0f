"""Find the built-in lessons: in the installed package, or beside it in a checkout that was not installed."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jitter_workshop.errors import LessonError

BUILTIN_ID = "jitter"
"""The id of the built-in course, and of editions of it in other folders."""


def builtin_course() -> Path:
    """Return the folder of the built-in course. Raise LessonError when the installation lacks it."""
    try:
        folder = Path(str(resources.files("jitter_workshop.lessons")))
    except ModuleNotFoundError:
        folder = Path(__file__).resolve().parents[2] / "lessons"
    if not (folder / "course.toml").is_file():
        raise LessonError("the built-in lessons are missing from this installation", "install jitter-workshop again")
    return folder
