"""Make the folder of a new chapter in a course; make the course if there is none. The only existing file that changes
is ``course.toml``, which gets one more chapter."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
import tomllib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jitter_workshop.course.lesson import ID_PATTERN
from jitter_workshop.course.loader import BUILTIN_ID, COURSE_FILE, MAX_CHAPTERS, read_course
from jitter_workshop.errors import LessonError, UsageError
from jitter_workshop.model.text import ID, PATH, capital, clean
from jitter_workshop.session import files

_NUMBERED = re.compile(r"([0-9]{1,3})-")
_KEY = re.compile(r"^chapters[ \t]*=[ \t]*\[", re.MULTILINE)
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|#[^\n]*|\]')


@dataclass(frozen=True, slots=True)
class NewLesson:
    """Hold the result of making a chapter. ``course``: the course's folder. ``folder``: the name of the chapter's
    folder. ``listed``: True if course.toml lists the chapter. ``new_course``: True if course.toml is new."""

    course: str
    folder: str
    files: tuple[str, ...]
    listed: bool
    new_course: bool


def new_lesson(ident: str, course: Path) -> NewLesson:
    """Write a chapter ``NN-ident`` that works without changes, and add it to the end of the course.

    Raise UsageError if the id is invalid, or if the course already has a chapter with this id. Raise LessonError if a
    file cannot be written.
    """
    if not ID_PATTERN.fullmatch(ident):
        shown = clean(ident, ID)
        raise UsageError(f"'{shown}' is not an id", "begin with a letter; use only small letters, digits, hyphens")
    if course.is_symlink():
        raise UsageError(f"{clean(course, PATH)} is a link", "give the path of the folder itself with --course")
    with _explained("make the folder", course):
        course.mkdir(parents=True, exist_ok=True)
    number = _number(ident, course)
    folder = f"{number:02}-{ident}"
    words = {"ID": ident, "TITLE": _title(ident), "NUMBER": str(number)}
    content = {name: _filled(name, **words) for name in ("lesson.md", "lesson.toml")}
    with _explained("write", course / folder):
        _write_folder(course / folder, content)
    top = course / COURSE_FILE
    new_course = not os.path.lexists(top)
    with _explained("write", top):
        if new_course:
            name = course.resolve().name.lower()
            # With the built-in course's id, progress of that course would count for this one.
            course_id = name if ID_PATTERN.fullmatch(name) and name != BUILTIN_ID else "my-course"
            text = _filled(COURSE_FILE, ID=course_id, TITLE=_title(course_id), FOLDER=folder)
            _write_new(top, text.encode())
            listed = True
        else:
            listed = _listed(top, folder)
    return NewLesson(str(course), folder, tuple(content), listed, new_course)


def _filled(template: str, **words: str) -> str:
    """Return a template of ``assets/lesson`` in which each ``@NAME@`` is replaced by its value in ``words``."""
    text = resources.files("jitter_workshop.assets").joinpath("lesson", template).read_text("utf-8")
    for name, word in words.items():
        text = text.replace(f"@{name}@", word)
    return text


def _title(ident: str) -> str:
    """Return a title made from an id: ``Huge pages`` for ``huge-pages``."""
    words = ident.replace("-", " ").strip()
    return capital(words)


def _number(ident: str, course: Path) -> int:
    """Return the number of the new folder: one more than the largest number in the course. Raise UsageError if the
    course already has the chapter ``ident``, or too many chapters."""
    with _explained("read", course):
        names = sorted(path.name for path in course.iterdir())
    taken = [name for name in names if name == ident or re.fullmatch(rf"[0-9]+-{ident}", name)]
    if (course / COURSE_FILE).exists():
        taken += [folder for folder, chapter in read_course(course).chapters if chapter.id == ident]
    if taken:
        raise UsageError(f"this course has a chapter '{ident}' already, in {taken[0]}", "choose another id")
    number = 1 + max((int(m.group(1)) for name in names if (m := _NUMBERED.match(name))), default=0)
    if number > MAX_CHAPTERS:
        raise UsageError(f"a course has at most {MAX_CHAPTERS} chapters")
    return number


def _write_folder(folder: Path, content: dict[str, str]) -> None:
    """Write a folder with all its files, or nothing. Raise OSError if this fails, for example because the folder exists
    and is not empty."""
    temporary = folder.with_name(f".new-{folder.name}-{secrets.token_hex(4)}")
    temporary.mkdir()
    try:
        for name, text in content.items():
            _write_new(temporary / name, text.encode())
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _listed(top: Path, folder: str) -> bool:
    """Add the folder of a new chapter to course.toml, and return True. Return False if course.toml is no regular file,
    or if it cannot be edited safely."""
    if top.is_symlink() or not top.is_file():
        return False
    raw = top.read_bytes()
    try:
        changed = with_chapter(raw.decode(), folder)
    except UnicodeDecodeError:
        return False
    if changed is None:
        return False
    files.replace(top, changed.encode(), stat.S_IMODE(top.stat().st_mode))
    return True


def with_chapter(text: str, folder: str) -> str | None:
    """Return the ``text`` of a course.toml with ``folder`` added to the end of ``chapters``. Everything else stays the
    same, comments included. Return None if the text cannot be changed safely, or if ``folder`` is listed already."""
    try:
        before = tomllib.loads(text)
        chapters = before.get("chapters")
        begin = _KEY.search(text)
        if begin is None or not isinstance(chapters, list) or folder in chapters:
            return None
        changed = _inserted(text, begin.end(), folder)
        if changed is None or tomllib.loads(changed) != {**before, "chapters": [*chapters, folder]}:
            return None
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return changed


def _inserted(text: str, start: int, folder: str) -> str | None:
    """Return ``text`` with ``folder`` added to the end of the list that begins at ``start``. Return None if the list
    has no closing bracket."""
    last = start
    for token in _TOKEN.finditer(text, start):
        if token.group() == "]":
            return _at(text, start, last, token.start(), f'"{folder}"')
        if not token.group().startswith("#"):
            last = token.end()
    return None


def _at(text: str, start: int, last: int, close: int, name: str) -> str:
    """Return ``text`` with ``name`` added to the end of a list. If the list has one entry on each line, ``name`` also
    gets its own line. ``start``: the position after the opening bracket. ``last``: the end of the last entry, or
    ``start`` for an empty list. ``close``: the position of the closing bracket.
    """
    if last == start:
        return text[:start] + name + ("," if "\n" in text[start:close] else "") + text[start:]
    end = text.find("\n", last)
    if not last <= end < close:
        return text[:last] + f", {name}" + text[last:]
    # Each name has its own line: a comment behind the last name stays on that line.
    end -= text[end - 1] == "\r"
    line = text[text.rfind("\n", 0, last) + 1 : last]
    indent = line[: len(line) - len(line.lstrip())] or "    "
    newline = "\r\n" if text[end] == "\r" else "\n"
    comma = text[last:end].lstrip().startswith(",")
    kept = text[last:end] if comma else f",{text[last:end]}"
    return text[:last] + kept + newline + indent + name + ("," if comma else "") + text[end:]


def _write_new(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)


def _explained(what: str, path: Path) -> AbstractContextManager[None]:
    return files.name_os_errors(what, path, LessonError, "give --course a folder that you may write to")
