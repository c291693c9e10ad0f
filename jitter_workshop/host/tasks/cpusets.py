"""Find the cgroup hierarchy of this host that has the cpuset controller, and the CPUs of its groups.

Sources: Documentation/admin-guide/cgroup-v2.rst, "Cpuset"; Documentation/admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.tasks.cgroup import parse_memberships, parse_mounts
from jitter_workshop.model.cpuset import CpuSet, PartitionState, parse_partition
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import LABEL

_MOUNTINFO_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Cpusets:
    """Hold the cgroup hierarchy with the cpuset controller.

    - ``version``: 1 or 2.
    - ``where``: the mount point.
    - ``top``: the folder inside the hierarchy that the mount point shows. In a container ``top`` may be a subfolder,
      otherwise it is ``/``.
    """

    version: int
    where: str
    top: str


@dataclass(frozen=True, slots=True)
class CpusetGroup:
    """Hold one group of the cpuset hierarchy, not the top group.

    - ``cpus``: the CPUs that the group requests, empty if it requests none.
    - ``effective``: the CPUs that the kernel gives to the group.
    - ``partition``: the state of its partition in version 2, None if not shown.
    - ``exclusive_file``: True if the group has the file ``cpuset.cpus.exclusive`` (since kernel 6.7). Since kernel 7.0
      a partition may take CPUs that a sibling group requests. It may not take a sibling's exclusive CPUs.
    - ``balanced``: the flag ``sched_load_balance`` in version 1.
    """

    name: str
    folder: str
    cpus: CpuSet
    effective: CpuSet
    partition: PartitionState | None
    exclusive_file: bool
    balanced: bool


def find_cpusets(root: HostRoot) -> Cpusets | None:
    """Return the cpuset hierarchy of version 2 if its top offers the cpuset controller, else the cpuset hierarchy of
    version 1. Return None if the host has neither of the two."""
    mounts = parse_mounts(root.text("/proc/self/mountinfo", _MOUNTINFO_BYTES) or "")
    for mount in mounts:
        if mount.version == 2 and "cpuset" in (root.text(f"{mount.where}/cgroup.controllers") or "").split():
            return Cpusets(2, mount.where, mount.top)
    for mount in mounts:
        if mount.version == 1 and "cpuset" in mount.controllers:
            return Cpusets(1, mount.where, mount.top)
    return None


def read_groups(root: HostRoot, sets: Cpusets) -> tuple[CpusetGroup, ...]:
    """Return the groups directly below the top of the cpuset hierarchy. Groups without the cpuset controller are left
    out."""
    return tuple(
        group
        for name in root.list_dir(sets.where)
        if (group := read_group(root, sets, f"{sets.where}/{name}")) is not None
    )


def read_group(root: HostRoot, sets: Cpusets, folder: str) -> CpusetGroup | None:
    """Return the group in a folder of the cpuset hierarchy; None if the group does not exist or lacks the cpuset
    controller."""
    cpus = root.cpu_list(f"{folder}/cpuset.cpus")
    if cpus is None:
        return None
    name = printable(folder.rpartition("/")[2], LABEL)
    if sets.version == 1:
        effective = root.cpu_list(f"{folder}/cpuset.effective_cpus") or cpus
        balanced = root.integer(f"{folder}/cpuset.sched_load_balance") != 0
        return CpusetGroup(name, folder, cpus, effective, None, False, balanced)
    try:
        partition = parse_partition(root.text(f"{folder}/cpuset.cpus.partition") or "")
    except ValueError:
        partition = None
    return CpusetGroup(
        name=name,
        folder=folder,
        cpus=cpus,
        effective=root.cpu_list(f"{folder}/cpuset.cpus.effective") or CpuSet(),
        partition=partition,
        exclusive_file=root.text(f"{folder}/cpuset.cpus.exclusive") is not None,
        balanced=True,
    )


def path_of(sets: Cpusets, memberships: str) -> str | None:
    """Return the path of a task's group in the cpuset hierarchy; None if the task has no group in it. ``memberships``:
    the text of ``/proc/PID/cgroup``."""
    places = parse_memberships(memberships)
    found = (p.path for p in places if ("cpuset" in p.controllers if sets.version == 1 else not p.controllers))
    return next(found, None)


def limited_by(root: HostRoot, sets: Cpusets, tid: int) -> CpusetGroup | None:
    """Return the nearest group that limits the CPUs of the task ``tid``: the task's own group, or one above it. Return
    None if no group limits the task's CPUs."""
    path = path_of(sets, root.text(f"/proc/{tid}/cgroup") or "") or "/"
    while path.strip("/"):
        group = read_group(root, sets, f"{sets.where}{path}")
        if group is not None and group.cpus:
            return group
        path = path.rpartition("/")[0]
    return None


def isolated_at_run_time(root: HostRoot, sets: Cpusets | None) -> CpuSet:
    """Return the CPUs that cpusets isolate at run time.

    In version 2 these are the CPUs of isolated partitions. Kernels since 6.8 list these CPUs in one file. On older
    kernels, each group is read. In version 1 no CPU is isolated while the top group is balanced (``sched_load_balance``
    is 1). Otherwise a CPU is isolated if it is in an unbalanced group and in no balanced group.
    """
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
