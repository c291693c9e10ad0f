"""Read shares of cache and memory bandwidth (Documentation/filesystems/resctrl.rst)."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

FOLDER = "/sys/fs/resctrl"

_OWN_FOLDERS = ("info", "mon_data", "mon_groups")


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Hold one group.

    It has its name ("" for the default group), its CPUs, its mode (shareable, exclusive, pseudo-locked) and its
    schemata, one line a resource. Untrusted where shown.
    """

    name: str
    cpus: CpuSet | None
    mode: str | None
    schemata: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Resctrl:
    """Hold the resource groups.

    ``mounted``: True if the filesystem is mounted. ``resources``: the resources that can be shared out (L3, L2, MB, …).
    """

    mounted: bool
    resources: tuple[str, ...]
    groups: tuple[ResourceGroup, ...]
    reason: str = ""


def read_resctrl(root: HostRoot) -> Resctrl:
    """Read the default group and every group below it."""
    default = root.reading(f"{FOLDER}/schemata")
    if default.text is None:
        supported = root.is_dir(FOLDER)
        return Resctrl(False, (), (), "not mounted" if supported else "this kernel or processor has no resctrl")
    names = [n for n in root.folders(FOLDER) if n not in _OWN_FOLDERS]
    return Resctrl(True, root.folders(f"{FOLDER}/info"), tuple(_group(root, name) for name in ("", *names)))


def _group(root: HostRoot, name: str) -> ResourceGroup:
    folder = f"{FOLDER}/{name}" if name else FOLDER
    lines = (root.text(f"{folder}/schemata") or "").split("\n")
    return ResourceGroup(
        name=printable(name, 64),
        cpus=root.cpu_list(f"{folder}/cpus_list"),
        mode=printable(root.text(f"{folder}/mode") or "", 40) or None,
        schemata=tuple(line for raw in lines[:64] if (line := printable(raw, 200))),
    )
