"""Keep this process's background work out of its measurements. New work waits until the measurement is over, and
running work ends early."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

LONGEST_S = 2.0
"""Seconds that a measurement waits for the end of background work that has begun. Work that takes longer is stuck and
uses no CPU.
"""


class BackgroundGate:
    """Separate measurements from background work. Each process has one gate, :data:`HERE`. Any thread may call its
    methods."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._measuring = 0
        self._beside: list[Callable[[], None]] = []

    @property
    def measured(self) -> bool:
        """Return True if something is measured now."""
        return self._measuring > 0

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Stop background work while the context is open. All code that measures must be inside such a context.
        Contexts may be nested."""
        with self._changed:
            self._measuring += 1
            for stop in self._beside:
                stop()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._beside, LONGEST_S)
        try:
            yield
        finally:
            with self._changed:
                self._measuring -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def beside(self, stop: Callable[[], None]) -> Iterator[None]:
        """Wait until nothing is measured, then let the caller do background work in the context. If a measurement
        begins before the context ends, ``stop`` is called on the measuring thread. ``stop`` makes the work end early,
        and must itself return at once."""
        with self._changed:
            self._changed.wait_for(lambda: not self._measuring)
            self._beside.append(stop)
        try:
            yield
        finally:
            with self._changed:
                self._beside.remove(stop)
                self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], limit_s: float) -> None:
        """Wait until ``ready`` returns True, but not longer than ``limit_s`` seconds. If the time is up during a
        measurement, this thread waits until the measurement is over. A thread that wakes during a measurement would
        disturb the measurement. Code that changes the result of ``ready`` must call :meth:`nudge`."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while not ready():
                left_s = None if self._measuring else ends - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return
                self._changed.wait(left_s)

    def nudge(self) -> None:
        """Wake the waiting threads, so that each checks again whether it may go on."""
        with self._changed:
            self._changed.notify_all()


HERE = BackgroundGate()
"""The gate of this process, which has one measurement at a time."""
