"""Find the program that is to be explained: a process, threads of it, or the processes of a control group; list the
processes to choose from."""

from __future__ import annotations

import datetime
import os
import posixpath
import pwd
import threading
import time
from collections.abc import Iterator

from jitter_workshop.agent.caller_process import owners
from jitter_workshop.bench import foreign_activity
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot, is_count, line_value
from jitter_workshop.host.tasks.cgroup import parse_mounts
from jitter_workshop.host.tasks.listing import Task, read_task
from jitter_workshop.model.program import MOST_PROCESSES, ProcessSeen, Target
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import NAME, PATH, USER, called, clean, command_line

OF_KERNEL = "a thread of the kernel"
LOOK_S = 0.5
"""Seconds between the two looks at the listed processes. The kernel counts their time in ticks, which last 10 ms on
most kernels, so their shares are known to 2 %."""

_MOST_GROUPS = 10_000
_COMMAND_BYTES = 1 << 10
"""The bytes that are read of a command line: a line of a list shows far less."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hold a program. ``pids``: its processes. ``only``: the threads that are explained, () for all of them."""

    target: Target
    pids: tuple[int, ...]
    only: tuple[int, ...] = ()

    @property
    def children(self) -> bool:
        """Return True if the threads and processes that the program starts belong to it."""
        return not self.only


def listed(root: HostRoot, stop: threading.Event | None = None) -> tuple[ProcessSeen, ...]:
    """Look at all processes for LOOK_S, or until ``stop`` is set. Return those that can be explained, the busiest
    first; of equally busy ones, the newest first. Leave out kernel threads, this process, and the processes that it has
    started."""
    before = foreign_activity.snapshot()
    (stop or threading.Event()).wait(LOOK_S)
    found = []
    for one in foreign_activity.uses(before, time.monotonic() - before.at_s):
        task = read_task(root, one.pid)
        if one.ours or task is None or task.kernel or task.ended:
            continue
        began = datetime.datetime.fromtimestamp(one.started_s, datetime.UTC).isoformat(timespec="seconds")
        percent = round(max(one.cpu_percent, 0.0), 1)
        whose, command = owner(root, one.pid), command_of(root, one.pid)
        found.append(ProcessSeen(one.pid, task.start_ticks, task.name, whose, percent, began, command))
    return tuple(sorted(found, key=lambda seen: (-seen.cpu_percent, -seen.start_ticks, seen.pid)))


def command_of(root: HostRoot, pid: int) -> str:
    """Return the beginning of a process's command line, "" if it has none. The process may have put any text there."""
    words = (root.head(f"/proc/{pid}/cmdline", _COMMAND_BYTES) or "").strip("\0").split("\0")
    # A program that names its state there ("nginx: master process") writes it as one word.
    return command_line(words) if len(words) > 1 else clean(words[0], PATH)


def owner(root: HostRoot, pid: int) -> str:
    """Return the name of the user who owns a process, or the user's number if there is no name; "" if the process has
    ended. If a process has several user ids, take one that differs from the id of the user of this program."""
    found = sorted(owners(root, pid) - {os.geteuid()}) or sorted(owners(root, pid))
    if not found:
        return ""
    try:
        return pwd.getpwuid(found[0]).pw_name
    except (KeyError, OverflowError):
        return str(found[0])


def not_ours(root: HostRoot, found: Found) -> str:
    """Return a sentence if a program belongs to another user and cannot be followed; "" if this user may follow it."""
    pid = found.target.pid
    if pid is None or os.geteuid() == 0 or owners(root, pid) in ({os.geteuid()}, set()):
        return ""
    whose = clean(owner(root, pid), USER)
    return f"process {pid} ({called(found.target.name, NAME)}) belongs to {whose}, and only root may follow it"


def find_process(root: HostRoot, pid: int, thread: str | None = None, start_ticks: int | None = None) -> Found:
    """Find a process or, with ``thread``, its threads with this name or number. ``start_ticks``: the start time of the
    process when the user chose it in a list. Raise HostError if there is no such process or thread, or if the number
    has belonged to another process since then."""
    task = read_task(root, pid)
    if start_ticks is not None and (task is None or task.ended):
        raise HostError(f"process {pid} has ended", "choose another one")
    if start_ticks is not None and task is not None and task.start_ticks != start_ticks:
        raise HostError(
            f"process {pid} has ended, and its number belongs to another process now ({called(task.name, NAME)})",
            "look at the processes again",
        )
    if task is None or task.ended:
        raise HostError(f"there is no process {pid}", "'ps -e' lists the processes")
    if task.kernel:
        raise HostError(f"{pid} ({called(task.name, NAME)}) is {OF_KERNEL}, not a program")
    if pid == os.getpid():
        raise HostError(f"process {pid} is jitter-workshop itself")
    leader = _leader(root, pid)
    if leader != pid:
        raise HostError(f"{pid} is a thread of process {leader}", f"use --pid {leader} --thread {pid}")
    if thread is None:
        return Found(Target("process", task.name, pid), (pid, *_below(root, pid)))
    threads = [one for one in threads_of(root, pid) if one.name == thread or str(one.tid) == thread]
    if not threads:
        names = ", ".join(sorted({called(one.name, 20) for one in threads_of(root, pid)})[:8])
        raise HostError(f"process {pid} has no thread '{clean(thread, NAME)}'", f"its threads are called {names}")
    return Found(Target("thread", threads[0].name, pid), (pid,), tuple(one.tid for one in threads))


def find_cgroup(root: HostRoot, path: str) -> Found:
    """Find the processes of a control group and of the groups below it. ``path``: its folder, or its path from the top
    of a hierarchy. Raise UsageError for a path that is not a group's, HostError for a group with no process or with too
    many."""
    folder = _folder(root, path)
    pids: list[int] = []
    for group in _groups(root, folder):
        found = (root.text(f"{group}/cgroup.procs", 1 << 20) or "").split()
        pids += [int(word) for word in found if is_count(word)]
    mine = {os.getpid()}
    pids = sorted(pid for pid in set(pids) - mine if (task := read_task(root, pid)) is not None and not task.kernel)
    if not pids:
        raise HostError(f"there is no process in the control group {clean(folder, PATH)}")
    if len(pids) > MOST_PROCESSES:
        raise HostError(
            f"the control group {clean(folder, PATH)} has {len(pids)} processes; at most {MOST_PROCESSES} are followed",
            "choose a group below it",
        )
    return Found(Target("cgroup", folder, None), tuple(pids))


def children_of(root: HostRoot, pid: int, tid: int) -> tuple[int, ...]:
    """Return the processes that a thread has started and that have not ended, without jitter-workshop's own process."""
    words = (root.text(f"/proc/{pid}/task/{tid}/children") or "").split()
    return tuple(int(word) for word in words if is_count(word) and int(word) != os.getpid())


def _below(root: HostRoot, pid: int) -> list[int]:
    """Return the descendants of a process that belong to the same user, at most MOST_PROCESSES - 1."""
    owner = line_value(root.text(f"/proc/{pid}/status"), "Uid")
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < MOST_PROCESSES - 1:
        one = waiting.pop(0)
        fresh = [child for task in threads_of(root, one) for child in children_of(root, one, task.tid)]
        fresh = [child for child in fresh if line_value(root.text(f"/proc/{child}/status"), "Uid") == owner]
        found += fresh
        waiting += fresh
    return found[: MOST_PROCESSES - 1]


def threads_of(root: HostRoot, pid: int) -> Iterator[Task]:
    """Yield the threads of a process that have not ended."""
    for tid, _ in root.numbered(f"/proc/{pid}/task", "", digits=10):
        task = read_task(root, pid, tid)
        if task is not None and not task.ended:
            yield task


def _leader(root: HostRoot, pid: int) -> int:
    number = line_value(root.text(f"/proc/{pid}/status"), "Tgid")
    return int(number) if is_count(number) else pid


def _folder(root: HostRoot, path: str) -> str:
    clear = posixpath.normpath(path) if path.strip() else ""
    if not clear or ".." in clear.split("/"):
        raise UsageError("--cgroup needs the folder of a control group", "'cat /proc/PID/cgroup' shows one")
    mounts = [mount.where for mount in parse_mounts(root.text("/proc/self/mountinfo", 16 << 20) or "")]
    places = [f"/{clear.lstrip('/')}", *(f"{where}/{clear.lstrip('/')}" for where in mounts)]
    for place in places:
        below = any(place == where or place.startswith(f"{where}/") for where in mounts)
        if below and root.text(f"{place}/cgroup.procs") is not None:
            return place.rstrip("/")
    raise HostError(f"there is no control group {clean(path, PATH)}", "'cat /proc/PID/cgroup' shows a process's groups")


def _groups(root: HostRoot, folder: str) -> Iterator[str]:
    """Yield a group and all groups below it."""
    waiting = [folder]
    for _ in range(_MOST_GROUPS):
        if not waiting:
            return
        group = waiting.pop()
        yield group
        waiting += [f"{group}/{name}" for name in root.folders(group)]
