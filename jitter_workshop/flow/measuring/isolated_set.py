"""Measure on the CPUs that this tool has isolated, or give the reason for other CPUs.

Only threads in the isolated set may use its CPUs. The measuring child starts outside the set, is moved into the set
with all its threads, and then pins its threads. If the set has only one CPU, a workload of two threads is divided. Then
only the thread whose latency is judged is moved into the set. The other thread stays outside. With cgroup version 2 the
judged thread is in a process of its own, because the kernel moves whole processes only. The agent makes these moves,
because they need root's rights (``agent.caller_process``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.spec import KINDS, Placement
from jitter_workshop.tuning.tunables.isolation import own_group

if TYPE_CHECKING:
    from jitter_workshop.bench.runner import Placed


class PutInside(Protocol):
    """Define a function that moves a process of this user to the isolated CPUs, and returns these CPUs. With ``tids``
    it moves only these threads of the process. It raises HostError if the move fails."""

    def __call__(self, pid: int, tids: Sequence[int] = ..., /) -> CpuSet: ...


NOTE = "isolation"
"""The key in a run's notes for the reason why the run was made outside the isolated set."""


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """Hold the number of CPUs that one run may use.

    A run is inside or outside this tool's isolated set, or one of its threads is inside and the others are outside.

    - ``cpus``: the number of CPUs that one run may use.
    - ``isolated``: the CPUs of the set; empty if there is no set.
    - ``reduced``: True if a run could use more CPUs without the set.
    - ``split``: True if there is one CPU inside the set and one outside, and a run can use both.
    - ``without``: the number of CPUs that one run could use without the set.
    """

    cpus: int
    isolated: CpuSet
    reduced: bool
    split: bool = False
    without: int = dataclasses.field(default=0, compare=False)

    def cpus_for(self, placement: str) -> int:
        """Return the number of CPUs for a run with this placement. With the placement ``none``, the scheduler moves the
        threads. All threads of the run are then inside the set, or all are outside."""
        return 1 if self.split and placement == "none" else self.cpus

    @property
    def whole(self) -> CpuBudget:
        """Return the CPU budget that a run would have without the isolated set."""
        return dataclasses.replace(self, cpus=self.without, reduced=False, split=False)

    @property
    def walled(self) -> bool:
        """Return True if some runs would have more CPUs without the isolated set."""
        return self.reduced or self.split


class NotPlaced(HostError):
    """Report that the child could not be moved to the isolated CPUs, and has measured nothing."""


def own_cpus(root: HostRoot) -> CpuSet:
    """Return the CPUs that this tool has isolated, if the kernel still isolates them. Return no CPUs otherwise."""
    sets = find_cpusets(root)
    group = own_group(root, sets) if sets is not None else None
    return group.effective if group is not None else CpuSet()


def in_processes(root: HostRoot, placement: Placement) -> Placement:
    """Return the placement with the number of processes that it needs on this host. Two are needed if only some threads
    go into the isolated set, and the host has cgroup version 2. There, a process is in one set with all its threads
    (Documentation/admin-guide/cgroup-v2.rst, "Threads")."""
    sets = find_cpusets(root)
    apart = bool(placement.inside) and sets is not None and sets.version == 2
    return dataclasses.replace(placement, processes=2) if apart else placement


def room(root: HostRoot, topology: Topology, *, may_place: bool = True) -> CpuBudget:
    """Read the isolated set, and return the CPU budget of a run. A run uses the larger of two groups: the CPUs inside
    the set, or the CPUs outside. If each group has only one CPU, a run uses both CPUs. ``may_place``: True if root's
    rights are available. Only root can move a thread into the set."""
    own = own_cpus(root)
    outside = topology.allowed - own
    cpus = max(len(outside), len(own))
    split = bool(own and outside) and cpus < 2 and may_place
    cpus = 2 if split else cpus
    without = len(outside | own)
    return CpuBudget(cpus, own, reduced=bool(own) and cpus < without, split=split, without=without)


def with_allowed(topology: Topology, cpus: CpuSet) -> Topology:
    """Return the host's topology for a process that may also use ``cpus``."""
    return dataclasses.replace(
        topology,
        cpus=tuple(dataclasses.replace(c, allowed=True) if c.id in cpus else c for c in topology.cpus),
    )


def placed_by(place: PutInside, placement: Placement) -> Placed:
    """Return a function that moves the measuring child, or some of its threads, into the isolated set. ``bench.runner``
    calls this function with the threads that ``placement.inside`` names. The returned function raises NotPlaced if the
    move fails, or if a needed CPU is not isolated any more."""
    inside = [
        getattr(placement, field)
        for kind in KINDS.values()
        for name, field in kind.threads.items()
        if name in placement.inside
    ]
    wanted = CpuSet.of(inside or placement.cpus)

    def placed(pid: int, tids: Sequence[int]) -> None:
        try:
            given = place(pid, tids) if tids else place(pid)
        except HostError as refusal:
            raise NotPlaced(refusal.message, refusal.advice) from refusal
        if wanted - given:
            raise NotPlaced(f"CPU {wanted - given} is no longer isolated")

    return placed


def not_used(reason: str) -> str:
    """Return the note for a run that was made outside the isolated set."""
    return f"the isolated CPUs were not used: {reason}"
