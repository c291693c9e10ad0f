"""Read the scheduler's sums of all tasks' time on each CPU and in its queue (Documentation/scheduler/sched-stats.rst).

/proc/schedstat exists in kernels with CONFIG_SCHEDSTATS, for every user. It counts in ns of the run queue's clock (the
document's "jiffies" are of before 2.6.23). Both times are added when a task leaves, or gets, the CPU, so they lack the
time that is still going on at the moment of reading. A thread's own figures (/proc/PID/task/TID/schedstat,
CONFIG_SCHED_INFO) are read by the thread (``jw_thread_usage``).
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.record import dataclass, field

_LARGE_TABLE_BYTES = 8 << 20
_OLDEST = 15
_CPU_FIELDS = 9


@dataclass(frozen=True, slots=True)
class Schedstat:
    """Hold the times of all tasks on a CPU since boot.

    They are: ns on the CPU, ns in its queue (runnable but not running: the run delay), and how often a task came onto
    the CPU.
    """

    ran_ns: int
    waited_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class CpuSchedstats:
    """Hold /proc/schedstat. ``reason``: why ``per_cpu`` is empty."""

    per_cpu: dict[int, Schedstat] = field(default_factory=dict)
    reason: str = ""


def cpu_schedstats(root: HostRoot) -> CpuSchedstats:
    """Return each CPU's figures."""
    reading = root.reading("/proc/schedstat", _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CpuSchedstats(reason=f"/proc/schedstat: {reading.reason}")
    return parse_cpu_schedstats(reading.text)


def parse_cpu_schedstats(text: str) -> CpuSchedstats:
    """Parse the last three of the nine numbers after ``cpuN``; all other lines, such as domains, are left out."""
    lines = text.split("\n")
    first = lines[0].split()
    if len(first) != 2 or first[0] != "version" or not is_count(first[1]):
        return CpuSchedstats(reason="/proc/schedstat: names no version")
    if int(first[1]) < _OLDEST:
        return CpuSchedstats(reason=f"/proc/schedstat: version {first[1]} is older than {_OLDEST}")
    per_cpu = {}
    for line in lines[1:]:
        name, *words = line.split()[: _CPU_FIELDS + 2] or ("",)
        number = name.removeprefix("cpu")
        if number == name or not is_count(number) or len(number) > 6:
            continue
        if len(words) == _CPU_FIELDS and all(map(is_count, words)):
            per_cpu[int(number)] = Schedstat(*map(int, words[-3:]))
    return CpuSchedstats(per_cpu, "" if per_cpu else "/proc/schedstat: names no CPU")


def between(earlier: Schedstat | None, later: Schedstat | None) -> Schedstat | None:
    """Return the difference between two readings; None where one is missing."""
    if earlier is None or later is None:
        return None
    return Schedstat(
        max(later.ran_ns - earlier.ran_ns, 0),
        max(later.waited_ns - earlier.waited_ns, 0),
        max(later.timeslices - earlier.timeslices, 0),
    )
