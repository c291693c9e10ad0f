"""Carry an agent's lines: over the pipes of a started process, or over the socket of a class host's service."""

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
    """Describe a link. ``source``: the descriptor to read from. ``sink``: the descriptor to write to."""

    source: int
    sink: int

    @property
    def ended(self) -> bool:
        """Return True if the other side has ended, for whatever reason."""

    def code(self, wait_s: float) -> int | None:
        """Return the other side's exit code as ``subprocess`` gives it; None if it runs on after ``wait_s`` seconds, or
        if the code is unknown."""

    def wait(self) -> int:
        """Wait for the end of the other side, and return its exit code."""

    def last_words(self) -> str:
        """Return the last line that it wrote beside the answers, "" for none."""

    def close(self, wait_s: float) -> None:
        """Close the link, and wait up to ``wait_s`` for the end of the other side."""


class ProcessLink:
    """Start a process for this connection. Raises OSError if that fails."""

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
        """Return the last line on standard error, without waiting for more."""
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
    """Connect to a service of a class host; ``called`` names it in messages. Raises HostError if none answers."""

    def __init__(self, path: str = SOCKET, called: str = "agent") -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The kernel's own timeout, not Python's: only a blocking connect gets a place when a full queue has one again
        # (connect(2), EAGAIN).
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_LIMIT_S), 0))
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            why = "too many connections" if isinstance(error, BlockingIOError) else error.strerror or "no answer"
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
        """Close our end, and wait until the agent has restored what is leased and closes its own end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            look = select.poll()
            look.register(self._socket, 0)
            look.poll(wait_s * 1000)
        self._socket.close()


def need_group() -> None:
    """Raise HostError if the user is in no class. Sudo would refuse them, too, and report them to the administrator."""
    if os.geteuid() == 0:
        return
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        number = -1
    if number not in (os.getegid(), *os.getgroups()):
        raise HostError(f"you are not in the group {GROUP}", "ask the instructor, and log in again after joining it")


def class_socket(path: str = SOCKET) -> str | None:
    """Return the socket of this class host's service, None if this is not a class host."""
    return path if Path(path).is_socket() else None
