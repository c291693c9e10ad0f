"""Loads a course: a folder with ``course.toml`` and one folder a chapter. Lessons are data; nothing in them is run."""

from __future__ import annotations

import re
from pathlib import Path

from jitter_workshop.course.files import read_source
from jitter_workshop.course.lesson import check_version, read_id, read_lesson
from jitter_workshop.course.locate import builtin_course
from jitter_workshop.course.problems import Problem, Problems
from jitter_workshop.course.table import Table, parse_table
from jitter_workshop.errors import LessonError
from jitter_workshop.model.course import Chapter, Course

MAX_CHAPTERS = 100
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def load_course(folder: Path | None = None) -> Course:
    """The course in ``folder``, or the built-in one. Raises LessonError ``file:line: …`` at the first mistake."""
    course, problems = _read(folder)
    if course is None:
        raise problems.error()
    return course


def check_course(folder: Path | None = None) -> tuple[Problem, ...]:
    """Every mistake in a course, in the order in which they were found; () when it is well formed.

    Raises LessonError only when there is no such folder.
    """
    return tuple(_read(folder)[1].found)


def _read(folder: Path | None) -> tuple[Course | None, Problems]:
    base = builtin_course() if folder is None else folder
    if not base.is_dir():
        raise LessonError(f"there is no folder {str(base)!r}", "--course takes a folder with a course.toml")
    problems = Problems()
    source = read_source(base, "course.toml", problems)
    table = parse_table(source, problems) if source else None
    if table is None:
        return None, problems
    check_version(table)
    ident = read_id(table)
    title = table.text("title", limit=60)
    chapters = _chapters(base, table, problems)
    table.finish()
    if problems.found:
        return None, problems
    return Course(ident, title, chapters, source="" if folder is None else str(folder)), problems


def _chapters(base: Path, table: Table, problems: Problems) -> tuple[Chapter, ...]:
    folders = table.texts("chapters", limit=64, most=MAX_CHAPTERS)
    if not folders:
        table.wrong("chapters" if "chapters" in table.data else None, "chapters must list at least one folder")
    chapters: list[Chapter] = []
    seen: set[str] = set()
    for name in folders:
        if not _FOLDER.fullmatch(name):
            table.wrong("chapters", f"a chapter's folder is a plain name inside the course, not {name!r}")
            continue
        if name in seen:
            table.wrong("chapters", f"chapters names {name} twice")
            continue
        seen.add(name)
        chapter = read_lesson(base, name, problems)
        if chapter is None:
            continue
        if chapter.id in [c.id for c in chapters]:
            problems.add(f"{name}/lesson.toml", 1, f"the id {chapter.id!r} is already another chapter's")
            continue
        chapters.append(chapter)
    return tuple(chapters)
