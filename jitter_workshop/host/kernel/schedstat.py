"""What the scheduler says of all tasks' time on each CPU and in its queue (Documentation/scheduler/sched-stats.rst).

/proc/schedstat is in kernels with CONFIG_SCHEDSTATS, for every user, and counts in ns of the run queue's clock (the
document's "jiffies" are of before 2.6.23). Both times are added when a task leaves, or gets, the CPU: what goes on at
the moment of reading is not in them yet. A thread's own (/proc/PID/task/TID/schedstat, CONFIG_SCHED_INFO) are read by
the thread (``jw_thread_usage``).
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass, field

_LARGE_TABLE_BYTES = 8 << 20
_OLDEST = 15
_CPU_FIELDS = 9


@dataclass(frozen=True, slots=True)
class Schedstat:
    """All tasks on a CPU since boot: ns on the CPU, ns in its queue (they could run, and did not: the run delay), and
    how often one came onto the CPU."""

    ran_ns: int
    waited_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class CpuSchedstats:
    """/proc/schedstat. ``reason``: why ``per_cpu`` is empty."""

    per_cpu: dict[int, Schedstat] = field(default_factory=dict)
    reason: str = ""


def cpu_schedstats(root: HostRoot) -> CpuSchedstats:
    """Each CPU's figures."""
    reading = root.reading("/proc/schedstat", _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CpuSchedstats(reason=f"/proc/schedstat: {reading.reason}")
    return parse_cpu_schedstats(reading.text)


def parse_cpu_schedstats(text: str) -> CpuSchedstats:
    """The last three of the nine numbers behind ``cpuN``; lines of anything else, domains among them, are left out."""
    lines = text.split("\n")
    first = lines[0].split()
    if len(first) != 2 or first[0] != "version" or not _is_count(first[1]):
        return CpuSchedstats(reason="/proc/schedstat: names no version")
    if int(first[1]) < _OLDEST:
        return CpuSchedstats(reason=f"/proc/schedstat: version {first[1]} is older than {_OLDEST}")
    per_cpu = {}
    for line in lines[1:]:
        name, *words = line.split()[: _CPU_FIELDS + 2] or ("",)
        number = name.removeprefix("cpu")
        if number == name or not _is_count(number) or len(number) > 6:
            continue
        if len(words) == _CPU_FIELDS and all(map(_is_count, words)):
            per_cpu[int(number)] = Schedstat(*map(int, words[-3:]))
    return CpuSchedstats(per_cpu, "" if per_cpu else "/proc/schedstat: names no CPU")


def between(earlier: Schedstat | None, later: Schedstat | None) -> Schedstat | None:
    """What was counted between two readings; None where one is missing."""
    if earlier is None or later is None:
        return None
    return Schedstat(
        max(later.ran_ns - earlier.ran_ns, 0),
        max(later.waited_ns - earlier.waited_ns, 0),
        max(later.timeslices - earlier.timeslices, 0),
    )


def _is_count(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= 20
