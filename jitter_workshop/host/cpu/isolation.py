"""Read the CPUs that the scheduler, the tick or RCU leave alone.

Sources: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full, rcu_nocbs); cgroup-v2.rst
(cpuset.cpus.partition).
"""

from __future__ import annotations

from jitter_workshop.host.boot.cmdline import CommandLine, Isolcpus, parse_isolcpus, read_command_line
from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets, isolated_at_run_time
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

ISOLATED = f"{CPU_DIR}/isolated"
NOHZ_FULL = f"{CPU_DIR}/nohz_full"
PARTITIONS = ("/sys/fs/cgroup/cpuset.cpus.isolated", "/sys/fs/cgroup/unified/cpuset.cpus.isolated")


@dataclass(frozen=True, slots=True)
class Isolation:
    """Hold the CPUs that the kernel isolates now.

    ``boot``: by isolcpus. ``partitions``: at run time, by isolated cgroup partitions or the cpusets of version 1.
    ``nohz_full``: tickless when busy. Each is None where the kernel does not show it.
    """

    boot: CpuSet | None
    partitions: CpuSet | None
    nohz_full: CpuSet | None

    @property
    def isolated(self) -> CpuSet:
        """Return all CPUs that the load balancer leaves alone, as far as shown."""
        return (self.boot or CpuSet()) | (self.partitions or CpuSet())


@dataclass(frozen=True, slots=True)
class BootIsolation:
    """Hold the isolation that the boot parameters ask for; ``Isolation`` shows if the kernel could do it.

    CPU sets are None where the parameter was not given or is not a list. ``rcu_nocbs`` without a list means all CPUs.
    """

    isolcpus: Isolcpus | None
    nohz_full: CpuSet | None
    rcu_nocbs: CpuSet | None
    rcu_nocb_poll: bool
    irqaffinity: CpuSet | None
    kthread_cpus: CpuSet | None
    skew_tick: bool
    nosmt: bool
    command_line: CommandLine


def read_isolation(root: HostRoot) -> Isolation:
    """Read the three lists; without nohz_full the kernel writes ``(null)``, which is an empty list."""
    partitions = next((found for path in PARTITIONS if (found := root.cpu_list(path)) is not None), None)
    if partitions is None and (sets := find_cpusets(root)) is not None:
        partitions = isolated_at_run_time(root, sets)
    return Isolation(root.cpu_list(ISOLATED), partitions, root.cpu_list(NOHZ_FULL))


def read_boot_isolation(root: HostRoot) -> BootIsolation:
    """Read /proc/cmdline, and the largest possible CPU's number where a list says ``N``."""
    line = read_command_line(root)
    last = last_cpu(root)
    isolcpus = line.value("isolcpus")
    nocbs = line.cpus("rcu_nocbs", last)
    if nocbs is None and line.has("rcu_nocbs") and line.value("rcu_nocbs") is None and last is not None:
        nocbs = CpuSet.of(range(last + 1))
    return BootIsolation(
        isolcpus=parse_isolcpus(isolcpus, last) if isolcpus is not None else None,
        nohz_full=line.cpus("nohz_full", last),
        rcu_nocbs=nocbs,
        rcu_nocb_poll=line.has("rcu_nocb_poll"),
        irqaffinity=line.cpus("irqaffinity", last),
        kthread_cpus=line.cpus("kthread_cpus", last),
        skew_tick=line.value("skew_tick") == "1",
        nosmt=line.has("nosmt"),
        command_line=line,
    )


def last_cpu(root: HostRoot) -> int | None:
    """Return the largest possible CPU number, for which ``N`` stands in a list; None where it is not shown."""
    possible = root.cpu_list(f"{CPU_DIR}/possible")
    return possible.cpus[-1] if possible else None
