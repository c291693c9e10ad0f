"""Name how near two CPUs are, and choose the CPUs of a matrix.

All functions are pure and depend on the topology only. If a host has at most :data:`MOST_CPUS` CPUs, all of them are
measured. On a larger host, a sample of MOST_CPUS CPUs is measured.

The sample has CPUs from as many groups as possible. The CPUs of a group share a last-level cache. From each group the
sample takes the first CPU. Then it takes one CPU for each degree of nearness to the first CPU: a sibling, a core with
the same L2, another core. The sample may be too small for every degree of every group. So the groups begin with
different degrees, and each degree occurs in the sample.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, zip_longest

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.matrix import Cluster, CpuGroup, CpuPair

MOST_CPUS = 64
"""The largest number of CPUs in a matrix; they make 2,016 pairs."""

SAME_CORE, SAME_NODE, OTHER_NODE, OTHER_PACKAGE = "same core", "same node", "other node", "other package"


class Nearness:
    """Name how near two CPUs of one host are to each other."""

    def __init__(self, topology: Topology) -> None:
        self._cpus = {cpu.id: cpu for cpu in topology.cpus}
        self._caches: dict[int, list[tuple[int, int]]] = {cpu: [] for cpu in self._cpus}
        for number, cache in enumerate(topology.caches):
            if cache.kind != "Instruction":
                for cpu in cache.cpus:
                    self._caches.setdefault(cpu, []).append((cache.level, number))
        nodes: dict[int, set[int]] = {}
        for one in topology.cpus:
            if one.online:
                nodes.setdefault(one.package, set()).add(one.node)
        self._packages_have_nodes = any(len(found) > 1 for found in nodes.values())

    def of(self, first: int, second: int) -> str:
        """Return the nearest thing that two different CPUs share, such as ``same core`` or ``same L2``.

        For CPUs that are farther apart, return the boundary between them: ``other node`` or ``other package``.
        """
        a, b = self._cpus[first], self._cpus[second]
        if second in a.smt_siblings:
            return SAME_CORE
        shared = {level for level, number in self._caches[first] if (level, number) in self._caches[second]}
        if shared:
            return f"same L{min(shared)}"
        if a.node == b.node:
            return SAME_NODE if a.package == b.package else OTHER_PACKAGE
        return OTHER_NODE if a.package == b.package or not self._packages_have_nodes else OTHER_PACKAGE


def matrix_cpu_groups(topology: Topology) -> tuple[CpuGroup, ...]:
    """Return the allowed CPUs in groups by node, package and last-level cache. Group them by package if no caches are
    known."""
    last: dict[int, CpuSet] = {}
    for cache in sorted((c for c in topology.caches if c.kind != "Instruction"), key=lambda cache: cache.level):
        last.update(dict.fromkeys(cache.cpus, cache.cpus))
    found: dict[tuple[int, int, tuple[int, ...]], list[int]] = {}
    for cpu in topology.cpus:
        if cpu.online and cpu.allowed:
            shared = last.get(cpu.id)
            found.setdefault((cpu.package, cpu.node, shared.cpus if shared else ()), []).append(cpu.id)
    ordered = sorted(found.items(), key=lambda one: (one[0][:2], one[1][0]))
    return tuple(CpuGroup(tuple(_by_core(topology, cpus)), package, node) for (package, node, _), cpus in ordered)


def _by_core(topology: Topology, cpus: Iterable[int]) -> list[int]:
    """Return the CPUs in an order in which the threads of a core are neighbours."""
    known = [cpu for number in cpus if (cpu := topology.cpu(number)) is not None]
    return [cpu.id for cpu in sorted(known, key=lambda cpu: (cpu.smt_siblings.cpus[:1] or (cpu.id,), cpu.id))]


def matrix_cpus(topology: Topology, most: int = MOST_CPUS) -> tuple[int, ...]:
    """Return the CPUs of a matrix in ascending order.

    These are all allowed CPUs. If there are more than ``most``, return a sample of ``most`` CPUs.
    """
    everyone = topology.allowed
    if len(everyone) <= most:
        return everyone.cpus
    nearness = Nearness(topology)
    together = matrix_cpu_groups(topology)
    some = spread(together, max(most // 2, 1))
    ranked = [_ranked(nearness, group.cpus, number) for number, group in enumerate(some)]
    rounds = (cpu for row in zip_longest(*ranked) for cpu in row if cpu is not None)
    found: list[int] = []
    for cpu in rounds:
        if len(found) == most:
            break
        found.append(cpu)
    return tuple(sorted(found))


def spread(items: Sequence[CpuGroup], most: int) -> list[CpuGroup]:
    """Return at most ``most`` of the items, taken at equal distances and in their order."""
    count = min(len(items), most)
    return [items[number * len(items) // count] for number in range(count)]


def _ranked(nearness: Nearness, cpus: Sequence[int], number: int) -> list[int]:
    """Return a group's CPUs in the order in which the sample takes them.

    ``number``: the number of the group. Groups with different numbers begin with different degrees of nearness.
    """
    first, *others = cpus
    ways: dict[str, int] = {}
    for cpu in others:
        ways.setdefault(nearness.of(first, cpu), cpu)
    turned = list(ways.values())
    turn = number % len(turned) if turned else 0
    taken = [first, *turned[turn:], *turned[:turn]]
    rest = [cpu for cpu in others if cpu not in ways.values()]
    # From both halves in turn, so that a large group is not known by its first cores alone.
    half = (len(rest) + 1) // 2
    return taken + [cpu for pair in zip_longest(rest[:half], rest[half:]) for cpu in pair if cpu is not None]


def pairs_of(cpus: Sequence[int]) -> tuple[CpuPair, ...]:
    """Return all pairs of these CPUs. In each pair the lower number comes first."""
    return tuple(combinations(sorted(cpus), 2))


def clusters(topology: Topology, ns: Mapping[CpuPair, float]) -> tuple[Cluster, ...]:
    """Group the measured pairs by their nearness. Return the groups, the one with the shortest median first.

    ``ns``: pair → its time in ns.
    """
    nearness = Nearness(topology)
    found: dict[str, list[float]] = {}
    for (a, b), value in ns.items():
        found.setdefault(nearness.of(a, b), []).append(value)
    made = [
        Cluster(name, len(values), round(statistics.median(values), 1), min(values), max(values))
        for name, values in found.items()
    ]
    return tuple(sorted(made, key=lambda cluster: (cluster.median_ns, cluster.name)))


def fingerprint(name: str, topology: Topology) -> str:
    """Return an id for the layout of a host's online CPUs.

    The id depends on the CPUs' numbers, cores, packages, nodes and caches, and on ``name``, the host's name.
    """
    import hashlib

    rows = [f"{c.id} {c.package} {c.node} {c.core}" for c in topology.cpus if c.online]
    rows += [f"L{cache.level} {cache.kind} {cache.cpus}" for cache in topology.caches]
    return hashlib.sha256("\n".join([name, *rows]).encode()).hexdigest()[:16]
