"""Names that others chose (tasks, hosts, labels, files), made fit for a terminal."""

from __future__ import annotations

import unicodedata

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
