"""What a tunable sees: one host below one root, the hot CPUs, and readings that several tunables share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.cpu.topology import CPU_DIR, online_cpus, read_topology
from jitter_workshop.host.kernel.hypervisor import Hypervisor, read_hypervisor
from jitter_workshop.host.kernel.release import (
    UNKNOWN_ARCHITECTURE,
    Kernel,
    KernelConfig,
    read_kernel,
    read_kernel_config,
)
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.topology import Topology

if TYPE_CHECKING:
    from jitter_workshop.host.boot.bootloader import BootLoader
    from jitter_workshop.host.boot.cmdline import CommandLine
    from jitter_workshop.host.boot.next_boot import OneBoot
    from jitter_workshop.host.cpu.cpufreq import FrequencyPolicy
    from jitter_workshop.host.cpu.isolation import BootIsolation, Isolation
    from jitter_workshop.host.services import Services
    from jitter_workshop.host.tasks.listing import Task


_WHOEVER_IS_ONLINE = (
    *("identity", "hypervisor", "kernel", "kernel_config", "services", "processes"),
    *("isolation", "boot_isolation", "one_boot", "own_entry", "boot_loader"),
)
"""Readings that do not depend on which CPUs are online."""
_X86 = ("x86_64", "i386", "i486", "i586", "i686", "x86", "amd64")


class Host:
    """One reading of a host: made for one ``status``, ``plan`` or ``apply`` and then thrown away, because everything
    that is read once is kept.

    Every online CPU is one of three:

    * ``hot``: it runs a latency-critical thread;
    * a sibling (``siblings``): it is not hot, and shares a core with a hot one. A thread there takes execution units
      and first-level cache from the hot CPU, so work is kept off it as off the hot one;
    * ``housekeeping``: neither. Interrupts, workqueues, kernel threads and everything else belong there.

    Where every other CPU is a sibling, the siblings are the housekeeping CPUs, because somebody has to do the work;
    ``crowded`` says so. Where every CPU is hot, there is no housekeeping CPU. ``kept_clear`` are all that work is kept
    off: the online CPUs without ``housekeeping``.
    """

    def __init__(self, root: HostRoot, hot: CpuSet, topology: Topology | None = None) -> None:
        self.root = root
        self.hot = hot
        if topology is not None:
            self.__dict__["topology"] = topology

    @cached_property
    def topology(self) -> Topology:
        return read_topology(self.root)

    @cached_property
    def online(self) -> CpuSet:
        if "topology" in self.__dict__:
            return self.topology.online
        return online_cpus(self.root, dict(self.root.numbered(CPU_DIR, "cpu")))

    @cached_property
    def siblings(self) -> CpuSet:
        """Online CPUs that share a core with a hot one and are not hot themselves."""
        return self.topology.siblings_of(self.hot)

    @cached_property
    def housekeeping(self) -> CpuSet:
        """The CPUs for everything that is not latency-critical; none where every CPU is hot."""
        return self.not_hot - self.siblings or self.not_hot

    @property
    def not_hot(self) -> CpuSet:
        """Online CPUs that are not hot: housekeeping CPUs and siblings."""
        return self.online - self.hot

    def without(self, leaving: CpuSet) -> Host:
        """The same reading as if the CPUs ``leaving`` were offline."""
        rest = Host(self.root, self.hot - leaving)
        kept = {name: value for name, value in self.__dict__.items() if name in _WHOEVER_IS_ONLINE}
        near = {node: cpus - leaving for node, cpus in self.nodes.items() if cpus - leaving}
        rest.__dict__ |= kept | {"online": self.online - leaving, "siblings": self.siblings - leaving, "nodes": near}
        return rest

    @property
    def crowded(self) -> bool:
        """Whether the housekeeping CPUs are siblings of hot ones, for want of others."""
        return bool(self.housekeeping & self.siblings)

    @cached_property
    def kept_clear(self) -> CpuSet:
        """The CPUs that work is kept off: the hot ones and, where others are left for it, their siblings."""
        return self.hot | self.clear_siblings

    @property
    def clear_siblings(self) -> CpuSet:
        """The siblings that work is kept off, which are all of them or, where the host is ``crowded``, none."""
        return self.siblings - self.housekeeping

    @property
    def clear_words(self) -> str:
        """What ``kept_clear`` is."""
        return "hot CPUs or their siblings" if self.clear_siblings else "hot CPUs"

    def instead_of(self, cpus: CpuSet) -> CpuSet:
        """The housekeeping CPUs for what may run on ``cpus`` now: those among them; else those of the same memory
        nodes, so that what belongs to a node stays there; else all."""
        among = cpus & self.housekeeping
        if among or len(self.nodes) < 2:
            return among or self.housekeeping
        near = CpuSet()
        for on_node in self.nodes.values():
            near |= on_node if on_node & cpus else CpuSet()
        return near & self.housekeeping or self.housekeeping

    @cached_property
    def nodes(self) -> dict[int, CpuSet]:
        """The online CPUs of each memory node that has any, by the node's number."""
        found: dict[int, list[int]] = {}
        for cpu in self.topology.cpus:
            if cpu.online:
                found.setdefault(cpu.node, []).append(cpu.id)
        return {node: CpuSet.of(cpus) for node, cpus in sorted(found.items())}

    @cached_property
    def identity(self) -> CpuIdentity:
        return read_cpu_identity(self.root)

    @cached_property
    def hypervisor(self) -> Hypervisor:
        return read_hypervisor(self.root, self.identity)

    @cached_property
    def guest(self) -> bool:
        """Whether this is a virtual machine; unknown counts as no."""
        return bool(self.hypervisor.guest)

    @cached_property
    def kernel(self) -> Kernel:
        return read_kernel(self.root, self.identity)

    @property
    def other_than_x86(self) -> str:
        """The processor's architecture where it is known and is not x86; "" otherwise."""
        if self.identity.flags is not None:
            return ""
        name = self.kernel.architecture
        return "" if name in _X86 or name == UNKNOWN_ARCHITECTURE else name

    @cached_property
    def kernel_config(self) -> KernelConfig:
        """What the running kernel was built with; unpacking it costs milliseconds."""
        return read_kernel_config(self.root, self.kernel.release)

    @cached_property
    def hot_policies(self) -> tuple[FrequencyPolicy, ...]:
        """The frequency policies that a hot CPU belongs to; () where the host has none."""
        from jitter_workshop.host.cpu.cpufreq import policy_folders, read_policy

        found = (read_policy(self.root, next(iter(cpus))) for cpus in policy_folders(self.root, self.hot).values())
        return tuple(policy for policy in found if policy is not None)

    @cached_property
    def services(self) -> Services:
        """Known services that run: tuners that rewrite settings, and others that take time."""
        from jitter_workshop.host.services import read_services

        return read_services(self.root, self.processes)

    @cached_property
    def processes(self) -> tuple[Task, ...]:
        """Every process and kernel thread; one pass over /proc for all who ask."""
        from jitter_workshop.host.tasks.listing import each_process

        return tuple(each_process(self.root))

    @property
    def unseen(self) -> str:
        """Why nothing can be said of what runs here, "" where it can."""
        return "" if self.processes else "nothing that runs here can be seen: /proc shows no process"

    @cached_property
    def isolation(self) -> Isolation:
        """Which CPUs the kernel leaves alone now."""
        from jitter_workshop.host.cpu.isolation import read_isolation

        return read_isolation(self.root)

    @cached_property
    def boot_isolation(self) -> BootIsolation:
        """Which CPUs the boot parameters ask it to leave alone."""
        from jitter_workshop.host.cpu.isolation import read_boot_isolation

        return read_boot_isolation(self.root)

    @property
    def command_line(self) -> CommandLine:
        """The running kernel's boot parameters."""
        return self.boot_isolation.command_line

    @cached_property
    def one_boot(self) -> OneBoot:
        """Whether the boot loader takes an entry for one boot."""
        from jitter_workshop.host.boot.next_boot import one_boot

        return one_boot(self.root)

    @cached_property
    def own_entry(self) -> tuple[str, tuple[str, ...], bool]:
        """Our entry for one boot: GRUB's folder, the parameters that were added, and whether it is booted next; ("",
        (), False) where there is none."""
        from jitter_workshop.host.boot import next_boot
        from jitter_workshop.host.boot.grubcfg import NotUnderstood

        for folder in next_boot.FOLDERS:
            try:
                own = next_boot.own_entry(self.root, folder)
                if own is not None:
                    return folder, own.added, next_boot.next_entry(self.root, folder) == next_boot.ENTRY_ID
            except NotUnderstood:
                continue
        return "", (), False

    @cached_property
    def boot_loader(self) -> BootLoader:
        """Who gives the kernel its parameters at the next boot."""
        from jitter_workshop.host.boot.bootloader import read_boot_loader

        return read_boot_loader(self.root)
