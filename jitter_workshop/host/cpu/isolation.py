"""Read the CPUs that the scheduler or the tick leave alone.

Sources: Documentation/admin-guide/kernel-parameters.txt (isolcpus, nohz_full); cgroup-v2.rst
(cpuset.cpus.partition).
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets, isolated_at_run_time
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

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


def read_isolation(root: HostRoot) -> Isolation:
    """Read the three lists; without nohz_full the kernel writes ``(null)``, which is an empty list."""
    partitions = next((found for path in PARTITIONS if (found := root.cpu_list(path)) is not None), None)
    if partitions is None and (sets := find_cpusets(root)) is not None:
        partitions = isolated_at_run_time(root, sets)
    return Isolation(root.cpu_list(f"{CPU_DIR}/isolated"), partitions, root.cpu_list(NOHZ_FULL))


def last_cpu(root: HostRoot) -> int | None:
    """Return the largest possible CPU number, which a list may write as ``N``; None where it is not shown."""
    possible = root.cpu_list(f"{CPU_DIR}/possible")
    return possible.cpus[-1] if possible else None
