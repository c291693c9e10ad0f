"""Read network cards: the CPUs that handle their packets, and how eagerly cards interrupt.

Sources: Documentation/networking/scaling.rst, napi.rst, admin-guide/sysctl/net.rst, ABI/testing/sysfs-class-net.
Addresses are never read.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

NET_DIR = "/sys/class/net"
_SYSCTL = "/proc/sys/net/core"


@dataclass(frozen=True, slots=True)
class Queue:
    """Hold one receive or transmit queue.

    ``path``: the file that steers it, ``rps_cpus`` (CPUs that share the work of receiving) or ``xps_cpus`` (CPUs that
    send here). ``cpus``: empty = no steering; None with the reason where it cannot be read (a card with one transmit
    queue shows none).
    """

    name: str
    path: str
    cpus: CpuSet | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Interface:
    """Hold one network interface.

    ``device``: a card, not a bridge, tunnel or loopback. ``driver`` and ``node`` (None = no particular one) are the
    card's. ``defer_hard_irqs``: the number of empty polls before the interrupt is armed again, after
    ``gro_flush_timeout_ns``. ``threaded``: polled by a kernel thread. None = not shown. ``queues``: () unless
    requested.
    """

    name: str
    device: bool
    up: bool | None
    driver: str | None
    node: int | None
    defer_hard_irqs: int | None
    gro_flush_timeout_ns: int | None
    threaded: bool | None
    queues: tuple[Queue, ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Hold network settings of the whole host.

    They tell how long a socket polls its card instead of sleeping (0 = never), and how much one softirq handles at
    most. None = not shown.
    """

    busy_poll_us: int | None
    busy_read_us: int | None
    budget: int | None
    budget_us: int | None
    rps_flow_entries: int | None


def read_network_settings(root: HostRoot) -> NetworkSettings:
    """Read the sysctls; they belong to this process's network namespace, where the kernel keeps one for each."""
    return NetworkSettings(
        busy_poll_us=root.integer(f"{_SYSCTL}/busy_poll"),
        busy_read_us=root.integer(f"{_SYSCTL}/busy_read"),
        budget=root.integer(f"{_SYSCTL}/netdev_budget"),
        budget_us=root.integer(f"{_SYSCTL}/netdev_budget_usecs"),
        rps_flow_entries=root.integer(f"{_SYSCTL}/rps_sock_flow_entries"),
    )


def read_interfaces(root: HostRoot, *, queues: bool = True, virtual: bool = False) -> tuple[Interface, ...]:
    """Return the cards by name; with ``virtual``, other interfaces too (a host of containers has thousands of those).

    ``queues=False`` leaves the queues unread: a card may have one a CPU.
    """
    found: list[Interface] = []
    for name in root.list_dir(NET_DIR):
        folder = f"{NET_DIR}/{name}"
        device = root.is_dir(f"{folder}/device")
        if device or virtual:
            found.append(_interface(root, name, folder, device, queues))
    return tuple(found)


def read_queues(root: HostRoot, folder: str) -> tuple[Queue, ...]:
    """Return the queues of an interface's folder, receiving ones first."""
    found: list[Queue] = []
    sets: dict[str, CpuSet | None] = {}
    for prefix, file in (("rx-", "rps_cpus"), ("tx-", "xps_cpus")):
        for number, queue in root.numbered(f"{folder}/queues", prefix):
            path = f"{queue}/{file}"
            reading = root.reading(path)
            cpus = None if reading.text is None else _mask(reading.text, sets)
            reason = "" if cpus is not None else reading.reason or "not a CPU mask"
            found.append(Queue(f"{prefix}{number}", path, cpus, reason))
    return tuple(found)


def parse_driver(text: str | None) -> str | None:
    """Return ``DRIVER=`` of a device's ``uevent`` file."""
    for line in (text or "").split("\n"):
        if line.startswith("DRIVER="):
            return printable(line.removeprefix("DRIVER="), 40) or None
    return None


def _interface(root: HostRoot, name: str, folder: str, device: bool, queues: bool) -> Interface:
    state = root.text(f"{folder}/operstate")
    node = root.integer(f"{folder}/device/numa_node") if device else None
    threaded = root.integer(f"{folder}/threaded")
    return Interface(
        name=printable(name, 40),
        device=device,
        up=None if state is None or state == "unknown" else state == "up",
        driver=parse_driver(root.text(f"{folder}/device/uevent")) if device else None,
        node=node if node is not None and node >= 0 else None,
        defer_hard_irqs=root.integer(f"{folder}/napi_defer_hard_irqs"),
        gro_flush_timeout_ns=root.integer(f"{folder}/gro_flush_timeout"),
        threaded=None if threaded is None else threaded > 0,
        queues=read_queues(root, folder) if queues else (),
    )


def _mask(text: str, known: dict[str, CpuSet | None]) -> CpuSet | None:
    """Parse a mask; the queues of a card share a few masks, and each is parsed once."""
    if text not in known:
        try:
            known[text] = CpuSet.parse_mask(text)
        except ValueError:
            known[text] = None
    return known[text]
