"""Define the machine's CPUs, cores, packages, nodes and caches (frozen, plain data)."""

from __future__ import annotations

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Cpu:
    """Hold one logical CPU. ``core_type`` is ``performance``, ``efficiency``, or None where all are alike or unknown.

    ``smt_siblings``: the online threads of its core, itself included, as the kernel lists them. An offline CPU shows
    neither package, core nor node: they are -1.
    """

    id: int
    package: int
    core: int
    node: int
    online: bool
    allowed: bool
    smt_siblings: CpuSet
    core_type: str | None = None


@dataclass(frozen=True, slots=True)
class Cache:
    """Hold one cache: level (1..4), kind (``Data``, ``Instruction``, ``Unified``), size and the CPUs that share it."""

    level: int
    kind: str
    size_bytes: int | None
    cpus: CpuSet


@dataclass(frozen=True, slots=True)
class Topology:
    """Hold all CPUs of a host in number order, and its caches."""

    cpus: tuple[Cpu, ...]
    caches: tuple[Cache, ...]

    @property
    def online(self) -> CpuSet:
        return CpuSet.of(c.id for c in self.cpus if c.online)

    @property
    def allowed(self) -> CpuSet:
        """Return the online CPUs that this process may use (affinity mask and cgroup)."""
        return CpuSet.of(c.id for c in self.cpus if c.online and c.allowed)

    def siblings_of(self, cpus: CpuSet) -> CpuSet:
        """Return the other online threads of the cores of ``cpus``; none of ``cpus`` themselves."""
        found = CpuSet()
        for number in cpus:
            cpu = self.cpu(number)
            found |= cpu.smt_siblings if cpu is not None else CpuSet()
        return (found & self.online) - cpus

    def cpu(self, number: int) -> Cpu | None:
        """Return the CPU of that number; None where there is none."""
        if 0 <= number < len(self.cpus) and self.cpus[number].id == number:
            return self.cpus[number]
        return next((c for c in self.cpus if c.id == number), None)

    def last_level_cache(self, number: int) -> Cache | None:
        """Return the cache of the highest level that this CPU belongs to; None where the kernel shows none."""
        mine = [c for c in self.caches if number in c.cpus and c.kind != "Instruction"]
        return max(mine, key=lambda c: c.level, default=None)
