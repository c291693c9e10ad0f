"""Find where a page's code blocks begin and end, by one rule for checking a lesson and for showing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

Kind = Literal["text", "fence", "code"]


def split_code(lines: Iterable[str]) -> Iterator[tuple[str, Kind]]:
    """Yield each line with its kind. A code block begins with a line of at least three ` or ~, followed by at most one
    plain word. It ends with a line of at least as many of them. Neither line is indented. So every reader sees the same
    lines as code."""
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
    """Return the three or more ` or ~ that a line begins with, or ""."""
    mark = line[: len(line) - len(line.lstrip(line[:1]))] if line[:1] in ("`", "~") else ""
    return mark if len(mark) >= 3 else ""
