"""Describe machines as data: their hardware, their kernel, and their arguments for the boot.

QEMU's arguments and the ACPI table are made from a ``Hardware``. Learners practise on the machines in ``SHAPES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INTEL = "Skylake-Client,-monitor"
AMD = "EPYC-Rome,-monitor"

TRUSTED = "tsc=reliable"
"""The boot parameter by which the kernel trusts the emulated TSC. Without it, the kernel may find the TSC wrong and
change its own code while all CPUs run. QEMU's emulation then hangs with 32 CPUs, and sometimes crashes with the newest
kernel."""

PStates = Literal["none", "own", "shared", "cppc"]


@dataclass(frozen=True)
class Hardware:
    """Hold a machine's hardware. ``cores``: the number of cores in each socket. ``threads``: the number of hardware
    threads in each core.

    ``pstates``: how the guest can set CPU frequencies. ``none``: the guest cannot, because the machine gets no ACPI
    table from this package. ``own``: each CPU has its own frequency. ``shared``: each pair of CPUs has one frequency.
    ``cppc``: each CPU has its own frequency, which the guest can also set through ACPI's ``_CPC``.

    ``slow``: the number of CPUs with a lower maximum frequency; these are the CPUs with the highest numbers. ``arch``:
    QEMU's name of the processor's architecture.
    """

    sockets: int = 1
    cores: int = 2
    threads: int = 2
    nodes: int = 1
    cpu: str = INTEL
    pstates: PStates = "own"
    slow: int = 0
    memory_mib: int = 768
    arch: Literal["x86_64", "aarch64"] = "x86_64"

    @property
    def cpus(self) -> int:
        return self.sockets * self.cores * self.threads

    def nodes_cpus(self) -> list[str]:
        """Return the CPUs of each NUMA node, each as a list such as ``0-3``."""
        each = self.cpus // self.nodes
        return [f"{n * each}-{n * each + each - 1}" if each > 1 else str(n) for n in range(self.nodes)]


PLAIN = Hardware()


@dataclass(frozen=True)
class Shape:
    """Describe one machine for learners. ``sentence``: what a learner can tune on this machine. ``emulated``: True if
    KVM must not run the machine. With KVM, the guest would see this host's type of processor."""

    name: str
    sentence: str
    hardware: Hardware = PLAIN
    kernel: str = "stock"
    append: str = ""
    cgroup: Literal["v2", "v1", "none"] = "v2"
    emulated: bool = False


_SHAPES = (
    Shape("laptop", "Two cores with SMT: a governor, idle states, a thermal zone."),
    Shape(
        "server",
        "8 CPUs on two sockets with SMT. Each is a NUMA node.",
        Hardware(sockets=2, nodes=2, memory_mib=1024),
    ),
    Shape("rt", "Two cores with SMT, and Debian's real-time kernel (PREEMPT_RT).", kernel="rt"),
    Shape(
        "amd",
        "Four AMD cores without SMT, with amd-pstate (passive) and boost.",
        Hardware(cores=4, threads=1, cpu=AMD, pstates="cppc"),
        append=f"amd_pstate=passive {TRUSTED}",
        emulated=True,
    ),
    Shape(
        "bare", "Four CPUs and nothing to tune: no governor, no idle states, no thermal zone.", Hardware(pstates="none")
    ),
)
DEFAULT = "laptop"
"""The name of the shape that a machine has if none is named."""
SHAPES = {shape.name: shape for shape in _SHAPES}
"""The machines that are built."""
IMPOSSIBLE = {"guest": "an emulated machine has no steal clock, so it cannot show a hypervisor's steal"}
"""Names of machines that cannot be built → the reason, as a sentence without a full stop."""
