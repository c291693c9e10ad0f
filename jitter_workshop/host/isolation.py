"""CPUs that the scheduler or the tick leave alone (Documentation/admin-guide/kernel-parameters.txt: isolcpus,
nohz_full; cgroup-v2.rst: cpuset.cpus.partition)."""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.topology import CPU_DIR
from jitter_workshop.model.cpuset import CpuSet


@dataclass(frozen=True, slots=True)
class Isolation:
    """``boot``: by isolcpus. ``partitions``: by isolated cgroup partitions at run time (kernels from 6.7 say so).
    ``nohz_full``: tickless when busy. Each is None where the kernel does not show it."""

    boot: CpuSet | None
    partitions: CpuSet | None
    nohz_full: CpuSet | None

    @property
    def isolated(self) -> CpuSet:
        """All CPUs that the load balancer leaves alone, as far as shown."""
        return (self.boot or CpuSet()) | (self.partitions or CpuSet())


def read_isolation(root: HostRoot) -> Isolation:
    """Read the three lists; without nohz_full the kernel writes ``(null)``, which is an empty list."""
    partitions = root.cpu_list("/sys/fs/cgroup/cpuset.cpus.isolated")
    if partitions is None:
        partitions = root.cpu_list("/sys/fs/cgroup/unified/cpuset.cpus.isolated")
    return Isolation(root.cpu_list(f"{CPU_DIR}/isolated"), partitions, root.cpu_list(f"{CPU_DIR}/nohz_full"))
