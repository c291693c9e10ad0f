"""Find the interrupts of the device from which a noise reads: the disk of a file, or the source of random numbers.

A device's folder in sysfs, or a folder above it, names the interrupts: each file of ``msi_irqs`` is a number, and the
file ``irq`` holds the number of an older device (Documentation/ABI/testing/sysfs-bus-pci). A disk of the device mapper
has the disks below it as ``slaves``. A folder that a hypervisor shares over 9p has no disk: the source of its mount is
the tag of a virtio device (net/9p/trans_virtio.c). Only a live host has these links, so a recorded host has no such
interrupts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from jitter_workshop.host.root import HostRoot

PROGRAM = "/proc/self/exe"
"""The file that the noise ``disk`` reads: its own program."""
HWRNG = "/dev/hwrng"
_HWRNG_NOW = "/sys/class/misc/hw_random/rng_current"
_VIRTIO_RNG = "/sys/bus/virtio/drivers/virtio_rng"
_VIRTIO_9P = "/sys/bus/virtio/drivers/9pnet_virtio"
_DEVICES = "/sys/devices/"
_MOUNTINFO_BYTES = 16 << 20
_MOST_LEVELS = 12
_MOST_SLAVES = 4


def irqs_of_noise(root: HostRoot, kind: str, *, unreadable: bool = False) -> tuple[int, ...]:
    """Return the numbers of the interrupts of the device from which a noise of this kind reads. Return () if the noise
    reads from no device, or if the device's interrupts are not known. Also return () if this process may not read from
    the device, unless ``unreadable`` is True."""
    if root.recorded:
        return ()
    if kind == "disk":
        return tuple(_of_disk(root))
    if kind == "hwrng":
        return tuple(_of_hwrng(root, unreadable))
    return ()


def _of_disk(root: HostRoot) -> Iterator[int]:
    try:
        device = os.stat(PROGRAM).st_dev  # noqa: PTH116 - the host's modules do not import pathlib
    except OSError:
        return
    number = f"{os.major(device)}:{os.minor(device)}"
    if number.startswith("0:"):
        yield from _of_shared_folder(root, number)
    else:
        yield from _of_block_device(root, f"/sys/dev/block/{number}")


def _of_shared_folder(root: HostRoot, number: str) -> Iterator[int]:
    """Yield the interrupts of the virtio device that brings a folder shared over 9p. ``number``: the folder's device,
    as ``MAJOR:MINOR``. Yield nothing if it is another filesystem's."""
    tags = set()
    for line in (root.text("/proc/self/mountinfo", _MOUNTINFO_BYTES) or "").splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [number] and source.startswith("9p "):
            tags.add(source.split()[1])
    for _, folder in root.numbered(_VIRTIO_9P, "virtio"):
        if root.text(f"{_real(root, folder)}/mount_tag") in tags:
            yield from irqs_of_device(root, folder)


def _of_block_device(root: HostRoot, folder: str, levels: int = _MOST_LEVELS) -> Iterator[int]:
    place = _real(root, folder)
    below = root.list_dir(f"{place}/slaves")[:_MOST_SLAVES] if levels else ()
    if not below:
        yield from irqs_of_device(root, place)
    for name in below:
        yield from _of_block_device(root, f"{place}/slaves/{name}", levels - 1)


def _of_hwrng(root: HostRoot, unreadable: bool) -> Iterator[int]:
    access = os.F_OK if unreadable else os.R_OK
    if not (root.text(_HWRNG_NOW) or "").startswith("virtio_rng") or not os.access(HWRNG, access):
        return
    for _, folder in root.numbered(_VIRTIO_RNG, "virtio"):
        yield from irqs_of_device(root, folder)


def irqs_of_device(root: HostRoot, folder: str) -> tuple[int, ...]:
    """Return the numbers of a device's interrupts. ``folder``: the device's folder in sysfs, or a link to it. If this
    folder names no interrupt, use the next folder above that names one. Return () if there is none."""
    place = _real(root, folder)
    for _ in range(_MOST_LEVELS):
        if not place.startswith(_DEVICES):
            return ()
        if several := root.numbered(f"{place}/msi_irqs", ""):
            return tuple(number for number, _ in several)
        if number := root.integer(f"{place}/irq"):
            return (number,)
        place = os.path.dirname(place)  # noqa: PTH120 - the host's modules do not import pathlib
    return ()


def _real(root: HostRoot, folder: str) -> str:
    """Return the path on the host of a folder, without links; "" if the folder is outside of the root."""
    top = os.path.realpath(root.root)
    place = os.path.realpath(f"{top}/{folder}")
    inside = place.removeprefix(top.rstrip("/"))
    return inside if place.startswith(top) else ""
