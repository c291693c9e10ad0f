"""Write Markdown so that no text can become markup: for GitHub's renderer, for others, and for reading as plain text.

Names that others chose stand in code spans, where nothing is markup and nothing becomes a link. In sentences the
characters that could be markup are escaped. Words that GitHub would link (addresses, @mentions, #numbers) or draw
(:emoji:, $formulas$) become code spans, because an escape does not stop that. A paragraph is one line: GitHub's
comments break lines where the text does.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from jitter_workshop.model.text import clean, minute

UNKNOWN = "–"
LONG = 2_000

_LINKED = re.compile(r"@|://|#\d|(?<!\w)www\.|\bgh-\d|:[\w+-]+:|\$|&#?\w+;|\b(?:mailto|xmpp):", re.IGNORECASE)
_MARKUP = re.compile(r"[\\`*\[\]<>~]")
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_BEGINS_BLOCK = re.compile(r"(?:[-+#=]|\d{1,9}(?=[.)]))")
_WIDEST_COLUMN = 44
"""Columns of a table are aligned up to this width, for readers of the plain text."""


class Md(str):
    """Hold text that is Markdown already."""

    __slots__ = ()


def said(text: str, limit: int = LONG) -> Md:
    """Return a sentence, or a part of one, as Markdown. At the beginning of a line use :func:`line`."""
    if isinstance(text, Md):
        return text
    parts, code = list[str](), list[str]()
    for word in [*clean(text, limit).split(" "), ""]:
        if _LINKED.search(word):
            code.append(word)
            continue
        if code:
            parts.append(span(" ".join(code), limit))
            code = []
        parts.append(_UNDERSCORE.sub(r"\\_", _MARKUP.sub(r"\\\g<0>", word)))
    return Md(" ".join(parts).strip())


def line(text: str, limit: int = LONG) -> Md:
    """Return a sentence for the beginning of a line, where a dash or a number could begin a list."""
    told = said(text, limit)
    found = _BEGINS_BLOCK.match(told)
    if found is None or isinstance(text, Md):
        return told
    at = found.end() if told[0].isdigit() else 0
    return Md(f"{told[:at]}\\{told[at:]}")


def span(text: str | None, limit: int = 200) -> Md:
    """Return a name, a path or a value unchanged, in a code span; ``–`` for None."""
    if text is None:
        return Md(UNKNOWN)
    plain = clean(text, limit) or "(empty)"
    runs = {len(run) for run in re.findall("`+", plain)}
    fence = "`" * next(n for n in range(1, len(plain) + 2) if n not in runs)
    space = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return Md(f"{fence}{space}{plain}{space}{fence}")


def name(text: str, limit: int = 80) -> Md:
    """Return a name that others chose, in a code span."""
    return span(text, limit) if clean(text, limit) else Md("(no visible name)")


def when(stamp: str | None) -> Md:
    """Return a moment in UTC for people; ``–`` if it is not known."""
    text = minute(stamp or "")
    return said(text, 20) if text else Md(UNKNOWN)


def join(parts: Iterable[str], between: str = "") -> Md:
    """Join parts, without empty ones. Plain text is escaped, and keeps a blank at its ends."""
    return Md(between.join(_part(part) for part in parts if part))


def _part(text: str) -> str:
    if isinstance(text, Md):
        return text
    told = said(text)
    return f"{' ' if text[0] == ' ' else ''}{told}{' ' if text[-1] == ' ' and told else ''}"


def heading(level: int, text: str, limit: int = 160) -> Md:
    told = said(text, limit)
    # A ``#`` at the end of a heading would be taken as a part of its marks.
    return Md(f"{'#' * level} {told[:-1]}\\#" if told.endswith("#") else f"{'#' * level} {told}")


def bullets(items: Iterable[str]) -> Md:
    """Return a list; "" for no items."""
    return Md("\n".join(f"- {line(item)}" for item in items if item))


def fenced(lines: Iterable[str], language: str = "") -> Md:
    """Return lines unchanged, in a fixed-width font. Each is one line already, or is made one."""
    shown = [clean_line(one) for one in lines]
    longest = max((len(run) for one in shown for run in re.findall("`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    return Md("\n".join([f"{fence}{language}", *shown, fence]))


def clean_line(text: str, limit: int = 4_000) -> str:
    """Return one line with its blanks unchanged, without invisible characters and characters that control a
    terminal."""
    if "  " not in text and not text.startswith(" "):
        return clean(text, limit)
    return "".join(" " if unicodedata.category(c)[0] == "C" else c for c in text[:limit]).rstrip()


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> Md:
    """Return a table with aligned columns. ``numbers``: the columns that are aligned right."""
    right = frozenset(numbers)
    cells = [[_cell(said(one)) for one in line] for line in (heads, *rows)]
    widths = [min(max(3, *map(_wide, column)), _WIDEST_COLUMN) for column in zip(*cells, strict=True)]

    def written(line: Sequence[str]) -> str:
        padded = [
            " " * (width - _wide(one)) + one if number in right else one + " " * (width - _wide(one))
            for number, (one, width) in enumerate(zip(line, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * (width - 1) + (":" if number in right else "-") for number, width in enumerate(widths)]
    return Md("\n".join([written(cells[0]), f"| {' | '.join(rule)} |", *map(written, cells[1:])]))


def picture(alt: str, file: str) -> Md:
    """Return a picture that is a file beside the report."""
    return Md(f"![{said(alt, 160)}]({quote(file)})")


def _cell(text: str) -> str:
    # A bar ends a cell even in a code span, unless it is escaped. Outside of tables it is no markup.
    return text.replace("|", "\\|")


def _wide(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
