"""What the kernel may have made of a setting when CPUs or sets that we ourselves switched came or went.

A CPU that leaves, and a set that is made or dissolved, change other settings on the side (see ``ordering``). Such a
change is ours to give back: it is not said to be somebody else's. :class:`Switched` holds every state through which the
host went since our first write, as the journals tell it; the kinds ask it whether a value comes from one of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.topology import CPU_DIR
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field

_NODES = "/sys/devices/system/node"
_MANY = 16
"""CPUs of which every order of leaving is looked at; of more, only all at once."""


class Wrote(Protocol):
    """A write that may stand on the host."""

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
    """``online``: the CPUs that were online together at some moment since our first write, one set a moment.
    ``taken``: CPUs that our sets held, one for each list; ``isolated``: those of them that no other task may use.
    ``cpus``, ``sets``: whether we switched any. ``possible``: all there may be."""

    possible: CpuSet
    online: tuple[CpuSet, ...] = ()
    taken: tuple[CpuSet, ...] = ()
    isolated: CpuSet = field(default_factory=CpuSet)
    cpus: bool = False
    sets: bool = False

    def __bool__(self) -> bool:
        return self.cpus or self.sets

    def masks(self, known: Collection[CpuSet], nodes: Collection[CpuSet] = ()) -> set[CpuSet]:
        """Every affinity that the kernel may have given a task of which ``known`` were affinities. ``nodes``: those of
        the memory nodes, for a thread that the kernel binds to one."""
        whole = {*self.online, self.possible, *nodes}
        free = {cpus - taken for cpus in whole for taken in (CpuSet(), *self.taken)}
        every = {*free, *self.taken, *(cpus & taken for cpus in whole for taken in self.taken)}
        return {found for cpus in every for found in (cpus, *(cpus & one for one in known)) if found}


def read_switched(root: HostRoot, entries: Iterable[Wrote]) -> Switched:
    """What ``entries`` (in the order in which they were written) did to CPUs and sets."""
    writes = list(entries)
    toggled = _toggled(root, writes)
    held = [cpus for write in writes if (cpus := _held(write)) is not None]
    possible = root.cpu_list(f"{CPU_DIR}/possible") or CpuSet()
    if not toggled and not held:
        return Switched(possible)
    online = root.cpu_list(f"{CPU_DIR}/online") or possible
    taken = tuple({cpus for cpus in held if cpus})
    hot = (_held(write) for write in writes if write.kind == "cgroup-cpus" or write.path.endswith("-hot"))
    isolated = CpuSet.of(cpu for cpus in hot for cpu in cpus or ())
    return Switched(possible, tuple(_moments(online, toggled)), taken, isolated, bool(toggled), bool(held))


def node_cpus(root: HostRoot) -> tuple[CpuSet, ...]:
    """The CPUs of each memory node."""
    found = (root.cpu_list(f"{folder}/cpulist") for _, folder in root.numbered(_NODES, "node"))
    return tuple(cpus for cpus in found if cpus)


def _toggled(root: HostRoot, writes: Sequence[Wrote]) -> list[int]:
    """CPUs that our writes took offline (for good or for a moment), in their order."""
    found: dict[int, None] = {}
    for write in writes:
        if write.path == f"{CPU_DIR}/smt/control":
            found |= dict.fromkeys(root.cpu_list(f"{CPU_DIR}/present") or CpuSet())
        elif write.path.startswith(f"{CPU_DIR}/cpu") and write.path.endswith("/online"):
            number = write.path.split("/")[-2].removeprefix("cpu")
            if number.isdecimal():
                found[int(number)] = None
    return list(found)


def _held(write: Wrote) -> CpuSet | None:
    """The CPUs of a set of ours that this write made, or of a partition; None for any other write."""
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
    """The sets of CPUs that were online while these left or returned one after the other, in either order."""
    every = online | CpuSet.of(toggled)
    found = {online, every, every - CpuSet.of(toggled)}
    if len(toggled) <= _MANY:
        for n in range(len(toggled)):
            found |= {every - CpuSet.of(toggled[:n]), every - CpuSet.of(toggled[n:])}
    return found
