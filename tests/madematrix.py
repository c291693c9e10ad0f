"""Made hosts and their matrices: times invented by how near CPUs are, for tests and pictures."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from jitter_workshop.bench import pairs
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.run import Clock

NS = {
    "same core": 25.0,
    "same L2": 45.0,
    "same L3": 60.0,
    "same node": 140.0,
    "other node": 180.0,
    "other package": 320.0,
}
"""Times as a large server has them; invented."""


def machine(packages: int, nodes: int, caches: int, cores: int, threads: int, clustered: bool = False) -> Topology:
    """A host: packages of so many nodes of so many last-level caches of so many cores, siblings ``half`` apart; with
    ``clustered`` two neighbouring cores share an L2."""
    half = packages * nodes * caches * cores
    cpus: dict[int, Cpu] = {}
    shared: list[Cache] = []
    core = 0
    for package, node in itertools.product(range(packages), range(nodes)):
        for _ in range(caches):
            mine: list[int] = []
            for _ in range(cores):
                siblings = CpuSet.of(core + half * thread for thread in range(threads))
                for cpu in siblings:
                    cpus[cpu] = Cpu(cpu, package, core, package * nodes + node, True, True, siblings)
                mine += siblings.cpus
                core += 1
            size = 2 * threads if clustered else threads
            shared += [Cache(2, "Unified", None, CpuSet(tuple(mine[n : n + size]))) for n in range(0, len(mine), size)]
            shared.append(Cache(3, "Unified", None, CpuSet(tuple(mine))))
    return Topology(tuple(cpus[n] for n in sorted(cpus)), tuple(shared))


def by_nearness(topology: Topology) -> Callable[[int, int], float]:
    """Times by how near two CPUs are, each pair a little different."""
    nearness = pairs.Nearness(topology)
    return lambda a, b: round(NS[nearness.of(a, b)] * (1 + (a * 7 + b * 13) % 11 / 100), 1)


def made(topology: Topology, ns: Callable[[int, int], float], *, name: str = "made", at: str = "2026-11-28") -> Matrix:
    """A complete matrix of a host called ``name``."""
    cpus = pairs.matrix_cpus(topology)
    found = {pair: ns(*pair) for pair in pairs.pairs_of(cpus)}
    return Matrix(
        format_version=1,
        id="20261128-120000-0001",
        label="",
        started_at=f"{at}T12:00:00.000000Z",
        duration_s=5.0,
        clock=Clock("tsc", 9.7, 10, None, None, None),
        cpus=cpus,
        one_way_ns=tuple(tuple(found.get((min(a, b), max(a, b))) for b in cpus) for a in cpus),
        clusters=pairs.clusters(topology, found),
        groups=pairs.matrix_cpu_groups(topology),
        sampled=len(cpus) < len(topology.allowed),
        complete=True,
        topology=pairs.fingerprint(name, topology),
        host={},
    )
