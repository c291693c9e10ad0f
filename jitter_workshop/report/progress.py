"""One calm line on stderr for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

PATIENCE_S = 1.0
"""What is done sooner says nothing."""


class LateLine:
    """Says ``what`` and how far it is, where stderr is a terminal, from PATIENCE_S on. Called with done and total."""

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._clock = clock
        self._due = clock() + PATIENCE_S
        self._length = 0

    def __call__(self, done: int, total: int) -> None:
        if self._clock() >= self._due and sys.stderr is not None and sys.stderr.isatty():
            self._write(f"  {self._what}: block {done} of {total} is done"[:79])

    def close(self) -> None:
        """Leave an empty line behind."""
        if self._length:
            self._write("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _write(self, text: str) -> None:
        # Blanks instead of an escape: it works on every terminal.
        sys.stderr.write("\r" + text.ljust(self._length))
        sys.stderr.flush()
        self._length = len(text)
