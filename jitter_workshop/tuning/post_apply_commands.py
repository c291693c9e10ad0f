"""Run once, after a group of writes, the system programs that put them into effect. ``Change.then`` names one."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter

PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (("/usr/sbin/update-grub",), ("/sbin/update-grub",)),
}
"""Name → commands (program and arguments); the first one whose program exists is run. No other program can be named."""


WRITTEN = ("/boot/grub", "/boot/grub2", "/boot/loader/entries")
"""Folders into which these programs, and grubby, write the boot loader's files."""
SETTINGS = ("/etc/default/grub", "/etc/kernel/cmdline")
"""Further files that grubby updates."""


def run_then(name: str, root: HostRoot, writer: HostWriter) -> None:
    """Run the program named ``name`` and sync its output files, because none of these programs syncs.

    Raise OSError where the name is unknown, the program is missing or fails, or the disk fails.
    """
    for program, *arguments in PROGRAMS.get(name, ()):
        if root.head(program, 1) is not None:
            writer.run(program, tuple(arguments))
            sync_written(writer)
            return
    raise OSError(
        f"the program {name} was not found on this host"
        if name in PROGRAMS
        else f"'{name[:40]}' is not a known command"
    )


def sync_written(writer: HostWriter) -> None:
    """Sync the files that a boot loader's program wrote: each file, then its folder.

    Raise OSError where the disk fails. It does not use sync(2), which waits for every file system, even for a dead
    network file system.
    """
    for folder in WRITTEN:
        writer.sync_folder(folder, files=True)
    for file in SETTINGS:
        writer.sync_file(file)
