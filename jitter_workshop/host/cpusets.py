"""All cgroups that hold CPUs for themselves: partitions (Documentation/admin-guide/cgroup-v2.rst, "Cpuset") and the
cpusets of version 1 (Documentation/admin-guide/cgroup-v1/cpusets.rst).

Names of cgroups are untrusted where shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.host.cgroup import Mount, parse_mounts
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet, PartitionState, parse_partition
from jitter_workshop.model.record import dataclass

MAX_GROUPS = 2_000
_MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class CpusetGroup:
    """One cgroup with the cpuset controller. ``path``: below the mount, ``/`` for its top; ``folder``: the whole path.
    ``cpus``: as wished for, empty for "as the parent"; ``effective``: as it is. Version 2: ``partition`` (None for the
    top) and ``exclusive`` (from 6.7). Version 1: ``cpu_exclusive`` and ``load_balance``. None where not shown."""

    path: str
    folder: str
    cpus: CpuSet | None
    effective: CpuSet | None
    partition: PartitionState | None = None
    exclusive: CpuSet | None = None
    exclusive_effective: CpuSet | None = None
    cpu_exclusive: bool | None = None
    load_balance: bool | None = None


@dataclass(frozen=True, slots=True)
class Cpusets:
    """``version``: of the hierarchy with the cpuset controller, None where there is none (``reason``). ``folder``: its
    mount point. ``delegated``: whether the top hands the controller to its children (version 2; always so in 1).
    ``isolated``: in isolated partitions, None where the kernel does not show it (before 6.7, and in containers).
    ``groups``: those that take CPUs for themselves or are limited to some, the top left out. ``complete`` False: there
    are more groups than were looked at."""

    version: int | None
    folder: str = ""
    delegated: bool = False
    isolated: CpuSet | None = None
    groups: tuple[CpusetGroup, ...] = ()
    complete: bool = True
    reason: str = ""

    @property
    def partitions(self) -> tuple[CpusetGroup, ...]:
        """The groups that are or want to be a partition of their own."""
        return tuple(g for g in self.groups if g.partition is not None and g.partition.kind != "member")


def read_cpusets(root: HostRoot, max_groups: int = MAX_GROUPS) -> Cpusets:
    """Walk the hierarchy that holds the cpuset controller. Where a group's parent does not hand the controller on,
    nothing below is looked at."""
    mounts = root.reading("/proc/self/mountinfo", 16 << 20)
    if mounts.text is None:
        return Cpusets(None, reason=f"/proc/self/mountinfo: {mounts.reason}")
    mount = cpuset_mount(root, parse_mounts(mounts.text))
    if mount is None:
        return Cpusets(None, reason="no cgroup hierarchy with a cpuset controller is mounted")
    groups: list[CpusetGroup] = []
    looked = 0
    for group in _walk(root, mount, "", 0):
        looked += 1
        if looked > max_groups:
            break
        if _holds_cpus(group):
            groups.append(group)
    return Cpusets(
        version=mount.version,
        folder=mount.where,
        delegated=mount.version == 1 or "cpuset" in _words(root, f"{mount.where}/cgroup.subtree_control"),
        isolated=root.cpu_list(f"{mount.where}/cpuset.cpus.isolated") if mount.version == 2 else None,
        groups=tuple(groups),
        complete=looked <= max_groups,
    )


def cpuset_mount(root: HostRoot, mounts: tuple[Mount, ...]) -> Mount | None:
    """The mount whose hierarchy holds the cpuset controller: a controller belongs to one hierarchy only."""
    for mount in mounts:
        if mount.version == 1 and "cpuset" in mount.controllers:
            return mount
    for mount in mounts:
        if mount.version == 2 and "cpuset" in _words(root, f"{mount.where}/cgroup.controllers"):
            return mount
    return None


def read_group(root: HostRoot, version: int, folder: str, path: str = "") -> CpusetGroup | None:
    """One cgroup; None where it has no cpuset files (or is gone)."""
    reading = root.reading(f"{folder}/cpuset.cpus")
    if reading.text is None:
        return None
    cpus = _parse(reading.text)
    if version == 1:
        effective = root.cpu_list(f"{folder}/cpuset.effective_cpus")
        return CpusetGroup(
            path=path,
            folder=folder,
            cpus=cpus,
            effective=cpus if effective is None else effective,
            cpu_exclusive=_switch(root.integer(f"{folder}/cpuset.cpu_exclusive")),
            load_balance=_switch(root.integer(f"{folder}/cpuset.sched_load_balance")),
        )
    partition = _partition(root.text(f"{folder}/cpuset.cpus.partition"))
    exclusive = root.cpu_list(f"{folder}/cpuset.cpus.exclusive")
    plain = (partition is None or partition.kind == "member") and not exclusive
    return CpusetGroup(
        path=path,
        folder=folder,
        cpus=cpus,
        effective=root.cpu_list(f"{folder}/cpuset.cpus.effective"),
        partition=partition,
        exclusive=exclusive,
        exclusive_effective=None if plain else root.cpu_list(f"{folder}/cpuset.cpus.exclusive.effective"),
    )


def _walk(root: HostRoot, mount: Mount, path: str, depth: int) -> Iterator[CpusetGroup]:
    for name in root.folders(f"{mount.where}{path}"):
        below = f"{path}/{name}"
        group = read_group(root, mount.version, f"{mount.where}{below}", below)
        if group is None:
            continue
        yield group
        if depth < _MAX_DEPTH:
            yield from _walk(root, mount, below, depth + 1)


def _holds_cpus(group: CpusetGroup) -> bool:
    own_partition = group.partition is not None and group.partition.kind != "member"
    return own_partition or bool(group.cpus) or bool(group.exclusive) or group.load_balance is False


def _parse(text: str) -> CpuSet | None:
    try:
        return CpuSet.parse_list(text)
    except ValueError:
        return None


def _partition(text: str | None) -> PartitionState | None:
    try:
        return None if text is None else parse_partition(text)
    except ValueError:
        return None


def _switch(value: int | None) -> bool | None:
    return None if value is None else value != 0


def _words(root: HostRoot, path: str) -> list[str]:
    return (root.text(path) or "").split()
