"""Recorded hosts by their names: those of a course's own folder, and those that come with the project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jitter_workshop import paths
from jitter_workshop.errors import LessonError, WorkshopError
from jitter_workshop.host.packed import unpacked
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.text import clean

FOLDER = "recordings"
SUFFIX = ".tar.xz"


def recorded_host(name: str, course_dir: str = "") -> HostRoot:
    """The recorded host of this name, ``course_dir``'s own before the built-in one. Raises LessonError where neither is
    there or it cannot be read."""
    places = ([Path(course_dir)] if course_dir else []) + [_assets()]
    for place in places:
        archive = place / FOLDER / f"{name}{SUFFIX}"
        if archive.is_file():
            try:
                return HostRoot(unpacked(archive, paths.cache_dir() / FOLDER))
            except WorkshopError as error:
                raise LessonError(error.message, error.advice) from error
    raise LessonError(f"there is no recording '{clean(name, 40)}'", f"it would be {FOLDER}/{clean(name, 40)}{SUFFIX}")


def _assets() -> Path:
    """The assets of the installed package, or of a checkout that was not installed."""
    try:
        return Path(str(resources.files("jitter_workshop.assets")))
    except ModuleNotFoundError:
        return Path(__file__).resolve().parents[2] / "assets"
