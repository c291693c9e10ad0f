"""Read the host's CPUs, cores, packages, memory nodes and caches. Also read which CPUs have no load balancing or no
tick.

Sources: Documentation/admin-guide/cputopology.rst and sysfs-devices-system-cpu. Isolation: kernel-parameters.txt
(isolcpus, nohz_full) and cgroup-v2.rst (cpuset.cpus.partition). The kernel shows no core and no package for an offline
CPU. The numbers of its core and package are then -1.
"""

from __future__ import annotations

import os
import re

from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.host.tasks.cgroup import read_cgroup
from jitter_workshop.host.tasks.cpusets import find_cpusets, isolated_at_run_time
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.record import dataclass

CPU_DIR = "/sys/devices/system/cpu"
NODE_DIR = "/sys/devices/system/node"
NOHZ_FULL = f"{CPU_DIR}/nohz_full"
PARTITIONS = ("/sys/fs/cgroup/cpuset.cpus.isolated", "/sys/fs/cgroup/unified/cpuset.cpus.isolated")
UNKNOWN = -1

_EFFICIENCY_SHARE = 0.75
"""A CPU whose capacity is below this share of the largest capacity is an efficiency core. The capacities of two cores
of the same kind differ by less."""

_SIZE = re.compile(r"(\d{1,12})([KMG]?)B?")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def read_topology(root: HostRoot) -> Topology:
    """Return the host's CPUs, including offline ones, with cores, packages, memory nodes and caches.

    On the live host, a CPU is ``allowed`` if two sets contain it: this process's affinity mask, and its cgroup's
    cpuset. In a recorded tree all online CPUs are ``allowed``. If the tree shows no CPUs, the topology is empty. The
    ids of a shared core or package and the properties of a shared cache are read only once.
    """
    folders = dict(root.numbered(CPU_DIR, "cpu"))
    online = online_cpus(root, folders)
    is_online, is_allowed = frozenset(online), frozenset(allowed_cpus(root, online))
    nodes = {cpu: node for node, cpus in reversed(read_memory_nodes(root).items()) for cpu in cpus}
    siblings = _shared(root, online, ("core_cpus_list", "thread_siblings_list"))
    cores = _ids(root, online, "core_id", siblings)
    packages = _ids(root, online, "physical_package_id", siblings, ("package_cpus_list", "core_siblings_list"))
    capacities = _capacities(root, folders, siblings)
    types = _core_types(root, capacities, is_online)
    cpus = tuple(
        Cpu(
            id=number,
            package=packages.get(number, 0 if number in is_online else UNKNOWN),
            core=cores.get(number, number if number in is_online else UNKNOWN),
            node=nodes.get(number, 0 if number in is_online else UNKNOWN),
            online=number in is_online,
            allowed=number in is_allowed,
            smt_siblings=siblings.get(number) or CpuSet((number,)),
            core_type=types.get(number),
        )
        for number in sorted(folders.keys() | is_online)
    )
    return Topology(cpus, _caches(root, online, siblings))


def read_memory_nodes(root: HostRoot) -> dict[int, CpuSet]:
    """Return node number → its CPUs for each online memory node, in the order of the numbers. A node may have memory
    and no CPUs.

    Return {} if the kernel was built without NUMA. Source: Documentation/ABI/stable/sysfs-devices-node.
    """
    return {n: root.cpu_list(f"{folder}/cpulist") or CpuSet() for n, folder in root.numbered(NODE_DIR, "node")}


def online_cpus(root: HostRoot, folders: dict[int, str]) -> CpuSet:
    """Return the online CPUs. They come from the kernel's list, or else from each CPU's own file. A CPU without this
    file counts as online (CPU 0 often has no such file). ``folders``: CPU number → folder of the CPU."""
    listed = root.cpu_list(f"{CPU_DIR}/online")
    if listed is not None and len(listed):
        return listed
    return CpuSet.of(n for n, folder in folders.items() if root.integer(f"{folder}/online") != 0)


def allowed_cpus(root: HostRoot, online: CpuSet) -> CpuSet:
    """Return the online CPUs that this process may run on. In a recorded tree return all online CPUs, because this
    process runs on another host."""
    if root.recorded:
        return online
    try:
        mask = online & CpuSet.of(os.sched_getaffinity(0))
    except OSError:
        return online
    group = read_cgroup(root).cpuset
    within = mask if group is None else mask & group
    # The kernel keeps the mask inside the cpuset; an empty result means that the cgroup was not this process's.
    return within if len(within) else mask


def usable_cpus(root: HostRoot) -> tuple[CpuSet, CpuSet]:
    """Return the CPUs that this process may run on now, and the CPUs that are isolated now."""
    online = root.cpu_list(f"{CPU_DIR}/online") or CpuSet()
    return allowed_cpus(root, online), read_isolation(root).isolated


def parse_size(text: str | None) -> int | None:
    """Return a cache size in bytes from a text such as ``32K`` or ``2M``, as sysfs writes it. Return None for any other
    text."""
    match = _SIZE.fullmatch(text or "")
    return int(match[1]) * _UNITS[match[2]] if match else None


def topology_path(cpu: int, name: str) -> str:
    """Return the path of a file in one CPU's ``topology`` folder."""
    return f"{CPU_DIR}/cpu{cpu}/topology/{name}"


def _shared(root: HostRoot, online: CpuSet, names: tuple[str, ...]) -> dict[int, CpuSet]:
    """Return online CPU → the CPUs that share a resource with it.

    ``names``: names of files that list these CPUs, such as ``core_cpus_list``. The first of these files that exists is
    used. Of CPUs that share the resource, the files of only one CPU are read. CPUs without such a file are left out.
    """
    found: dict[int, CpuSet] = {}
    known = frozenset(online)
    for cpu in online:
        if cpu in found:
            continue
        group = _list_of(root, cpu, names)
        if group is not None:
            for member in group:
                if member in known:
                    found.setdefault(member, group)
    return found


def _list_of(root: HostRoot, cpu: int, names: tuple[str, ...]) -> CpuSet | None:
    """Return the CPU list in the first existing file of ``names`` for one CPU. Return None if there is no valid list,
    or if the list does not contain the CPU."""
    for name in names:
        group = root.cpu_list(topology_path(cpu, name))
        if group is not None:
            return group if cpu in group else None
    return None


def _ids(
    root: HostRoot, online: CpuSet, name: str, siblings: dict[int, CpuSet], lists: tuple[str, ...] = ()
) -> dict[int, int]:
    """Return online CPU → the id in its file ``name``, such as ``core_id``. The file is read for only one CPU of a
    core, because all CPUs of a core have the same id. ``lists``: names of files that list further CPUs with this id;
    the first existing file is used."""
    found: dict[int, int] = {}
    known = frozenset(online)
    for cpu in online:
        if cpu in found:
            continue
        value = root.integer(topology_path(cpu, name))
        if value is None or not 0 <= value < 1 << 31:
            continue
        for member in (*(_list_of(root, cpu, lists) or ()), *siblings.get(cpu, (cpu,))):
            if member in known:
                found.setdefault(member, value)
    return found


def _capacities(root: HostRoot, folders: dict[int, str], siblings: dict[int, CpuSet]) -> dict[int, int | None]:
    """Return CPU → its ``cpu_capacity``; None if it cannot be read. Return {} if the first CPU has no such file."""
    found: dict[int, int | None] = {}
    for number, folder in folders.items():
        if number in found:
            continue
        reading = root.reading(f"{folder}/cpu_capacity")
        if reading.text is None and not found and number in siblings:
            return {}
        for member in siblings.get(number, (number,)):
            found.setdefault(member, parse_integer(reading.text))
    return found


def _core_types(root: HostRoot, capacities: dict[int, int | None], online: frozenset[int]) -> dict[int, str]:
    """Return CPU → ``performance`` or ``efficiency``; {} if all cores have the same type. Intel's hybrid processors
    list the CPUs of each type. For other processors the type follows from the capacity."""
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


def _caches(root: HostRoot, online: CpuSet, siblings: dict[int, CpuSet]) -> tuple[Cache, ...]:
    """Return all caches of the online CPUs, each cache only once.

    Two rules save readings. A CPU is skipped if it shares all its caches with the first CPU of its core. A CPU's cache
    is skipped if it was already read for another CPU, with the same index.
    """
    found: dict[tuple[int, str, CpuSet], Cache] = {}
    mine: dict[int, list[Cache]] = {}
    placed: dict[tuple[int, ...], dict[tuple[int, int], Cache]] = {}
    for cpu in online:
        first = siblings[cpu].cpus[0] if cpu in siblings else cpu
        if first in mine and all(cpu in cache.cpus for cache in mine[first]):
            continue
        folder = f"{CPU_DIR}/cpu{cpu}/cache"
        indexes = root.numbered(folder, "index")
        places = placed.setdefault(tuple(index for index, _ in indexes), {})
        mine[cpu] = []
        for index, path in indexes:
            cache = places.get((index, cpu)) or _cache(root, path, cpu)
            if cache is None:
                continue
            cache = found.setdefault((cache.level, cache.kind, cache.cpus), cache)
            mine[cpu].append(cache)
            for member in cache.cpus:
                places.setdefault((index, member), cache)
    return tuple(sorted(found.values(), key=lambda c: (c.level, c.kind, c.cpus.cpus)))


def _cache(root: HostRoot, folder: str, cpu: int) -> Cache | None:
    level, kind = root.integer(f"{folder}/level"), root.text(f"{folder}/type")
    if level is None or not 1 <= level <= 8 or kind not in ("Data", "Instruction", "Unified"):
        return None
    cpus = root.cpu_list(f"{folder}/shared_cpu_list")
    if cpus is None or cpu not in cpus:
        cpus = CpuSet((cpu,))
    return Cache(level, kind, parse_size(root.text(f"{folder}/size")), cpus)


@dataclass(frozen=True, slots=True)
class IsolatedCpus:
    """Hold the CPUs that the kernel isolates now. A field is None if the kernel does not show it.

    - ``boot``: the CPUs isolated by the boot parameter ``isolcpus``.
    - ``partitions``: the CPUs isolated at run time, by cgroup partitions or by version 1 cpusets.
    - ``nohz_full``: the CPUs without a tick while they run one task.
    """

    boot: CpuSet | None
    partitions: CpuSet | None
    nohz_full: CpuSet | None

    @property
    def isolated(self) -> CpuSet:
        """Return all CPUs to and from which the scheduler's load balancer moves no tasks. CPUs whose isolation the
        kernel does not show are missing."""
        return (self.boot or CpuSet()) | (self.partitions or CpuSet())


def read_isolation(root: HostRoot) -> IsolatedCpus:
    """Return the three lists of isolated CPUs. A kernel without nohz_full writes ``(null)``, which counts as an empty
    list."""
    partitions = next((found for path in PARTITIONS if (found := root.cpu_list(path)) is not None), None)
    if partitions is None and (sets := find_cpusets(root)) is not None:
        partitions = isolated_at_run_time(root, sets)
    return IsolatedCpus(root.cpu_list(f"{CPU_DIR}/isolated"), partitions, root.cpu_list(NOHZ_FULL))


def last_cpu(root: HostRoot) -> int | None:
    """Return the largest possible CPU number; None if the kernel does not show it. CPU lists may write this number as
    ``N``."""
    possible = root.cpu_list(f"{CPU_DIR}/possible")
    return possible.cpus[-1] if possible else None
