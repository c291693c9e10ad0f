"""Read the files of a course. The author may be unknown, so only small, regular text files in the course's folder are
read. All mistakes are collected with file and line, so that a check can list them.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from jitter_workshop.errors import LessonError
from jitter_workshop.model.text import ID
from jitter_workshop.session.files import open_regular

MAX_BYTES = 64 * 1024
"""The largest size of a lesson file in bytes; pages are short on purpose."""
MAX_PROBLEMS = 200

_REFUSED_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_LOOK_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""The characters that count as letters or signs but draw nothing: Hangul fillers, Braille without dots."""
_MOST_MARKS = 4
"""The largest number of accents on one letter; no script needs more."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Hold one mistake. ``file`` is relative to the course's folder, ``line`` counts from 1."""

    file: str
    line: int
    message: str

    def sentence(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


@dataclass(slots=True)
class Problems:
    """Hold the mistakes in a course's files that were found so far, at most ``MAX_PROBLEMS``."""

    found: list[Problem] = field(default_factory=list)

    def add(self, file: str, line: int, message: str) -> None:
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Problem(file, max(1, line), message))

    def error(self) -> LessonError:
        """Return an error with the first mistake as message, and the number of further mistakes as advice."""
        first = self.found[0]
        more = len(self.found) - 1
        advice = f"{more} more: `jitter-workshop lessons check` lists them all" if more else ""
        return LessonError(first.sentence(), advice)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` if a known word is similar to ``word``, else a list of the known words."""
    names = list(known)
    close = difflib.get_close_matches(word[:ID], names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known: {', '.join(names)}" if names else ""


@dataclass(frozen=True, slots=True)
class SourceText:
    """Hold the text of a file, and the file's name for messages about mistakes."""

    file: str
    text: str


def read_source(base: Path, relative: str, problems: Problems) -> SourceText | None:
    """Return the text of ``base/relative``. If there is no small file of plain text at this path, add a mistake to
    ``problems`` and return None.

    Pipes and devices are refused without waiting for them.
    """
    path = base / relative
    try:
        if not path.resolve(strict=True).is_relative_to(base.resolve(strict=True)):
            problems.add(relative, 1, "this file lies outside the course's folder")
            return None
        with open_regular(path) as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        problems.add(relative, 1, "this file is missing")
        return None
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problems.add(relative, 1, f"cannot be read: {reason}")
        return None
    if len(raw) > MAX_BYTES:
        problems.add(relative, 1, f"larger than {MAX_BYTES // 1024} KiB")
        return None
    return _decode(relative, raw, problems)


def _decode(relative: str, raw: bytes, problems: Problems) -> SourceText | None:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.add(relative, raw.count(b"\n", 0, error.start) + 1, "not UTF-8 text")
        return None
    text = text.replace("\r\n", "\n")
    position = first_control(text)
    if position is not None:
        line = text.count("\n", 0, position) + 1
        problems.add(relative, line, f"a control or invisible character, U+{ord(text[position]):04X}")
        return None
    return SourceText(relative, text)


def first_control(text: str) -> int | None:
    """Return the position of the first control or invisible character, or None if there is none. Such a character can
    control a terminal or make a text look different from its content. Newline and tab are allowed."""
    # A text has few different characters, so each is looked up once: this runs at each start.
    refused = {
        char
        for char in set(text)
        if char in _LOOK_EMPTY or (char not in "\n\t" and unicodedata.category(char) in _REFUSED_CATEGORIES)
    }
    return next((position for position, char in enumerate(text) if char in refused), None) if refused else None


def heaped_marks(text: str) -> bool:
    """Return True if an accent follows no letter, or a letter has too many accents. Many accents on one letter are
    drawn over other lines.
    """
    if text.isascii():  # nearly every text; all texts of a course are checked at each start
        return False
    row = _MOST_MARKS
    for char in text:
        row = row + 1 if unicodedata.category(char) in ("Mn", "Me", "Mc") else _MOST_MARKS if char.isspace() else 0
        if row > _MOST_MARKS:
            return True
    return False


def columns(text: str) -> int:
    """Return the width of a text in terminal columns: a wide character has two, an accent none."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if unicodedata.category(char) not in ("Mn", "Me"):
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width
