"""What follows a group of writes once: the programs of the system that take them up. A Change names one in ``then``."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot
from jitter_workshop.tuning.writer import HostWriter

PROGRAMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "update-grub": (("/usr/sbin/update-grub",), ("/sbin/update-grub",)),
}
"""Name → the program and its arguments; the first one that is there is run. Nothing else can be named."""


def run_then(name: str, root: HostRoot, writer: HostWriter) -> None:
    """Run what ``name`` stands for. Raises OSError where it is unknown, not here, or fails."""
    for program, *arguments in PROGRAMS.get(name, ()):
        if root.head(program, 1) is not None:
            writer.run(program, tuple(arguments))
            return
    raise OSError(f"{name} is not to be found here" if name in PROGRAMS else f"'{name[:40]}' is nothing that is run")
