"""Describe how near CPUs are to each other, in words: pure functions of the topology."""

from __future__ import annotations

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.topology import Cpu, Topology

BESIDE_CPU_0 = "not on CPU 0, but beside it on its core"
"""The words for CPUs of which one is CPU 0's sibling."""


def same_core(a: Cpu, b: Cpu) -> bool:
    """Return True if both are threads of one core."""
    return b.id in a.smt_siblings


def share_cache(topology: Topology, a: Cpu, b: Cpu) -> bool:
    """Return True if both have the same last-level cache; where the kernel shows no caches, the same package."""
    cache = topology.last_level_cache(a.id)
    return b.id in cache.cpus if cache else a.package == b.package


def pair_in_words(topology: Topology, a: Cpu, b: Cpu) -> str:
    """Describe how far a message between two CPUs goes."""
    if same_core(a, b):
        return "two hardware threads of one core, which slow each other down"
    if a.node != b.node:
        return f"cores of the memory nodes {a.node} and {b.node}: every message crosses between them"
    if share_cache(topology, a, b):
        known = topology.last_level_cache(a.id) is not None
        return f"different cores {'that share their last-level cache' if known else 'of one package'}"
    return "different cores without a common cache: every message crosses between them"


def how_near(topology: Topology, cpus: CpuSet) -> str:
    """Describe what is true of all these online CPUs, in a few words; "" for fewer than two of them."""
    members = [cpu for number in cpus if (cpu := topology.cpu(number)) is not None]
    pairs = [(a, b) for a in members for b in members if a.id < b.id]
    nodes = sorted({cpu.node for cpu in members})
    if not pairs:
        return ""
    if len(nodes) > 1:
        return f"cores of the memory nodes {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}"
    if any(same_core(a, b) for a, b in pairs):
        if not all(same_core(a, b) for a, b in pairs):
            return "some of them threads of one core"
        if topology.online - _on_node(topology, nodes[0]):
            others = "the other cores are on other nodes"
        elif topology.online - cpus - topology.siblings_of(cpus):
            others = "the other core is left for everything else"
        else:
            others = "there is no other core"
        return f"threads of one core, which slow each other down: {others}"
    shared = [share_cache(topology, a, b) for a, b in pairs]
    if all(shared):
        known = all(topology.last_level_cache(cpu.id) is not None for cpu in members)
        return "cores that share a cache" if known else "cores of one package"
    return "cores of which some share a cache" if any(shared) else "cores without a common cache"


def _on_node(topology: Topology, node: int) -> CpuSet:
    return CpuSet.of(cpu.id for cpu in topology.cpus if cpu.online and cpu.node == node)
