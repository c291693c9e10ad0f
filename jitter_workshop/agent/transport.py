"""Talk to a service from the caller's side: over the pipes of a started process, or over a class host's socket."""

from __future__ import annotations

import contextlib
import grp
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jitter_workshop.errors import HeldError, HostError, UsageError, WaitStopped
from jitter_workshop.host.classfile import ASK_TO_JOIN, GROUP
from jitter_workshop.model.text import MESSAGE, PARAGRAPH, clean
from jitter_workshop.paths import RUN_DIR

SOCKET = f"{RUN_DIR}/agent.sock"
CONNECT_LIMIT_S = 10.0
_KINDS: dict[str, type[HostError | UsageError]] = {kind.__name__: kind for kind in (UsageError, HeldError)}
"""The kinds of error that an answer may name; any other error is a HostError."""


class Broken(Exception):
    """Report that the other side has ended, is silent, or sends an invalid line."""


class Late(Broken):
    """Report that the other side has not answered in time."""


class Link:
    """Send requests to a service, and read one answer to each request (``protocol``).

    Only one thread at a time may send requests. Other threads may call :meth:`write` meanwhile. ``source``: the
    descriptor to read from. ``sink``: the descriptor to write to.
    """

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self._id = 0
        self._buffer = b""
        self._talking = threading.Lock()
        self._closed = False

    @property
    def ended(self) -> bool:
        """Return True if the other side has ended, for whatever reason."""
        return bool(_poll(self.source, 0))

    def code(self, wait_s: float) -> int | None:
        """Return the exit code of the other side, as ``subprocess`` gives it.

        Return None if the other side still runs after ``wait_s`` seconds, or if its code is unknown.
        """
        return None

    def wait(self) -> int:
        """Wait for the end of the other side, and return its exit code."""
        _poll(self.source, None)
        return 0

    def last_words(self) -> str:
        """Return the last line that the other side wrote on standard error, "" for none."""
        return ""

    def ask(self, verb: str, limit_s: float, stop: int | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request, and return the answer.

        Raise HostError or UsageError if the answer is an error. Raise Broken if the other side has ended or sends an
        invalid line. Raise Late if the other side does not answer within ``limit_s`` seconds. Raise WaitStopped when
        the descriptor ``stop`` becomes readable.
        """
        self._id += 1
        ends = time.monotonic() + limit_s
        try:
            self.write(json.dumps({"id": self._id, "verb": verb, **fields}).encode() + b"\n")
            while True:
                reply = json.loads(self._line(ends, stop))
                if reply.get("id") in (self._id, None):
                    break
        except TimeoutError as error:
            raise Late from error
        except (OSError, EOFError, ValueError, AttributeError) as error:
            raise Broken from error
        if "error" in reply:
            said = reply["error"]
            kind = _KINDS.get(str(said.get("kind")), HostError)
            raise kind(clean(said.get("message"), MESSAGE), clean(said.get("advice"), PARAGRAPH))
        answer = reply.get("ok")
        return answer if isinstance(answer, dict) else {}

    def write(self, data: bytes) -> None:
        """Write all bytes of ``data``. Raise OSError on failure, or if the link was closed."""
        with self._talking:
            if self._closed:
                raise BrokenPipeError("this connection has ended")
            view = memoryview(data)
            while view:
                view = view[os.write(self.sink, view) :]

    def close(self, wait_s: float) -> None:
        """Close the link, and wait up to ``wait_s`` seconds until the other side ends.

        After this call, :meth:`write` raises OSError in all threads.
        """
        with self._talking:
            # A late heartbeat could otherwise go into another file that has got the same descriptor number.
            self._closed = True
        self._close(wait_s)

    def _line(self, ends: float, stop: int | None) -> bytes:
        """Return the next line. Raise EOFError at the end of the input. Raise TimeoutError (an OSError) at the time
        ``ends``.

        Raise WaitStopped if the descriptor ``stop`` becomes readable.
        """
        also = [stop] if stop is not None else []
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.source, *also], [], [], max(ends - time.monotonic(), 0.0))
            if self.source not in ready:
                raise (WaitStopped("stopped while waiting for an answer") if ready else TimeoutError("no answer"))
            more = os.read(self.source, 65_536)
            if not more:
                raise EOFError
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _close(self, wait_s: float) -> None:
        """Close the descriptors, and wait up to ``wait_s`` for the end of the other side."""
        raise NotImplementedError


class ProcessLink(Link):
    """Start a process, and link it by pipes. Raise OSError if the process cannot be started."""

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
        super().__init__(self._process.stdout.fileno(), self._process.stdin.fileno())

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
        """Return the last line that the process wrote on standard error, without waiting for more."""
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        said = b""
        while len(said) < 65_536 and select.select([source], [], [], 0)[0]:
            more = os.read(source, 4096)
            if not more:
                break
            said += more
        lines = said.decode("utf-8", "replace").strip().splitlines()
        return clean(lines[-1], PARAGRAPH) if lines else ""

    def _close(self, wait_s: float) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(wait_s)
        if self._process.stderr is not None:
            self._process.stderr.close()


class SocketLink(Link):
    """Connect to a service of a class host by its socket. ``called``: the service's name in messages. Raise HostError
    if no service answers."""

    def __init__(self, path: str = SOCKET, called: str = "agent") -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # The kernel's own timeout, not Python's: only a blocking connect waits until a full queue has a free place
        # (connect(2), EAGAIN).
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(CONNECT_LIMIT_S), 0))
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            why = "too many connections" if isinstance(error, BlockingIOError) else error.strerror or "no answer"
            advice = "ask the instructor to add you to the group jitterlab, then log in again"
            advice = advice if isinstance(error, PermissionError) else "ask the instructor to run 'class check'"
            raise HostError(f"the class's {called} cannot be reached: {why}", advice) from error
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 0, 0))
        super().__init__(self._socket.fileno(), self._socket.fileno())

    def _close(self, wait_s: float) -> None:
        """Close our end, and wait until the agent has restored the leased changes and has closed its own end."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
            _poll(self.source, wait_s)
        self._socket.close()


def _poll(descriptor: int, wait_s: float | None) -> object:
    """Return a true value if the other side hangs up within ``wait_s`` seconds. None means no time limit."""
    look = select.poll()
    look.register(descriptor, 0)  # with no event asked for, poll reports only POLLHUP and errors
    return look.poll(None if wait_s is None else wait_s * 1000)


def service_command(main: Path, python: str = "") -> tuple[str, ...]:
    """Return the command line that starts a service's ``__main__.py``, in the form that a rule in sudoers needs.

    ``python``: the interpreter; "" means the interpreter of this process, outside its virtual environment.
    """
    return (python or own_interpreter(), "-I", "-S", "-B", str(main))


def own_interpreter() -> str:
    """Return the path of the interpreter that runs this process. In a virtual environment, return the path of the
    interpreter outside it."""
    return os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)


def need_group() -> None:
    """Raise HostError if the user is not in the class's group. Sudo would refuse such a user, and would report the
    attempt to the administrator."""
    if os.geteuid() == 0:
        return
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        number = -1
    if number not in (os.getegid(), *os.getgroups()):
        raise HostError(f"you are not in the group {GROUP}", ASK_TO_JOIN)


def class_socket(path: str = SOCKET) -> str | None:
    """Return the path of this class host's socket for the service; None if this is not a class host."""
    return path if Path(path).is_socket() else None
