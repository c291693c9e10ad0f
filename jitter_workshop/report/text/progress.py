"""One calm line on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

PATIENCE_S = 1.0
"""What is done sooner says nothing."""


class Line:
    """A line on stderr that is written over; nothing where that is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._length = 0

    @property
    def shown(self) -> bool:
        """Whether standard error is a terminal."""
        return self._shown

    def write(self, text: str) -> None:
        if self._shown:
            # Blanks instead of an escape: it works on every terminal.
            try:
                sys.stderr.write("\r" + text[:79].ljust(self._length))
                sys.stderr.flush()
            except OSError:
                self._shown = False  # the terminal has gone, and what is being done goes on, or ends in its own way
            self._length = len(text[:79])

    def close(self) -> None:
        """Leave an empty line behind."""
        if self._length:
            self.write("")
            self.write("")


class LateLine(Line):
    """Says ``what`` and how far it is from PATIENCE_S on. Called with done and total."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._what = what
        self._clock = clock
        self._due = clock() + PATIENCE_S

    def __call__(self, done: int, total: int) -> None:
        if self._clock() >= self._due:
            self.write(f"  {self._what}: block {done} of {total} is done")
