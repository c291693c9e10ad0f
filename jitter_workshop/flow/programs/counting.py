"""Read the times of a program's threads from files in /proc. Users need no root's rights for their own programs.

- The times that a thread ran and that it waited in a CPU's run queue, in ns: /proc/PID/task/TID/schedstat
  (Documentation/scheduler/sched-stats.rst).
- Switches and faults: proc_pid_status(5), proc_pid_stat(5).
- Children: /proc/PID/task/TID/children (CONFIG_PROC_CHILDREN).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from jitter_workshop.evidence.program import StealTimes
from jitter_workshop.flow.programs.targets import Found, children_of, threads_of
from jitter_workshop.host.cpu.stat import CpuStat, read_stat, steal_between
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot, is_count, line_value
from jitter_workshop.host.tasks.cgroup import cpu_groups, read_limit, read_stops
from jitter_workshop.host.tasks.listing import Task
from jitter_workshop.model.program import ThreadTimes, Throttled

MOST_THREADS = 20_000
_FUTEX_NUMBERS = {"x86_64": "202", "aarch64": "98"}
"""The number of the system call ``futex`` on each kind of machine (``asm/unistd.h``)."""
_FAULTS = (7, 9)
"""The indices of the minor and the major faults among the fields of ``stat`` after the name, from 0."""


@dataclass(slots=True)
class Counted:
    """Hold the counters of one thread since its start. A counter that the kernel does not show is None."""

    name: str
    state: str
    ran_ns: int | None
    waited_ns: int | None
    slept: int | None
    preempted: int | None
    faults: int | None


@dataclass(slots=True)
class _Seen:
    name: str
    at_ns: int
    first: Counted | None
    """The counters at the first reading; None if the thread began while the program was observed: then its counters
    began at 0.
    """
    last: Counted
    last_ns: int


class ThreadCounting:
    """Read the counters of a program's threads at intervals. A thread that begins and ends between two readings is not
    seen."""

    def __init__(self, root: HostRoot, found: Found) -> None:
        self._root, self._found = root, found
        self._pids = set(found.pids)
        self._seen: dict[tuple[int, int], _Seen] = {}
        self._start_ns = self._before_ns = 0
        self._groups = _Groups(root, found.pids[0])
        self._guest = read_hypervisor(root).guest
        self._stat: CpuStat | None = None
        self.states: dict[int, str] = {}
        """The threads at the first look: thread id → the kernel's letter for its state."""
        self.in_futex: set[int] = set()
        """The threads that were in the system call ``futex`` at the first look."""

    def begin(self) -> None:
        """Read the counters for the first time."""
        self._groups.look()
        self._stat = read_stat(self._root, self._guest)
        self._start_ns = time.monotonic_ns()
        self._look(first=True)
        self.states = {tid: seen.last.state for (tid, _), seen in self._seen.items()}

    def look(self) -> None:
        """Read the counters again."""
        self.look_at_groups()
        self._look(first=False)

    def look_at_groups(self) -> None:
        """Read the throttling counters of the program's control groups again. The program may be in other groups
        now."""
        self._groups.look()

    def _look(self, *, first: bool) -> None:
        before, now = self._before_ns, time.monotonic_ns()
        for task in self._threads():
            counted = _read(self._root, task)
            key = task.tid, task.start_ticks
            if first and _in_futex(self._root, task):
                self.in_futex.add(task.tid)
            seen = self._seen.get(key)
            if seen is not None:
                seen.name, seen.last, seen.last_ns = task.name, counted, now
            elif len(self._seen) < MOST_THREADS:
                began = self._start_ns if first else before
                self._seen[key] = _Seen(task.name, began, counted if first else None, counted, now)
        self._before_ns = now

    def _threads(self) -> Iterable[Task]:
        waiting, done = sorted(self._pids), set(self._pids)
        while waiting:
            pid = waiting.pop()
            for task in threads_of(self._root, pid):
                if not self._found.only or task.tid in self._found.only:
                    yield task
                if self._found.children:
                    fresh = set(children_of(self._root, pid, task.tid)) - done
                    done |= fresh
                    waiting += fresh
        self._pids = done if len(done) < MOST_THREADS else self._pids

    def throttled(self) -> Throttled | None:
        """Return how much the throttling counters of the program's control groups have grown since :meth:`begin`.
        Return None if no such counter could be read."""
        return self._groups.throttled()

    def quota(self) -> tuple[int, int] | None:
        """Return the smallest CPU quota of the program's control groups, and the period of this quota. Both are in ns.
        Return None if no group has a quota."""
        return self._groups.quota

    def steal(self) -> tuple[StealTimes | None, str]:
        """Return the steal of each CPU since :meth:`begin`, and "". If the steal is not known, return None and the
        reason."""
        now, window_ns = read_stat(self._root, self._guest), time.monotonic_ns() - self._start_ns
        if self._stat is None or steal_between(self._stat, now) is None:
            return None, now.why_no_steal
        each = {cpu: steal_between(self._stat, now, (cpu,)) or 0 for cpu in now.per_cpu}
        return StealTimes(each, now.tick_ns, window_ns), ""

    def threads(self) -> tuple[ThreadTimes, ...]:
        """Return the threads with their times. The thread with the largest sum of running time and waiting time comes
        first."""
        found = [_told(tid, seen, self._start_ns) for (tid, _), seen in self._seen.items()]
        return tuple(sorted(found, key=lambda t: (-((t.ran_ns or 0) + (t.waited_ns or 0)), t.began_ns, t.tid)))


class _Groups:
    """Read the throttling counters of the control groups of a program's first process. The result includes each group
    that this process has left during the observation."""

    def __init__(self, root: HostRoot, pid: int) -> None:
        self._root, self._pid = root, pid
        self._where = ""
        self._levels: tuple[str, ...] = ()
        self._first: dict[str, tuple[int, int | None]] = {}
        self._last: dict[str, tuple[int, int | None]] = {}
        self.quota: tuple[int, int] | None = None

    def look(self) -> None:
        where = self._root.text(f"/proc/{self._pid}/cgroup") or self._where
        if where != self._where:
            self._where = where
            version, self._levels = cpu_groups(self._root, self._pid) or (2, self._levels)
            limit = read_limit(self._root, version, self._levels)
            self.quota = (limit[0] * 1000, limit[1] * 1000) if limit is not None else self.quota
        for level in self._levels:
            stops = read_stops(self._root, level)
            if stops is not None:
                self._first.setdefault(level, stops)
                self._last[level] = stops

    def throttled(self) -> Throttled | None:
        if not self._last:
            return None
        both = [(self._first[level], last) for level, last in self._last.items()]
        times = [None if a[1] is None or b[1] is None else b[1] - a[1] for a, b in both]
        stopped = None if None in times else sum(t for t in times if t is not None)
        return Throttled(sum(b[0] - a[0] for a, b in both), stopped)


def _told(tid: int, seen: _Seen, start_ns: int) -> ThreadTimes:
    def grown(name: str) -> int | None:
        first = 0 if seen.first is None else getattr(seen.first, name)
        last = getattr(seen.last, name)
        return None if first is None or last is None else max(last - first, 0)

    return ThreadTimes(
        tid=tid,
        name=seen.name,
        began_ns=max(seen.at_ns - start_ns, 0),
        observed_ns=seen.last_ns - seen.at_ns,
        ran_ns=grown("ran_ns"),
        waited_ns=grown("waited_ns"),
        slept_ns=None,
        blocked_ns=None,
        unknown_ns=None,
        interrupted_ns=None,
        preempted=grown("preempted"),
        page_faults=grown("faults"),
        causes=None,
        blocked_on=None,
        slept_in=None,
        unknown_in=None,
        slept_times=grown("slept"),
    )


def _in_futex(root: HostRoot, task: Task) -> bool:
    """Return True if the kernel shows a thread in the call ``futex`` (proc_pid_syscall(5))."""
    number = _FUTEX_NUMBERS.get(os.uname().machine)
    words = (root.text(f"/proc/{task.pid}/task/{task.tid}/syscall") or "").split()
    return bool(words) and words[0] == number


def _read(root: HostRoot, task: Task) -> Counted:
    folder = f"/proc/{task.pid}/task/{task.tid}"
    words = (root.text(f"{folder}/schedstat") or "").split()
    ran, waited = (int(word) if is_count(word) else None for word in (*words[:2], "", "")[:2])
    status = root.text(f"{folder}/status")
    counts = (line_value(status, f"{kind}_ctxt_switches") for kind in ("voluntary", "nonvoluntary"))
    slept, preempted = (int(count) if is_count(count) else None for count in counts)
    fields = (root.text(f"{folder}/stat") or "").rpartition(") ")[2].split()
    faults = [int(fields[place]) if place < len(fields) and is_count(fields[place]) else None for place in _FAULTS]
    known = [one for one in faults if one is not None]
    return Counted(task.name, task.state, ran, waited, slept, preempted, sum(known) if len(known) == 2 else None)
