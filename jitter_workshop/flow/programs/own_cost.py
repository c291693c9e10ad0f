"""Measure how much time this host needs to record one event of the kernel's trace. A process makes the same system
calls twice: first without the trace, then with the trace. The difference of the two durations is the cost.
"""

from __future__ import annotations

import contextlib
import os
import struct
import time

from jitter_workshop.errors import HostError

BATCHES, BATCH, LONGEST_NS = 100, 50, 20_000_000
"""The size of a measurement: BATCHES batches of BATCH calls, some ms in all; after LONGEST_NS no further batch begins.
Only the fastest batch counts, because on a busy host interrupts or a slower CPU lengthen many batches."""
EVENTS = 2
"""The number of trace events of one system call: one for its begin and one for its end."""
_ANSWER = struct.Struct("<d")
_FILE = "/dev/zero"


class Probe:
    """Hold a child process that makes system calls when it is told to. The trace must follow the process ``pid`` to
    record these calls. Raise HostError if the process cannot be started."""

    def __init__(self) -> None:
        asks, self._ask = os.pipe()
        self._told, tells = os.pipe()
        self._plain_ns: float | None = None
        try:
            self.pid = os.fork()
        except OSError as error:
            for file in (asks, self._ask, self._told, tells):
                os.close(file)
            raise HostError(f"no process can be started: {error.strerror}") from error
        if self.pid == 0:
            os.close(self._ask)
            _answer(asks, tells)
        os.close(asks)
        os.close(tells)

    def without(self) -> None:
        """Measure the duration of the system calls without a trace. Call this method before :meth:`event_ns`, while no
        trace is recorded."""
        self._plain_ns = self._measure()

    def event_ns(self) -> int | None:
        """Return the cost of one recorded event in ns. Call this method while the trace is recorded. Return None if the
        trace did not make the system calls slower, or if a measurement failed.
        """
        traced_ns = self._measure()
        if traced_ns is None or self._plain_ns is None or traced_ns <= self._plain_ns:
            return None
        return round((traced_ns - self._plain_ns) / EVENTS)

    def _measure(self) -> float | None:
        try:
            os.write(self._ask, b"?")
            told = os.read(self._told, _ANSWER.size)
        except OSError:
            return None
        return float(_ANSWER.unpack(told)[0]) if len(told) == _ANSWER.size else None

    def close(self) -> None:
        """End the child process that makes the system calls."""
        os.close(self._ask)
        os.close(self._told)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _answer(asks: int, tells: int) -> None:
    """Wait for bytes on the descriptor ``asks``. For each byte, measure the time of one system call. Write this time in
    ns to the descriptor ``tells``. Exit the process when ``asks`` is closed. This function never returns."""
    try:
        file = os.open(_FILE, os.O_RDONLY | os.O_CLOEXEC)
        while os.read(asks, 1):
            os.write(tells, _ANSWER.pack(_fastest(file) / BATCH))
    finally:
        os._exit(0)


def _fastest(file: int) -> int:
    ends, found = time.monotonic_ns() + LONGEST_NS, [_batch(file)]
    while len(found) < BATCHES and time.monotonic_ns() < ends:
        found.append(_batch(file))
    return min(found)


def _batch(file: int) -> int:
    began = time.perf_counter_ns()
    for _ in range(BATCH):
        os.read(file, 1)
    return time.perf_counter_ns() - began
