"""Cache the built-in course, so that the next start need not read and check it again.

Reading two dozen chapters takes a tenth of a second; reading the cache takes a few milliseconds. The cache has the
size and the time of the last change of each course file, and of each module that reads a course. If one of them
differs, the course is read again. The same happens if the cache is damaged, or if another user could
have written it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from jitter_workshop import __version__, paths
from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, parse_object, to_plain
from jitter_workshop.model.course import Course
from jitter_workshop.session import files

FILE = "course.json"
FORMAT_VERSION = 1
_READERS = ("course", "model/course.py", "model/codec.py")
"""The package's files that decide how a course is read."""


def read_kept_course(folder: Path) -> Course | None:
    """Return the course of a folder from the cache. Return None if the cache is missing, damaged or out of date."""
    try:
        with files.open_regular(paths.cache_dir() / FILE) as file:
            known = os.fstat(file.fileno())
            if known.st_uid != os.geteuid() or stat.S_IMODE(known.st_mode) & 0o022:
                return None
            kept = parse_object(file.read(files.MAX_JSON_BYTES))
        if kept["format_version"] == FORMAT_VERSION and kept["of"] == _marks(folder):
            return from_plain(Course, kept["course"])
    except (OSError, ValueError, KeyError):
        pass
    return None


def keep_course(folder: Path, course: Course) -> None:
    """Write a course that was just read from a folder to the cache. Do nothing if the cache cannot be written."""
    with contextlib.suppress(SessionError, OSError):
        files.make_folder(paths.cache_dir())
        value = {"format_version": FORMAT_VERSION, "of": _marks(folder), "course": to_plain(course)}
        files.write_whole(paths.cache_dir() / FILE, files.json_line(value))


def _marks(folder: Path) -> list[list[str | int]]:
    """Return the path, the size and the time of change (ns) of each file that affects the course."""
    package = Path(__file__).resolve().parents[1]
    found: list[list[str | int]] = [[__version__]]
    for top in (folder, *(package / name for name in _READERS)):
        found += _below(str(top)) if top.is_dir() else [_mark(str(top), top.stat())]
    return found


def _below(folder: str) -> list[list[str | int]]:
    found: list[list[str | int]] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda one: one.name):
            if entry.is_dir():
                found += _below(entry.path) if entry.name != "__pycache__" else []
            else:
                found.append(_mark(entry.path, entry.stat()))
    return found


def _mark(path: str, known: os.stat_result) -> list[str | int]:
    return [path, known.st_size, known.st_mtime_ns]
