"""Read lines and write answers over two descriptors, even if the caller is slow, silent or never stops sending."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from jitter_workshop.agent import protocol
from jitter_workshop.agent.protocol import Gone as Gone
from jitter_workshop.errors import HostError, UsageError

if TYPE_CHECKING:
    from jitter_workshop.agent.service.class_connection import Attending

IDLE_LIMIT_S = 3600.0
"""Idle timeout in seconds of a connection without a lease."""

_STEP_S = 0.5
"""While the caller does not read an answer, the agent checks after so many seconds whether the connection has ended."""

LeaseS = Callable[[], float | None]
"""The function that returns a connection's idle timeout in seconds; None if nothing is held for the caller."""


class NonBlockingFd:
    """Read from a descriptor or write to it, without ever blocking.

    The caller and this process share the open file of a pipe. The caller can therefore clear the flag O_NONBLOCK. So
    this process opens the pipe again, and uses the new descriptor. If this process may not open the pipe, it uses the
    shared descriptor. Raise HostError if no process reads a named pipe.
    """

    def __init__(self, descriptor: int, flags: int) -> None:
        self._file = descriptor
        self._opened = False
        self._socket = None
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISSOCK(mode):
            import socket

            self._socket = socket.socket(fileno=os.dup(descriptor))
            self._now = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
        elif stat.S_ISFIFO(mode):
            try:
                # select(2) does not help: a caller that used sudo may hold both ends, and can fill the pipe after
                # select(2) has returned.
                self._file = os.open(f"/proc/self/fd/{descriptor}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
                self._opened = True
            except OSError as error:
                if error.errno == errno.ENXIO:  # a named FIFO without a reader
                    raise HostError("no process reads the agent's answers from this FIFO") from error

    def read(self, most: int) -> bytes:
        """Return the bytes that have arrived. Raise BlockingIOError if there are none."""
        return os.read(self._file, most) if self._socket is None else self._socket.recv(most, self._now)

    def write(self, data: memoryview) -> int:
        """Write ``data``, and return the number of bytes that were written. Raise BlockingIOError if no byte could be
        written."""
        return os.write(self._file, data) if self._socket is None else self._socket.send(data, self._now)

    def close(self) -> None:
        if self._opened:
            os.close(self._file)
        if self._socket is not None:
            self._socket.close()


class LineConnection:
    """Read lines from a caller, and write answers. ``stop``: True if the connection must end (:meth:`interrupt`).

    Raise HostError if no process reads the answers.
    """

    def __init__(self, source: int, sink: int) -> None:
        # Wait on the original descriptors: one that is opened after the other end has closed never reports that end
        # (poll(2) on a FIFO).
        self._reader = NonBlockingFd(source, os.O_RDONLY)
        self._writer = NonBlockingFd(sink, os.O_WRONLY)
        self.stop = False
        self._nudged = False
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._source = source
        self._sink = sink
        self._buffer = b""
        self._heard = time.monotonic()

    def interrupt(self) -> None:
        """Ask the loop to stop before its next step; for signal handlers."""
        self.stop = True
        with contextlib.suppress(OSError):
            os.write(self._waker, b"!")

    def nudge(self) -> None:
        """Make :meth:`next` check the state of the caller's turn; for signal handlers."""
        self._nudged = True
        with contextlib.suppress(OSError):
            os.write(self._waker, b"?")

    def close(self) -> None:
        os.close(self._wake)
        os.close(self._waker)
        self._reader.close()
        self._writer.close()

    def next(self, lease_s: LeaseS, attention: Attending | None) -> bytes | None:
        """Return the next line from the caller; None at the end of the input.

        Raise Gone if the idle timeout has passed, the caller has left, or a line is too long.
        """
        while True:
            # Check before each line, also if one is there: a caller that never stops sending gets no extra time.
            if attention is not None and (self._nudged or attention.turns.left_s() <= 0):
                self._nudged = False
                attention.look()
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                self._heard = time.monotonic()
                return line
            if len(self._buffer) > protocol.MAX_LINE:
                self.send(protocol.failure(None, UsageError("the line is too long")), lease_s())
                raise Gone
            if not self._more(lease_s(), attention):
                return None

    def gone(self) -> bool:
        """Return True if the agent must write no more settings.

        This is so if the caller has left, or if :meth:`interrupt` was called.
        """
        if not self.stop:
            look = select.poll()
            look.register(self._source, 0)
            self.stop = bool(look.poll(0))  # with no event asked for, poll reports only POLLHUP and errors
        return self.stop

    def send(self, reply: bytes, lease_s: float | None, attention: Attending | None = None) -> None:
        """Write an answer to the caller. Raise Gone if the caller leaves, or if the caller's turn ends meanwhile.

        Raise Gone also if the answer is not read within ``lease_s`` seconds; None means IDLE_LIMIT_S.
        """
        view = memoryview(reply)
        ends = time.monotonic() + (lease_s or IDLE_LIMIT_S)
        while view:
            left_s = ends - time.monotonic()
            woken, ready, _ = select.select([self._wake], [self._sink], [], min(max(left_s, 0.0), _STEP_S))
            if woken:
                self._drain()
            taken = 0
            if ready:
                try:
                    # A ready pipe takes at least this much (PIPE_BUF, pipe(7)), unless another process fills it first.
                    taken = self._writer.write(view[: select.PIPE_BUF])
                except BlockingIOError:
                    pass
                except OSError as error:
                    raise Gone from error
            if not taken:
                if self.stop or left_s <= 0 or (attention is not None and attention.turns.ended()):
                    raise Gone
                continue
            view = view[taken:]

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def _more(self, lease_s: float | None, attention: Attending | None) -> bool:
        """Wait for input, a signal, or a change of the turn. Return False at the end of the input, else True.

        Raise Gone if the caller has left, or if the idle timeout has passed.
        """
        left_s = self._heard + (IDLE_LIMIT_S if lease_s is None else lease_s) - time.monotonic()
        patience_s = min(left_s, attention.turns.left_s()) if attention is not None else left_s
        watched = attention.turns.watched() if attention is not None else []
        # Input that came during a long write is read before the caller counts as silent.
        ready, _, _ = select.select([self._source, self._wake, *watched], [], [], max(patience_s, 0.0))
        if self.stop or (not ready and left_s <= patience_s):
            raise Gone
        if self._wake in ready:
            self._drain()
        if set(ready) & set(watched):
            self._nudged = True
        if self._source not in ready:
            return True
        try:
            more = self._reader.read(65_536)
        except BlockingIOError:
            return True
        except OSError as error:
            raise Gone from error
        self._buffer += more
        if more and lease_s is None:
            self._heard = time.monotonic()
        return bool(more)
