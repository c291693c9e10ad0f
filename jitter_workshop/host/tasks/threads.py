"""Read the scheduler's counters for each thread of a process (proc(5): /proc/PID/task/TID/status and sched)."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Switches:
    """Hold the context switches of one thread since it began: it went to sleep, or it was preempted."""

    voluntary: int
    involuntary: int


def thread_switches(root: HostRoot, pid: int, tid: int) -> Switches | None:
    """Return one thread's context switches; None where it has ended or the kernel does not show them."""
    return parse_switches(root.text(f"/proc/{pid}/task/{tid}/status"))


def context_switches(root: HostRoot, pid: int) -> int | None:
    """Return voluntary and involuntary switches summed over all threads that ``pid`` has now; None where it has
    none."""
    found = [
        switches
        for tid, _ in root.numbered(f"/proc/{pid}/task", "")
        if (switches := thread_switches(root, pid, tid)) is not None
    ]
    return sum(s.voluntary + s.involuntary for s in found) if found else None


def migrations(root: HostRoot, pid: int, tid: int) -> int | None:
    """Return how often a thread was moved to another CPU.

    Return None where it has ended or the kernel was built without CONFIG_SCHED_DEBUG's per-task file.
    """
    return parse_migrations(root.text(f"/proc/{pid}/task/{tid}/sched"))


def parse_switches(text: str | None) -> Switches | None:
    """Return the two counters of a ``status`` file."""
    voluntary = _value(text, "voluntary_ctxt_switches")
    involuntary = _value(text, "nonvoluntary_ctxt_switches")
    return None if voluntary is None or involuntary is None else Switches(voluntary, involuntary)


def parse_migrations(text: str | None) -> int | None:
    """Return ``se.nr_migrations`` of a ``sched`` file."""
    return _value(text, "se.nr_migrations")


def _value(text: str | None, key: str) -> int | None:
    """Return the number after ``key :`` on a line of its own; only the first line counts, and never the task's name in
    it."""
    for line in (text or "").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip() == key:
            number = parse_integer(value.strip())
            return number if number is not None and number >= 0 else None
    return None
