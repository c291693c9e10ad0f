"""Allow one run at a time on a host, by an abstract Unix socket (unix(7)).

All users share this limit. The right to measure is called the turn. The process with the turn owns the socket. The
kernel removes the socket's name when this process ends, so no file is left behind. A waiting process connects to the
socket, and waits for the end of the connection. The kernel tells the waiting process the owner's uid and pid
(SO_PEERCRED). The owner never accepts the connection, because accepting it would wake the owner during a block.

The socket's name is valid in one network namespace only. A container with its own namespace does not see who has the
turn on the host.
"""

from __future__ import annotations

import errno
import os
import pwd
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.bench.cancel import CancelToken, stop_this_process
from jitter_workshop.errors import BusyError, UsageError, WaitStopped
from jitter_workshop.model.text import ID, LABEL, clean

TURN_VARIABLE = "JITTER_WORKSHOP_TURN"
"""The environment variable that names a turn to use instead of the host's turn. With it, tests do not queue behind a
real run."""

ADVICE = "try again when that run has ended"
"""Advice that fits every caller whose turn is taken. Each caller adds its own way to queue."""

LONGEST_NAME = 107
"""The largest number of bytes in a turn's name: an address has 108, and the first one says that the name is abstract
(unix(7))."""

_NAME = "jitter-workshop.run"
_WAITERS = 128
_COMMAND_BYTES = 4_096
"""The largest number of bytes that are read of a command line."""
_RETRY_S = 0.05
_UCRED = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Holder:
    """Describe the process that has the turn to measure. ``doing``: its command line; "" if our own process may not
    read it."""

    pid: int
    uid: int
    doing: str

    def __str__(self) -> str:
        try:
            user = pwd.getpwuid(self.uid).pw_name
        except KeyError:
            user = f"uid {self.uid}"
        doing = f", {self.doing}" if self.doing else ""
        return f"{clean(user, ID)} is measuring (uid {self.uid}, pid {self.pid}{doing})"


@contextmanager
def host_turn(
    wait_s: float = 0.0, cancel: CancelToken | None = None, queued: Callable[[str], None] = lambda sentence: None
) -> Iterator[None]:
    """Hold the host's turn during the context. First wait until the turn is free, for at most ``wait_s`` seconds. The
    wait needs no polling.

    ``queued``: a function that gets the reason of a wait as a sentence. It gets "" when the wait is over.

    Raise BusyError if the turn does not begin in time. Raise WaitStopped if ``cancel`` asks for a stop. Raise
    UsageError if the name of the turn is too long.
    """
    name = "\0" + _turn_name()
    deadline = time.monotonic() + wait_s
    said: list[str] = []

    def waiting(holder: Holder) -> None:
        said.append(f"Waiting: {holder}.")
        queued(said[-1])

    while (turn := _take(name)) is None:
        _wait_for_end(name, deadline, cancel, waiting)
    with turn:
        if said:
            queued("")
        yield


def _turn_name() -> str:
    """Return the name of the turn. Raise UsageError if it is too long."""
    name = os.environ.get(TURN_VARIABLE, _NAME)
    if (length := len(os.fsencode(name))) > LONGEST_NAME:
        raise UsageError(
            f"{TURN_VARIABLE} has {length} bytes, but a socket's name can have at most {LONGEST_NAME}",
            f"set a shorter name in {TURN_VARIABLE}",
        )
    return name


def run_in_progress(sockets: str = "/proc/net/unix") -> bool:
    """Return True if any user's run is in progress on this host, without waking the measuring process.

    ``sockets``: the path of the kernel's list of Unix sockets (proc_net(5)).
    """
    name = f"@{os.environ.get(TURN_VARIABLE, _NAME)}"
    try:
        with Path(sockets).open(encoding="ascii", errors="replace") as lines:
            return any(line.split()[-1:] == [name] for line in lines)
    except OSError:
        return False


def _take(name: str) -> socket.socket | None:
    turn = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        turn.bind(name)
        turn.listen(_WAITERS)
    except OSError as error:
        turn.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return turn


def _wait_for_end(name: str, deadline: float, cancel: CancelToken | None, waiting: Callable[[Holder], None]) -> None:
    """Wait until the process with the turn has ended. If the socket of this process accepts no connection now, wait
    only a short time.

    ``waiting``: a function that is called with a description of the process with the turn. Raise BusyError at the time
    ``deadline``. Raise WaitStopped if ``cancel`` asks for a stop.
    """
    left_s = deadline - time.monotonic()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(name)
        except (BlockingIOError, ConnectionRefusedError) as error:
            # The queue is full. Or it is between the holder's bind and its listen, or it has just ended.
            if left_s <= 0:
                does = "is measuring" if isinstance(error, BlockingIOError) else "begins to measure"
                raise BusyError(f"another process {does} on this host", ADVICE) from None
            _sleep(min(_RETRY_S, left_s), cancel)
            return
        pid, uid, _ = _UCRED.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        holder = Holder(pid, uid, _command_line(pid))
        poller = select.poll()
        poller.register(asking, select.POLLIN)
        if cancel is not None:
            poller.register(cancel.fileno(), select.POLLIN)
        if left_s > 0:
            waiting(holder)
        if left_s <= 0 or not poller.poll(left_s * 1000):
            raise BusyError(f"{holder} on this host", ADVICE)
        _heed(cancel, f": {holder} on this host")


def _sleep(seconds: float, cancel: CancelToken | None) -> None:
    if cancel is None:
        time.sleep(seconds)
    else:
        cancel.wait(seconds)
        _heed(cancel, " for the host's turn")


def _heed(cancel: CancelToken | None, what: str) -> None:
    """Stop this process until SIGCONT if ``cancel`` asks for a suspension. Raise WaitStopped if ``cancel`` asks for a
    stop.

    ``what``: the last words of the message of WaitStopped.
    """
    if cancel is not None and cancel.take_suspend():
        stop_this_process()
    if cancel is not None and cancel.reason is not None:
        raise WaitStopped(f"stopped while waiting{what}")


def _command_line(pid: int) -> str:
    """Return the command line of a process, without the folders in its paths. Return "" if this process may not see
    it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()[:_COMMAND_BYTES].decode(errors="replace").split("\0")
    except OSError:
        return ""
    return clean(" ".join(Path(word).name if word.startswith("/") else word for word in words), LABEL)
