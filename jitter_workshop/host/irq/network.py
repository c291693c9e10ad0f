"""Read network cards: the CPUs that handle a card's packets, and the settings that delay a card's interrupts.

Sources: Documentation/networking/scaling.rst, napi.rst, ABI/testing/sysfs-class-net. Addresses are never read.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID

NET_DIR = "/sys/class/net"


@dataclass(frozen=True, slots=True)
class Interface:
    """Hold one network card. A field is None if the kernel does not show it.

    - ``node``: the card's memory node; None also if the card belongs to no particular node.
    - ``defer_hard_irqs``: how many empty polls are made before the card's interrupt is switched on again.
    - ``gro_flush_timeout_ns``: the time between these polls.
    - ``threaded``: True if a kernel thread polls the card.
    - ``queues``: path of a queue's CPU mask → the CPUs in the mask, empty if no CPU is set. The mask ``rps_cpus`` has
      the CPUs that share the work of receiving. The mask ``xps_cpus`` has the CPUs that send through this queue. A
      queue without a readable mask is left out. If a card has only one transmit queue, the kernel shows no mask for
      this queue.
    """

    name: str
    driver: str | None
    node: int | None
    defer_hard_irqs: int | None
    gro_flush_timeout_ns: int | None
    threaded: bool | None
    queues: dict[str, CpuSet]


def read_interfaces(root: HostRoot, *, queues: bool = True) -> tuple[Interface, ...]:
    """Return the network cards in the order of their names. Bridges, tunnels and loopback are left out, because a host
    of containers has thousands of such interfaces.

    ``queues``: False leaves the queues unread, because a card may have a queue for each CPU.
    """
    return tuple(
        _interface(root, name, f"{NET_DIR}/{name}", queues)
        for name in root.list_dir(NET_DIR)
        if root.is_dir(f"{NET_DIR}/{name}/device")
    )


def _interface(root: HostRoot, name: str, folder: str, queues: bool) -> Interface:
    driver = parse_assignments(root.text(f"{folder}/device/uevent") or "").get("DRIVER", "")
    node = root.integer(f"{folder}/device/numa_node")
    threaded = root.integer(f"{folder}/threaded")
    return Interface(
        name=printable(name, ID),
        driver=printable(driver, ID) or None,
        node=node if node is not None and node >= 0 else None,
        defer_hard_irqs=root.integer(f"{folder}/napi_defer_hard_irqs"),
        gro_flush_timeout_ns=root.integer(f"{folder}/gro_flush_timeout"),
        threaded=None if threaded is None else threaded > 0,
        queues=_queues(root, folder) if queues else {},
    )


def _queues(root: HostRoot, folder: str) -> dict[str, CpuSet]:
    """Return path of a queue's CPU mask → the CPUs in the mask, receive queues first. ``folder``: the folder of the
    network card."""
    found: dict[str, CpuSet] = {}
    for prefix, file in (("rx-", "rps_cpus"), ("tx-", "xps_cpus")):
        for _, queue in root.numbered(f"{folder}/queues", prefix):
            cpus = root.cpu_mask(f"{queue}/{file}")
            if cpus is not None:
                found[f"{queue}/{file}"] = cpus
    return found
