"""Read the counters that need no rights: before a run's first block and after its last."""

from __future__ import annotations

import time
from collections.abc import Iterator

from jitter_workshop.host.cpu.stat import (
    CpuSchedstats,
    CpuStat,
    cpu_schedstats,
    read_stat,
    schedstat_between,
    steal_between,
)
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Counters, CpuCounters

_PARANOID = "/proc/sys/kernel/perf_event_paranoid"


@dataclass(frozen=True, slots=True)
class _Look:
    at_ns: int
    schedstats: CpuSchedstats
    stat: CpuStat


class Counting:
    """Count what happens on ``cpus`` between ``begin`` and ``end``. A run's threads are counted by its child, block by
    block (``bench.worker``)."""

    def __init__(self, root: HostRoot, cpus: CpuSet) -> None:
        self._root = root
        self._cpus = cpus
        self._guest = read_hypervisor(root).guest
        self._before: _Look | None = None
        self._after: _Look | None = None

    def begin(self) -> None:
        self._before = self._look()

    def end(self) -> None:
        """Read the counters again; nothing where ``begin`` was not called."""
        if self._before is not None:
            self._after = self._look()

    def counters(self, why_no_trace: str) -> Counters | None:
        """Return the growth of the counters; None where no block was measured."""
        before, after = self._before, self._after
        if before is None or after is None:
            return None
        return Counters(
            why_no_trace=why_no_trace,
            counted_ns=after.at_ns - before.at_ns,
            cpus=tuple(self._per_cpu(before, after)),
            perf_event_paranoid=self._root.integer(_PARANOID),
        )

    def _look(self) -> _Look:
        return _Look(time.monotonic_ns(), cpu_schedstats(self._root), read_stat(self._root, self._guest))

    def _per_cpu(self, before: _Look, after: _Look) -> Iterator[CpuCounters]:
        for cpu in self._cpus:
            tasks = schedstat_between(before.schedstats.per_cpu.get(cpu), after.schedstats.per_cpu.get(cpu))
            steal_ns = steal_between(before.stat, after.stat, (cpu,))
            if tasks is None:
                yield CpuCounters(cpu, None, None, None, steal_ns)
            else:
                yield CpuCounters(cpu, tasks.ran_ns, tasks.waited_ns, tasks.timeslices, steal_ns)

    def notes(self) -> dict[str, str]:
        """Return a reason for every null of the counters, by its path in the run."""
        before, after = self._before, self._after
        found: dict[str, str] = {}
        if before is None or after is None:
            return found
        if any(cpu not in look.schedstats.per_cpu for cpu in self._cpus for look in (before, after)):
            reason = after.schedstats.reason or "/proc/schedstat: does not have this CPU"
            found["counters.cpus.ran_ns"] = f"{reason} (CONFIG_SCHEDSTATS)"
            found["counters.cpus.waited_ns"] = found["counters.cpus.timeslices"] = "see counters.cpus.ran_ns"
        if any(steal_between(before.stat, after.stat, (cpu,)) is None for cpu in self._cpus):
            found["counters.cpus.steal_ns"] = after.stat.reason or (
                "not a guest: no hypervisor can steal time"
                if after.stat.steal_available is False
                else "this guest has shown no steal since boot: it may have no steal clock"
            )
        paranoid = self._root.reading(_PARANOID)
        if parse_integer(paranoid.text) is None:
            reason = paranoid.reason or "does not hold a whole number"
            found["counters.perf_event_paranoid"] = f"{_PARANOID}: {reason}"
        return found
