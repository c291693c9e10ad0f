"""Network cards: queues, drivers and nodes; no address is ever read."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.host.irq.network import read_interfaces
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
    return write(tmp_path, files)


def test_cards_and_their_queues(tmp_path: Path) -> None:
    first, second = read_interfaces(HostRoot(made(tmp_path)))
    assert (first.name, first.driver, first.node) == ("ens1", "ice", 1)
    assert (first.defer_hard_irqs, first.gro_flush_timeout_ns, first.threaded) == (0, 0, False)
    # The mask of tx-1 is damaged.
    assert first.queues == {
        "/sys/class/net/ens1/queues/rx-0/rps_cpus": CpuSet((2, 3)),
        "/sys/class/net/ens1/queues/rx-1/rps_cpus": CpuSet((0, 1, 2, 3)),
        "/sys/class/net/ens1/queues/tx-0/xps_cpus": CpuSet((0, 1)),
    }
    assert (second.name, second.driver, second.node) == ("eth9", "virtio_net", None)
    assert list(second.queues.values()) == [CpuSet()]


def test_a_single_transmit_queue_has_no_mask(tmp_path: Path) -> None:
    root = write(tmp_path, network_card("eth0", xps=()))
    (root / "sys/class/net/eth0/queues/tx-0").mkdir()
    (card,) = read_interfaces(HostRoot(root))
    assert list(card.queues) == ["/sys/class/net/eth0/queues/rx-0/rps_cpus"]


def test_queues_can_be_left_out(tmp_path: Path) -> None:
    assert all(i.queues == {} for i in read_interfaces(HostRoot(made(tmp_path)), queues=False))


def test_no_address_is_read(tmp_path: Path) -> None:
    root = NamingRoot(made(tmp_path))
    read_interfaces(root)
    assert root.paths
    assert not [path for path in root.paths if "addr" in path]


def test_a_host_without_a_network(tmp_path: Path) -> None:
    assert read_interfaces(HostRoot(tmp_path)) == ()
