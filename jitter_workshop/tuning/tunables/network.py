"""Define the tunables of network cards: the CPUs of their queues, and how the cards interrupt."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.topology import read_memory_nodes
from jitter_workshop.host.irq.network import Interface, read_interfaces
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES
from jitter_workshop.tuning.base import Observed, Setting, Settings, Unavailable, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.interrupts import in_cpus, mask_like

_NO_CARD = "this host has no network card (only links made by software)"


class PacketSteering(Settings):
    id = "rps-xps"
    title = "Packet steering"
    why = (
        "For receive packet steering, one CPU interrupts another CPU of a mask and passes packets to it. With "
        "transmit steering, a CPU does the clean-up work of its send queue. Put no hot CPU into either mask."
    )
    danger = "a hot CPU that sends packets shares its send queue with other CPUs"
    document = "Documentation/networking/scaling.rst"
    owns = ("/sys/class/net/*/queues/*/rps_cpus", "/sys/class/net/*/queues/*/xps_cpus")
    rewritten_by = ("tuned", "irqbalance")
    good = "no queue is steered to a hot CPU"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        left_for_the_rest(host)
        cards = read_interfaces(host.root)
        if not cards:
            raise Unavailable(_NO_CARD)
        found = []
        for card in cards:
            for path, cpus in card.queues.items():
                if cpus & host.kept_clear:
                    text = host.root.text(path) or ""
                    found.append(Setting(path, text, mask_like(host.instead_of(cpus), text), "cpu-mask"))
        return found

    def shown(self, value: str) -> str:
        return in_cpus(value)

    def differs(self, setting: Setting, host: Host) -> str:
        where = "a hot CPU or its sibling" if host.clear_siblings else "a hot CPU"
        return f"{setting.path.split('/')[-2]} of {setting.path.split('/')[4]} is steered to {where}"


class BusyPolling(Observed):
    id = "napi"
    title = "Polling of the network"
    why = (
        "A card announces packets by an interrupt. Polling needs fewer interrupts and more CPU time. A socket can "
        "poll (busy_read, busy_poll), and a card can wait for some empty polls before it interrupts again."
    )
    document = "Documentation/networking/napi.rst"
    paths = ("/proc/sys/net/core/busy_poll", "/proc/sys/net/core/busy_read")

    def judge(self, host: Host) -> Assessment:
        cards = read_interfaces(host.root, queues=False)
        limits = [limit for path in self.paths if (limit := host.root.integer(path)) is not None]
        if not limits and not cards:
            raise Unavailable("this kernel shows no busy polling (CONFIG_NET_RX_BUSY_POLL)")
        polled = max((0, *limits))
        value = f"sockets poll {polled} µs" if polled else "sockets sleep"
        told = [_polling(card) for card in cards]
        words = (
            "sockets wait for an interrupt, unless their program polls" if not polled else f"{value} before they sleep"
        )
        return self.answer("info", value, "; ".join((words, *filter(None, told))))


class NetworkCard(Observed):
    id = "network-card"
    title = "Network card"
    why = (
        "If a card is on another node than the hot CPUs, each packet has to cross from one package to the other. Some "
        "cards collect packets before they interrupt (coalescing). Their waiting time makes each packet later."
    )
    document = "Documentation/networking/scaling.rst"

    def judge(self, host: Host) -> Assessment:
        cards = read_interfaces(host.root, queues=False)
        if not cards:
            raise Unavailable(_NO_CARD)
        near = _nodes_of(host.root, host.hot)
        far = [card for card in cards if card.node is not None and near and card.node not in near]
        told = [f"{c.name} ({c.driver or 'driver not shown'}, {_node(c)})" for c in cards[:MOST_ENTRIES]]
        if len(cards) > len(told):
            told.append(f"{len(cards) - len(told)} more")
        coalescing = f"sysfs does not show the coalescing: 'ethtool -c {cards[0].name}' does"
        value = ", ".join(told)
        if far:
            reason = f"{far[0].name} is on node {far[0].node}, the hot CPUs are on {_words(near)}; {coalescing}"
            return self.answer(
                "info", value, reason, wanted="the hot CPUs' node", fix="choose hot CPUs of the card's node"
            )
        return self.answer("info", value, coalescing)


def _polling(card: Interface) -> str:
    """Return the unusual properties of a card's polling, in words; "" where there are none."""
    parts = []
    if card.defer_hard_irqs:
        parts.append(f"interrupts again after {card.defer_hard_irqs} empty polls")
    if card.gro_flush_timeout_ns:
        parts.append(f"collects packets for up to {card.gro_flush_timeout_ns} ns")
    if card.threaded:
        parts.append("is polled by a kernel thread")
    return f"{card.name} {', '.join(parts)}" if parts else ""


def _node(card: Interface) -> str:
    return "no particular node" if card.node is None else f"node {card.node}"


def _nodes_of(root: HostRoot, cpus: CpuSet) -> set[int]:
    """Return the memory nodes that these CPUs belong to."""
    return {node for node, on_node in read_memory_nodes(root).items() if on_node & cpus}


def _words(nodes: set[int]) -> str:
    return " and ".join(f"node {n}" for n in sorted(nodes))
