"""Test how the interrupts of a noise's device are found in sysfs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jitter_workshop.host.irq import device_irqs
from jitter_workshop.host.irq.device_irqs import irqs_of_device, irqs_of_noise
from jitter_workshop.host.irq.interrupts import read_interrupts
from jitter_workshop.host.root import HostRoot
from tests.fake_agent_connection import LiveTree
from tests.hosttrees import write

BUS = "sys/devices/pci0000:00"
MOUNTS = """\
24 1 0:21 / / rw,relatime - tmpfs root rw,size=409600k
25 24 0:22 / /usr ro,relatime - 9p s0 ro,dirsync,trans=virtio
26 24 0:23 / /srv ro,relatime - 9p s1 ro,dirsync,trans=virtio
27 24 0:24 / /run rw,relatime - tmpfs s0 rw
"""


def linked(root: Path, name: str, target: str) -> None:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(root / target)


def made(root: Path) -> Path:
    """A virtual disk, an old disk, a volume on both, and a source of random numbers."""
    files = {f"{BUS}/02/msi_irqs/35": "msix\n", f"{BUS}/02/msi_irqs/36": "msix\n", f"{BUS}/02/irq": "9\n"}
    files |= {f"{BUS}/02/virtio1/block/vda/size": "1\n", f"{BUS}/1f/irq": "19\n"}
    files |= {f"{BUS}/1f/ata1/block/sda/size": "1\n"}
    files |= {f"{BUS}/05/msi_irqs/33": "msix\n", f"{BUS}/05/msi_irqs/34": "msix\n", f"{BUS}/05/virtio4/status": "7\n"}
    files |= {"sys/class/misc/hw_random/rng_current": "virtio_rng.0\n", f"{BUS}/07/irq": "0\n"}
    files |= {"sys/devices/virtual/block/dm-0/size": "2\n"}
    files |= {
        f"{BUS}/04/msi_irqs/26": "msix\n",
        f"{BUS}/04/msi_irqs/27": "msix\n",
        f"{BUS}/04/virtio2/mount_tag": "s0\0",
    }
    files |= {f"{BUS}/06/msi_irqs/28": "msix\n", f"{BUS}/06/virtio3/mount_tag": "s1\0"}
    files |= {"proc/self/mountinfo": MOUNTS}
    write(root, files)
    linked(root, "sys/dev/block/254:0", f"{BUS}/02/virtio1/block/vda")
    linked(root, "sys/dev/block/8:0", f"{BUS}/1f/ata1/block/sda")
    linked(root, "sys/dev/block/253:0", "sys/devices/virtual/block/dm-0")
    linked(root, "sys/devices/virtual/block/dm-0/slaves/sda", f"{BUS}/1f/ata1/block/sda")
    linked(root, "sys/devices/virtual/block/dm-0/slaves/vda", f"{BUS}/02/virtio1/block/vda")
    linked(root, "sys/bus/virtio/drivers/9pnet_virtio/virtio2", f"{BUS}/04/virtio2")
    linked(root, "sys/bus/virtio/drivers/9pnet_virtio/virtio3", f"{BUS}/06/virtio3")
    linked(root, "sys/bus/virtio/drivers/virtio_rng/virtio4", f"{BUS}/05/virtio4")
    return root


@pytest.mark.parametrize(
    ("folder", "numbers"),
    [
        ("/sys/dev/block/254:0", (35, 36)),
        ("/sys/dev/block/8:0", (19,)),
        ("/sys/dev/block/253:0", ()),
        (f"/{BUS}/07", ()),
        ("/sys/dev/block/1:1", ()),
        ("/etc", ()),
    ],
)
def test_the_nearest_folder_that_names_interrupts_counts(tmp_path: Path, folder: str, numbers: tuple[int, ...]) -> None:
    assert irqs_of_device(HostRoot(made(tmp_path)), folder) == numbers


@pytest.mark.parametrize(
    ("device", "numbers"),
    [((254, 0), (35, 36)), ((8, 0), (19,)), ((253, 0), (19, 35, 36)), ((0, 5), ()), ((0, 22), (26, 27)), ((0, 24), ())],
)
def test_the_disk_is_that_of_the_program_and_a_volume_has_the_disks_below_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: tuple[int, int], numbers: tuple[int, ...]
) -> None:
    program = tmp_path / "program"
    program.write_text("")
    monkeypatch.setattr(device_irqs, "PROGRAM", str(program))
    root = LiveTree(made(tmp_path / "host"))
    monkeypatch.setattr(device_irqs.os, "major", lambda _: device[0])
    monkeypatch.setattr(device_irqs.os, "minor", lambda _: device[1])
    assert irqs_of_noise(root, "disk") == numbers


def test_random_numbers_need_a_virtual_device_that_this_process_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_irqs, "HWRNG", str(tmp_path / "hwrng"))
    root = LiveTree(made(tmp_path / "host"))
    assert irqs_of_noise(root, "hwrng") == irqs_of_noise(root, "hwrng", unreadable=True) == ()
    (tmp_path / "hwrng").write_text("")
    monkeypatch.setattr(device_irqs.os, "access", lambda _, mode: mode == os.F_OK)
    assert (irqs_of_noise(root, "hwrng"), irqs_of_noise(root, "hwrng", unreadable=True)) == ((), (33, 34))
    monkeypatch.undo()
    monkeypatch.setattr(device_irqs, "HWRNG", str(tmp_path / "hwrng"))
    assert irqs_of_noise(root, "hwrng") == (33, 34)
    (tmp_path / "host/sys/class/misc/hw_random/rng_current").write_text("tpm-rng-0\n")
    assert irqs_of_noise(root, "hwrng") == ()


def test_no_other_noise_reads_from_a_device_and_a_recording_has_none(tmp_path: Path) -> None:
    root = made(tmp_path)
    assert irqs_of_noise(LiveTree(root), "unbound") == irqs_of_noise(HostRoot(root), "hwrng") == ()


@pytest.mark.skipif(not os.access("/sys/dev/block", os.R_OK), reason="no sysfs")
@pytest.mark.parametrize("kind", ["disk", "hwrng"])
def test_the_interrupts_of_this_hosts_devices_are_in_its_table(kind: str) -> None:
    root = HostRoot()
    assert {str(number) for number in irqs_of_noise(root, kind)} <= read_interrupts(root).keys()
