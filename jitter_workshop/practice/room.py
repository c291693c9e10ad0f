"""Check that this host has enough memory and disk space for a machine that is to start."""

from __future__ import annotations

import os
from pathlib import Path

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import line_value

MAKE_ROOM = "free some disk space, or set XDG_CACHE_HOME to another folder"
MEMINFO = Path("/proc/meminfo")
QEMU_MIB = 128
"""The memory in MiB that QEMU itself takes: its devices, and the code that its emulation has translated."""
START_MIB = 64
"""The disk space in MiB that a start takes in the cache: the initrd, the console and QEMU's messages."""
FETCH_MIB = 220
"""The disk space in MiB that getting a kernel takes: Debian's package, and what is kept of it."""


def available_mib(meminfo: Path | None = None) -> int | None:
    """Return the memory that this host can give to a new program without swapping, in MiB (MemAvailable, see
    Documentation/filesystems/proc.rst). Return None if the kernel does not say it."""
    try:
        text = (meminfo or MEMINFO).read_text("ascii", "replace")
        return int(line_value(text, "MemAvailable").split()[0]) >> 10
    except (OSError, ValueError, IndexError):
        return None


def free_mib(folder: Path) -> int:
    """Return the free disk space for ``folder``, in MiB. The folder need not exist yet."""
    place = next(one for one in (folder, *folder.parents) if one.is_dir())
    has = os.statvfs(place)
    return (has.f_bavail * has.f_frsize) >> 20


def check_memory(name: str, memory_mib: int) -> None:
    """Raise HostError if this host has too little free memory for a machine. ``name``: the machine's shape.
    ``memory_mib``: the guest's memory. This function adds the memory that QEMU itself needs."""
    needed, left = memory_mib + QEMU_MIB, available_mib()
    if left is not None and left < needed:
        raise HostError(
            f"a machine of the shape {name} takes up to {needed} MiB of memory, but this host has {left} MiB left",
            "end other programs, or choose a smaller shape ('jitter-workshop practice list' shows how much memory "
            "each shape needs)",
        )


def check_space(folder: Path, needed_mib: int, what: str) -> None:
    """Raise HostError if the file system of ``folder`` has less than ``needed_mib`` MiB of free space. ``what``: the
    subject of the error's message, such as "this start"."""
    left = free_mib(folder)
    if left < needed_mib:
        raise HostError(f"{what} needs {needed_mib} MiB in {folder}, but only {left} MiB are free", MAKE_ROOM)
