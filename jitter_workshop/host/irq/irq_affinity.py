"""Read each interrupt's affinity, and the CPUs that handle the interrupt now.

One small file is read for each interrupt; a host may have thousands of interrupts. irqbalance moves no interrupt to a
*banned* CPU. The settings file of irqbalance can name the banned CPUs. Without this setting, irqbalance bans isolated
and tickless CPUs. irqbalance's command line and socket are not read.

Sources: Documentation/core-api/irq/irq-affinity.rst, proc(5), irqbalance(1), irqbalance's cputree.c.
"""

from __future__ import annotations

from collections.abc import Collection

from jitter_workshop.host.irq.interrupts import parse_irq_names, read_interrupts_text
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

IRQ_DIR = "/proc/irq"
DEFAULT_AFFINITY = f"{IRQ_DIR}/default_smp_affinity"

_IRQBALANCE_FILES = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/irqbalance.env")
"""Paths of irqbalance's settings file: on Debian, on Fedora and SUSE, and on Arch."""


@dataclass(frozen=True, slots=True)
class Irq:
    """Hold one interrupt. ``name``: the devices that use the interrupt, "" for none. ``affinity``: the CPUs at which it
    may arrive. ``reason``: the reason why ``affinity`` is None, or ""."""

    number: int
    name: str
    affinity: CpuSet | None
    reason: str = ""

    @property
    def path(self) -> str:
        """Return the path of the file that holds the interrupt's affinity as a CPU list. A write to this file sets the
        affinity."""
        return affinity_path(self.number)


@dataclass(frozen=True, slots=True)
class IrqBalanceSettings:
    """Hold irqbalance's settings. ``path``: the settings file, None if there is none. ``banned``: the banned CPUs, None
    if no line of the file sets them. Invalid CPUs ban no CPU. ``reason``: the line of the settings file that this tool
    could not understand, or "". ``mask``: True if the file has a mask, so that irqbalance does not read a CPU list."""

    path: str | None
    banned: CpuSet | None
    reason: str = ""
    mask: bool = False

    def bans(self, default: CpuSet) -> CpuSet:
        """Return the CPUs that irqbalance leaves alone. ``default``: the isolated and tickless CPUs, which irqbalance
        bans if no setting names other CPUs."""
        return default if self.banned is None else self.banned


def affinity_path(number: int) -> str:
    """Return the path of the file that holds an interrupt's affinity as a CPU list. A write to this file sets the
    affinity."""
    return f"{IRQ_DIR}/{number}/smp_affinity_list"


def irq_number(path: str) -> int:
    """Return the number of the interrupt of which ``path``, a file below ``/proc/irq/NUMBER``, is a setting."""
    return int(path.split("/")[3])


def read_irqs(root: HostRoot, only: Collection[int] | None = None) -> tuple[Irq, ...]:
    """Return the interrupts in the order of their numbers; () if the kernel shows none. ``only``: the numbers of the
    wanted interrupts; None for all."""
    names = parse_irq_names(read_interrupts_text(root).text or "")
    sets: dict[str, CpuSet | None] = {}
    return tuple(
        Irq(number, names.get(number, ""), *_cpus(root, f"{folder}/smp_affinity_list", sets))
        for number, folder in root.numbered(IRQ_DIR, "")
        if only is None or number in only
    )


def read_movable(root: HostRoot, number: int) -> bool | None:
    """Return False if the kernel shows that an interrupt's affinity cannot be changed. Otherwise return None, because
    it is not known.

    The kernel refuses a new affinity for managed interrupts, and for some interrupts of the chipset. For such an
    interrupt, Linux 6.12 and later show the affinity file as read-only, and a write of root fails with EPERM. Older
    kernels show the file as writable, and a write fails with EIO (kernel/irq/proc.c).
    """
    return False if root.writable(affinity_path(number)) is False else None


def read_effective(root: HostRoot, number: int) -> CpuSet | None:
    """Return the CPUs at which an interrupt arrives now; None if the kernel does not show them (before 4.13)."""
    return root.cpu_list(f"{IRQ_DIR}/{number}/effective_affinity_list")


def read_default_affinity(root: HostRoot) -> CpuSet | None:
    """Return the CPUs at which a new interrupt may arrive; None if the kernel does not show them."""
    return root.cpu_mask(DEFAULT_AFFINITY)


def read_irqbalance_settings(root: HostRoot) -> IrqBalanceSettings:
    """Return the settings in irqbalance's first settings file that exists. If the file has both a CPU list and a mask
    (the older form), the mask is used. irqbalance does the same (cputree.c, setup_banned_cpus)."""
    for path in _IRQBALANCE_FILES:
        text = root.text(path)
        if text is None:
            continue
        values = parse_assignments(text)
        for key, parse, mask in (
            ("IRQBALANCE_BANNED_CPUS", CpuSet.parse_mask, True),
            ("IRQBALANCE_BANNED_CPULIST", CpuSet.parse_list, False),
        ):
            if not values.get(key):
                continue
            try:
                return IrqBalanceSettings(path, parse(values[key]), mask=mask)
            except ValueError:
                form = "CPU mask, such as 0000000c" if mask else "list of CPUs"
                # irqbalance looks at isolated and tickless CPUs only if both keys are empty.
                return IrqBalanceSettings(path, CpuSet(), f"{key} in {path} is not a {form}", mask=mask)
        return IrqBalanceSettings(path, None)
    return IrqBalanceSettings(None, None)


def _cpus(root: HostRoot, path: str, known: dict[str, CpuSet | None]) -> tuple[CpuSet | None, str]:
    """Return (the CPUs in a file, "") or (None, the reason). ``known``: a cache: text of a file → the CPUs in this
    text. Many interrupts have the same text, so the cache saves work."""
    reading = root.reading(path)
    if reading.text is None:
        return None, reading.reason
    if reading.text not in known:
        known[reading.text] = CpuSet.if_list(reading.text)
    cpus = known[reading.text]
    return cpus, "" if cpus is not None else "not a CPU list"
