"""CPUs, cores, packages, nodes and caches (Documentation/admin-guide/cputopology.rst, sysfs-devices-system-cpu).

An offline CPU shows neither its core nor its package: both are -1 then.
"""

from __future__ import annotations

import os
import re

from jitter_workshop.host.cgroup import read_cgroup
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.topology import Cache, Cpu, Topology

CPU_DIR = "/sys/devices/system/cpu"
UNKNOWN = -1

_EFFICIENCY_SHARE = 0.75
"""A CPU below this share of the largest capacity is an efficiency core: favoured cores of one kind differ by less."""

_SIZE = re.compile(r"(\d{1,12})([KMG]?)B?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_topology(root: HostRoot) -> Topology:
    """All CPUs that are present, offline ones too. ``allowed``: on ``/`` the affinity mask of this process within its
    cgroup's cpuset, in a recorded tree all online CPUs. A tree that shows nothing gives an empty topology."""
    folders = dict(root.numbered(CPU_DIR, "cpu"))
    online = online_cpus(root, folders)
    numbers = CpuSet.of(folders) | online
    allowed = allowed_cpus(root, online)
    nodes = _nodes(root)
    capacities = {n: root.integer(f"{folders[n]}/cpu_capacity") for n in folders}
    types = _core_types(root, capacities, online)
    cpus: list[Cpu] = []
    for number in numbers:
        folder = f"{CPU_DIR}/cpu{number}/topology"
        package = root.integer(f"{folder}/physical_package_id")
        core = root.integer(f"{folder}/core_id")
        siblings = root.cpu_list(f"{folder}/core_cpus_list")
        if siblings is None:
            siblings = root.cpu_list(f"{folder}/thread_siblings_list")
        is_online = number in online
        cpus.append(
            Cpu(
                id=number,
                package=_known(package, 0 if is_online else UNKNOWN),
                core=_known(core, number if is_online else UNKNOWN),
                node=nodes.get(number, 0 if is_online else UNKNOWN),
                online=is_online,
                allowed=number in allowed,
                smt_siblings=siblings if siblings is not None and number in siblings else CpuSet((number,)),
                core_type=types.get(number),
                capacity=capacities.get(number),
            )
        )
    return Topology(tuple(cpus), _caches(root, folders, online))


def online_cpus(root: HostRoot, folders: dict[int, str]) -> CpuSet:
    """The online CPUs: the kernel's list, else each CPU's own file (CPU 0 often has none and is online)."""
    listed = root.cpu_list(f"{CPU_DIR}/online")
    if listed is not None and len(listed):
        return listed
    return CpuSet.of(n for n, folder in folders.items() if root.integer(f"{folder}/online") != 0)


def allowed_cpus(root: HostRoot, online: CpuSet) -> CpuSet:
    """The online CPUs that this process may run on; all of them in a recorded tree, whose reader runs elsewhere."""
    if root.recorded:
        return online
    try:
        mask = online & CpuSet.of(os.sched_getaffinity(0))
    except OSError:
        return online
    group = read_cgroup(root).cpuset
    within = mask if group is None else mask & group
    # The kernel keeps the mask inside the cpuset; an empty cut means that the cgroup read was not this process's.
    return within if len(within) else mask


def parse_size(text: str | None) -> int | None:
    """A cache size as sysfs writes it, ``32K`` or ``2M``, in bytes."""
    match = _SIZE.fullmatch(text or "")
    return int(match[1]) * _UNITS[match[2]] if match else None


def _known(value: int | None, otherwise: int) -> int:
    return value if value is not None and 0 <= value < 1 << 31 else otherwise


def _nodes(root: HostRoot) -> dict[int, int]:
    found: dict[int, int] = {}
    for node, folder in root.numbered("/sys/devices/system/node", "node"):
        for cpu in root.cpu_list(f"{folder}/cpulist") or ():
            found.setdefault(cpu, node)
    return found


def _core_types(root: HostRoot, capacities: dict[int, int | None], online: CpuSet) -> dict[int, str]:
    """Kinds of core where they differ: Intel's hybrid CPUs name them by their PMUs, others by capacity."""
    performance = root.cpu_list("/sys/devices/cpu_core/cpus") or CpuSet()
    efficiency = root.cpu_list("/sys/devices/cpu_atom/cpus") or CpuSet()
    efficiency |= root.cpu_list("/sys/devices/cpu_lowpower/cpus") or CpuSet()
    if len(performance) and len(efficiency):
        return {**dict.fromkeys(efficiency, "efficiency"), **dict.fromkeys(performance, "performance")}
    known = {n: c for n, c in capacities.items() if n in online and c is not None and c > 0}
    bound = _EFFICIENCY_SHARE * max(known.values(), default=0)
    if all(c >= bound for c in known.values()):
        return {}
    return {n: "performance" if c >= bound else "efficiency" for n, c in known.items()}


def _caches(root: HostRoot, folders: dict[int, str], online: CpuSet) -> tuple[Cache, ...]:
    found: dict[tuple[int, str, CpuSet], Cache] = {}
    for number, folder in sorted(folders.items()):
        if number not in online:
            continue
        for _, index in root.numbered(f"{folder}/cache", "index"):
            level, kind = root.integer(f"{index}/level"), root.text(f"{index}/type")
            if level is None or not 1 <= level <= 8 or kind not in ("Data", "Instruction", "Unified"):
                continue
            cpus = root.cpu_list(f"{index}/shared_cpu_list")
            if cpus is None or number not in cpus:
                cpus = CpuSet((number,))
            key = (level, kind, cpus)
            if key not in found:
                found[key] = Cache(level, kind, parse_size(root.text(f"{index}/size")), cpus)
    return tuple(sorted(found.values(), key=lambda c: (c.level, c.kind, c.cpus.cpus)))
