"""Serve the agent on one socket, with a child process for each connection.

The listener reads no request. It asks the kernel for the caller's user id (SO_PEERCRED), and refuses users with too
many connections. If sudo starts the service, there is no listener. The service then counts its connection itself
(``take_place``).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from types import FrameType

from jitter_workshop.agent import protocol
from jitter_workshop.agent.statedir import open_or_read
from jitter_workshop.errors import HostError, reason
from jitter_workshop.model.text import CELL, clean

EACH = 4
"""The largest number of connections of one user at a time: a workshop, a class verb, and some that are about to end."""
ALL = 512
PLACES = "places"
FIRST_FD = 3
"""The first descriptor that systemd passes on (sd_listen_fds(3))."""
_UCRED = struct.Struct("3i")
_BACKLOG = 4096
"""Connections that may wait to be accepted; the kernel takes at most net.core.somaxconn (listen(2))."""


def inherited(environment: Mapping[str, str]) -> int:
    """Return the descriptor of the one socket that systemd passed on. Raise HostError if there is no socket or more
    than one."""
    if environment.get("LISTEN_PID") != str(os.getpid()):
        raise HostError("systemd passed no socket to this service", "start the service through its systemd units")
    count = environment.get("LISTEN_FDS", "")
    if count != "1":
        raise HostError(f"this service needs one socket from systemd, but got {clean(count, CELL) or 'none'}")
    return FIRST_FD


def listen_on(descriptor: int, serve: Callable[[], None]) -> None:
    """Accept connections on a socket until SIGTERM. ``serve`` is called for each connection, in a child process with
    the connection on descriptors 0 and 1."""
    with socket.socket(fileno=descriptor) as listening:
        Listener(listening, serve).run()


def take_place(folder: int, uid: int, each: int = EACH) -> None:
    """Count one more connection for the user ``uid``. The connection counts until this process ends.

    ``folder``: a descriptor of a folder that only root may write to. This function closes the descriptor. ``each``: the
    largest number of connections for one user. Each connection locks one byte of a file (fcntl(2), "Advisory record
    locking"). Raise HostError if the user has too many connections, or if the file cannot be used.
    """
    try:
        file = open_or_read(PLACES, folder, os.O_RDWR | os.O_CREAT)
        for number in range(each):
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, uid * each + number)
            except BlockingIOError:
                continue
            return  # stays open: closing the descriptor would release the lock
        os.close(file)
    except OSError as error:
        raise HostError(f"your connections cannot be counted: {reason(error)}") from error
    finally:
        os.close(folder)
    raise HostError(f"you already have {each} connections, which is the limit", "close one, or try again later")


class Listener:
    """Accept connections until SIGTERM. ``serve`` is called in a child process, with the child's connection on
    descriptors 0 and 1."""

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
        """Accept connections and reap children.

        At the end, ask the children to stop. Wait until all of them have restored their leased changes and have ended.
        """
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
            return  # the caller has left, or no descriptor is free now
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
            with contextlib.suppress(OSError):  # fork failed: the caller sees the end of the connection
                self._children[self._fork(connection)] = uid

    def _refuse(self, connection: socket.socket, theirs: bool) -> None:
        why = (
            f"you already have {self._each} connections, which is the limit"
            if theirs
            else f"{self._most} connections are open already, which is the limit"
        )
        connection.setblocking(False)
        with contextlib.suppress(OSError):
            connection.send(protocol.failure(None, HostError(why, "close one, or try again later")))

    def _fork(self, connection: socket.socket) -> int:
        sys.stderr.flush()
        # A child that still had its parent's SIGTERM handler would not end, and its parent would wait for ever.
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
