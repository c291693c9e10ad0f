"""Read the memory nodes (Documentation/ABI/stable/sysfs-devices-node)."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

NODE_DIR = "/sys/devices/system/node"


@dataclass(frozen=True, slots=True)
class MemoryNode:
    """Hold one node.

    ``cpus``: empty for a node that is memory only. ``distances``: to each node in number order; 10 is the node itself.
    Sizes are None where the kernel does not show them.
    """

    id: int
    cpus: CpuSet
    total_bytes: int | None
    free_bytes: int | None
    distances: tuple[int, ...]


def read_memory_nodes(root: HostRoot) -> tuple[MemoryNode, ...]:
    """Return all online nodes, () where the kernel was built without NUMA."""
    found: list[MemoryNode] = []
    for number, folder in root.numbered(NODE_DIR, "node"):
        sizes = parse_node_meminfo(root.text(f"{folder}/meminfo"))
        found.append(
            MemoryNode(
                id=number,
                cpus=root.cpu_list(f"{folder}/cpulist") or CpuSet(),
                total_bytes=sizes.get("MemTotal"),
                free_bytes=sizes.get("MemFree"),
                distances=parse_distances(root.text(f"{folder}/distance")),
            )
        )
    return tuple(found)


def parse_node_meminfo(text: str | None) -> dict[str, int]:
    """Parse ``Node 0 MemTotal:  16318480 kB`` lines into name → bytes; other lines are left out."""
    found: dict[str, int] = {}
    for line in (text or "").split("\n"):
        words = line.split()
        if len(words) == 5 and words[0] == "Node" and words[2].endswith(":") and words[4] == "kB":
            size = parse_integer(words[3])
            if size is not None and size >= 0:
                found[words[2][:-1]] = size * 1_024
    return found


def parse_distances(text: str | None) -> tuple[int, ...]:
    """Return ``10 21`` as numbers; () for anything else."""
    numbers = [parse_integer(word) for word in (text or "").split()]
    return tuple(n for n in numbers if n is not None) if all(n is not None and n > 0 for n in numbers) else ()
