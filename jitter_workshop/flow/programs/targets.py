"""Find the program to explain, and list the processes that the user can choose from. A program is a process, some
threads of a process, or the processes of a control group."""

from __future__ import annotations

import datetime
import os
import posixpath
import pwd
import threading
import time
from collections.abc import Iterator

from jitter_workshop.agent.caller_process import owners_of_process
from jitter_workshop.bench import foreign_activity
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot, is_count, line_value
from jitter_workshop.host.tasks.cgroup import parse_mounts
from jitter_workshop.host.tasks.listing import Task, read_task, read_user_ids
from jitter_workshop.model.program import MOST_PROCESSES, ProcessSeen, Target
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import MOST_WORDS, NAME, PATH, USER, WORD, called, clean, quoted_command

OF_KERNEL = "a thread of the kernel"
LOOK_S = 0.5
"""Seconds between the two looks at the listed processes. The kernel counts their time in ticks, which last 10 ms on
most kernels, so their shares are known to 2 %."""

_MOST_GROUPS = 10_000
_COMMAND_BYTES = 1 << 10
"""The bytes that are read of a command line: a line of a list shows far less."""


@dataclass(frozen=True, slots=True)
class Found:
    """Hold the program that is explained. ``pids``: the ids of its processes. ``only``: the ids of the explained
    threads; () means all threads."""

    target: Target
    pids: tuple[int, ...]
    only: tuple[int, ...] = ()

    @property
    def children(self) -> bool:
        """Return True if the explanation includes the program's new threads and its child processes."""
        return not self.only


def list_processes(root: HostRoot, stop: threading.Event | None = None) -> tuple[ProcessSeen, ...]:
    """Return the processes that can be explained, the busiest first. The CPU time of the processes is measured for
    LOOK_S seconds, or until ``stop`` is set. Of equally busy processes, the newest comes first. Kernel threads, this
    process and its child processes are left out."""
    before = foreign_activity.process_times()
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
    """Return the beginning of a process's command line; "" if the process has none. A process can change its own
    command line, so do not trust the text."""
    words = (root.head(f"/proc/{pid}/cmdline", _COMMAND_BYTES) or "").strip("\0").split("\0")
    # A program that names its state there ("nginx: master process") writes it as one word.
    return quoted_command(words) if len(words) > 1 else clean(words[0], PATH)


def owner(root: HostRoot, pid: int) -> str:
    """Return the name of a process's owner. Return the owner's user id if the id has no name. Return "" if the process
    has ended. If a process has several user ids, prefer a user id that differs from the current user's id."""
    found = sorted(owners_of_process(root, pid) - {os.geteuid()}) or sorted(owners_of_process(root, pid))
    if not found:
        return ""
    try:
        return pwd.getpwuid(found[0]).pw_name
    except (KeyError, OverflowError):
        return str(found[0])


def not_ours(root: HostRoot, found: Found) -> str:
    """Return the reason why this process may not follow another user's program. Return "" if this process may follow
    the program."""
    pid = found.target.pid
    if pid is None or os.geteuid() == 0 or owners_of_process(root, pid) in ({os.geteuid()}, set()):
        return ""
    whose = clean(owner(root, pid), USER)
    return f"process {pid} ({called(found.target.name, NAME)}) belongs to {whose}, and only root may follow it"


def find_process(root: HostRoot, pid: int, thread: str | None = None, start_ticks: int | None = None) -> Found:
    """Find a process, or some threads of a process. Raise HostError if the process or thread does not exist, or if the
    process cannot be explained.

    - ``thread``: the name or number of the threads; None: all threads.
    - ``start_ticks``: the start time of the process, if the user chose the process from a list. Raise HostError if
      another process now has this id.
    """
    task = read_task(root, pid)
    if start_ticks is not None and (task is None or task.ended):
        raise HostError(f"process {pid} has ended", "choose another one")
    if start_ticks is not None and task is not None and task.start_ticks != start_ticks:
        raise HostError(
            f"process {pid} has ended, and its number belongs to another process now ({called(task.name, NAME)})",
            "list the processes again",
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
        names = ", ".join(sorted({called(one.name, WORD) for one in threads_of(root, pid)})[:MOST_WORDS])
        raise HostError(f"process {pid} has no thread '{clean(thread, NAME)}'", f"its threads are called {names}")
    return Found(Target("thread", threads[0].name, pid), (pid,), tuple(one.tid for one in threads))


def find_cgroup(root: HostRoot, path: str) -> Found:
    """Find the processes of a control group and of all groups below it. ``path``: the group's folder, or its path from
    the top of the cgroup hierarchy. Raise UsageError if ``path`` is not a control group. Raise HostError if the group
    has no process or too many processes."""
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
            "choose a child group of this group",
        )
    return Found(Target("cgroup", folder, None), tuple(pids))


def children_of(root: HostRoot, pid: int, tid: int) -> tuple[int, ...]:
    """Return the ids of a thread's running child processes. The process of this tool is left out."""
    words = (root.text(f"/proc/{pid}/task/{tid}/children") or "").split()
    return tuple(int(word) for word in words if is_count(word) and int(word) != os.getpid())


def _below(root: HostRoot, pid: int) -> list[int]:
    """Return the descendants of a process that belong to the same user as the process. At most MOST_PROCESSES - 1
    descendants are returned."""
    owner = read_user_ids(root, f"/proc/{pid}")
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < MOST_PROCESSES - 1:
        one = waiting.pop(0)
        fresh = [child for task in threads_of(root, one) for child in children_of(root, one, task.tid)]
        fresh = [child for child in fresh if read_user_ids(root, f"/proc/{child}") == owner]
        found += fresh
        waiting += fresh
    return found[: MOST_PROCESSES - 1]


def threads_of(root: HostRoot, pid: int) -> Iterator[Task]:
    """Yield each thread of a process, unless the thread has ended."""
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
        raise UsageError(
            "--cgroup needs the folder of a control group", "'cat /proc/PID/cgroup' shows the group of a process"
        )
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
