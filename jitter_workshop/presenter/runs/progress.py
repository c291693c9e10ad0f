"""Show one calm line on stderr for work that takes longer than a second.

This module is not a part of ``lines``, because 'measure --help' must not load rich.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

PATIENCE_S = 1.0
"""Seconds that work must take before a line is shown."""
_WIDTH = 79
"""The largest length of a line. A terminal of 80 columns does not break it."""


class Line:
    """Write a line on stderr; each new line replaces the line before. Write nothing if stderr is not a terminal."""

    def __init__(self) -> None:
        self.shown = sys.stderr is not None and sys.stderr.isatty()
        self._length = 0

    def write(self, text: str) -> None:
        if self.shown:
            # Blanks clear the line without an escape, which works on every terminal.
            try:
                sys.stderr.write("\r" + text[:_WIDTH].ljust(self._length))
                sys.stderr.flush()
            except OSError:
                self.shown = False  # the terminal is gone; the work goes on, or ends in its own way
            self._length = len(text[:_WIDTH])

    def close(self) -> None:
        """Clear the line."""
        if self._length:
            self.write("")
            self.write("")


class LateLine(Line):
    """Show the progress of a piece of work once PATIENCE_S seconds have passed. ``what``: the name of the work. Call
    the object with (done, total) whenever a part is done."""

    def __init__(self, what: str = "", clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._what = what
        self._clock = clock
        self._due = clock() + PATIENCE_S

    def __call__(self, done: int, total: int) -> None:
        if self._clock() >= self._due:
            self.write(f"  {self._what}: block {done} of {total} is done")

    def told(self, what: str, done: int, total: int) -> None:
        """Show the progress of another piece of work, called ``what``."""
        self._what = what
        self(done, total)
