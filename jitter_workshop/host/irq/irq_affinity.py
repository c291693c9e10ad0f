"""Read where each interrupt may arrive and where it does (Documentation/core-api/irq/irq-affinity.rst, proc(5)).

It reads one small file for each interrupt: hosts have thousands of them.
"""

from __future__ import annotations

from jitter_workshop.host.irq.interrupts import parse_irq_names, read_interrupts_text
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

IRQ_DIR = "/proc/irq"
DEFAULT_AFFINITY = f"{IRQ_DIR}/default_smp_affinity"


@dataclass(frozen=True, slots=True)
class Irq:
    """Hold one interrupt.

    ``name``: the devices that use it, "" for none. ``affinity``: CPUs that it may use. ``reason``: why ``affinity`` is
    None.
    """

    number: int
    name: str
    affinity: CpuSet | None
    reason: str = ""

    @property
    def path(self) -> str:
        """Return the file that sets the affinity, as a list."""
        return affinity_path(self.number)


def affinity_path(number: int) -> str:
    """Return the file that holds (and sets) an interrupt's affinity as a CPU list."""
    return f"{IRQ_DIR}/{number}/smp_affinity_list"


def read_irqs(root: HostRoot) -> tuple[Irq, ...]:
    """Return all interrupts in number order, () where the kernel shows none."""
    names = parse_irq_names(read_interrupts_text(root).text or "")
    sets: dict[str, CpuSet | None] = {}
    return tuple(
        Irq(number, names.get(number, ""), *_cpus(root, f"{folder}/smp_affinity_list", sets))
        for number, folder in root.numbered(IRQ_DIR, "")
    )


def read_movable(root: HostRoot, number: int) -> bool | None:
    """Return False where the kernel shows that it refuses a new affinity; None where it shows nothing.

    It refuses for managed interrupts, and for some of the chipset's own. Newer kernels such as 6.18 then show the file
    as read-only; older kernels accept the attempt and answer with EIO.
    """
    return False if root.writable(affinity_path(number)) is False else None


def read_effective(root: HostRoot, number: int) -> CpuSet | None:
    """Return the CPUs at which an interrupt arrives now; None where the kernel does not show them (before 4.13)."""
    return root.cpu_list(f"{IRQ_DIR}/{number}/effective_affinity_list")


def read_default_affinity(root: HostRoot) -> CpuSet | None:
    """Return the affinity that new interrupts get; None where it is not shown."""
    return root.cpu_mask(DEFAULT_AFFINITY)


def _cpus(root: HostRoot, path: str, known: dict[str, CpuSet | None]) -> tuple[CpuSet | None, str]:
    """Return a CPU list and the reason for none. Most interrupts of a host share a few lists: each is parsed once."""
    reading = root.reading(path)
    if reading.text is None:
        return None, reading.reason
    if reading.text not in known:
        try:
            known[reading.text] = CpuSet.parse_list(reading.text)
        except ValueError:
            known[reading.text] = None
    cpus = known[reading.text]
    return cpus, "" if cpus is not None else "not a CPU list"
