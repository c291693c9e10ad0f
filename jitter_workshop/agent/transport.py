"""What carries an agent's lines: the pipes of a process that was started, or the socket of a class host's service."""

from __future__ import annotations

import contextlib
import grp
import os
import select
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from jitter_workshop.errors import HostError
from jitter_workshop.model.classfile import GROUP
from jitter_workshop.model.text import clean
from jitter_workshop.paths import RUN_DIR

SOCKET = f"{RUN_DIR}/agent.sock"
CONNECT_LIMIT_S = 10.0


class Link(Protocol):
    """``source``: the descriptor that is read from. ``sink``: the one that is written to."""

    source: int
    sink: int

    @property
    def ended(self) -> bool:
        """Has the other side ended, for whatever reason?"""

    def code(self, wait_s: float) -> int | None:
        """With what the other side ended, as ``subprocess`` says it; None while it has not, or where nobody knows."""

    def wait(self) -> int:
        """Wait for the end of the other side: with what it ended."""

    def last_words(self) -> str:
        """The last line that it said beside the answers, "" for none."""

    def close(self, wait_s: float) -> None:
        """Let go, and wait for the end that long."""


class ProcessLink:
    """A process that was started for this connection. Raises OSError where that fails."""

    def __init__(self, command: Sequence[str], own_session: bool, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            tuple(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            start_new_session=own_session,
            env=environment,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.sink = self._process.stdin.fileno()
        self.source = self._process.stdout.fileno()

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def code(self, wait_s: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        return self._process.poll()

    def wait(self) -> int:
        return self._process.wait()

    def last_words(self) -> str:
        """What standard error holds, without waiting for more; the last line of it."""
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        said = b""
        while len(said) < 65_536 and select.select([source], [], [], 0)[0]:
            more = os.read(source, 4096)
            if not more:
                break
            said += more
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return clean(lines[-1], 600) if lines else ""

    def close(self, wait_s: float) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        if self._process.stderr is not None:
            self._process.stderr.close()


class SocketLink:
    """A connection with a service of a class host, ``called`` so. Raises HostError where nobody answers there."""

    def __init__(self, path: str = SOCKET, called: str = "agent") -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The kernel's own wait, not Python's: only who blocks is given a place when a full queue has one again
        # (connect(2), EAGAIN).
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_LIMIT_S), 0))
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            why = "too many ask at once" if isinstance(error, BlockingIOError) else error.strerror or "nobody answers"
            advice = "you have to be in the group jitterlab, and log in again after joining it"
            advice = advice if isinstance(error, PermissionError) else "tell the instructor: 'class check' says more"
            raise HostError(f"the class's {called} cannot be reached: {why}", advice) from error
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
        self.source = self.sink = self._socket.fileno()

    @property
    def ended(self) -> bool:
        look = select.poll()
        look.register(self._socket, 0)
        return bool(look.poll(0))

    def code(self, wait_s: float) -> int | None:
        return None

    def wait(self) -> int:
        look = select.poll()
        look.register(self._socket, 0)
        look.poll()
        return 0

    def last_words(self) -> str:
        return ""

    def close(self, wait_s: float) -> None:
        """With its end the agent gives back what is leased; it is over when the agent has closed its own end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            look = select.poll()
            look.register(self._socket, 0)
            look.poll(wait_s * 1000)
        self._socket.close()


def need_group() -> None:
    """Raises HostError for who is in no class: sudo would refuse them, too, and write to whoever looks after this
    machine."""
    if os.geteuid() == 0:
        return
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        number = -1
    if number not in (os.getegid(), *os.getgroups()):
        raise HostError(f"you are not in the group {GROUP}", "ask the instructor, and log in again after joining it")


def class_socket(path: str = SOCKET) -> str | None:
    """Where the service of this class host listens, None where this is no class host."""
    return path if Path(path).is_socket() else None
