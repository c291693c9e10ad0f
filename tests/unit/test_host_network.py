"""Network cards: queues, drivers and nodes; no address is ever read."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.irq.network import (
    NetworkSettings,
    parse_driver,
    read_interfaces,
    read_network_settings,
)
from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.model.cpuset import CpuSet
from tests.hosttrees import network_card, write


class NamingRoot(HostRoot):
    """Notes the files that are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.paths: list[str] = []

    def reading(self, path: str, limit: int = 1 << 20) -> TextReading:
        self.paths.append(path)
        return super().reading(path, limit)


def made(tmp_path: Path) -> Path:
    files = network_card("ens1", node=1, rps=("00000000,0000000c", "f"), xps=("3", "what"))
    files |= network_card("eth9", driver="virtio_net", node=-1, xps=())
    files |= {"sys/class/net/lo/operstate": "unknown\n", "sys/class/net/lo/queues/rx-0/rps_cpus": "0\n"}
    files |= {"proc/sys/net/core/busy_poll": "50\n", "proc/sys/net/core/netdev_budget": "300\n"}
    return write(tmp_path, files)


def test_cards_and_their_queues(tmp_path: Path) -> None:
    first, second = read_interfaces(HostRoot(made(tmp_path)))
    assert (first.name, first.device, first.up, first.driver, first.node) == ("ens1", True, True, "ice", 1)
    assert (first.defer_hard_irqs, first.gro_flush_timeout_ns, first.threaded) == (0, 0, False)
    assert [(q.name, q.cpus, q.reason) for q in first.queues] == [
        ("rx-0", CpuSet((2, 3)), ""),
        ("rx-1", CpuSet((0, 1, 2, 3)), ""),
        ("tx-0", CpuSet((0, 1)), ""),
        ("tx-1", None, "not a CPU mask"),
    ]
    assert first.queues[2].path == "/sys/class/net/ens1/queues/tx-0/xps_cpus"
    assert (second.name, second.driver, second.node) == ("eth9", "virtio_net", None)
    assert [q.cpus for q in second.queues] == [CpuSet()]


def test_a_single_transmit_queue_has_no_mask(tmp_path: Path) -> None:
    root = write(tmp_path, network_card("eth0", xps=()))
    (root / "sys/class/net/eth0/queues/tx-0").mkdir()
    (card,) = read_interfaces(HostRoot(root))
    assert [(q.name, q.cpus, q.reason) for q in card.queues][1:] == [("tx-0", None, "no such file")]


def test_what_is_no_card_is_read_when_asked_for(tmp_path: Path) -> None:
    root = HostRoot(made(tmp_path))
    assert [i.name for i in read_interfaces(root, virtual=True)] == ["ens1", "eth9", "lo"]
    loopback = read_interfaces(root, virtual=True)[2]
    assert (loopback.device, loopback.up, loopback.driver, len(loopback.queues)) == (False, None, None, 1)


def test_queues_can_be_left_out(tmp_path: Path) -> None:
    assert all(i.queues == () for i in read_interfaces(HostRoot(made(tmp_path)), queues=False))


def test_no_address_is_read(tmp_path: Path) -> None:
    root = NamingRoot(made(tmp_path))
    read_interfaces(root, virtual=True)
    read_network_settings(root)
    assert root.paths
    assert not [path for path in root.paths if "addr" in path]


def test_settings_of_the_host(tmp_path: Path) -> None:
    assert read_network_settings(HostRoot(made(tmp_path))) == NetworkSettings(50, None, 300, None, None)


def test_a_host_without_a_network(tmp_path: Path) -> None:
    assert read_interfaces(HostRoot(tmp_path), virtual=True) == ()


@given(st.text())
def test_any_uevent(text: str) -> None:
    parse_driver(text)
    assert parse_driver(f"DRIVER=mlx5_core\n{text}") == "mlx5_core"
