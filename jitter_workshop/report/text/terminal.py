"""Fit text to its terminal: a width, and colours only on a terminal (without any library)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TextIO
from unicodedata import category, east_asian_width

from jitter_workshop.model.record import dataclass

NARROWEST, WIDEST = 60, 160
PLAIN_WIDTH = 100
"""The width of a pipe or a file, which have none."""

_CODES = {"good": "32", "attention": "33", "alarm": "31", "known": "36", "dim": "2", "strong": "1"}


@dataclass(frozen=True, slots=True)
class Style:
    """Hold how to write. ``width``: columns that may be used. ``colour``: escapes may be written."""

    width: int = PLAIN_WIDTH
    colour: bool = False

    def paint(self, text: str, how: str) -> str:
        """Return ``text`` in the colour of a meaning (good, attention, alarm, known, dim, strong), or unchanged."""
        return f"\x1b[{_CODES[how]}m{text}\x1b[0m" if self.colour and text else text


def output_style() -> Style:
    """Return the style of standard output. NO_COLOR (any text in it) and a dumb TERM mean no colour. COLUMNS wins over
    the terminal's own width, which a pipe does not have."""
    return _style(sys.stdout)


def error_style() -> Style:
    """Return the style of standard error, like :func:`output_style`."""
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
    """Return ``text`` in lines of at most ``width`` columns, broken at blanks. A longer word (a path, a list) is cut
    into pieces, so that it does not stick out."""
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
    """Return where to cut a long word: behind the last mark that is usual in paths and lists, if that is not too
    early."""
    for mark in "/,;|:=":
        place = word.rfind(mark, width // 2, width)
        if place > 0:
            return place + 1
    return width


def columns_of(text: str) -> int:
    """Return the number of columns of a cleaned text: wide characters take two, combining marks none."""
    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def in_columns(text: str, width: int) -> str:
    """Return a cleaned text in exactly this number of columns: cut with ``…``, or filled up with blanks."""
    if columns_of(text) > width:
        while text and columns_of(text) > width - 1:
            text = text[:-1]
        text = f"{text.rstrip()}…" if width else ""
    return text + " " * (width - columns_of(text))
