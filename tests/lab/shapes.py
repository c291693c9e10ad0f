"""The machines of the matrix (``python -m tests.lab.matrix``), each with one sentence that says what a reader of its
sysfs sees."""

from __future__ import annotations

from dataclasses import dataclass

from jitter_workshop.practice.shape import AMD, TRUSTED, Hardware, Shape

ARM = "max,pauth-impdef=on"

__all__ = ["SHAPES", "TRUSTED", "Hardware", "Shape", "Tuned"]


@dataclass(frozen=True)
class Tuned(Shape):
    """``hot``: the CPUs that are tuned for, of each core one at most, so that there are siblings to take away."""

    hot: str = ""

    @property
    def siblings(self) -> bool:
        """Return True if the machine has SMT siblings."""
        return self.hardware.threads > 1


_SHAPES = (
    Tuned("smt", "Two cores with two siblings each, the stock kernel.", hot="3"),
    Tuned("rt", "The same with the real-time kernel.", hot="3", kernel="rt"),
    Tuned("v1", "The same with control groups of version 1.", hot="3", cgroup="v1"),
    Tuned("none", "The same without a mounted control group.", hot="3", cgroup="none"),
    Tuned("one", "One CPU.", hot="0", hardware=Hardware(cores=1, threads=1)),
    Tuned("eight", "Four cores with two siblings each.", hot="5,7", hardware=Hardware(cores=4)),
    Tuned(
        "nodes",
        "Two sockets of two cores, a NUMA node each.",
        hot="2-3",
        hardware=Hardware(sockets=2, threads=1, nodes=2),
    ),
    Tuned(
        "shared",
        "Four cores; two share a frequency domain (_PSD).",
        hot="2-3",
        hardware=Hardware(cores=4, threads=1, pstates="shared"),
    ),
    Tuned(
        "many",
        "Two sockets of eight cores with two siblings each, a NUMA node each: 32 CPUs.",
        hot="25,27,29,31",
        hardware=Hardware(sockets=2, cores=8, nodes=2, memory_mib=2048),
        append=TRUSTED,
    ),
    Tuned(
        "hpet",
        "The clock is the HPET, as where the kernel has found the TSC wrong.",
        hot="3",
        append="clocksource=hpet",
    ),
    Tuned("newest", "The newest kernel that Debian has.", hot="3", kernel="newest", append=TRUSTED),
    Tuned(
        "amd",
        "An AMD processor whose driver takes the kernel's wishes (amd-pstate, passive).",
        hot="2-3",
        hardware=Hardware(cores=4, threads=1, cpu=AMD, pstates="cppc"),
        append=f"amd_pstate=passive {TRUSTED}",
    ),
    Tuned(
        "hybrid",
        "Two fast and two slow cores: their top frequencies differ; x86 names kinds of core by PMUs, which QEMU lacks.",
        hot="1",
        hardware=Hardware(cores=4, threads=1, slow=2),
    ),
    Tuned(
        "arm64",
        "An arm64 processor with four cores.",
        hot="2-3",
        hardware=Hardware(cores=4, threads=1, cpu=ARM, arch="aarch64"),
        kernel="arm64",
    ),
)
SHAPES = {shape.name: shape for shape in _SHAPES}
