"""Run a command once: start it, measure its time, and end it. The keeper also ends all processes that the command has
started.

The keeper is a separate process with one thread. If a descendant of the command loses its parent, it becomes a child of
the keeper (PR_SET_CHILD_SUBREAPER, prctl(2)). So the keeper also finds processes that left the command's process group.
It does not find a process that another service started for the command.

The keeper reads its job from standard input: a line of JSON with the command and its limits. The line ``go`` then
starts the command. The end of standard input ends the command. The keeper writes lines of JSON to standard output, with
these keys:

- ``pid``: the id of the command's process, which waits for the line ``go``.
- ``failed``: 0 if the command has begun, else the errno of its start.
- ``code`` and the other fields of ``kept.Ended``: the command has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

SETTLED_S = 0.1
"""Seconds that the rest of a pipeline gets to end by itself."""
GRACE_S = 2.0
"""Seconds that the processes get to end after SIGTERM, before SIGKILL."""
KILLED_S = 3.0
"""Seconds until a killed process counts as one that cannot be ended."""
LOOK_S = 0.5
"""Seconds between two looks at the number of tasks."""

_CHUNKS = 64
_MOST_LEFT = 20
"""The most process ids in the answer about processes that cannot be ended."""
_SET_PDEATHSIG, _SET_SUBREAPER = 1, 36
_STANDARD = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
"""Signals that Python or the keeper handles; a command expects their default action."""


class Keeper:
    """Run one command, and end it with all its processes.

    - ``timeout_s``: the longest time for the command in seconds.
    - ``capture``: the number of bytes that are kept from the end of its output.
    - ``most``: the greatest number of processes; a command that starts more is ended.
    - ``streams``: the descriptors for the command's input and output. Without descriptors, the command's input is
      empty, and the keeper keeps the end of the command's output.
    """

    def __init__(
        self, words: Sequence[str], timeout_s: float, capture: int, most: int, streams: Sequence[int] = ()
    ) -> None:
        self._words, self._timeout_s, self._capture, self._most = tuple(words), timeout_s, capture, most
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl
        if self._prctl(_SET_SUBREAPER, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._woken, waking = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        self._stopping = False
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._output = bytearray()
        self._read, self._write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read, False)
        self._streams = tuple(streams)
        for file in self._streams:
            os.set_inheritable(file, False)
        self._pid = 0
        self._status: int | None = None
        self._ended_ns = 0
        self._user_s = self._system_s = 0.0

    def keep(self) -> None:
        """Start the process of the command, and report its pid. Let the command begin after ``go`` on standard input,
        and report its end."""
        told, go = os.pipe2(os.O_CLOEXEC)
        failed, failing = os.pipe2(os.O_CLOEXEC)
        self._pid = os.fork()
        if self._pid == 0:
            self._become(told, failing)
        for file in (told, failing, self._write, *self._streams):
            os.close(file)
        send_line(pid=self._pid)
        if not self._told_to_go():
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            return
        began_ns = time.monotonic_ns()
        os.write(go, b"!")
        number = os.read(failed, 16)
        send_line(failed=int(number or 0))
        if number:
            os.waitpid(self._pid, 0)
            return
        why = self._until_it_ends(began_ns)
        left, stuck = self._end_all()
        # A command that was ended before its time has no times of its own.
        code = os.waitstatus_to_exitcode(self._status) if self._status is not None else -int(signal.SIGKILL)
        self._drain()
        send_line(
            code=code,
            why=why,
            wall_ns=max(self._ended_ns - began_ns, 0),
            user_ns=round(self._user_s * 1e9),
            system_ns=round(self._system_s * 1e9),
            left=left if not why else 0,
            stuck=stuck,
            output=self._output.decode(errors="replace"),
        )

    # -- the command's own process -------------------------------------------------------------------------------------

    def _become(self, told: int, failing: int) -> NoReturn:
        """Wait for a byte on the descriptor ``told``, then turn this forked process into the command. Exit if ``told``
        is closed without a byte. The command has no terminal, and is killed if the keeper is killed. If the command
        cannot be started, write the errno to the descriptor ``failing``."""
        try:
            signal.set_wakeup_fd(-1)
            for signum in _STANDARD:
                signal.signal(signum, signal.SIG_DFL)
            os.setsid()
            self._prctl(_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            given, output = self._streams or (os.open(os.devnull, os.O_RDONLY), self._write)
            os.dup2(given, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            if os.read(told, 1):
                os.execvp(self._words[0], self._words)
        except OSError as error:
            os.write(failing, str(error.errno or errno.EIO).encode())
        except ValueError:
            os.write(failing, str(errno.EINVAL).encode())  # a word with a null character
        finally:
            os._exit(127)

    # -- while it runs -------------------------------------------------------------------------------------------------

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _told_to_go(self) -> bool:
        poller = select.poll()
        for file in (0, self._woken):
            poller.register(file, select.POLLIN)
        while not self._stopping:
            for file, _ in poller.poll():
                if file == 0:
                    return os.read(0, 64).startswith(b"go")
                self._wake()
        return False

    def _until_it_ends(self, began_ns: int) -> str:
        """Wait until the command ends, and keep the last part of its output. Return "" if the command ended by itself.
        If the keeper must end the command, return the reason: ``timeout``, ``asked`` or ``processes``."""
        poller = select.poll()
        for file in (0, self._woken, self._read):
            poller.register(file, select.POLLIN)
        deadline_ns = began_ns + round(self._timeout_s * 1e9)
        tasks, look_ns = tasks_here(), began_ns
        while True:
            self._reap()
            if self._status is not None:
                return ""
            left_s = (deadline_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                return "timeout"
            if self._stopping:
                return "asked"
            ready = poller.poll(max(min(left_s, LOOK_S) * 1000, 1))
            for file, _ in ready:
                if file == self._woken:
                    self._wake()
                elif file == 0:
                    return "asked"
                elif not self._drain():
                    poller.unregister(file)
            if time.monotonic_ns() < look_ns + round(LOOK_S * 1e9):
                continue
            look_ns = time.monotonic_ns()
            if tasks_here() > tasks + self._most and len(processes_below(os.getpid())) > self._most:
                return "processes"

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)

    def _drain(self) -> bool:
        """Read the command's output that is ready, and keep the end of it. Return False if no process can write to this
        output any more."""
        open_ended = True
        with contextlib.suppress(BlockingIOError):
            for _ in range(_CHUNKS):  # not without end: a command may write faster than this reads
                chunk = os.read(self._read, 1 << 16)
                open_ended = bool(chunk)
                if not chunk:
                    break
                self._output += chunk
                if len(self._output) > 2 * self._capture:
                    del self._output[: -self._capture]
        del self._output[: -self._capture]
        return open_ended

    def _reap(self) -> None:
        """Collect the processes that have ended, and add up their times. A process's time includes the times of each
        child that the process has collected with wait(2)."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._status is None:
                self._user_s += used.ru_utime
                self._system_s += used.ru_stime
            if pid == self._pid:
                self._ended_ns = time.monotonic_ns()
                self._status = status

    # -- its end -------------------------------------------------------------------------------------------------------

    def _end_all(self) -> tuple[int, list[int]]:
        """End all processes below the keeper's own process. Return the number of these processes, and the ids of those
        that did not end."""
        if self._gone(SETTLED_S):
            return 0, []
        first = processes_below(os.getpid())
        self._signal(first, signal.SIGTERM, signal.SIGCONT)
        if self._gone(GRACE_S):
            return len(first), []
        until = time.monotonic() + KILLED_S
        while True:
            # A stopped process starts no more; the signal to a whole group misses none that begins meanwhile.
            found = processes_below(os.getpid())
            self._signal(found, signal.SIGSTOP, signal.SIGKILL)
            if self._gone(0.05):
                return len(first), []
            if time.monotonic() > until:
                return len(first), sorted(processes_below(os.getpid()))[:_MOST_LEFT]

    @staticmethod
    def _signal(found: dict[int, int], *signals: signal.Signals) -> None:
        """Send signals to processes and to their groups. ``found``: pid → group."""
        own = os.getpgrp()
        for signum in signals:
            for group in set(found.values()) - {own}:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, signum)
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signum)

    def _gone(self, seconds: float) -> bool:
        """Wait for at most ``seconds`` until all processes below this process have ended. Return True if all these
        processes have ended."""
        until = time.monotonic() + seconds
        while True:
            self._reap()
            self._drain()
            if not processes_below(os.getpid()):
                return True
            if time.monotonic() >= until:
                return False
            select.select([self._woken], [], [], 0.02)
            self._wake()


def processes_below(top: int) -> dict[int, int]:
    """Return pid → process group for each running process below ``top``."""
    children: dict[int, list[tuple[int, int, bool]]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            fields = (folder / "stat").read_bytes().rpartition(b") ")[2].split()
        except OSError:
            continue
        if len(fields) > 2:
            ended = fields[0] in (b"Z", b"X")
            children.setdefault(int(fields[1]), []).append((int(folder.name), int(fields[2]), ended))
    found: dict[int, int] = {}
    waiting = [top]
    while waiting:
        for pid, group, ended in children.get(waiting.pop(), ()):
            waiting.append(pid)
            if not ended:
                found[pid] = group
    return found


def tasks_here() -> int:
    """Return the number of tasks on this host (proc_loadavg(5)); 0 if it is not known."""
    try:
        return int(Path("/proc/loadavg").read_bytes().split()[3].partition(b"/")[2])
    except (OSError, IndexError, ValueError):
        return 0


def send_line(**told: Any) -> None:
    """Send a line of JSON to the process that started the keeper. Ignore an error, because that process may have
    ended."""
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()


def read_job() -> dict[str, Any]:
    """Read the keeper's job from standard input: the command and its limits. The job is one line of JSON, of any
    length."""
    line = bytearray()
    while not line.endswith(b"\n"):
        chunk = os.read(0, 1 << 16)
        if not chunk:
            sys.exit(0)
        line += chunk
    found: dict[str, Any] = json.loads(line)
    return found


if __name__ == "__main__":
    Keeper(**read_job()).keep()
