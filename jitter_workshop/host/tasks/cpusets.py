"""Find the cpuset hierarchy of this host, and the CPUs of its groups.

Sources: Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.tasks.cgroup import parse_memberships, parse_mounts
from jitter_workshop.model.cpuset import CpuSet, PartitionState, parse_partition
from jitter_workshop.model.record import dataclass

_MOUNTINFO_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Cpusets:
    """Hold the hierarchy with the cpuset controller. ``version``: 1 or 2. ``where``: the mount point. ``top``: the
    hierarchy's folder that is mounted there. ``top`` is ``/`` unless a container sees only a part of the hierarchy."""

    version: int
    where: str
    top: str


@dataclass(frozen=True, slots=True)
class Group:
    """Hold one group below the top.

    ``cpus``: the requested CPUs, empty for none. ``effective``: the CPUs that the group has. ``partition``: its state
    in version 2, None if not shown. ``exclusive_file``: True on kernels (6.7 and newer) where a partition may take CPUs
    that a sibling has only requested. ``balanced``: ``sched_load_balance`` in version 1.
    """

    name: str
    folder: str
    cpus: CpuSet
    effective: CpuSet
    partition: PartitionState | None
    exclusive_file: bool
    balanced: bool


def find_cpusets(root: HostRoot) -> Cpusets | None:
    """Return the hierarchy of version 2 if its top offers the cpuset controller, else that of version 1, else None."""
    mounts = parse_mounts(root.text("/proc/self/mountinfo", _MOUNTINFO_BYTES) or "")
    for mount in mounts:
        if mount.version == 2 and "cpuset" in (root.text(f"{mount.where}/cgroup.controllers") or "").split():
            return Cpusets(2, mount.where, mount.top)
    for mount in mounts:
        if mount.version == 1 and "cpuset" in mount.controllers:
            return Cpusets(1, mount.where, mount.top)
    return None


def read_groups(root: HostRoot, sets: Cpusets) -> tuple[Group, ...]:
    """Return the groups directly below the top that have the cpuset controller."""
    return tuple(
        group
        for name in root.list_dir(sets.where)
        if (group := read_group(root, sets, f"{sets.where}/{name}")) is not None
    )


def read_group(root: HostRoot, sets: Cpusets, folder: str) -> Group | None:
    """Return one group; None where it does not exist or lacks the controller."""
    cpus = root.cpu_list(f"{folder}/cpuset.cpus")
    if cpus is None:
        return None
    name = printable(folder.rpartition("/")[2], 60)
    if sets.version == 1:
        effective = root.cpu_list(f"{folder}/cpuset.effective_cpus") or cpus
        balanced = root.integer(f"{folder}/cpuset.sched_load_balance") != 0
        return Group(name, folder, cpus, effective, None, False, balanced)
    try:
        partition = parse_partition(root.text(f"{folder}/cpuset.cpus.partition") or "")
    except ValueError:
        partition = None
    return Group(
        name=name,
        folder=folder,
        cpus=cpus,
        effective=root.cpu_list(f"{folder}/cpuset.cpus.effective") or CpuSet(),
        partition=partition,
        exclusive_file=root.text(f"{folder}/cpuset.cpus.exclusive") is not None,
        balanced=True,
    )


def path_of(sets: Cpusets, memberships: str) -> str | None:
    """Return the path of a task's group in this hierarchy, None if the task has no group there. ``memberships``: the
    text of ``/proc/PID/cgroup``."""
    places = parse_memberships(memberships)
    found = (p.path for p in places if ("cpuset" in p.controllers if sets.version == 1 else not p.controllers))
    return next(found, None)


def limited_by(root: HostRoot, sets: Cpusets, tid: int) -> Group | None:
    """Return the nearest group, the task's own or one above it, that limits the task's CPUs; None if no group does."""
    path = path_of(sets, root.text(f"/proc/{tid}/cgroup") or "") or "/"
    while path.strip("/"):
        group = read_group(root, sets, f"{sets.where}{path}")
        if group is not None and group.cpus:
            return group
        path = path.rpartition("/")[0]
    return None


def isolated_at_run_time(root: HostRoot, sets: Cpusets | None) -> CpuSet:
    """Return the CPUs of isolated partitions, also on kernels before 6.8, which have no list of them. In version 1 a
    CPU is isolated if an unbalanced group has the CPU and no balanced group has it. While the top is balanced, no CPU
    is isolated."""
    if sets is None:
        return CpuSet()
    listed = root.cpu_list(f"{sets.where}/cpuset.cpus.isolated") if sets.version == 2 else None
    if listed is not None:
        return listed
    if sets.version == 2:
        valid = [g for g in read_groups(root, sets) if g.partition == PartitionState("isolated")]
        return CpuSet.of(cpu for group in valid for cpu in group.effective)
    if root.integer(f"{sets.where}/cpuset.sched_load_balance") != 0:
        return CpuSet()
    groups = read_groups(root, sets)
    balanced = CpuSet.of(cpu for group in groups if group.balanced for cpu in group.effective)
    return CpuSet.of(cpu for group in groups if not group.balanced for cpu in group.effective) - balanced
