"""Measure on the CPUs that this tool has isolated, and give the reason if that was not possible.

Only threads in the isolated set may use the set's CPUs. The measuring child, with all its threads, is moved into the
set after its start and before it pins its threads. If the set has only one CPU, a workload of two threads is divided:
the thread whose latency is judged is moved into the set, and the other thread stays outside. The moves need root's
rights, which the agent has (``agent.caller_process``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jitter_workshop import paths
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
    """Define the function that puts a process of this user, or only its threads ``tids``, on the isolated CPUs and
    returns these CPUs. It raises HostError if that fails."""

    def __call__(self, pid: int, tids: Sequence[int] = ..., /) -> CpuSet: ...


NOTE = "isolation"
"""The key in a run's notes for the reason why the run was made outside the isolated set."""


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """Hold the number of CPUs that one run may use. A process is either inside or outside this tool's isolated set. On
    a host that can move single threads into the set, one thread can be inside and the others outside. ``isolated``: the
    CPUs of the set, empty if there is no set. ``reduced``: a run would have more CPUs if the set did not exist.
    ``split``: a run has two CPUs only if it uses one inside the set and one outside. ``without``: the number of CPUs
    that one run could use if the set did not exist."""

    cpus: int
    isolated: CpuSet
    reduced: bool
    split: bool = False
    without: int = dataclasses.field(default=0, compare=False)

    def cpus_for(self, placement: str) -> int:
        """Return the number of CPUs for a run with this placement. With the placement ``none`` the scheduler may move
        the threads, so all of them are either inside the set or outside."""
        return 1 if self.split and placement == "none" else self.cpus

    @property
    def whole(self) -> CpuBudget:
        """Return the CPU budget of a run without the set."""
        return dataclasses.replace(self, cpus=self.without, reduced=False, split=False)

    @property
    def walled(self) -> bool:
        """Return True if the set takes a CPU from some runs."""
        return self.reduced or self.split


class NotPlaced(HostError):
    """Report that the child could not be put on the isolated CPUs. The child has measured nothing yet."""


def own_cpus(root: HostRoot) -> CpuSet:
    """Return the CPUs that this tool has isolated and that the kernel still isolates; empty if there are none."""
    sets = find_cpusets(root)
    group = own_group(root, sets) if sets is not None else None
    return group.effective if group is not None else CpuSet()


def takes_threads(root: HostRoot) -> bool:
    """Return True if this host can put single threads of a process into an isolated set. In cgroup version 2 the
    process first has to move to the top group, and the processes of a class host's members may not do so."""
    sets = find_cpusets(root)
    return sets is not None and (sets.version == 1 or not Path(paths.CLASS_FILE).exists())


def room(root: HostRoot, topology: Topology, *, may_place: bool = True) -> CpuBudget:
    """Read the isolated set, and return the CPU budget of a run. A run is made inside the set or outside, wherever it
    gets more CPUs. If neither place has two CPUs, it uses one CPU inside and one outside, if this is possible.
    ``may_place``: True if root's rights are available; without them no thread can be put into the set."""
    own = own_cpus(root)
    outside = topology.allowed - own
    cpus = max(len(outside), len(own))
    split = bool(own and outside) and cpus < 2 and may_place and takes_threads(root)
    cpus = 2 if split else cpus
    without = len(outside | own)
    return CpuBudget(cpus, own, reduced=bool(own) and cpus < without, split=split, without=without)


def with_allowed(topology: Topology, cpus: CpuSet) -> Topology:
    """Return the topology of the same host for a process that may also use ``cpus``."""
    return dataclasses.replace(
        topology,
        cpus=tuple(dataclasses.replace(c, allowed=True) if c.id in cpus else c for c in topology.cpus),
    )


def placed_by(place: PutInside, placement: Placement) -> Placed:
    """Return a hook for ``bench.runner``. The hook puts the child into the isolated set, or only those of its threads
    that ``placement.inside`` names. It raises NotPlaced if the set lacks a CPU of what it puts there."""
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
