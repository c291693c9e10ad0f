"""While something is measured this process does nothing else: what it does beside measuring waits until that is over,
and ends early what it has begun."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

LONGEST_S = 2.0
"""So long a measurement waits for what was begun before it; what then still goes on is stuck, and takes no CPU."""


class BackgroundGate:
    """One for a process, see :data:`HERE`. Any thread may call."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._measuring = 0
        self._beside: list[Callable[[], None]] = []

    @property
    def measured(self) -> bool:
        """Whether something is measured now."""
        return self._measuring > 0

    @contextlib.contextmanager
    def measuring(self) -> Iterator[None]:
        """Around whatever has blocks; may be nested."""
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
        """Around work beside measuring: it begins when nothing is measured. ``stop`` is called from another thread to
        end it early, and must not wait."""
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
        """Until ``ready``, or so long without a measurement: while one goes on no timer of ours wakes. Who makes it
        ready calls :meth:`nudge`."""
        ends = time.monotonic() + limit_s
        with self._changed:
            while not ready():
                left_s = None if self._measuring else ends - time.monotonic()
                if left_s is not None and left_s <= 0:
                    return
                self._changed.wait(left_s)

    def nudge(self) -> None:
        """Let who waits look again."""
        with self._changed:
            self._changed.notify_all()


HERE = BackgroundGate()
"""This process's: it has one measurement at a time, whoever asks for it."""
