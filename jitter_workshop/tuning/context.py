"""What a tunable sees: one host below one root, the hot CPUs, and readings that several tunables share."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from jitter_workshop.host.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.hypervisor import Hypervisor, read_hypervisor
from jitter_workshop.host.kernel import Kernel, read_kernel
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.topology import CPU_DIR, online_cpus, read_topology
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.topology import Topology

if TYPE_CHECKING:
    from jitter_workshop.host.services import Services


class Host:
    """One reading of a host: made for one ``status``, ``plan`` or ``apply`` and then thrown away, because everything
    that is read once is kept.

    ``hot``: the CPUs that run the latency-critical threads (online ones). ``housekeeping``: the other online CPUs;
    empty where every CPU is hot.
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
    def housekeeping(self) -> CpuSet:
        return self.online - self.hot

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

    @cached_property
    def services(self) -> Services:
        """Known services that run: tuners that rewrite settings, and others that take time (one pass over /proc)."""
        from jitter_workshop.host.services import read_services

        return read_services(self.root)
