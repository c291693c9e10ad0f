"""A connection with a caller, line by line, over two descriptors. Whoever it is may be slow, silent, or shout."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import time
from collections.abc import Callable
from typing import Protocol

from jitter_workshop.agent import protocol
from jitter_workshop.errors import HostError, UsageError

IDLE_LIMIT_S = 3600.0
"""How long a connection without a lease may say nothing."""

_STEP_S = 0.5
"""How often it is looked, while an answer is not read, whether that is still to be waited for."""

LeaseS = Callable[[], float | None]
"""After how many seconds of silence the caller has gone; None where nothing is held for them."""


class Gone(Exception):
    """The caller is not there any more."""


class Attention(Protocol):
    """What else is to be looked at while a caller is silent, and also while one never is."""

    def watched(self) -> list[int]:
        """Descriptors that become readable when there is something to see."""

    def left_s(self) -> float:
        """How long until there is something to see by time alone."""

    def look(self) -> None:
        """See it."""

    def ended(self) -> bool:
        """Whether what the caller had is over, so that nothing more is to be waited for with them."""


class NonBlockingFd:
    """Reads from or writes to a descriptor, and never waits: a caller of sudo's may hold both ends of a pipe, and take
    what select(2) saw, or fill it. Whether a description waits is its holders' to set, so a pipe is opened anew; only
    a pipe that this user may not open is used as it is, by a service that holds nothing for its caller."""

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
                self._file = os.open(f"/proc/self/fd/{descriptor}", flags | os.O_NONBLOCK | os.O_CLOEXEC)
                self._opened = True
            except OSError as error:
                if error.errno == errno.ENXIO:  # a FIFO with a name, which would wait for whoever comes to read it
                    raise HostError("nobody reads the answers") from error

    def read(self, most: int) -> bytes:
        """Raises BlockingIOError where nothing is there."""
        return os.read(self._file, most) if self._socket is None else self._socket.recv(most, self._now)

    def write(self, data: memoryview) -> int:
        """Raises BlockingIOError where nothing is taken."""
        return os.write(self._file, data) if self._socket is None else self._socket.send(data, self._now)

    def close(self) -> None:
        if self._opened:
            os.close(self._file)
        if self._socket is not None:
            self._socket.close()


class Lines:
    """Reads lines and writes answers. ``stop``: to end between two steps (:meth:`interrupt`). Raises HostError where
    nobody can hear an answer."""

    def __init__(self, source: int, sink: int) -> None:
        # Waiting is on the descriptors that were handed over: one that is opened after the other end has closed never
        # tells of it (poll(2) on a FIFO).
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
        """Stop between two steps; for signal handlers."""
        self.stop = True
        with contextlib.suppress(OSError):
            os.write(self._waker, b"!")

    def nudge(self) -> None:
        """Look at what else there is to see; for signal handlers."""
        self._nudged = True
        with contextlib.suppress(OSError):
            os.write(self._waker, b"?")

    def close(self) -> None:
        os.close(self._wake)
        os.close(self._waker)
        self._reader.close()
        self._writer.close()

    def next(self, lease_s: LeaseS, attention: Attention | None) -> bytes | None:
        """The next line, None at the end of the input. Raises Gone when the lease, or patience, has run out."""
        while True:
            # Before a line is taken, not only where none is there: who never stops talking has no longer turn.
            if attention is not None and (self._nudged or attention.left_s() <= 0):
                self._nudged = False
                attention.look()
            line, newline, rest = self._buffer.partition(b"\n")
            if newline:
                self._buffer = rest
                self._heard = time.monotonic()
                return line
            if len(self._buffer) > protocol.MAX_LINE:
                self.send(protocol.failure(None, UsageError("a line that is too long")), lease_s())
                raise Gone
            if not self._more(lease_s(), attention):
                return None

    def gone(self) -> bool:
        """Whether to stop between two writes: told to, or nobody is there any more to be told what was done."""
        if not self.stop:
            look = select.poll()
            look.register(self._source, 0)
            self.stop = bool(look.poll(0))  # only POLLHUP and its like are told unasked
        return self.stop

    def send(self, reply: bytes, lease_s: float | None, attention: Attention | None = None) -> None:
        """Write an answer; a caller that does not read it is a caller that has gone, and the time of their turn goes on
        meanwhile. Raises Gone."""
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
                    # A pipe that is ready takes at least this much (PIPE_BUF, pipe(7)), where nobody fills it first.
                    taken = self._writer.write(view[:4096])
                except BlockingIOError:
                    pass
                except OSError as error:
                    raise Gone from error
            if not taken:
                if self.stop or left_s <= 0 or (attention is not None and attention.ended()):
                    raise Gone
                continue
            view = view[taken:]

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake, 4096)

    def _more(self, lease_s: float | None, attention: Attention | None) -> bool:
        """Wait until there is more to read, or something to see; False at the end of the input. Raises Gone."""
        left_s = self._heard + (IDLE_LIMIT_S if lease_s is None else lease_s) - time.monotonic()
        patience_s = min(left_s, attention.left_s()) if attention is not None else left_s
        watched = attention.watched() if attention is not None else []
        # What came while a long write kept us busy is read before the silence is judged.
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
