"""Where a page's code blocks begin and end: one rule for what checks a lesson and for what shows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

Kind = Literal["text", "fence", "code"]


def split_code(lines: Iterable[str]) -> Iterator[tuple[str, Kind]]:
    """Each line with what it is. A code block begins with a line of at least three ` or ~ and at most one plain word
    behind them, and ends with a line of at least as many of them; neither line is indented. So nothing can be a code
    block to one reader and text to another."""
    fence = ""
    for line in lines:
        mark = fence_mark(line)
        rest = line[len(mark) :].strip()
        if fence:
            closed = mark.startswith(fence) and not rest
            fence = "" if closed else fence
            yield line, "fence" if closed else "code"
        elif mark and all(c.isalnum() or c in "+-_.#" for c in rest):
            fence = mark
            yield line, "fence"
        else:
            yield line, "text"


def fence_mark(line: str) -> str:
    """The three or more ` or ~ that a line begins with, or ""."""
    mark = line[: len(line) - len(line.lstrip(line[:1]))] if line[:1] in ("`", "~") else ""
    return mark if len(mark) >= 3 else ""
