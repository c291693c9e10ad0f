"""Run a command once under a keeper process (``keeper.py``). The keeper measures the command's time. It ends the
command, and all processes that the command has started."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator, Sequence
from typing import Any, Self

from jitter_workshop.bench import launch
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.flow.programs.launch import NOT_STARTED
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import NAME, REASON, clean

KEEPER = "jitter_workshop.flow.programs.keeper"
KEPT_OUTPUT = 4_096
"""Number of bytes that are kept from the end of the output, to show why a command failed."""
MOST_PROCESSES = 4_000
"""A command that starts more processes than this is ended."""
_NAME = "the process that keeps the command"
_PATIENCE_S = 10.0
"""Seconds within which a keeper ends all processes that its command has started."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Hold the result of a command that has ended.

    - ``code``: its exit code, -N after signal N.
    - ``why``: the reason why the keeper ended the command: ``timeout``, ``processes`` (it started too many) or
      ``asked``; "" if it ended by itself.
    - ``wall_ns``: the time from just before its first instruction to its end.
    - ``user_ns``, ``system_ns``: the CPU time of the command and of its children that have ended.
    - ``left``: the number of processes that still ran when the command had ended. The keeper has ended these processes.
    - ``stuck``: the ids of processes that could not be ended.
    - ``output``: the end of its standard output and standard error, together.
    """

    code: int
    why: str
    wall_ns: int
    user_ns: int
    system_ns: int
    left: int
    stuck: tuple[int, ...]
    output: str


class KeptCommand:
    """Hold a command that waits to begin. It has no terminal.

    - ``capture``: the number of bytes that are kept from the end of its output.
    - ``shown``: if True, the command reads this program's standard input. The command's output then goes to this
      program's standard error, and is not kept. If False, the command's input is empty, and its output is kept and not
      shown.

    Use the object in a ``with`` block: after the block, the command and all processes below it have ended. The
    constructor raises HostError if the keeper fails, MeasureError if the keeper does not answer. The keeper is the
    process that starts the command.
    """

    def __init__(
        self, words: Sequence[str], timeout_s: float, capture: int = KEPT_OUTPUT, *, shown: bool = False
    ) -> None:
        self._words, self._timeout_s = tuple(words), timeout_s
        self._ended: Ended | None = None
        with _own_streams(shown) as streams:
            self._child = launch.Child(launch.command(KEEPER), _NAME, HostError, dict(os.environ), streams)
        try:
            asked = {"words": self._words, "timeout_s": timeout_s, "capture": capture, "most": MOST_PROCESSES}
            self._child.send(json.dumps({**asked, "streams": streams}).encode() + b"\n")
            self.pid = int(self._said()["pid"])
        except BaseException:
            self._child.kill(_PATIENCE_S)
            raise

    def release(self) -> None:
        """Let the command begin. Raise HostError if it cannot be started."""
        self._child.send(b"go\n")
        number = int(self._said()["failed"])
        if number:
            raise HostError(f"{NOT_STARTED}: {os.strerror(number)} ({clean(self._words[0], NAME)})")

    def wait(self, seconds: float, cancel: CancelToken | None = None) -> int | None:
        """Wait until the command has ended, for at most ``seconds``. Return its exit code, -N after signal N; None if
        it still runs. Raise Cancelled if ``cancel`` ends the wait."""
        until = time.monotonic() + seconds
        while self._ended is None:
            event = self._child.wait(cancel, max(until - time.monotonic(), 0.0))
            if event.kind == "cancel" and cancel is not None:
                raise Cancelled(cancel.reason or "cancelled")
            if event.kind == "timeout":
                return None
            if event.kind != "suspend":  # the measured time of a stopped command would be wrong: it goes on
                told = self._read(event)
                self._ended = Ended(**{**told, "stuck": tuple(told["stuck"])})
        return self._ended.code

    def result(self, cancel: CancelToken | None = None) -> Ended:
        """Wait for the end of the command, and return its result. Raise MeasureError if the command failed or had to be
        ended, Cancelled if ``cancel`` ended the wait."""
        while self.wait(3600.0, cancel) is None:
            pass
        assert self._ended is not None
        if self.trouble:
            raise MeasureError(self.trouble, self._advice(self._ended))
        return self._ended

    @property
    def ended(self) -> Ended | None:
        """Return the result of the command. Return None if no call of :meth:`wait` has seen the command's end."""
        return self._ended

    @property
    def trouble(self) -> str:
        """Return the reason why this run's result cannot be used. Return "" if the command ended well, or still
        runs."""
        return self._trouble(self._ended) if self._ended is not None else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill(_PATIENCE_S)

    def _trouble(self, ended: Ended) -> str:
        """Return the reason why a run of the command does not count, or ""."""
        said = ""
        if ended.why == "timeout":
            said = f"the command did not end within {self._timeout_s:g} s and was ended"
        elif ended.why == "processes":
            said = f"the command started more than {MOST_PROCESSES:,} processes and was ended"
        elif ended.why:
            said = "the command was stopped before it had finished"
        elif ended.code:
            said = f"the command {_ending(ended.code)}{_last_line(ended.output)}"
        if ended.stuck:
            pids = ", ".join(map(str, ended.stuck))
            stuck = f"processes that the command started could not be ended: {pids}"
            return f"{said}; {stuck}" if said else stuck
        return said

    @staticmethod
    def _advice(ended: Ended) -> str:
        if ended.why == "timeout":
            return "give it more time with --timeout"
        return "both commands of a round have to end with exit code 0" if ended.code and not ended.why else ""

    def _said(self) -> dict[str, Any]:
        return self._read(self._child.wait(None, _PATIENCE_S))

    def _read(self, event: launch.ChildEvent) -> dict[str, Any]:
        if event.kind == "timeout":
            raise MeasureError(f"{_NAME} does not answer")
        if event.kind == "end":
            # The command is killed together with its keeper; the rest of its group is ended here.
            with contextlib.suppress(ProcessLookupError, PermissionError, AttributeError):
                os.killpg(self.pid, signal.SIGKILL)
            raise self._child.ended()
        found: dict[str, Any] = json.loads(event.line)
        return found


@contextlib.contextmanager
def _own_streams(shown: bool) -> Iterator[tuple[int, ...]]:
    """Yield copies of this program's descriptors for standard input and standard error. If ``shown`` is False, yield
    (). The copies are closed at the end of the context."""
    if not shown:
        yield ()
        return
    with contextlib.ExitStack() as open_:
        nothing = os.open(os.devnull, os.O_RDWR)
        open_.callback(os.close, nothing)
        copies = []
        for number in (0, 2):
            try:
                copies.append(fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3))
            except OSError:  # the caller of this program closed it
                copies.append(fcntl.fcntl(nothing, fcntl.F_DUPFD_CLOEXEC, 3))
            open_.callback(os.close, copies[-1])
        yield tuple(copies)


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _last_line(output: str) -> str:
    lines = [line for line in output[-KEPT_OUTPUT:].splitlines() if line.strip()]
    return f" ({clean(lines[-1], REASON)})" if lines else ""
