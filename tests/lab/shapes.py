"""Describe the lab's machines as data: their hardware, their kernel, how they boot.

``Hardware`` is what QEMU and the ACPI table are made from. ``SHAPES`` are the machines of the matrix
(``python -m tests.lab.matrix``), each with one sentence that says what a reader of its sysfs sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

INTEL = "Skylake-Client,-monitor"
ARM = "max,pauth-impdef=on"
AMD = "EPYC-Rome,-monitor"

TRUSTED = "tsc=reliable"
"""Where the kernel finds an emulated TSC wrong it changes its code while all CPUs run it, of which the emulator makes a
hang with 32 CPUs and now and then a crash with the newest kernel."""

PStates = Literal["own", "shared", "cppc"]


@dataclass(frozen=True)
class Hardware:
    """A machine's processors. ``cores`` are those of a socket, ``threads`` those of a core.

    ``pstates``: ``own`` (each CPU has a frequency domain), ``shared`` (two CPUs have one), ``cppc`` (besides, a table
    of continuous performance). ``slow``: so many CPUs, the last ones, have lower top frequencies. ``arch``: QEMU's.
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
        """The CPUs of each NUMA node, as lists of the kernel's form."""
        each = self.cpus // self.nodes
        return [f"{n * each}-{n * each + each - 1}" if each > 1 else str(n) for n in range(self.nodes)]


PLAIN = Hardware()


@dataclass(frozen=True)
class Shape:
    """A machine of the matrix. ``hot``: the CPUs that are tuned for, of each core one at most, so that there are
    siblings to take away."""

    name: str
    sentence: str
    hot: str
    hardware: Hardware = PLAIN
    kernel: str = "stock"
    append: str = ""
    cgroup: Literal["v2", "v1", "none"] = "v2"

    @property
    def siblings(self) -> bool:
        """Return True if the machine has SMT siblings."""
        return self.hardware.threads > 1


_SHAPES = (
    Shape("smt", "Two cores with two siblings each, the stock kernel.", "3"),
    Shape("rt", "The same with the real-time kernel.", "3", kernel="rt"),
    Shape("v1", "The same with control groups of version 1.", "3", cgroup="v1"),
    Shape("none", "The same without a mounted control group.", "3", cgroup="none"),
    Shape("one", "One CPU.", "0", Hardware(cores=1, threads=1)),
    Shape("eight", "Four cores with two siblings each.", "5,7", Hardware(cores=4)),
    Shape("nodes", "Two sockets of two cores, a NUMA node each.", "2-3", Hardware(sockets=2, threads=1, nodes=2)),
    Shape(
        "shared",
        "Four cores; two share a frequency domain (_PSD).",
        "2-3",
        Hardware(cores=4, threads=1, pstates="shared"),
    ),
    Shape(
        "many",
        "Two sockets of eight cores with two siblings each, a NUMA node each: 32 CPUs.",
        "25,27,29,31",
        Hardware(sockets=2, cores=8, nodes=2, memory_mib=2048),
        append=TRUSTED,
    ),
    Shape(
        "hpet", "The clock is the HPET, as where the kernel has found the TSC wrong.", "3", append="clocksource=hpet"
    ),
    Shape("newest", "The newest kernel that Debian has.", "3", kernel="newest", append=TRUSTED),
    Shape(
        "amd",
        "An AMD processor whose driver takes the kernel's wishes (amd-pstate, passive).",
        "2-3",
        Hardware(cores=4, threads=1, cpu=AMD, pstates="cppc"),
        append=f"amd_pstate=passive {TRUSTED}",
    ),
    Shape(
        "hybrid",
        "Two fast and two slow cores: their top frequencies differ; x86 names kinds of core by PMUs, which QEMU lacks.",
        "1",
        Hardware(cores=4, threads=1, slow=2),
    ),
    Shape(
        "arm64",
        "An arm64 processor with four cores.",
        "2-3",
        Hardware(cores=4, threads=1, cpu=ARM, arch="aarch64"),
        kernel="arm64",
    ),
)
SHAPES = {shape.name: shape for shape in _SHAPES}
