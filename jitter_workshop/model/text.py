"""Names that others chose (tasks, hosts, labels, files), made fit for a terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that draw nothing or steer the terminal: controls, format marks (also the ones that reverse the
direction of writing), surrogates, private and unassigned code points, line and paragraph separators."""


def clean(text: object, limit: int = 80) -> str:
    """``text`` on one line without control characters, escapes or direction marks, at most ``limit`` characters.

    What is removed becomes one blank; what is too long ends with ``…``.
    """
    raw = str(text)[: limit * 8 + 64]
    visible = "".join(" " if unicodedata.category(c) in _HIDDEN else c for c in raw)
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: max(limit - 1, 0)].rstrip() + "…"


def called(name: object, limit: int = 80) -> str:
    """``clean``, for a name that stands alone: of one that would not be seen (blanks, marks) it is said."""
    return clean(name, limit) or clean("(no visible name)", limit)


def minute(stamp: str) -> str:
    """``2026-01-01 09:30`` of a time as it is kept (ISO 8601, in UTC); "" of none."""
    text = clean(stamp, 40)
    return f"{text[:10]} {text[11:16]}".strip()


def many(count: int, what: str) -> str:
    """``1 write``, ``22 writes``, ``no writes``."""
    return f"{count or 'no'} {what}{'' if count == 1 else 's'}"


def fell_away(ended: int) -> str:
    """``6 writes fell away: the tasks had ended.``, "" for none."""
    tasks = "task" if ended == 1 else "tasks"
    return f"{many(ended, 'write')} fell away: the {tasks} had ended." if ended else ""


def tally(tunables: Iterable[str]) -> str:
    """``2 tunables, 22 writes`` of the ids of the tunables, one for each write: who counts either says which."""
    ids = tuple(tunables)
    return f"{many(len(set(ids)), 'tunable')}, {many(len(ids), 'write')}"
