"""Remove the trace instances of a process, even if the process is killed (Documentation/trace/ftrace.rst, Instances).

A child process waits at a pipe from its parent. When the parent is killed, the kernel closes the pipe. The child sees
this, and removes the parent's instances. If the child fails, the next capture or ``restore`` removes the instances of
ended processes. An instance's name contains the number and the start time of its process.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Callable, Sequence

from jitter_workshop.errors import HostError, reason
from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.tuning.setting_types.tasks import same_task
from jitter_workshop.tuning.writer import HostWriter

PREFIX = "jitter-workshop-"
MOST_PAIRS = 4
"""The largest number of captures at a time on a host. The limit is needed because the buffers of a capture are kernel
memory."""
PATIENCE_S = 5.0
"""Seconds to wait for an instance that another process still reads. The child process that removes instances waits
LONG_S, because no program waits for it."""
LONG_S = 300.0
_STEP_S = 0.1
_FIRST_NAMESPACE = "pid:[4026531836]"
"""The first PID namespace: its process numbers are the numbers in the kernel's trace (``PROC_PID_INIT_INO``)."""
_FIRST_CLOCK = "time:[4026531834]"
"""The first time namespace: its start times are the times that other processes see (``PROC_TIME_INIT_INO``;
time_namespaces(7))."""

FOLDERS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
_MOUNT = f"mount -t tracefs nodev {FOLDERS[0]}"


def trace_folder(root: HostRoot) -> str:
    """Return the folder where the kernel's trace is mounted. Raise HostError if the trace cannot be used."""
    for folder in FOLDERS:
        reading = root.reading(f"{folder}/trace_clock")
        if reading.text is not None:
            return folder
        if reading.reason != "no such file":
            raise HostError(f"the kernel's trace cannot be read: {reading.reason}")
    if root.is_dir(FOLDERS[0]):
        raise HostError(f"the kernel's trace is not mounted on {FOLDERS[0]}", _MOUNT)
    raise HostError("this kernel has no trace (tracefs)")


def mount_command(root: HostRoot) -> str:
    """Return the command that mounts the kernel's trace; "" if the command would not help.

    It does not help if the trace is mounted, if this kernel has no trace, or if only root may read the trace.
    """
    try:
        trace_folder(root)
    except HostError as error:
        return error.advice
    return ""


def own_numbers(writer: HostWriter) -> bool:
    """Return True if processes have other numbers here than in the kernel's trace.

    This is so in every PID namespace except the kernel's first one.
    """
    return writer.real and namespace_differs("pid", _FIRST_NAMESPACE)


def namespace_differs(kind: str, first: str) -> bool:
    """Return True if this process is not in the kernel's first namespace of this kind.

    ``kind``: a name in /proc/self/ns, such as ``pid``. ``first``: the first namespace, such as ``pid:[4026531836]``.
    """
    try:
        return os.readlink(f"/proc/self/ns/{kind}") != first  # noqa: PTH115
    except OSError:
        return False


def own_name(root: HostRoot) -> str:
    """Return the prefix for the names of this process's trace instances.

    The prefix has the process's number and its start time, because the kernel uses process numbers again.
    """
    task = read_task(root, os.getpid())
    return f"{PREFIX}{os.getpid()}{f'@{task.start_ticks}' if task is not None else ''}-"


def remove_instances(writer: HostWriter, folder: str, names: Sequence[str], patience_s: float = PATIENCE_S) -> None:
    """Remove instances, and disable the events that they enabled. Wait for an instance that another process still
    reads. Raise HostError on failure.
    """
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
                f"the old trace {folder}/instances/{left[0]} cannot be removed: {reason(why)}",
                "try 'jitter-workshop restore' later",
            ) from why
        time.sleep(_STEP_S)


def stale(root: HostRoot) -> tuple[str, ...]:
    """Return the names of this tool's trace instances whose process has ended.

    An instance with the number of this process is included, too. So call this before this process makes instances.
    Return no names if tracefs cannot be read. Also return no names in a PID or time namespace other than the host's.
    """
    if not root.recorded and (namespace_differs("pid", _FIRST_NAMESPACE) or namespace_differs("time", _FIRST_CLOCK)):
        return ()  # from here the process number and its start time have no meaning
    try:
        folder = trace_folder(root)
    except HostError:
        return ()
    return tuple(name for name in root.list_dir(f"{folder}/instances") if _stale(root, name))


def hidden(root: HostRoot) -> bool:
    """Return True if this process may not see the instances of the mounted kernel trace."""
    return any(root.reading(f"{folder}/trace_clock").reason == "not permitted" for folder in FOLDERS)


def remove_stale(root: HostRoot, writer: HostWriter) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Remove the trace instances whose process has ended, without waiting.

    Return a pair: the names of the removed instances, and a (path, reason) for each instance that could not be removed.
    """
    gone, stay = [], []
    for name in stale(root):
        path = f"{trace_folder(root)}/instances/{name}"
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
    """Return the number of this tool's captures that exist now. Each capture has a pair of trace instances."""
    return len({name.rpartition("-")[0] for name in root.list_dir(f"{folder}/instances") if _process(name)})


def _stale(root: HostRoot, name: str) -> bool:
    """Return True if ``name`` is a trace instance of this tool whose process has ended.

    The process is the one whose number is in ``name``. This process also counts as ended.
    """
    process = _process(name)
    if process is None:
        return False
    number, start = process
    if int(number) == os.getpid():
        return True
    return not (same_task(root, int(number), int(start)) if start else root.is_dir(f"/proc/{number}"))


def _process(name: str) -> tuple[str, str] | None:
    """Return the process number and the start time in the name of one of our trace instances. The start time is "" if
    the name has none. Return None if the instance is not ours."""
    process, dash, which = name.removeprefix(PREFIX).partition("-")
    number, at, start = process.partition("@")
    if not (name.startswith(PREFIX) and dash and which and is_count(number) and (not at or is_count(start))):
        return None
    return number, start


_DONE, _GO_ON = b".", b"!"


class Watcher:
    """Start a child that calls ``clean`` after this process has ended in any way."""

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
        """End the child process. If ``done`` is False, the child calls ``clean`` before it ends."""
        os.write(self._held, _DONE if done else _GO_ON)
        os.close(self._held)
        if done:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._child, 0)


def _watch(end: int, parent: int, clean: Callable[[], None]) -> None:
    """Wait in the child process until the parent ends, call ``clean``, and exit.

    ``end``: the pipe from the parent. ``parent``: a pidfd of the parent. If the parent sends _DONE, the child exits
    without a call of ``clean``.
    """
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
        if not word:  # a process that ends closes its files first, and still looks alive for a moment
            select.select([parent], [], [], PATIENCE_S)
        if word != _DONE:
            clean()
    except BaseException:
        pass
    finally:
        os._exit(0)
