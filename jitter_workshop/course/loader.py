"""Load a course: a folder with ``course.toml`` and one folder for each chapter. Lessons are data; nothing in them is
run."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jitter_workshop.course import kept
from jitter_workshop.errors import LessonError
from jitter_workshop.model.course import Chapter, Course
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL
from jitter_workshop.paths import packaged

if TYPE_CHECKING:
    from jitter_workshop.course.files import Problems
    from jitter_workshop.course.table import TomlTable

MAX_CHAPTERS = 100
BUILTIN_ID = "jitter"
"""The id of the built-in course, and of its editions in other folders."""
COURSE_FILE = "course.toml"
_FOLDER_NAME = 64
"""The largest length of the name of a chapter's folder."""
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Reading:
    """Hold the content of a course's folder ``base``. ``course``: None if there is any mistake. ``chapters``: (folder,
    chapter) of all chapters without mistakes."""

    base: Path
    course: Course | None
    chapters: tuple[tuple[str, Chapter], ...]
    problems: Problems


def load_course(folder: Path | None = None, *, keep: bool = False) -> Course:
    """Return the course in ``folder``, or the built-in course for None. Raise LessonError ``file:line: …`` for the
    first mistake. ``keep``: True to store the built-in course in a cache, for a faster next start."""
    if folder is None:
        base = builtin_course()
        course, was_kept = _builtin(base)
        if keep and not was_kept:
            _keep(base)
        return course
    return _whole(read_course(folder))


@functools.lru_cache(maxsize=1)
def _builtin(folder: Path) -> tuple[Course, bool]:
    """Return the built-in course, and True if it comes from the cache. A process reads the course only once, because an
    installation does not change while a workshop runs."""
    course = kept.read_kept_course(folder)
    return (course, True) if course is not None else (_whole(read_course()), False)


@functools.lru_cache(maxsize=1)
def _keep(folder: Path) -> None:
    """Keep the built-in course in the cache, at most once in a process and its forks."""
    kept.keep_course(folder, _builtin(folder)[0])


def _whole(reading: Reading) -> Course:
    if reading.course is None:
        raise reading.problems.error()
    return reading.course


def builtin_course() -> Path:
    """Return the folder of the built-in course: in the installed package, or in the source tree. Raise LessonError if
    there is none."""
    folder = packaged("lessons")
    if not (folder / COURSE_FILE).is_file():
        raise LessonError("the built-in lessons are missing from this installation", "install jitter-workshop again")
    return folder


def read_course(folder: Path | None = None, known: Sequence[str] = ()) -> Reading:
    """Return as much of a course as can be read, with all its mistakes. ``known``: the ids of all tunables; () skips
    the check of ids. Raise LessonError only if the folder does not exist."""
    from jitter_workshop.course.files import Problems, read_source
    from jitter_workshop.course.lesson import check_version, read_id
    from jitter_workshop.course.table import parse_table

    base = builtin_course() if folder is None else folder
    if not base.is_dir():
        raise LessonError(f"there is no folder {str(base)!r}", "--course takes a folder with a course.toml")
    problems = Problems()
    source = read_source(base, COURSE_FILE, problems)
    table = parse_table(source, problems) if source else None
    if table is None:
        return Reading(base, None, (), problems)
    check_version(table)
    ident = read_id(table)
    title = table.text("title", limit=LABEL)
    chapters = _chapters(base, table, problems, known)
    table.finish()
    if problems.found:
        return Reading(base, None, chapters, problems)
    source_name = "" if folder is None else str(folder)
    course = Course(ident, title, tuple(chapter for _, chapter in chapters), source=source_name)
    return Reading(base, course, chapters, problems)


def _chapters(
    base: Path, table: TomlTable, problems: Problems, known: Sequence[str]
) -> tuple[tuple[str, Chapter], ...]:
    from jitter_workshop.course.lesson import read_lesson
    from jitter_workshop.course.table import KeyLines

    folders = table.texts("chapters", limit=_FOLDER_NAME, most=MAX_CHAPTERS)
    if not folders:
        table.wrong("chapters" if "chapters" in table.data else None, "'chapters' must list at least one folder")
    chapters: list[tuple[str, Chapter]] = []
    seen: set[str] = set()
    for name in folders:
        if not _FOLDER.fullmatch(name):
            table.wrong("chapters", f"'chapters' must list plain names of folders in the course, not {name!r}")
            continue
        if name in seen:
            table.wrong("chapters", f"'chapters' lists {name} twice")
            continue
        seen.add(name)
        chapter = read_lesson(base, name, problems, known)
        if chapter is None:
            continue
        if chapter.id in [other.id for _, other in chapters]:
            line = KeyLines(base, name).line("id")
            problems.add(f"{name}/lesson.toml", line, f"another chapter already has the id {chapter.id!r}")
            continue
        chapters.append((name, chapter))
    return tuple(chapters)
