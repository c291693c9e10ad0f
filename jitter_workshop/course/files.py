"""Read the files of a course, which may come from an unknown author: regular files below one folder, small, and plain
text."""

from __future__ import annotations

import os
import stat
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.course.problems import Problems

MAX_BYTES = 64 * 1024
"""No lesson file is longer; pages are short by design."""

_REFUSED_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
_LOOK_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and a sign that draw nothing: Hangul fillers, Braille without dots."""
_MOST_MARKS = 4
"""The most accents on one letter; scripts that stack them need no more."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """Hold the text of one file and the name under which mistakes in it are reported."""

    file: str
    text: str


def read_source(base: Path, relative: str, problems: Problems) -> SourceText | None:
    """Return the text of ``base/relative``; None, with the mistake noted, when it is not a small, plain text file in
    ``base``.

    It opens without blocking and checks the opened file, so that a FIFO or device in a foreign course is refused and
    not waited for.
    """
    path = base / relative
    try:
        if not path.resolve(strict=True).is_relative_to(base.resolve(strict=True)):
            problems.add(relative, 1, "this file lies outside the course's folder")
            return None
        raw = _read_regular(path)
    except FileNotFoundError:
        problems.add(relative, 1, "this file is missing")
        return None
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        problems.add(relative, 1, f"cannot be read: {reason}")
        return None
    if raw is None:
        problems.add(relative, 1, "not a regular file")
        return None
    if len(raw) > MAX_BYTES:
        problems.add(relative, 1, f"larger than {MAX_BYTES // 1024} KiB")
        return None
    return _decode(relative, raw, problems)


def _read_regular(path: Path) -> bytes | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        chunks = []
        left = MAX_BYTES + 1
        while left > 0 and (chunk := os.read(descriptor, left)):
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    finally:
        os.close(descriptor)


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
    """Return the position of the first character that a terminal could obey or a reader could not see; None without
    one.

    These are control characters (newline and tab excepted), and the invisible format characters that make a text look
    different from its content (bidirectional overrides, zero-width joiners).
    """
    # A text has few different characters, so each is looked up once: this runs at each start.
    refused = {
        char
        for char in set(text)
        if char in _LOOK_EMPTY or (char not in "\n\t" and unicodedata.category(char) in _REFUSED_CATEGORIES)
    }
    return next((position for position, char in enumerate(text) if char in refused), None) if refused else None


def heaped_marks(text: str) -> bool:
    """Return True if accents stand on nothing, or so many on one letter that they would be drawn over other lines."""
    if text.isascii():  # nearly every text; all texts of a course are checked at each start
        return False
    row = _MOST_MARKS
    for char in text:
        row = row + 1 if unicodedata.category(char) in ("Mn", "Me", "Mc") else _MOST_MARKS if char.isspace() else 0
        if row > _MOST_MARKS:
            return True
    return False


def columns(text: str) -> int:
    """Return the number of terminal columns of a text: wide characters take two, accents none."""
    if text.isascii():
        return len(text)
    width = 0
    for char in text:
        if unicodedata.category(char) not in ("Mn", "Me"):
            width += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return width
