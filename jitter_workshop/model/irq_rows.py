"""Define a row of /proc/interrupts or /proc/softirqs, and find out what a row counts on each kind of processor.

On x86, each interrupt of the CPU itself has a row with letters, such as ``LOC`` (arch/x86/kernel/irq.c). On arm64 and
RISC-V, interrupts between CPUs have the rows ``IPI0``, ``IPI1``, …. The numbers of these rows differ between kernels,
so the rows are found by their descriptions (arch/arm64/kernel/smp.c, arch/riscv/kernel/smp.c). On arm64 and RISC-V, the
rows of the CPU's timer and performance counters have numbers, like the rows of devices.
"""

from __future__ import annotations

import re

from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Counter:
    """Hold the counts of one row. ``per_cpu``: CPU number as text → count. In a run, each count is the number of events
    during the measured blocks."""

    name: str
    per_cpu: dict[str, int]


TIMER, RESCHEDULE, CALL, IRQ_WORK, COUNTERS = "LOC", "RES", "CAL", "IWI", "PMI"
"""Keys of x86 for rows that other processors have under other keys."""

RESCHEDULING, CALLING, WORKING = "Rescheduling interrupts", "Function call interrupts", "IRQ work interrupts"
"""Descriptions of rows, the same on every processor. On arm64 the event ``ipi:ipi_entry`` of a trace has them, too."""
_DESCRIBED = {RESCHEDULING: RESCHEDULE, CALLING: CALL, WORKING: IRQ_WORK}

TIMER_IRQS = ("arch_timer", "riscv-timer")
"""Endings of the names under which the CPU's own timer appears on ARM and RISC-V."""
_COUNTER_IRQS = ("arm-pmu", "riscv-pmu")
_GUEST_IRQS = ("kvm guest vtimer", "kvm guest ptimer", "vgic")
"""The interrupts by which an ARM CPU serves its guests. They belong to the CPU and not to a device."""
_MANAGED_NAMES = re.compile(
    r"nvme\d+q[1-9]\d*|virtio\d+-(req\.\d+|request)"  # nvme, virtio_blk, virtio_scsi
    r"|smartpqi|hpsa\d+-msix\d+|beiscsi_[0-9a-f]{2,}_[0-9a-f]+|qla2xxx\d+_qpair\d+|mpi3mr\d+-msix[1-9]\d*"
    r"|(megasas|mpt3sas)\d+-msix([89]|[1-9]\d+)",  # the first eight may be queues that the driver leaves movable
    re.ASCII,
)
"""The names of managed interrupts. Their drivers ask for them with ``PCI_IRQ_AFFINITY``, unless a parameter of the
module says otherwise (drivers/nvme/host/pci.c, drivers/block/virtio_blk.c, drivers/scsi). The names of other managed
interrupts, such as those of lpfc, do not tell it."""


def x86_key(key: str, name: str) -> str:
    """Return the key of the x86 row that counts the same thing as this row: ``LOC`` for ``arch_timer``, ``RES`` for
    ``IPI0`` of arm64. Return the row's own key if the row belongs to a device, or if x86 has no such row.

    ``key``: the row's key. ``name``: the row's name, as ``host.irq.interrupts`` reads it.
    """
    if not key.isdigit():
        return _DESCRIBED.get(name, key)
    if name.endswith(TIMER_IRQS):
        return TIMER
    return COUNTERS if name.endswith(_COUNTER_IRQS) else key


def is_timer(key: str, name: str) -> bool:
    """Return True if a row counts the CPU's own timer."""
    return x86_key(key, name) == TIMER


def is_device(key: str, name: str) -> bool:
    """Return True if a row counts the interrupts of a device. A row whose key is a number counts a device, unless the
    CPU itself makes the interrupt."""
    return key.isdigit() and x86_key(key, name) == key and not name.endswith(_GUEST_IRQS)


def is_managed(name: str) -> bool:
    """Return True if an interrupt's name tells that it is managed: its driver bound it to fixed CPUs, and the kernel
    refuses to move it."""
    return _MANAGED_NAMES.fullmatch(name) is not None
