"""Our own instances of the kernel's trace (Documentation/trace/ftrace.rst, Instances): removed whatever becomes of who
made them.

A kill that no process can catch is seen by a small child that holds the other end of a pipe. What even that could not
remove bears the number and the start time of a process that is gone, and goes at the next capture or ``restore``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.host.trace.tracing import FOLDERS
from jitter_workshop.tuning.reasons import reason
from jitter_workshop.tuning.setting_types.tasks import same_task
from jitter_workshop.tuning.writer import HostWriter

PREFIX = "jitter-workshop-"
MOST_PAIRS = 4
"""Captures at a time on a host: the buffers of each are memory of the kernel's. Measurements wait for each other."""
PATIENCE_S = 5.0
"""How long one of ours that somebody else still reads is waited for; the child that nobody waits for has LONG_S."""
LONG_S = 300.0
_STEP_S = 0.1
_DIGITS = 20
"""Of the largest number that the kernel prints."""
_FIRST_NAMESPACE = "pid:[4026531836]"
"""Where processes have the numbers that the kernel's trace gives them (``PROC_PID_INIT_INO``)."""
_FIRST_CLOCK = "time:[4026531834]"
"""Where they have the start times that all others see (``PROC_TIME_INIT_INO``; time_namespaces(7))."""


def tracefs(root: HostRoot) -> str:
    """The folder of the kernel's trace. Raises HostError."""
    for folder in FOLDERS:
        reading = root.reading(f"{folder}/trace_clock")
        if reading.text is not None:
            return folder
        if reading.reason != "no such file":
            raise HostError(f"the kernel's trace cannot be read: {reading.reason}")
    if root.is_dir(FOLDERS[0]):
        raise HostError(f"the kernel's trace is not mounted on {FOLDERS[0]}", f"mount -t tracefs nodev {FOLDERS[0]}")
    raise HostError("this kernel has no trace (tracefs)")


def own_numbers(writer: HostWriter) -> bool:
    """Whether this process is in a container that numbers its processes anew: the trace's numbers mean others here."""
    return writer.real and _own("pid", _FIRST_NAMESPACE)


def _own(kind: str, first: str) -> bool:
    try:
        return os.readlink(f"/proc/self/ns/{kind}") != first  # noqa: PTH115
    except OSError:
        return False


def own_name(root: HostRoot) -> str:
    """How the names of this process's instances begin: a number is used again one day, with its start time never."""
    task = read_task(root, os.getpid())
    return f"{PREFIX}{os.getpid()}{f'@{task.start_ticks}' if task is not None else ''}-"


def remove(writer: HostWriter, folder: str, names: Sequence[str], patience_s: float = PATIENCE_S) -> None:
    """Remove instances with all that they enabled; waits for one that somebody still reads. Raises HostError."""
    left, ends = list(names), time.monotonic() + patience_s
    while True:
        for name in tuple(left):
            try:
                writer.remove_folder(f"{folder}/instances/{name}")
            except FileNotFoundError:
                pass
            except OSError as error:
                why = error
                continue
            left.remove(name)
        if not left:
            return
        if why.errno != errno.EBUSY or time.monotonic() >= ends:
            raise HostError(
                f"{folder}/instances/{left[0]} is left over: {reason(why)}", "'jitter-workshop restore' removes it"
            ) from why
        time.sleep(_STEP_S)


def stale(root: HostRoot) -> tuple[str, ...]:
    """The names of those of ours whose process is this one, which has none yet, or gone; none where tracefs is not to
    be read (it is for root alone)."""
    if not root.recorded and (_own("pid", _FIRST_NAMESPACE) or _own("time", _FIRST_CLOCK)):
        return ()  # whose number it is, or since when it has it, cannot be told from here
    try:
        folder = tracefs(root)
    except HostError:
        return ()
    return tuple(name for name in root.list_dir(f"{folder}/instances") if _stale(root, name))


def hidden(root: HostRoot) -> bool:
    """Whether there is a trace whose instances only others than this process may see."""
    return any(root.reading(f"{folder}/trace_clock").reason == "not permitted" for folder in FOLDERS)


def remove_stale(root: HostRoot, writer: HostWriter) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Remove the stale ones, without waiting: the names of those that are gone; path and reason of those that stay."""
    gone, stay = [], []
    for name in stale(root):
        path = f"{tracefs(root)}/instances/{name}"
        try:
            writer.remove_folder(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            stay.append((path, reason(error)))
        else:
            gone.append(name)
    return tuple(gone), tuple(stay)


def pairs(root: HostRoot, folder: str) -> int:
    """How many captures of this tool there are."""
    return len({name.rpartition("-")[0] for name in root.list_dir(f"{folder}/instances") if _process(name)})


def _stale(root: HostRoot, name: str) -> bool:
    """Whether it is one of ours, and its process is this one or gone."""
    process = _process(name)
    if process is None:
        return False
    number, start = process
    if int(number) == os.getpid():
        return True
    return not (same_task(root, int(number), int(start)) if start else root.is_dir(f"/proc/{number}"))


def _process(name: str) -> tuple[str, str] | None:
    """Whose instance it is: a number, and a start time or ""; None where it is none of ours."""
    process, dash, which = name.removeprefix(PREFIX).partition("-")
    number, at, start = process.partition("@")
    if not (name.startswith(PREFIX) and dash and which and _is_number(number) and (not at or _is_number(start))):
        return None
    return number, start


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _DIGITS


_DONE, _GO_ON = b".", b"!"


class Watcher:
    """A child that calls ``clean`` when this process has gone, whatever ended it."""

    def __init__(self, clean: Callable[[], None]) -> None:
        end, self._held = os.pipe2(os.O_CLOEXEC)
        parent = os.pidfd_open(os.getpid())
        every = signal.valid_signals()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, every)
        try:
            self._child = os.fork()
            if self._child == 0:
                _watch(end, parent, clean)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(end)
        os.close(parent)

    def close(self, done: bool) -> None:
        """Let it go: at once where all is ``done``, else it goes on trying while nobody waits for it."""
        os.write(self._held, _DONE if done else _GO_ON)
        os.close(self._held)
        if done:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._child, 0)


def _watch(end: int, parent: int, clean: Callable[[], None]) -> None:
    """The child: signals stay blocked, and it holds nothing that its parent's caller waits for."""
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        low, high = sorted((end, parent))
        os.closerange(3, low)
        os.closerange(low + 1, high)
        os.closerange(high + 1, 1 << 16)
        word = os.read(end, 1)
        if not word:  # who ends closes their files first, and for a moment still looks alive
            select.select([parent], [], [], PATIENCE_S)
        if word != _DONE:
            clean()
    except BaseException:
        pass
    finally:
        os._exit(0)
