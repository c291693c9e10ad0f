"""Choose the load beside a chapter's runs for this host, by the interrupts of the devices from which the loads read."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from jitter_workshop.host.irq.device_irqs import HWRNG, irqs_of_noise
from jitter_workshop.host.irq.interrupts import read_interrupts
from jitter_workshop.host.irq.irq_affinity import Irq, read_irqs
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import IRQ_AFFINITY
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.record import dataclass
from jitter_workshop.tuning.tunables.interrupts import why_fixed

_CONFIG = "-config"
"""The end of the name of a virtio interrupt that only tells of changed settings of the device."""

ONLY_ROOT = (
    f"reads from {HWRNG} would bring an interrupt that can be moved, but {HWRNG} is readable only for root: start the "
    "workshop with sudo to use it"
)


def with_company_of_host(chapter: Chapter, root: HostRoot, fixed: Collection[str] = ()) -> Chapter:
    """Return the chapter with the load that fits this host, and with the interrupts of this load. If the chapter names
    a second load, and no interrupt of the first load can be moved but one of the second can, the second load replaces
    the first in all measurements. ``fixed``: the kinds of noise whose interrupts the kernel is known not to move."""
    company, other = chapter.company, None if chapter.company is None else chapter.company.if_fixed
    if company is None or (other is None and not _on_interrupts(chapter)):
        return chapter
    irqs, measurements = irqs_of_load(root, company.noise), chapter.measurements
    movable = None if company.noise in fixed else irqs.movable
    if movable is None and other is not None and other.noise not in fixed:
        of_other = irqs_of_load(root, other.noise)
        if of_other.movable is not None:
            measurements = tuple(
                dataclasses.replace(one, noise=other.noise) if one.noise == company.noise else one
                for one in measurements
            )
            company, irqs, movable = other, of_other, of_other.movable
    names = tuple(dict.fromkeys(irq.name for irq in irqs.every))
    company = dataclasses.replace(company, interrupts=names, movable=None if movable is None else movable.number)
    return dataclasses.replace(chapter, company=company, measurements=measurements)


def brings_an_interrupt(chapter: Chapter) -> bool:
    """Return True if a chapter on interrupts has a load whose interrupt can be moved on this host. The chapter then has
    this interrupt arrive on the measured CPU, so it shows its effect even if other interrupts there cannot be moved.
    ``chapter``: as :func:`with_company_of_host` returns it."""
    return _on_interrupts(chapter) and chapter.company is not None and chapter.company.movable is not None


def _on_interrupts(chapter: Chapter) -> bool:
    return IRQ_AFFINITY in chapter.tunables


def barred_company(chapter: Chapter, root: HostRoot) -> str:
    """Return a clause that says why a chapter's second load is not used, although its interrupt can be moved and none
    of the first load can: only root may read from its device. Return "" otherwise. ``chapter``: as
    :func:`with_company_of_host` returns it."""
    company = chapter.company
    other = company.if_fixed if company is not None else None
    if company is None or other is None or company.movable is not None or irqs_of_noise(root, other.noise):
        return ""
    return ONLY_ROOT if irqs_of_load(root, other.noise, unreadable=True).movable is not None else ""


@dataclass(frozen=True, slots=True)
class LoadIrqs:
    """Hold the interrupts of the device from which a load reads, those that can be moved first, and of these the most
    frequent one since boot. ``movable``: the first of them; None if none can be moved."""

    every: tuple[Irq, ...] = ()
    movable: Irq | None = None


def irqs_of_load(root: HostRoot, kind: str, *, unreadable: bool = False) -> LoadIrqs:
    """Return the interrupts of the device from which a noise of this kind reads. There are none if the noise reads from
    no device, or if the device's interrupts are not known. An interrupt can be moved if no reason is known why the
    kernel would not move it. ``unreadable``: as in ``irqs_of_noise``."""
    numbers = irqs_of_noise(root, kind, unreadable=unreadable)
    if not numbers:
        return LoadIrqs()
    table = read_interrupts(root)
    found: list[tuple[bool, int, Irq]] = []
    for irq in read_irqs(root, numbers):
        row = table.get(str(irq.number))
        if row is not None and irq.name and not irq.name.endswith(_CONFIG) and irq.affinity is not None:
            found.append((not why_fixed(root, irq), sum(row.per_cpu.values()), irq))
    found.sort(key=lambda one: one[:2], reverse=True)
    return LoadIrqs(tuple(irq for *_, irq in found), found[0][2] if found and found[0][0] else None)
