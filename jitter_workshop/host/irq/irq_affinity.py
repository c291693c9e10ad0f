"""Read where each interrupt may arrive and where it does (Documentation/core-api/irq/irq-affinity.rst, proc(5)).

It reads one small file for each interrupt, and a second only if the effective affinity is requested: hosts have
thousands of interrupts.
"""

from __future__ import annotations

from jitter_workshop.host.irq.interrupts import parse_counters, parse_irq_names, read_interrupts_text
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field

IRQ_DIR = "/proc/irq"
DEFAULT_AFFINITY = f"{IRQ_DIR}/default_smp_affinity"


@dataclass(frozen=True, slots=True)
class Irq:
    """Hold one interrupt.

    ``name``: the devices that use it, "" for none. ``affinity``: CPUs that it may use. ``effective``: CPUs that it does
    use, None unless requested. ``counts``: arrivals since boot by CPU, {} unless requested. ``reason``: why
    ``affinity`` is None.
    """

    number: int
    name: str
    affinity: CpuSet | None
    effective: CpuSet | None = None
    counts: dict[int, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def path(self) -> str:
        """Return the file that sets the affinity, as a list."""
        return affinity_path(self.number)


def affinity_path(number: int) -> str:
    """Return the file that holds (and sets) an interrupt's affinity as a CPU list."""
    return f"{IRQ_DIR}/{number}/smp_affinity_list"


def read_irqs(root: HostRoot, *, effective: bool = False, counts: bool = False) -> tuple[Irq, ...]:
    """Return all interrupts in number order, () where the kernel shows none.

    ``effective`` costs a second file for each, ``counts`` a parse of the whole table.
    """
    text = read_interrupts_text(root).text or ""
    names = parse_irq_names(text)
    rows = parse_counters(text).rows if counts else {}
    sets: dict[str, CpuSet | None] = {}
    found: list[Irq] = []
    for number, folder in root.numbered(IRQ_DIR, ""):
        cpus, reason = _cpus(root, f"{folder}/smp_affinity_list", sets)
        row = rows.get(str(number))
        found.append(
            Irq(
                number=number,
                name=names.get(number, ""),
                affinity=cpus,
                effective=_cpus(root, f"{folder}/effective_affinity_list", sets)[0] if effective else None,
                counts={} if row is None else {int(cpu): count for cpu, count in row.per_cpu.items()},
                reason=reason,
            )
        )
    return tuple(found)


def read_movable(root: HostRoot, number: int) -> bool | None:
    """Return False where the kernel shows that it refuses a new affinity; None where it shows nothing.

    It refuses for managed interrupts, and for some of the chipset's own. Newer kernels such as 6.18 then show the file
    as read-only; older kernels accept the attempt and answer with EIO.
    """
    return False if root.writable(affinity_path(number)) is False else None


def read_effective(root: HostRoot, number: int) -> CpuSet | None:
    """Return the CPUs at which an interrupt arrives now; None where the kernel does not show them (before 4.13)."""
    return _cpus(root, f"{IRQ_DIR}/{number}/effective_affinity_list", {})[0]


def read_default_affinity(root: HostRoot) -> CpuSet | None:
    """Return the affinity that new interrupts get; None where it is not shown."""
    text = root.text(DEFAULT_AFFINITY)
    try:
        return None if text is None else CpuSet.parse_mask(text)
    except ValueError:
        return None


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
