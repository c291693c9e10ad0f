"""Nodes, flaws, throttling, devices: as shown, damaged, and not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.boot.bootloader import read_boot_loader
from jitter_workshop.host.cpu.topology import read_memory_nodes
from jitter_workshop.host.irq.irq_affinity import read_irqbalance_settings, read_irqs, read_movable
from jitter_workshop.host.irq.network import read_interfaces
from jitter_workshop.host.power import ThrottleCounts, read_throttling
from jitter_workshop.host.recorded_tree import parse_recording
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.services import read_services
from jitter_workshop.model.cpuset import CpuSet
from tests.hosttrees import CPU, write

NODE = "sys/devices/system/node"


def test_nodes(tmp_path: Path) -> None:
    files = {
        f"{NODE}/node0/cpulist": "0-1\n",
        f"{NODE}/node1/cpulist": "\n",
        f"{NODE}/node2/cpulist": "what\n",
        f"{NODE}/online": "0-1\n",
    }
    assert read_memory_nodes(HostRoot(write(tmp_path, files))) == {0: CpuSet((0, 1)), 1: CpuSet(), 2: CpuSet()}


@given(st.text())
def test_any_text(text: str) -> None:
    assert parse_recording(text) is None or text.strip().startswith("{")


def throttled(cpu: int, core: int, package: int, siblings: str, **more: int) -> dict[str, str]:
    folder = f"{CPU}/cpu{cpu}"
    counts = {"core_throttle_count": core, "package_throttle_count": package, **more}
    return {
        f"{folder}/topology/thread_siblings_list": f"{siblings}\n",
        f"{folder}/topology/core_siblings_list": "0-3\n",
    } | {f"{folder}/thermal_throttle/{name}": f"{count}\n" for name, count in counts.items()}


def test_each_core_and_package_is_counted_once(tmp_path: Path) -> None:
    files = throttled(0, 3, 7, "0,2", core_throttle_total_time_ms=40, package_throttle_total_time_ms=90)
    files |= throttled(2, 3, 6, "0,2", core_throttle_total_time_ms=41) | throttled(1, 0, 7, "1,3")
    files |= throttled(3, 5, 7, "1,3", core_throttle_total_time_ms=1)
    assert read_throttling(HostRoot(write(tmp_path, files))) == ThrottleCounts(8, 7, 42, 90)


def test_nothing_throttled_and_nothing_counted(tmp_path: Path) -> None:
    files = throttled(0, 0, 0, "0") | throttled(1, 0, 0, "1")
    assert read_throttling(HostRoot(write(tmp_path / "cool", files))) == ThrottleCounts(0, 0, 0, 0)
    assert read_throttling(HostRoot(tmp_path)) is None


def test_old_kernels_count_no_time(tmp_path: Path) -> None:
    found = read_throttling(HostRoot(write(tmp_path, throttled(0, 2, 0, "0"))))
    assert found == ThrottleCounts(2, 0, None, 0)


def test_interrupts_that_refuse_beforehand(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/irq/7/smp_affinity_list": "0\n", "proc/irq/8/smp_affinity_list": "0\n"})
    write(root, {"RECORDING.json": '{"format_version": 1, "read_only": ["/proc/irq/7/smp_affinity_list", 3]}'})
    assert [read_movable(HostRoot(root), n) for n in (7, 8, 9)] == [False, None, None]


def test_a_recording_names_the_files_that_were_not_permitted(tmp_path: Path) -> None:
    said = '{"format_version": 1, "not_permitted": ["/sys/secret"]}'
    root = HostRoot(write(tmp_path, {"RECORDING.json": said, "sys/there": "1\n"}))
    assert [root.reading(path).reason for path in ("/sys/secret", "sys/secret", "/sys/other", "/sys/there")] == [
        "not permitted",
        "not permitted",
        "no such file",
        "",
    ]


DAMAGE: dict[str, Callable[[Path], None]] = {
    "empty": lambda path: path.write_text(""),
    "binary": lambda path: path.write_bytes(bytes(range(256)) * 4),
    "truncated": lambda path: path.write_text(path.read_text()[: max(1, path.stat().st_size // 3)]),
    "fifo": lambda path: (path.unlink(), os.mkfifo(path))[1],
    "loop": lambda path: (path.unlink(), path.symlink_to(path.name))[1],
    "folder": lambda path: (path.unlink(), path.mkdir())[1],
    "gigantic": lambda path: os.truncate(path, 1 << 34),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_no_damage_raises(tmp_path: Path, damage: str) -> None:
    files = {
        f"{NODE}/node0/cpulist": "0\n",
        f"{CPU}/vulnerabilities/mds": "Not affected\n",
        f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "1\n",
        f"{CPU}/cpu0/thermal_throttle/package_throttle_count": "1\n",
        "sys/class/net/eth0/device/uevent": "DRIVER=x\n",
        "sys/class/net/eth0/queues/rx-0/rps_cpus": "1\n",
        "proc/interrupts": "           CPU0\n  9:          1  chip   acpi\n",
        "proc/irq/9/smp_affinity_list": "0\n",
        "proc/1/comm": "systemd\n",
        "proc/1/stat": "1 (systemd) S\n",
        "etc/default/irqbalance": "IRQBALANCE_BANNED_CPULIST=1\n",
        "etc/default/grub": "GRUB_CMDLINE_LINUX=\n",
        "etc/os-release": "ID=debian\n",
        "RECORDING.json": '{"format_version": 1}',
    }
    for path in map(write(tmp_path, files).joinpath, files):
        DAMAGE[damage](path)
    root = HostRoot(tmp_path)
    for read in (
        read_memory_nodes,
        read_throttling,
        read_interfaces,
        read_irqs,
        read_services,
        read_irqbalance_settings,
        read_boot_loader,
    ):
        read(root)
    assert root.recording is None
    assert read_services(root).running == ()
