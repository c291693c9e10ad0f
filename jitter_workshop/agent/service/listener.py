"""The agent as a service: one socket, a process of its own for each connection.

This process reads nothing of what callers say. It asks the kernel who calls (SO_PEERCRED), refuses whom has too many
connections already, and looks after its children.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from types import FrameType

from jitter_workshop.agent import protocol
from jitter_workshop.errors import HostError
from jitter_workshop.model.text import clean

EACH = 4
"""Connections of one user at a time: a workshop, a class verb, and some that are about to end."""
ALL = 512
FIRST_FD = 3
"""What systemd hands over begins here (sd_listen_fds(3))."""
_UCRED = struct.Struct("3i")
_BACKLOG = 4096
"""Those who wait to be accepted; the kernel takes at most net.core.somaxconn (listen(2))."""


def inherited(environment: Mapping[str, str]) -> int | None:
    """The one socket that was handed over, None where none was. Raises HostError for several."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        return None
    count = environment.get("LISTEN_FDS", "")
    if count != "1":
        raise HostError(f"one socket is expected, not {clean(count, 10) or 'none'}")
    return FIRST_FD


class Listener:
    """Accepts until :meth:`stop`. ``serve`` is called in a child with its connection on descriptors 0 and 1."""

    def __init__(self, listening: socket.socket, serve: Callable[[], None], each: int = EACH, most: int = ALL) -> None:
        self._listening = listening
        self._serve = serve
        self._each = each
        self._most = most
        self._children: dict[int, int] = {}
        self._stopped = False
        self._me = os.getpid()
        self._wake, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self) -> None:
        """Accept, and reap; at the end every child is asked to stop, gives its lease back, and is waited for."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGCHLD, self._on_signal)
        self._listening.setblocking(False)
        self._listening.listen(_BACKLOG)
        while not self._stopped:
            ready, _, _ = select.select([self._listening.fileno(), self._wake], [], [])
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 4096)
            self._reap(os.WNOHANG)
            if self._listening.fileno() in ready and not self._stopped:
                self._accept()
        for pid in self._children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        while self._children:
            self._reap(0)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._stopped = self._stopped or number == signal.SIGTERM
        with contextlib.suppress(OSError):
            os.write(self._waker, b"!")

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError:
            return  # gone again, or no descriptor is left just now
        with connection:
            try:
                raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
                uid = _UCRED.unpack(raw)[1]
            except OSError:
                return
            mine = sum(one == uid for one in self._children.values())
            if mine >= self._each or len(self._children) >= self._most:
                self._refuse(connection, mine >= self._each)
                return
            with contextlib.suppress(OSError):  # no process is to be had: the caller sees the end of the connection
                self._children[self._fork(connection)] = uid

    def _refuse(self, connection: socket.socket, theirs: bool) -> None:
        why = f"you have {self._each} connections already" if theirs else f"{self._most} are connected already"
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.send(protocol.failure(None, HostError(why, "close one, or try again later")))

    def _fork(self, connection: socket.socket) -> int:
        sys.stderr.flush()
        # A child that took a SIGTERM as its parent takes it would be waited for, and never end.
        kept = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        try:
            pid = os.fork()
        finally:
            if os.getpid() == self._me:
                signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        if pid:
            return pid
        code = 1
        try:
            for number in (signal.SIGCHLD, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, kept)
            self._listening.close()
            os.close(self._wake)
            os.close(self._waker)
            connection.setblocking(True)
            os.dup2(connection.fileno(), 0)
            os.dup2(connection.fileno(), 1)
            connection.close()
            self._serve()
            code = 0
        finally:
            os._exit(code)

    def _reap(self, flags: int) -> None:
        while self._children:
            try:
                pid, _ = os.waitpid(-1, flags)
            except ChildProcessError:
                self._children.clear()
                return
            except InterruptedError:
                continue
            if pid == 0:
                return
            self._children.pop(pid, None)
