"""Read how each CPU spent its time since boot, including steal. Also read how long tasks ran on each CPU, and how long
tasks waited for each CPU.

/proc/stat: proc(5), Documentation/filesystems/proc.rst.

/proc/schedstat: Documentation/scheduler/sched-stats.rst. Kernels with CONFIG_SCHEDSTATS show this file to every user.
Its times are in ns. The document says "jiffies", but this was true only before kernel 2.6.23. The kernel adds a task's
time only when the task gets or leaves the CPU. So a reading lacks the time since the task last got or left the CPU.

A thread reads its own figures (/proc/PID/task/TID/schedstat, CONFIG_SCHED_INFO) with ``jw_thread_usage``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.record import dataclass, field

_LARGE_TABLE_BYTES = 8 << 20
_FIELDS = 10
_OLDEST_SCHEDSTAT = 15
_SCHEDSTAT_FIELDS = 9


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Hold one CPU's ticks since boot. Each field counts the ticks of one use of the CPU, such as interrupts. The
    fields have the kernel's order. Fields that an old kernel lacks are 0."""

    user: int = 0
    nice: int = 0
    system: int = 0
    idle: int = 0
    iowait: int = 0
    irq: int = 0
    softirq: int = 0
    steal: int = 0
    guest: int = 0
    guest_nice: int = 0

    @property
    def tasks(self) -> int:
        """Return the ticks in which the CPU ran tasks, both in their programs and in the kernel."""
        return self.user + self.nice + self.system

    @property
    def total(self) -> int:
        """Return the sum of the CPU's ticks. Guest time is not added separately, because user time includes it."""
        return self.tasks + self.idle + self.iowait + self.irq + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class CpuStat:
    """Hold the figures in /proc/stat. ``per_cpu``: the figures of each online CPU.

    ``steal_available``: True if the host has counted steal, False if it is not a guest, None if unknown. In a guest, a
    steal of 0 does not prove that the hypervisor took no time. Every kernel shows the column of the
    steal, even without a steal clock.
    """

    per_cpu: dict[int, CpuTimes] = field(default_factory=dict)
    ticks_per_second: int = 100
    steal_available: bool | None = None
    reason: str = ""

    @property
    def tick_ns(self) -> int:
        """Return the length of a tick of /proc/stat in ns: 10 ms on nearly every kernel (USER_HZ)."""
        return 1_000_000_000 // self.ticks_per_second

    @property
    def why_no_steal(self) -> str:
        """Return the reason why the steal is unknown. The reason is valid only after ``steal_between`` has returned
        None."""
        if self.reason:
            return self.reason
        if self.steal_available is False:
            return "this is not a guest: no hypervisor can steal time"
        return "no steal since boot: it is not known whether this guest has a steal clock"

    @property
    def steal_percent(self) -> float | None:
        """Return the share of steal in the CPU time since boot in percent. Return None without a steal clock."""
        total = sum(t.total for t in self.per_cpu.values())
        if self.steal_available is not True or not total:
            return None
        return 100.0 * sum(t.steal for t in self.per_cpu.values()) / total


@dataclass(frozen=True, slots=True)
class Schedstat:
    """Hold the scheduler's sums over all tasks of a CPU, since boot or between two readings.

    ``ran_ns``: time on the CPU. ``waited_ns``: time in the CPU's queue, runnable but not running (the run delay).
    ``timeslices``: how often a task got the CPU.
    """

    ran_ns: int
    waited_ns: int
    timeslices: int


@dataclass(frozen=True, slots=True)
class CpuSchedstats:
    """Hold the figures of each CPU in /proc/schedstat. ``reason``: the reason why ``per_cpu`` is empty, or ""."""

    per_cpu: dict[int, Schedstat] = field(default_factory=dict)
    reason: str = ""


def read_stat(root: HostRoot, guest: bool | None = None) -> CpuStat:
    """Return the figures in /proc/stat. ``guest``: True in a virtual machine, None if unknown. This value decides
    ``steal_available``."""
    reading = root.reading("/proc/stat", _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CpuStat(reason=f"/proc/stat: {reading.reason}")
    return parse_cpu_stat(reading.text, guest, 100 if root.recorded else os.sysconf("SC_CLK_TCK"))


def steal_between(earlier: CpuStat, later: CpuStat, cpus: Iterable[int] | None = None) -> int | None:
    """Return the steal of ``cpus`` between two readings in ns, counted in whole ticks. ``cpus``: None means all CPUs.

    Return None if it is possible that the host does not count steal, or if a reading lacks one of the CPUs. If a CPU's
    counter is smaller in the later reading, this CPU adds 0. Some hypervisors let the counter become smaller.
    """
    chosen = tuple(later.per_cpu if cpus is None else cpus)
    if later.steal_available is not True or any(c not in later.per_cpu or c not in earlier.per_cpu for c in chosen):
        return None
    ticks = sum(max(0, later.per_cpu[c].steal - earlier.per_cpu[c].steal) for c in chosen)
    return ticks * later.tick_ns


def parse_cpu_stat(text: str, guest: bool | None = None, ticks_per_second: int = 100) -> CpuStat:
    """Return the figures in the text of /proc/stat. Damaged lines are left out. Never raise an error."""
    per_cpu = {cpu: CpuTimes(*numbers) for cpu, numbers in _rows(text, 4, _FIELDS)}
    steal = any(t.steal for t in per_cpu.values())
    return CpuStat(
        per_cpu=per_cpu,
        ticks_per_second=max(ticks_per_second, 1),
        steal_available=True if steal else (False if guest is False else None),
        reason="" if per_cpu else "/proc/stat lists no CPU",
    )


def cpu_schedstats(root: HostRoot) -> CpuSchedstats:
    """Return each CPU's figures in /proc/schedstat."""
    reading = root.reading("/proc/schedstat", _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CpuSchedstats(reason=f"/proc/schedstat: {reading.reason}")
    return parse_cpu_schedstats(reading.text)


def parse_cpu_schedstats(text: str) -> CpuSchedstats:
    """Return each CPU's figures in the text of /proc/schedstat. They are the last three of the nine numbers after
    ``cpuN``. Lines that are not about a CPU are left out."""
    first = text.partition("\n")[0].split()
    if len(first) != 2 or first[0] != "version" or not is_count(first[1]):
        return CpuSchedstats(reason="/proc/schedstat shows no version")
    if int(first[1]) < _OLDEST_SCHEDSTAT:
        return CpuSchedstats(reason=f"/proc/schedstat has version {first[1]}, older than {_OLDEST_SCHEDSTAT}")
    rows = _rows(text, _SCHEDSTAT_FIELDS, _SCHEDSTAT_FIELDS + 1)
    per_cpu = {cpu: Schedstat(*numbers[-3:]) for cpu, numbers in rows if len(numbers) == _SCHEDSTAT_FIELDS}
    return CpuSchedstats(per_cpu, "" if per_cpu else "/proc/schedstat lists no CPU")


def _rows(text: str, least: int, most: int) -> Iterator[tuple[int, list[int]]]:
    """Yield (CPU, numbers) for each row that begins with ``cpuN``. Other rows of the text are left out. ``least``: a
    row with fewer numbers is left out. ``most``: the greatest count of numbers for a row; further numbers are
    ignored."""
    for line in text.split("\n"):
        name, *words = line.split(None, most + 1)[: most + 1] or ("",)
        number = name.removeprefix("cpu")
        named = number != name and is_count(number) and len(number) <= 6
        if named and len(words) >= least and all(map(is_count, words)):
            yield int(number), [int(word) for word in words]


def schedstat_between(earlier: Schedstat | None, later: Schedstat | None) -> Schedstat | None:
    """Return the difference between two readings; None if one of the two is None."""
    if earlier is None or later is None:
        return None
    return Schedstat(
        max(later.ran_ns - earlier.ran_ns, 0),
        max(later.waited_ns - earlier.waited_ns, 0),
        max(later.timeslices - earlier.timeslices, 0),
    )
