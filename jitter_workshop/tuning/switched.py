"""Compute the values that the kernel may give a setting when we switch CPUs or cpusets.

The kernel changes other settings when a CPU goes offline, or a cpuset changes (see ``ordering``). A restore includes
such a change, because this tool caused it, not another program. The class Switched holds the states of the host since
our first write, as the journals tell. Each kind of setting asks this class if one of these states explains the
setting's present value.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet, PartitionState
from jitter_workshop.model.record import dataclass, field

_NODES = "/sys/devices/system/node"
_OWN_LISTS = (
    "/sys/fs/cgroup/jitter-workshop/cpuset.cpus",
    "/sys/fs/cgroup/unified/jitter-workshop/cpuset.cpus",
    "/sys/fs/cgroup/cpuset/jitter-workshop-hot/cpuset.cpus",
)
_OWN_REST = "/sys/fs/cgroup/cpuset/jitter-workshop-rest/cpuset.cpus"
_OF_CPU = r"/sys/devices/system/(?:cpu/cpu|machinecheck/machinecheck)([0-9]{1,6})/"
_MANY = 16
"""The largest number of switched CPUs for which the states between the first and the last switch are considered.

With more CPUs, only the state before the first switch and the state after the last switch are considered.
"""


class Wrote(Protocol):
    """Describe a write that may be in effect on the host: a Change, or an entry of the journal."""

    @property
    def tunable(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def before(self) -> str: ...
    @property
    def after(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Switched:
    """Hold the CPUs and cpusets that we switched, and the host's states since then.

    - ``possible``: all CPUs that this kernel can have.
    - ``online``: each set of CPUs that were online together at some time since our first write.
    - ``lasting``: like ``online``, without the sets of an offline cycle. In such a cycle, a CPU goes offline and comes
      back at once.
    - ``taken``: each set of CPUs that one of our cpusets has had.
    - ``rest``: each set of CPUs that our second version 1 cpuset has had. That cpuset is for all tasks off the hot
      CPUs.
    - ``isolated``: all CPUs that our cpusets kept from other tasks.
    - ``others``: the CPUs of other programs' partitions now. The kernel keeps tasks off these CPUs as well.
    - ``gone``: the CPUs of other programs' partitions that existed when we wrote, and no longer exist.
    - ``cpus``: True if we switched a CPU. ``sets``: True if we switched a cpuset.
    """

    possible: CpuSet
    online: tuple[CpuSet, ...] = ()
    lasting: tuple[CpuSet, ...] = ()
    taken: tuple[CpuSet, ...] = ()
    rest: tuple[CpuSet, ...] = ()
    isolated: CpuSet = field(default_factory=CpuSet)
    others: CpuSet = field(default_factory=CpuSet)
    gone: CpuSet = field(default_factory=CpuSet)
    cpus: bool = False
    sets: bool = False

    def __bool__(self) -> bool:
        return self.cpus or self.sets

    def opened(self) -> set[CpuSet]:
        """Return every affinity that the kernel may have given to an unrestricted task.

        An unrestricted task could use every CPU. Affinities that lasted only during an offline cycle of a CPU are left
        out.
        """
        return {cpus for cpus in self._less_taken({*self.lasting, self.possible}) if cpus} | set(self.rest)

    def outside(self, nodes: Collection[CpuSet] = ()) -> set[CpuSet]:
        """Return every affinity that the kernel may have given to a task outside our cpusets. The task could use every
        CPU before.

        ``nodes``: the CPUs of each memory node, for a thread that the kernel binds to a node.
        """
        return self._less_taken({*self.online, self.possible, *nodes}) | set(self.rest)

    def _less_taken(self, whole: Collection[CpuSet]) -> set[CpuSet]:
        """Return all sets in ``whole``. For each of these sets and each of our cpusets, also return the set without
        the cpuset's CPUs.
        """
        return {cpus - taken for cpus in whole for taken in (CpuSet(), *self.taken)}

    def masks(self, known: Collection[CpuSet], nodes: Collection[CpuSet] = ()) -> set[CpuSet]:
        """Return every affinity that the kernel may have given to a task that had the affinities ``known``.

        ``nodes``: the CPUs of each memory node, for a thread that the kernel binds to a node.
        """
        whole = {*self.online, self.possible, *nodes}
        every = {*self.outside(nodes), *self.taken, *(cpus & taken for cpus in whole for taken in self.taken)}
        return {found for cpus in every for found in (cpus, *(cpus & one for one in known)) if found}


def read_switched(root: HostRoot, entries: Iterable[Wrote], isolated: CpuSet | None = None) -> Switched:
    """Return the CPUs and cpusets that ``entries`` switched. The entries are in the order of their writes.

    ``isolated``: the CPUs of other programs' partitions at the time of these writes.
    """
    writes = list(entries)
    toggled = _toggled(root, writes)
    held = [cpus for write in writes if (cpus := _held(write)) is not None]
    now = _own_lists(root) if held else []
    possible = root.cpu_list(f"{CPU_DIR}/possible") or CpuSet()
    others = isolated_by_others(root) if toggled or held or isolated else CpuSet()
    gone = (isolated or CpuSet()) - others
    if not toggled and not held and not gone:
        return Switched(possible)
    online = root.cpu_list(f"{CPU_DIR}/online") or possible
    # A version 1 set loses a CPU for good, even where somebody else has switched that CPU.
    now_rest = root.cpu_list(_OWN_REST) or CpuSet()
    mine = {CpuSet(), *held, *now, now_rest}
    taken = tuple({cpus | more for cpus in mine for more in (CpuSet(), others, gone, others | gone)} - {CpuSet()})
    hot = (_held(write) for write in writes if write.kind == "cgroup-cpus" or write.path.endswith("-hot"))
    ours = CpuSet.of(cpu for cpus in (*hot, *now) for cpu in cpus or ())
    rest = tuple(
        {cpus for write in writes if "-rest" in write.path and (cpus := _held(write))} | ({now_rest} - {CpuSet()})
    )
    lasting = _toggled(root, [write for write in writes if write.kind != "cpu-cycle"])
    moments, longer = tuple(_moments(online, toggled)), tuple(_moments(online, lasting))
    return Switched(possible, moments, longer, taken, rest, ours, others, gone, bool(toggled), bool(held or gone))


def isolated_by_others(root: HostRoot) -> CpuSet:
    """Return the CPUs of other programs' isolated partitions (cgroup version 2)."""
    from jitter_workshop.host.tasks.cpusets import find_cpusets, read_groups

    sets = find_cpusets(root)
    if sets is None or sets.version != 2:
        return CpuSet()
    groups = (g for g in read_groups(root, sets) if g.partition == PartitionState("isolated"))
    return CpuSet.of(cpu for g in groups if f"{g.folder}/cpuset.cpus" not in _OWN_LISTS for cpu in g.cpus)


def node_cpus(root: HostRoot) -> tuple[CpuSet, ...]:
    """Return the CPUs of each memory node."""
    found = (root.cpu_list(f"{folder}/cpulist") for _, folder in root.numbered(_NODES, "node"))
    return tuple(cpus for cpus in found if cpus)


def _own_lists(root: HostRoot) -> list[CpuSet]:
    """Return the CPUs that are in our own isolated cpusets now. Another program may have changed these cpusets."""
    return [cpus for path in _OWN_LISTS if (cpus := root.cpu_list(path))]


def _toggled(root: HostRoot, writes: Sequence[Wrote]) -> list[int]:
    """Return the CPUs that ``writes`` took offline or brought online, in this order.

    CPUs that went offline only for a moment are included.
    """
    return list(dict.fromkeys(cpu for write in writes for cpu in switches(root, write.path)))


def switches(root: HostRoot, path: str) -> CpuSet:
    """Return the CPUs that a write to this path takes offline or brings online. For most paths there are no such CPUs.

    The SMT switch can bring all CPUs online that are offline now. It can take all online hardware threads offline
    except the first of each core.
    """
    cpu = cpu_of(path)
    if cpu is not None and path.endswith("/online"):
        return CpuSet((cpu,)) & (root.cpu_list(f"{CPU_DIR}/possible") or CpuSet())
    if path != f"{CPU_DIR}/smt/control":
        return CpuSet()
    online = root.cpu_list(f"{CPU_DIR}/online") or CpuSet()
    threads = {cpu: root.cpu_list(f"{CPU_DIR}/cpu{cpu}/topology/core_cpus_list") for cpu in online}
    second = CpuSet.of(cpu for cpu, core in threads.items() if core and cpu != core.cpus[0])
    return second | ((root.cpu_list(f"{CPU_DIR}/present") or online) - online)


def cpu_of(path: str) -> int | None:
    """Return the number N if ``path`` lies in the folder of CPU N; None otherwise."""
    found = re.match(_OF_CPU, path)
    return int(found[1]) if found is not None else None


def _held(write: Wrote) -> CpuSet | None:
    """Return the CPUs of the cpuset that this write made. Return an empty set if the write made a cpuset, but its
    value does not tell the CPUs. Return None if the write made no cpuset.
    """
    try:
        if write.kind == "cgroup-cpus":
            return CpuSet.parse_list(write.after)
        if write.kind == "cpuset" and write.after.startswith("cpus "):
            return CpuSet.parse_list(write.after.split(" ")[1])
        if write.path.startswith("/sys/fs/cgroup/cpuset/") and write.kind == "cpu-list":
            return CpuSet.parse_list(write.after)
    except ValueError:
        return CpuSet()
    return CpuSet() if write.kind in ("partition", "task-cgroup") else None


def _moments(online: CpuSet, toggled: Sequence[int]) -> Iterable[CpuSet]:
    """Return each set of CPUs online while the CPUs ``toggled`` were switched one by one.

    If there are more than _MANY switches, return only the sets before the first switch and after the last switch.
    """
    every = online | CpuSet.of(toggled)
    found = {online, every, every - CpuSet.of(toggled)}
    if len(toggled) <= _MANY:
        for n in range(len(toggled)):
            found |= {every - CpuSet.of(toggled[:n]), every - CpuSet.of(toggled[n:])}
    return found
