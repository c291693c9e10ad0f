"""Made matrices: times invented by how near CPUs are, for tests and pictures."""

from __future__ import annotations

from collections.abc import Callable

from jitter_workshop.bench import pairs
from jitter_workshop.model.host import Topology
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


def by_nearness(topology: Topology) -> Callable[[int, int], float]:
    """Times by how near two CPUs are, each pair a little different."""
    nearness = pairs.Nearness(topology)
    return lambda a, b: round(NS[nearness.of(a, b)] * (1 + (a * 7 + b * 13) % 11 / 100), 1)


def made(topology: Topology, ns: Callable[[int, int], float], *, name: str = "made", at: str = "2026-11-28") -> Matrix:
    """A complete matrix of a host called ``name``."""
    cpus = pairs.chosen(topology)
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
        groups=pairs.groups(topology),
        sampled=len(cpus) < len(topology.allowed),
        complete=True,
        topology=pairs.fingerprint(name, topology),
        host={},
    )
