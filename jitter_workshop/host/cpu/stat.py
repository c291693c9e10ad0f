"""Read /proc/stat: each CPU's time since boot by use, steal included (proc(5), Documentation/filesystems/proc.rst)."""

from __future__ import annotations

import os
from collections.abc import Iterable

from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.record import dataclass, field

_LARGE_TABLE_BYTES = 8 << 20
_FIELDS = 10


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Hold the ticks of one CPU since boot, in the kernel's order; fields that an old kernel lacks are 0."""

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
    def total(self) -> int:
        """Return all time, counted once: user time already includes guest time."""
        return self.user + self.nice + self.system + self.idle + self.iowait + self.irq + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class CpuStat:
    """Hold /proc/stat in figures. ``per_cpu``: online CPUs only.

    ``steal_available``: every kernel prints a steal column, but where the hypervisor gives no steal clock it stays 0.
    So it is True where any steal was ever counted, False where the host is known not to be a guest, and None (unknown)
    in a guest that shows 0 everywhere.
    """

    per_cpu: dict[int, CpuTimes] = field(default_factory=dict)
    ticks_per_second: int = 100
    steal_available: bool | None = None
    reason: str = ""

    @property
    def tick_ns(self) -> int:
        """Return the resolution of every time here, 10 ms on nearly every kernel (USER_HZ)."""
        return 1_000_000_000 // self.ticks_per_second

    @property
    def steal_percent(self) -> float | None:
        """Return the share of all CPU time since boot that the hypervisor gave to others; None without a steal
        clock."""
        total = sum(t.total for t in self.per_cpu.values())
        if self.steal_available is not True or not total:
            return None
        return 100.0 * sum(t.steal for t in self.per_cpu.values()) / total


def read_stat(root: HostRoot, guest: bool | None = None) -> CpuStat:
    """Read /proc/stat. ``guest``: the result of ``hypervisor.read_hypervisor``, for ``steal_available``."""
    reading = root.reading("/proc/stat", _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CpuStat(reason=f"/proc/stat: {reading.reason}")
    return parse_stat(reading.text, guest, 100 if root.recorded else os.sysconf("SC_CLK_TCK"))


def steal_between(earlier: CpuStat, later: CpuStat, cpus: Iterable[int] | None = None) -> int | None:
    """Return the steal of ``cpus`` in ns between two readings, a multiple of ``later.tick_ns``.

    Return None where there is no steal clock, or this is unknown. Hypervisors may correct the counter downwards; that
    counts as nothing stolen.
    """
    chosen = tuple(later.per_cpu if cpus is None else cpus)
    if later.steal_available is not True or any(c not in later.per_cpu or c not in earlier.per_cpu for c in chosen):
        return None
    ticks = sum(max(0, later.per_cpu[c].steal - earlier.per_cpu[c].steal) for c in chosen)
    return ticks * later.tick_ns


def parse_stat(text: str, guest: bool | None = None, ticks_per_second: int = 100) -> CpuStat:
    """Parse /proc/stat; damaged lines are left out, nothing raises."""
    per_cpu: dict[int, CpuTimes] = {}
    for line in text.split("\n"):
        name, *words = line.split(None, _FIELDS + 1) or ("",)
        number = name.removeprefix("cpu")
        if number == name or not is_count(number) or len(number) > 6:
            continue
        if len(words) >= 4 and all(map(is_count, words[:_FIELDS])):
            per_cpu[int(number)] = CpuTimes(*map(int, words[:_FIELDS]))
    stolen = any(t.steal for t in per_cpu.values())
    return CpuStat(
        per_cpu=per_cpu,
        ticks_per_second=max(ticks_per_second, 1),
        steal_available=True if stolen else (False if guest is False else None),
        reason="" if per_cpu else "/proc/stat: names no CPU",
    )
