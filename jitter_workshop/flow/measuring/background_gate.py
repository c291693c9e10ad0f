"""Keep this process's background work out of a measurement: it waits until the measurement is over, or ends early what
it has begun."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

LONGEST_S = 2.0
"""Seconds that a measurement waits for work begun before it; what still goes on then is stuck, and takes no CPU."""


class BackgroundGate:
    """Separate measuring from background work; one for a process, see :data:`HERE`. Any thread may call."""

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
        """Hold back background work while the block runs; it surrounds all code that measures. May be nested."""
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
        """Begin background work when nothing is measured. ``stop`` is called from another thread to end the work early,
        and must not wait."""
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
        """Wait until ``ready``, or for ``limit_s`` without a measurement: during one, no timer of ours wakes. The code
        that makes it ready calls :meth:`nudge`."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while not ready():
                left_s = None if self._measuring else ends - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return
                self._changed.wait(left_s)

    def nudge(self) -> None:
        """Let the waiting threads check again."""
        with self._changed:
            self._changed.notify_all()


HERE = BackgroundGate()
"""The gate of this process, which has one measurement at a time."""
