"""/proc/interrupts and /proc/softirqs: header names decide, damaged rows go, growth is honest about wraps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.irq.interrupts import (
    CounterTable,
    growth,
    parse_counters,
    read_interrupts,
    read_softirqs,
)
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.run import Counter
from tests import hosttrees

X86 = """\
           CPU0       CPU2
  2:          0          0   XT-PIC      cascade
  9:          0          5   IO-APIC   9-fasteoi   acpi
 16:          1          2   IO-APIC  16-fasteoi   ehci_hcd:usb1, i801 smbus
 26:          0         14  IO-APIC   4-edge      ttyS0
 28:          7          8  IR-PCI-MSI 524288-edge      nvme0q0
 30:          7          8  IR-PCI-MSIX-0000:03:00.0    1-edge      eth0-TxRx-1
 31:          0          0  IO-APIC  31-edge
NMI:         11         22   Non-maskable interrupts
LOC:      22010      21615   Local timer interrupts
ERR:          3
MIS:          0
"""
ARM = """\
           CPU0       CPU1       CPU2
 11:     123456     123457     123458     GICv3  27 Level     arch_timer
 14:          0          0          0     GICv3  23 Level     arm-pmu
 47:          9          0          0  ITS-MSI 524288 Edge      virtio0-config
IPI0:      1001       1002       1003       Rescheduling interrupts
Err:          0
"""


def test_x86_rows_have_their_cpus_and_names() -> None:
    table = parse_counters(X86)
    assert table["LOC"] == Counter("Local timer interrupts", {"0": 22010, "2": 21615})
    assert {key: row.name for key, row in table.items() if key.isdigit()} == {
        "2": "cascade",
        "9": "acpi",
        "16": "ehci_hcd:usb1, i801 smbus",
        "26": "ttyS0",
        "28": "nvme0q0",
        "30": "eth0-TxRx-1",
        "31": "IO-APIC 31-edge",
    }
    assert table.totals == {"ERR": 3, "MIS": 0}


def test_arm_rows_have_their_names() -> None:
    table = parse_counters(ARM)
    assert {key: row.name for key, row in table.items()} == {
        "11": "arch_timer",
        "14": "arm-pmu",
        "47": "virtio0-config",
        "IPI0": "Rescheduling interrupts",
    }
    assert table.totals == {"Err": 0}


def test_one_cpu_does_not_take_the_machine_totals_for_its_own() -> None:
    table = parse_counters("           CPU0\nLOC:   5   Local timer interrupts\nERR:   1\nMIS:   2\n")
    assert list(table) == ["LOC"]
    assert table.totals == {"ERR": 1, "MIS": 2}


def test_offline_cpus_have_no_column(host_tree: Callable[[str], Path]) -> None:
    root = HostRoot(host_tree("offline"))
    assert read_interrupts(root)["LOC"].per_cpu == {"0": 100, "1": 101, "3": 103, "4": 104, "6": 106}
    assert list(read_softirqs(root)["RCU"].per_cpu) == [str(n) for n in range(8)]
    assert read_softirqs(root)["NET_RX"] == Counter("NET_RX", {str(n): n + 1 for n in range(8)})


def test_a_table_that_is_cut_off_loses_its_last_row_only() -> None:
    cut = X86[: X86.index("21615")]
    assert "NMI" in parse_counters(cut)
    assert "LOC" not in parse_counters(cut)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "CPU0\n",
        "no header\n 1: 2 3\n",
        "CPU0 CPU0\n1: 2 3 x\n",
        "CPUx\n1: 2\n",
        "CPU0 CPU1\n1: 2\n1 2 3\n:1 2\n",
    ],
)
def test_a_file_of_interrupts_without_a_table_gives_a_reason(text: str, tmp_path: Path) -> None:
    assert len(parse_counters(text)) == 0
    hosttrees.write(tmp_path, {"proc/interrupts": text})
    assert read_interrupts(HostRoot(tmp_path)).reason == "/proc/interrupts holds no table"


def test_a_missing_table_says_why(tmp_path: Path) -> None:
    assert read_softirqs(HostRoot(tmp_path)) == CounterTable(reason="/proc/softirqs: no such file")


def test_names_are_made_fit_to_print() -> None:
    table = parse_counters("CPU0\n 5:  1  chip  1-edge      evil\x1b[2J\u202ename\nL\x07C:  2  desc\x1bribed\n")
    assert table["5"].name == "evil [2J name"
    assert table["L C"].name == "desc ribed"


counts = st.integers(0, 2**32 - 1)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.:-]{0,15}", fullmatch=True)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[int], dict[str, tuple[list[int], str]]]:
    cpus = sorted(draw(st.sets(st.integers(0, 300), min_size=1, max_size=6)))
    keys = draw(st.lists(st.from_regex(r"[0-9]{1,4}|[A-Z]{2,4}[0-9]?", fullmatch=True), unique=True, max_size=8))
    row = st.tuples(st.lists(counts, min_size=len(cpus), max_size=len(cpus)), names)
    return cpus, {key: draw(row) for key in keys if key not in ("ERR", "MIS")}


@given(tables())
def test_tables_round_trip(made: tuple[list[int], dict[str, tuple[list[int], str]]]) -> None:
    cpus, rows = made
    written = {
        key: (values, f"PCI-MSI {key}-edge      {name}" if key.isdigit() else f" {name} interrupts")
        for key, (values, name) in rows.items()
    }
    table = parse_counters(hosttrees.interrupts(cpus, written))
    assert {key: row.per_cpu for key, row in table.items()} == {
        key: dict(zip(map(str, cpus), values, strict=True)) for key, (values, _) in rows.items()
    }
    for key, (_, name) in rows.items():
        assert table[key].name == (name if key.isdigit() else f"{name} interrupts")


@given(st.one_of(st.text(max_size=300), st.text("CPU0123456789: \nABERrLO\t", max_size=300)))
def test_garbage_never_raises(text: str) -> None:
    for source in (text, X86 + text, "CPU0 CPU1\n" + text):
        for row in parse_counters(source).values():
            assert row.name.isprintable()
            assert all(count >= 0 for count in row.per_cpu.values())


@given(counts, st.integers(0, 2**31 - 1))
def test_growth_survives_the_wrap_of_32_bits(before: int, grown: int) -> None:
    after = (before + grown) % 2**32
    if before + grown < 2**32 or before >= 2**31:
        assert growth(before, after) == grown


def test_a_counter_that_began_anew_counts_from_zero() -> None:
    assert growth(1_000, 3) == 3
    assert growth(2**40, 3) == 3


def test_minus_keeps_the_rows_that_grew() -> None:
    before = parse_counters("CPU0 CPU1\nLOC: 10 20 timer\nRES: 5 5 resched\nCAL: 1 1 call\nERR: 1\n")
    after = parse_counters("CPU0 CPU1\nLOC: 10 27 timer\nRES: 5 5 resched\n77: 0 4 chip  1-edge      new\nERR: 3\n")
    assert dict(after.minus(before)) == {
        "LOC": Counter("timer", {"0": 0, "1": 7}),
        "77": Counter("new", {"0": 0, "1": 4}),
    }
    assert after.minus(before).totals == {"ERR": 2}
    assert len(after.minus(after)) == 0


def test_minus_when_a_cpu_came_online() -> None:
    before = parse_counters("CPU0\nLOC: 10 timer\n")
    after = parse_counters("CPU0 CPU1\nLOC: 11 3 timer\n")
    assert after.minus(before)["LOC"].per_cpu == {"0": 1, "1": 3}
    assert before.minus(after)["LOC"].per_cpu == {"0": 10}


def test_this_host_shows_interrupts_of_its_online_cpus() -> None:
    root = HostRoot()
    table = read_interrupts(root)
    online = root.cpu_list("/sys/devices/system/cpu/online")
    assert online is not None
    assert len(table) > 0
    assert all({int(cpu) for cpu in row.per_cpu} <= set(online) for row in table.values())
