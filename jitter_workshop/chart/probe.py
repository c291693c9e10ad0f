"""Ask the terminal if it draws octants.

A terminal can tell its name and version (XTVERSION), and the position of its cursor after an octant. The position shows
how wide the octant was. The width is not enough: if the font lacks octants, a terminal may draw an empty box of one
cell. So octants are used only if two conditions hold:

- The octant was one cell wide.
- The terminal draws octants itself, with any font. ``_DRAWS_FROM`` names these terminals, each with the first version
  that draws octants.

A terminal is asked only if the environment names a terminal of ``_DRAWS_FROM``. Other terminals may not understand the
question. Nothing is asked in pipes, in CI, with TERM=dumb, or on the Linux console. Nothing is asked either if the user
chooses the characters (JITTER_WORKSHOP_MARKS).

Sources: xterm's control sequences (XTVERSION, CPR); release notes of kitty, foot, Ghostty and WezTerm.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import termios
import time
import tty
from collections.abc import Mapping

from jitter_workshop.chart import marks

_DRAWS_FROM = {"kitty": (0, 40), "foot": (1, 20), "ghostty": (1, 2), "wezterm": (20250101,)}
_NAMED_BY = ("TERM", "TERM_PROGRAM", "KITTY_WINDOW_ID", "GHOSTTY_RESOURCES_DIR", "WEZTERM_PANE")
_LIMIT_S = 0.2
# Go to the left edge, save nothing, ask for the name; write an octant, ask for the cursor, and clear the line again.
_QUESTION = b"\r\x1b[>0q\xf0\x9c\xb4\x80\x1b[6n\r\x1b[K"
_WHERE = re.compile(rb"\x1b\[(\d+);(\d+)R")
_NAME = re.compile(rb"\x1bP>\|([^\x1b\x07]{1,80})")
_VERSION = re.compile(r"([a-z]+)[ (]+([0-9][0-9.]*)")


def may_ask(environment: Mapping[str, str]) -> bool:
    """Return True if :func:`probe_octants` may ask the terminal for its name and version. The environment must name a
    program that draws octants, for example in TERM_PROGRAM. Return False in CI, with JITTER_WORKSHOP_MARKS, or with
    TERM empty, ``dumb`` or ``linux``."""
    term = environment.get("TERM", "")
    if term in ("", "dumb", "linux") or environment.get("CI") or environment.get(marks.VARIABLE):
        return False
    told = " ".join(f"{name}={environment[name]}" for name in _NAMED_BY if environment.get(name)).lower()
    return any(name in told for name in _DRAWS_FROM)


def draws_octants(answer: bytes) -> bool:
    """Return True if a terminal's answer shows that the terminal draws octants. The answer must name a known program,
    in a version that draws octants. The cursor must be in column 2, because an octant is one cell wide."""
    where, name = _WHERE.search(answer), _NAME.search(answer)
    if where is None or name is None or int(where[2]) != 2:
        return False
    found = _VERSION.match(name[1].decode("ascii", "replace").lower())
    least = _DRAWS_FROM.get(found[1]) if found else None
    if found is None or least is None:
        return False
    return tuple(int(part) for part in found[2].split(".") if part)[: len(least)] >= least


def probe_octants(
    source: int = 0, target: int = 1, environment: Mapping[str, str] = os.environ, limit_s: float = _LIMIT_S
) -> bool:
    """Ask the terminal if it draws octants. If it does, draw charts with octants from now on, and return True.

    ``source``, ``target``: the terminal's file descriptors for input and output. ``limit_s``: the longest wait for an
    answer, in seconds. Without an answer nothing changes. Keys pressed during the wait are lost.
    """
    if not may_ask(environment):
        return False
    with contextlib.suppress(OSError, termios.error, ValueError):
        if not (os.isatty(source) and os.isatty(target)):
            return False
        if draws_octants(_answer(source, target, limit_s)):
            marks.choose_dots("octants")
            return True
    return False


def _answer(source: int, target: int, limit_s: float) -> bytes:
    """Ask the terminal for its name and cursor position, and return the bytes of the answer. After ``limit_s`` seconds,
    return the bytes that have arrived."""
    before = termios.tcgetattr(source)
    answer = b""
    try:
        tty.setcbreak(source, termios.TCSAFLUSH)
        os.write(target, _QUESTION)
        end = time.monotonic() + limit_s
        while not _WHERE.search(answer) and len(answer) < 4096:
            left = end - time.monotonic()
            if left <= 0 or not select.select([source], [], [], left)[0]:
                break
            answer += os.read(source, 1024)
    finally:
        # Input that came too late must not be taken for keys.
        termios.tcsetattr(source, termios.TCSAFLUSH, before)
    return answer
