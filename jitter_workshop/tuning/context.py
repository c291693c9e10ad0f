"""Read the parts of a host that tunables need: the hot CPUs, and readings that several tunables share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from jitter_workshop.host.boot.bootloader import CUSTOM, ENTRY_ID, FOLDERS, BootLoader, read_boot_loader
from jitter_workshop.host.boot.cmdline import CommandLine, read_command_line
from jitter_workshop.host.cpu.cpufreq import FrequencyPolicy, policy_folders, read_policy
from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.cpu.topology import CPU_DIR, IsolatedCpus, online_cpus, read_isolation, read_topology
from jitter_workshop.host.kernel.hypervisor import Hypervisor, read_hypervisor
from jitter_workshop.host.kernel.release import (
    UNKNOWN_ARCHITECTURE,
    Kernel,
    KernelConfig,
    read_kernel,
    read_kernel_config,
)
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.services import Services, read_services
from jitter_workshop.host.tasks.listing import Task, each_process
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology

if TYPE_CHECKING:
    from jitter_workshop.host.boot.next_boot import OneBoot

_WHOEVER_IS_ONLINE = (
    *("identity", "hypervisor", "kernel", "kernel_config", "services", "processes"),
    *("isolation", "command_line", "one_boot", "own_entry", "boot_loader"),
)
"""Readings that do not depend on which CPUs are online."""
_X86 = ("x86_64", "i386", "i486", "i586", "i686", "x86", "amd64")


class Host:
    """Hold one reading of a host, made for one ``status``, ``plan`` or ``apply``.

    A Host reads each value only once, so each command makes a new Host. Every online CPU has one of three roles:

    * ``hot``: the CPU is reserved for a latency-critical thread. If all CPUs of a core are hot, only the first CPU runs
      such a thread. The core's other CPUs stay idle (``hot_siblings``), because a thread on them would slow the first
      CPU down.
    * ``siblings``: the CPU is not hot, but shares a core with a hot CPU. A thread on a sibling takes execution units
      and first-level cache from the hot CPU. So siblings get no background work, and are isolated with the hot CPUs.
    * ``housekeeping``: all other CPUs. Interrupts, workqueues, kernel threads and everything else belong there.

    A host is *crowded* if all CPUs that are not hot are siblings. On a crowded host the siblings are the housekeeping
    CPUs, because some CPU has to do the work. If every CPU is hot, there is no housekeeping CPU. ``kept_clear``: all
    online CPUs except the housekeeping CPUs.
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
        """Return the online CPUs that share a core with a hot one and are not hot themselves."""
        return self.topology.siblings_of(self.hot)

    @cached_property
    def hot_siblings(self) -> CpuSet:
        """Return the hot CPUs that stay idle: on each core, all except its first. But return no CPUs if all hot CPUs
        belong to one core: a workload with two threads needs two CPUs.
        """
        cores = {self.core(cpu) & self.hot for cpu in self.hot & self.online}
        return CpuSet() if len(cores) < 2 else CpuSet.of(cpu for core in cores for cpu in core.cpus[1:])

    @cached_property
    def housekeeping(self) -> CpuSet:
        """Return the CPUs for everything that is not latency-critical; none where every CPU is hot."""
        return self.not_hot - self.siblings or self.not_hot

    @property
    def not_hot(self) -> CpuSet:
        """Return the online CPUs that are not hot: housekeeping CPUs and siblings."""
        return self.online - self.hot

    def without(self, leaving: CpuSet) -> Host:
        """Return a copy of this reading as if the CPUs ``leaving`` were offline."""
        rest = Host(self.root, self.hot - leaving)
        kept = {name: value for name, value in self.__dict__.items() if name in _WHOEVER_IS_ONLINE}
        near = {node: cpus - leaving for node, cpus in self.nodes.items() if cpus - leaving}
        # The files are those of the real host, so its topology need not be read again.
        rest.__dict__ |= kept | {"topology": self.topology, "nodes": near}
        rest.__dict__ |= {"online": self.online - leaving, "siblings": self.siblings - leaving}
        return rest

    def core(self, cpu: int) -> CpuSet:
        """Return the online CPUs of the core that ``cpu`` belongs to, ``cpu`` included."""
        known = self.topology.cpu(cpu)
        return (known.smt_siblings if known is not None else CpuSet()) & self.online | CpuSet((cpu,))

    @cached_property
    def second_threads(self) -> CpuSet:
        """Return the online threads of each core except the first.

        The kernel takes these CPUs offline when SMT is switched off
        (Documentation/ABI/testing/sysfs-devices-system-cpu, ``smt/control``).
        """
        return CpuSet.of(cpu for cpu in self.online if self.core(cpu).cpus[0] != cpu)

    @cached_property
    def kept_clear(self) -> CpuSet:
        """Return the CPUs that should get no background work: the hot CPUs and their siblings. On a crowded host,
        return only the hot CPUs."""
        return self.hot | self.clear_siblings

    @property
    def clear_siblings(self) -> CpuSet:
        """Return the siblings that should get no background work: all siblings, or none if the host is crowded."""
        return self.siblings - self.housekeeping

    @property
    def clear_words(self) -> str:
        """Return a name for the CPUs in ``kept_clear``: "hot CPUs", or "hot CPUs or their siblings"."""
        return "hot CPUs or their siblings" if self.clear_siblings else "hot CPUs"

    def instead_of(self, cpus: CpuSet) -> CpuSet:
        """Return the housekeeping CPUs that a task or interrupt gets instead of ``cpus``.

        If some of ``cpus`` are housekeeping CPUs, return only these. Otherwise return the housekeeping CPUs on the same
        memory nodes as ``cpus``, so that a task stays on its node. If these nodes have no housekeeping CPU, return all
        housekeeping CPUs.
        """
        among = cpus & self.housekeeping
        if among or len(self.nodes) < 2:
            return among or self.housekeeping
        near = CpuSet()
        for on_node in self.nodes.values():
            near |= on_node if on_node & cpus else CpuSet()
        return near & self.housekeeping or self.housekeeping

    @cached_property
    def nodes(self) -> dict[int, CpuSet]:
        """Return the online CPUs of each memory node, by node number; a node without online CPUs is left out."""
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
        """Return True if this is a virtual machine; False where that is unknown."""
        return bool(self.hypervisor.guest)

    @cached_property
    def kernel(self) -> Kernel:
        return read_kernel(self.root, self.identity)

    @property
    def other_than_x86(self) -> str:
        """Return the processor's architecture if it is known and is not x86; "" otherwise."""
        if self.identity.flags is not None:
            return ""
        name = self.kernel.architecture
        return "" if name in _X86 or name == UNKNOWN_ARCHITECTURE else name

    @cached_property
    def kernel_config(self) -> KernelConfig:
        """Return the build configuration of the running kernel; unpacking it takes milliseconds."""
        return read_kernel_config(self.root, self.kernel.release)

    @cached_property
    def hot_policies(self) -> tuple[FrequencyPolicy, ...]:
        """Return the frequency policies that contain a hot CPU. Return () if the host has no frequency policies."""
        return tuple(read_policy(self.root, folder) for folder in policy_folders(self.root, self.hot))

    @cached_property
    def services(self) -> Services:
        """Return the known services that run: tuners that rewrite settings, and others that take CPU time."""
        return read_services(self.root, self.processes)

    @cached_property
    def processes(self) -> tuple[Task, ...]:
        """Return every process and kernel thread; /proc is read once for all callers."""
        return tuple(each_process(self.root))

    @property
    def unseen(self) -> str:
        """Return the reason why no running task can be seen on this host; "" if tasks can be seen."""
        return "" if self.processes else "no running task is visible: /proc shows no process"

    @cached_property
    def isolation(self) -> IsolatedCpus:
        """Return the isolated CPUs (since boot, and by partitions) and the tickless CPUs."""
        return read_isolation(self.root)

    @cached_property
    def command_line(self) -> CommandLine:
        """Return the running kernel's boot parameters."""
        return read_command_line(self.root)

    @cached_property
    def one_boot(self) -> OneBoot:
        """Return GRUB's files and values for a menu entry for one boot. If such an entry is not possible, the result
        has the reason."""
        from jitter_workshop.host.boot.next_boot import one_boot

        return one_boot(self.root)

    @cached_property
    def own_entry(self) -> tuple[str, tuple[str, ...], bool]:
        """Return three facts about this tool's GRUB menu entry for one boot.

        They are: GRUB's folder, the added parameters, and True if GRUB boots the entry next. Return ("", (), False) if
        there is no such entry.
        """
        # Most hosts have no such file, and load no parser of GRUB's menus for it.
        found = [one for one in FOLDERS if self.root.reading(f"{one}/{CUSTOM}", 65_536).reason != "no such file"]
        if not found:
            return "", (), False
        from jitter_workshop.host.boot.grub import NotUnderstood
        from jitter_workshop.host.boot.next_boot import next_boot_entry, own_entry

        for folder in found:
            try:
                own = own_entry(self.root, folder)
                if own is not None:
                    return folder, own.added, next_boot_entry(self.root, folder) == ENTRY_ID
            except NotUnderstood:
                continue
        return "", (), False

    @cached_property
    def boot_loader(self) -> BootLoader:
        """Return the boot loader, which gives the kernel its parameters at the next boot."""
        return read_boot_loader(self.root, self.hypervisor.name)
