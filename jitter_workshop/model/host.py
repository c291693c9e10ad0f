"""Define a host: its CPUs and caches, and the summary that is stored with every run and shown on the home screen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field


@dataclass(frozen=True, slots=True)
class Cpu:
    """Hold one logical CPU.

    - ``core_type``: ``performance`` or ``efficiency``. None if all CPUs are alike, or if the type is not known.
    - ``smt_siblings``: the online hardware threads of this CPU's core, including this CPU.
    - ``package``, ``core``, ``node``: -1 for an offline CPU.
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
    """Hold all CPUs of a host in the order of their numbers, and all caches of the host."""

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
        """Return the online SMT siblings of ``cpus``, without ``cpus`` themselves."""
        found = CpuSet()
        for number in cpus:
            cpu = self.cpu(number)
            found |= cpu.smt_siblings if cpu is not None else CpuSet()
        return (found & self.online) - cpus

    def cpu(self, number: int) -> Cpu | None:
        """Return the CPU with this number; None if this host has no such CPU."""
        if 0 <= number < len(self.cpus) and self.cpus[number].id == number:
            return self.cpus[number]
        return next((c for c in self.cpus if c.id == number), None)

    def last_level_cache(self, number: int) -> Cache | None:
        """Return this CPU's cache of the highest level; None if the kernel shows none."""
        mine = [c for c in self.caches if number in c.cpus and c.kind != "Instruction"]
        return max(mine, key=lambda c: c.level, default=None)


RECORDED_HOST = "This is a recorded host, not this machine."
EMULATED, GUEST = "emulated", "guest"
"""The marks of measured times and curves. EMULATED: they come from an emulated machine. GUEST: they come from a
practice machine with KVM."""


MARK_NOTE = "mark"
"""The key of the note that says what a mark means. Each run and each report with a mark has this note."""
_MEANINGS = {
    EMULATED: "the CPUs are emulated (QEMU without KVM): the counts are real, and the times mean nothing",
    GUEST: "measured in a practice machine with KVM: these are the times of a guest",
}
NO_VERDICT = "this machine is emulated, so its times mean nothing and no verdict is given on them"
"""The reason why times of an emulated machine get no verdict. It is also shown for runs from another emulated host."""


def mark_notes(mark: str) -> dict[str, str]:
    """Return a dict with the note that explains a mark; {} without a mark. Runs and reports add this dict to their
    notes."""
    return {MARK_NOTE: _MEANINGS[mark]} if mark in _MEANINGS else {}


def mark_in(notes: Mapping[str, str]) -> str:
    """Return the mark that is explained in the notes of a run or a report; "" for none. The function :func:`mark_notes`
    makes these notes."""
    return next((mark for mark, meaning in _MEANINGS.items() if notes.get(MARK_NOTE) == meaning), "")


def mark_of(host: Mapping[str, Any]) -> str:
    """Return the mark for all times and curves that are measured on a host: ``emulated``, ``guest``, or "" for none.
    ``host``: the host's summary, as stored with a run."""
    if host.get("emulated") is True:
        return EMULATED
    return GUEST if host.get("accelerator") == "kvm" else ""


@dataclass(frozen=True, slots=True)
class HostSummary:
    """Hold the main facts of a host. A fact that this host does not show is None, with the reason in ``notes``.

    - ``cpu_max_quota_us``, ``cpu_max_period_us``: the cgroup's limit on CPU time, None if there is no limit.
    - ``steal_percent``: the percentage of the CPU time since boot that the hypervisor took. None if there is no steal
      clock.
    - ``packages``: number of sockets with online CPUs.
    - ``smt``: True if any online core has two online threads.
    - ``recorded``: True if the facts come from a recorded host. Then the facts on limits and allowed CPUs do not
      describe this process.
    - ``emulated``: True if a program emulates the processors (QEMU without KVM), so that times mean nothing. None if
      not known.
    - ``accelerator``: ``tcg`` or ``kvm`` in a practice machine, None on any other host.
    """

    name: str
    kernel: str
    architecture: str
    cpu_model: str | None
    hypervisor: str | None
    cpus_online: tuple[int, ...]
    cpus_allowed: tuple[int, ...]
    isolated: tuple[int, ...]
    nohz_full: tuple[int, ...]
    governors: tuple[str, ...]
    cpuidle_driver: str | None
    clocksource: str | None
    thermal_zones: int
    realtime_kernel: bool | None
    steal_percent: float | None
    cpu_max_quota_us: int | None
    cpu_max_period_us: int | None
    on_battery: bool | None
    memlock_limit_bytes: int | None
    is_root: bool
    boot_id: str | None
    notes: dict[str, str] = field(default_factory=dict)
    packages: int | None = None
    smt: bool | None = None
    hottest_celsius: float | None = None
    recorded: bool = False
    emulated: bool | None = None
    accelerator: str | None = None

    @property
    def mark(self) -> str:
        """Return the mark that times and curves measured on this host get, such as ``emulated``; "" for none."""
        return mark_of({"emulated": self.emulated, "accelerator": self.accelerator})
