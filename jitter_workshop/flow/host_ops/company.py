"""Choose the load beside a chapter's runs for this host, by the interrupts of the devices from which the loads read."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from jitter_workshop.host.irq.device_irqs import HWRNG, irqs_of_noise
from jitter_workshop.host.irq.interrupts import read_interrupts
from jitter_workshop.host.irq.irq_affinity import Irq, read_irqs
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.tuning.tunables.interrupts import why_fixed

_CONFIG = "-config"
"""The end of the name of a virtio interrupt that only tells of changed settings of the device."""

ONLY_ROOT = (
    f"reads from {HWRNG} would bring an interrupt that can be moved, but {HWRNG} is readable only for root: start the "
    "workshop with sudo to use it"
)


def with_company_of_host(chapter: Chapter, root: HostRoot, fixed: Collection[str] = ()) -> Chapter:
    """Return the chapter with the load that fits this host. If the chapter names a second load, and no interrupt of the
    first load can be moved but one of the second can, the second load replaces the first in all measurements.
    ``fixed``: the kinds of noise whose interrupts the kernel is known not to move."""
    company = chapter.company
    other = company.if_fixed if company is not None else None
    if company is None or other is None or other.noise in fixed:
        return chapter
    if company.noise not in fixed and movable_irq(root, company.noise):
        return chapter
    if not movable_irq(root, other.noise):
        return chapter
    measurements = tuple(
        dataclasses.replace(one, noise=other.noise) if one.noise == company.noise else one
        for one in chapter.measurements
    )
    return dataclasses.replace(chapter, company=other, measurements=measurements)


def brings_an_interrupt(chapter: Chapter, root: HostRoot) -> bool:
    """Return True if a chapter on interrupts has a load whose interrupt can be moved on this host. The chapter then has
    this interrupt arrive on the measured CPU, so it shows its effect even if other interrupts there cannot be moved.
    """
    company = with_company_of_host(chapter, root).company
    moves = "irq-affinity" in chapter.tunables
    return moves and company is not None and movable_irq(root, company.noise) is not None


def barred_company(chapter: Chapter, root: HostRoot) -> str:
    """Return a clause that says why a chapter's second load is not used, although its interrupt can be moved and none
    of the first load can: only root may read from its device. Return "" otherwise."""
    company = with_company_of_host(chapter, root).company
    other = company.if_fixed if company is not None else None
    if company is None or other is None or movable_irq(root, company.noise) or irqs_of_noise(root, other.noise):
        return ""
    return ONLY_ROOT if movable_irq(root, other.noise, unreadable=True) else ""


def movable_irq(root: HostRoot, kind: str, *, unreadable: bool = False) -> Irq | None:
    """Return the interrupt of a noise of this kind that can be moved; the most frequent one since boot, if there are
    several. Return None if there is none. ``unreadable``: as in ``irqs_of_noise``."""
    numbers = irqs_of_noise(root, kind, unreadable=unreadable)
    if not numbers:
        return None
    table = read_interrupts(root)
    found: list[tuple[int, Irq]] = []
    for irq in read_irqs(root, numbers):
        row = table.get(str(irq.number))
        if row is None or not irq.name or irq.name.endswith(_CONFIG) or irq.affinity is None:
            continue
        if not why_fixed(root, irq):
            found.append((sum(row.per_cpu.values()), irq))
    return max(found, key=lambda one: one[0])[1] if found else None
