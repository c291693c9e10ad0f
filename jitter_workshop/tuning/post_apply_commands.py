"""What follows a group of writes once: the programs of the system that take them up. A Change names one in ``then``."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter

PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (("/usr/sbin/update-grub",), ("/sbin/update-grub",)),
}
"""Name → the program and its arguments; the first one that is there is run. Nothing else can be named."""


WRITTEN = ("/boot/grub", "/boot/grub2", "/boot/loader/entries")
"""Folders into which such programs, and grubby, write what a boot loader reads."""
SETTINGS = ("/etc/default/grub", "/etc/kernel/cmdline")
"""Files beside them that grubby brings up to date."""


def run_then(name: str, root: HostRoot, writer: HostWriter) -> None:
    """Run what ``name`` stands for, and sync what it wrote: none of these programs does. Raises OSError where it is
    unknown, not here, or fails, or where the disk does."""
    for program, *arguments in PROGRAMS.get(name, ()):
        if root.head(program, 1) is not None:
            writer.run(program, tuple(arguments))
            sync_written(writer)
            return
    raise OSError(f"{name} is not to be found here" if name in PROGRAMS else f"'{name[:40]}' is nothing that is run")


def sync_written(writer: HostWriter) -> None:
    """Bring what a boot loader's program wrote to the disk: each file, then its folder. Raises OSError where the disk
    fails. Never by sync(2), which waits for every file system, a dead one of the network too."""
    for folder in WRITTEN:
        writer.sync_folder(folder, files=True)
    for file in SETTINGS:
        writer.sync_file(file)
