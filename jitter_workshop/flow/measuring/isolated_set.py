"""Measure on the CPUs that this tool has isolated, and give the reason if that was not possible.

Only a process in the isolated set may use the set's CPUs. The measuring child, with all its threads, is moved into the
set after its start and before it pins its threads. The move needs root's rights, which the agent has.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import find_cpusets
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.spec import Placement
from jitter_workshop.tuning.tunables.isolation import own_group

Place = Callable[[int], CpuSet]
"""The type of a function that puts a process of this user on the isolated CPUs and returns them. Raises HostError."""

NOTE = "isolation"
"""The key in a run's notes for the reason why the run was made outside the isolated set."""


@dataclass(frozen=True, slots=True)
class CpuBudget:
    """Hold the number of CPUs that one run may use: a process is either within this tool's isolated set or outside.
    ``isolated``: the CPUs of that set, empty if there is none. ``reduced``: a run would have more CPUs without the set.
    """

    cpus: int
    isolated: CpuSet
    reduced: bool


class NotPlaced(HostError):
    """Report that the child could not be put on the isolated CPUs. The child has measured nothing yet."""


def own_cpus(root: HostRoot) -> CpuSet:
    """Return the CPUs that this tool has isolated and that the kernel still isolates; empty if there are none."""
    sets = find_cpusets(root)
    group = own_group(root, sets) if sets is not None else None
    return group.effective if group is not None else CpuSet()


def room(root: HostRoot, topology: Topology) -> CpuBudget:
    """Read the isolated set, and return the CPU budget of a run. A run is made where more CPUs are, inside the set or
    outside."""
    own = own_cpus(root)
    outside = topology.allowed - own
    cpus = max(len(outside), len(own))
    return CpuBudget(cpus, own, reduced=bool(own) and cpus < len(outside | own))


def with_allowed(topology: Topology, cpus: CpuSet) -> Topology:
    """Return the topology of the same host for a process that may also use ``cpus``."""
    return dataclasses.replace(
        topology,
        cpus=tuple(dataclasses.replace(c, allowed=True) if c.id in cpus else c for c in topology.cpus),
    )


def placed_by(place: Place, placement: Placement) -> Callable[[int], None]:
    """Return a hook for ``bench.runner``. The hook puts the child into the isolated set, and raises NotPlaced if the
    set does not hold all CPUs of ``placement``."""
    wanted = CpuSet.of(placement.cpus)

    def placed(pid: int) -> None:
        try:
            given = place(pid)
        except HostError as refusal:
            raise NotPlaced(refusal.message, refusal.advice) from refusal
        if wanted - given:
            raise NotPlaced(f"CPU {wanted - given} is no longer isolated")

    return placed


def not_used(reason: str) -> str:
    """Return the note for a run that was made outside the isolated set."""
    return f"the isolated CPUs were not used: {reason}"
