"""Read the processor's name and flags, and the kernel's clock source. The flags show if the TSC is a good clock.

Only the beginning of /proc/cpuinfo is read. The entries of other CPUs have the same values, and some kernels interrupt
each CPU whose entry is read.

Sources: proc(5), /proc/cpuinfo; Documentation/timers/timekeeping.rst.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import NAME

_HEAD_BYTES = 8_192

_ARM_PARTS = {
    "0xd03": "Cortex-A53",
    "0xd05": "Cortex-A55",
    "0xd07": "Cortex-A57",
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
}
"""Part number of ARM's own cores (MIDR_EL1) → the core's name. The kernels of arm64 print only the number."""


@dataclass(frozen=True, slots=True)
class CpuIdentity:
    """Hold the processor's identity. ``flags``: the flags of an x86 processor; None on other processors, or without
    /proc/cpuinfo."""

    model: str | None
    flags: frozenset[str] | None
    architecture: str | None

    def has(self, flag: str) -> bool | None:
        """Return True if the processor has the x86 flag, False if not; None if no x86 flags are known."""
        return None if self.flags is None else flag in self.flags


def read_cpu_identity(root: HostRoot) -> CpuIdentity:
    """Return the identity of the first CPU. If the CPU has no name, its name is the model in the device tree."""
    identity = parse_cpuinfo(root.head("/proc/cpuinfo", _HEAD_BYTES))
    if identity.model is None:
        model = root.word("/proc/device-tree/model", NAME)
        return CpuIdentity(model, identity.flags, identity.architecture)
    return identity


def parse_cpuinfo(text: str | None) -> CpuIdentity:
    """Return the identity in the first CPU's entry of /proc/cpuinfo. If a key occurs twice, the first value counts."""
    values: dict[str, str] = {}
    for line in (text or "").split("\n"):
        key, colon, value = line.partition(":")
        if colon:
            values.setdefault(key.strip(), value.strip())
    if "flags" in values:
        return CpuIdentity(
            printable(values.get("model name", ""), NAME) or None, frozenset(values["flags"].split()), "x86_64"
        )
    part = _ARM_PARTS.get(values.get("CPU part", "").lower()) if values.get("CPU implementer") == "0x41" else None
    named = values.get("model name") or part or values.get("cpu") or ""
    architecture = "aarch64" if "CPU implementer" in values else None
    return CpuIdentity(printable(named, NAME) or None, None, architecture)


_FOLDER = "/sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True, slots=True)
class Clocksource:
    """Hold the kernel's clock source. ``current``: the clock that the kernel uses now, None if the kernel does not show
    it. ``constant_tsc``, ``nonstop_tsc``: True if the CPU has the flag; None on processors without x86 flags."""

    current: str | None
    available: tuple[str, ...]
    constant_tsc: bool | None
    nonstop_tsc: bool | None

    @property
    def tsc_trusted(self) -> bool:
        """Return True if the kernel uses the TSC, and the TSC is constant and nonstop.

        The CPU's flags show if the TSC is constant and nonstop. On a processor without x86 flags, this function does
        not check these two facts. The kernel itself stops using a TSC that its watchdog finds faulty.
        """
        return self.current == "tsc" and self.constant_tsc is not False and self.nonstop_tsc is not False


def read_clocksource(root: HostRoot, identity: CpuIdentity | None = None) -> Clocksource:
    """Return the kernel's clock source. ``identity``: the CPU's identity, if the caller knows it; otherwise it is
    read."""
    cpu = identity if identity is not None else read_cpu_identity(root)
    return Clocksource(
        current=root.word(f"{_FOLDER}/current_clocksource"),
        available=root.words(f"{_FOLDER}/available_clocksource"),
        constant_tsc=cpu.has("constant_tsc"),
        nonstop_tsc=cpu.has("nonstop_tsc"),
    )
