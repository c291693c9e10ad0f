"""Text that fits its terminal: a width, and colours only where a person looks at it (no library is loaded for it)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TextIO
from unicodedata import category, east_asian_width

from jitter_workshop.model.record import dataclass

NARROWEST, WIDEST = 60, 160
PLAIN_WIDTH = 100
"""Of a pipe or a file, which have no width."""

_CODES = {"good": "32", "attention": "33", "alarm": "31", "known": "36", "dim": "2", "strong": "1"}


@dataclass(frozen=True, slots=True)
class Style:
    """How to write. ``width``: columns that may be used. ``colour``: whether escapes may be written."""

    width: int = PLAIN_WIDTH
    colour: bool = False

    def paint(self, text: str, how: str) -> str:
        """``text`` in the colour of a meaning (good, attention, alarm, known, dim, strong), or as it is."""
        return f"\x1b[{_CODES[how]}m{text}\x1b[0m" if self.colour and text else text


def output_style() -> Style:
    """What standard output is. NO_COLOR (any text in it) and a dumb TERM mean no colour; COLUMNS wins over the
    terminal's own width, which a pipe does not have."""
    return _style(sys.stdout)


def error_style() -> Style:
    """The same of standard error."""
    return _style(sys.stderr)


def _style(stream: TextIO | None) -> Style:
    try:
        terminal = stream is not None and stream.isatty()
    except ValueError:
        terminal = False
    given = os.environ.get("COLUMNS", "")
    width = int(given) if given.isascii() and given.isdigit() and len(given) < 5 else 0
    if not width and terminal and stream is not None:
        try:
            width = os.get_terminal_size(stream.fileno()).columns
        except OSError:
            width = 80
    dumb = os.environ.get("TERM", "") in ("", "dumb")
    colour = terminal and not dumb and not os.environ.get("NO_COLOR")
    return Style(max(NARROWEST, min(width or PLAIN_WIDTH, WIDEST)), colour)


def wrap(text: str, width: int) -> list[str]:
    """``text`` in lines of at most ``width`` columns, broken at blanks; a longer word (a path, a list) is cut into
    pieces rather than left to stick out."""
    return list(_lines(text.split(), max(width, 8)))


def _lines(words: list[str], width: int) -> Iterator[str]:
    line = ""
    for whole in words:
        word = whole
        if line and len(line) + 1 + len(word) <= width:
            line += f" {word}"
            continue
        if line:
            yield line
        while len(word) > width:
            cut = _break(word, width)
            yield word[:cut]
            word = word[cut:]
        line = word
    if line:
        yield line


def _break(word: str, width: int) -> int:
    """Where a long word is cut: behind the last mark that paths and lists have in them, if that is not too early."""
    for mark in "/,;|:=":
        place = word.rfind(mark, width // 2, width)
        if place > 0:
            return place + 1
    return width


def columns_of(text: str) -> int:
    """How many columns a cleaned text takes: wide characters two, marks that stand on another none."""
    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def in_columns(text: str, width: int) -> str:
    """A cleaned text in exactly so many columns: cut with ``…``, or filled up with blanks."""
    if columns_of(text) > width:
        while text and columns_of(text) > width - 1:
            text = text[:-1]
        text = f"{text.rstrip()}…" if width else ""
    return text + " " * (width - columns_of(text))
