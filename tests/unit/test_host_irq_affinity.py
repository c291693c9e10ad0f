"""Interrupts: names without counting, affinities, and how few files it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.irq.interrupts import parse_counters, parse_irq_names
from jitter_workshop.host.irq.irq_affinity import (
    affinity_path,
    read_default_affinity,
    read_effective,
    read_irqbalance_settings,
    read_irqs,
)
from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import irq, write


class CountingRoot(HostRoot):
    """Counts the host's files that are read (what a recording says of itself is none of them)."""

    files = 0

    def reading(self, path: str, limit: int = 1 << 20) -> TextReading:
        self.files += path.startswith("/proc/")
        return super().reading(path, limit)


def made(tmp_path: Path) -> Path:
    table = hosttrees.interrupts(
        [0, 2],
        {
            "9": ((0, 5), "IO-APIC   9-fasteoi   acpi"),
            "24": ((7, 4_294_967_295), "IR-PCI-MSIX-0000:03:00.0    1-edge      eth0-TxRx-1"),
            "31": ((0, 0), "IO-APIC  31-edge"),
            "LOC": ((1, 2), "Local timer interrupts"),
        },
    )
    files = {"proc/interrupts": table, "proc/irq/default_smp_affinity": "ffffffff,00000005\n"}
    files |= irq(9, "0-3", "0") | irq(24, "2") | irq(31, "0-8191") | irq(40, "2-1") | {"proc/irq/55/node": "0\n"}
    return write(tmp_path, files)


def test_names_affinities_and_reasons(tmp_path: Path) -> None:
    irqs = read_irqs(HostRoot(made(tmp_path)))
    assert [(i.number, i.name) for i in irqs] == [(9, "acpi"), (24, "eth0-TxRx-1"), (31, ""), (40, ""), (55, "")]
    assert [i.affinity for i in irqs[:2]] == [CpuSet((0, 1, 2, 3)), CpuSet((2,))]
    assert irqs[2].affinity is not None
    assert len(irqs[2].affinity) == 8192, "CPUs that do not exist are the kernel's habit, not an error"
    assert (irqs[3].affinity, irqs[3].reason) == (None, "not a CPU list")
    assert (irqs[4].affinity, irqs[4].reason) == (None, "no such file")
    assert irqs[0].path == affinity_path(9) == "/proc/irq/9/smp_affinity_list"


def test_one_file_an_interrupt_and_one_for_all(tmp_path: Path) -> None:
    root = CountingRoot(made(tmp_path))
    read_irqs(root)
    assert root.files == 5 + 1


def test_the_default_and_a_single_effective_affinity(tmp_path: Path) -> None:
    root = HostRoot(made(tmp_path))
    assert read_default_affinity(root) == CpuSet((0, 2, *range(32, 64)))
    assert read_effective(root, 9) == CpuSet((0,))
    assert read_effective(root, 24) is None
    write(tmp_path, {"proc/irq/default_smp_affinity": "what?\n"})
    assert read_default_affinity(root) is None


def test_a_host_that_shows_no_interrupts(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    assert read_irqs(root) == ()
    assert read_default_affinity(root) is None


def test_this_machine() -> None:
    irqs = read_irqs(HostRoot())
    table = parse_counters(Path("/proc/interrupts").read_text())
    assert {i.number for i in irqs} >= {int(key) for key in table if key.isdigit()}
    for one in irqs:
        if one.name:
            assert table[str(one.number)].name == one.name


CPUS = st.integers(1, 40)
COUNTS = st.integers(0, (1 << 32) - 1)
DEVICE = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=12)


@given(st.data(), CPUS, DEVICE)
def test_names_agree_with_the_table_that_counts(data: st.DataObject, cpus: int, device: str) -> None:
    counts = data.draw(st.lists(COUNTS, min_size=cpus, max_size=cpus))
    text = hosttrees.interrupts(range(cpus), {"17": (counts, f"IO-APIC  17-fasteoi   x{device}")})
    assert parse_irq_names(text) == {17: f"x{device}"} == {17: parse_counters(text)["17"].name}


@pytest.mark.parametrize(
    ("row", "names"),
    [
        (" 17: 1 2  IO-APIC  17-fasteoi   acpi", {17: "acpi"}),
        (" 17:          1", {}),
        (" 17:          1          2", {17: ""}),
        (" 17:          1          x  IO-APIC   acpi", {}),
        (" 17: 12345678901 12345678902  chip   acpi", {17: "acpi"}),
        ("1234567890:          1          2  chip   acpi", {}),
        (" 17:          1          2  chip  7-edge   \x1b[31mevil\x1b", {17: "[31mevil"}),
    ],
)
def test_rows_out_of_line(row: str, names: dict[int, str]) -> None:
    assert parse_irq_names(f"           CPU0       CPU1\n{row}\n") == names


@given(st.text())
def test_parsing_interrupt_names_accepts_any_text(text: str) -> None:
    parse_irq_names(text)
    parse_irq_names("           CPU0       CPU1\n" + text)


@pytest.mark.parametrize(
    ("files", "path", "banned", "reason"),
    [
        ({}, None, None, ""),
        ({"etc/default/irqbalance": "#IRQBALANCE_BANNED_CPUS=\n"}, "/etc/default/irqbalance", None, ""),
        (
            {"etc/default/irqbalance": 'IRQBALANCE_BANNED_CPULIST="2-3,6"\nIRQBALANCE_BANNED_CPUS=\n'},
            "/etc/default/irqbalance",
            CpuSet((2, 3, 6)),
            "",
        ),
        (
            {"etc/default/irqbalance": 'IRQBALANCE_BANNED_CPULIST="2-3,6"\nIRQBALANCE_BANNED_CPUS=1\n'},
            "/etc/default/irqbalance",
            CpuSet((0,)),
            "",
        ),
        (
            {"etc/sysconfig/irqbalance": "IRQBALANCE_BANNED_CPUS=00000001,0000000c\n"},
            "/etc/sysconfig/irqbalance",
            CpuSet((2, 3, 32)),
            "",
        ),
        (
            {"etc/irqbalance.env": "IRQBALANCE_BANNED_CPULIST=some\n"},
            "/etc/irqbalance.env",
            CpuSet(),
            "IRQBALANCE_BANNED_CPULIST in /etc/irqbalance.env is not a list of CPUs",
        ),
        (
            {"etc/default/irqbalance": "IRQBALANCE_BANNED_CPUS=2-3\nIRQBALANCE_BANNED_CPULIST=2-3\n"},
            "/etc/default/irqbalance",
            CpuSet(),
            "IRQBALANCE_BANNED_CPUS in /etc/default/irqbalance is not a CPU mask, such as 0000000c",
        ),
    ],
)
def test_the_cpus_that_irqbalance_leaves_alone_are_read(
    tmp_path: Path, files: dict[str, str], path: str | None, banned: CpuSet | None, reason: str
) -> None:
    settings = read_irqbalance_settings(HostRoot(write(tmp_path, files)))
    assert (settings.path, settings.banned, settings.reason) == (path, banned, reason)
    isolated = CpuSet((5,))
    assert settings.bans(isolated) == (isolated if banned is None else banned)
