"""The tunables of clock source, heat and firmware."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pytest

from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.model.change import Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.clock import ClockSource, TscWatchdog
from jitter_workshop.tuning.tunables.temperature import Smi, Temperature, Throttling
from tests.hosttrees import CPU, X86_FLAGS, clock, cpu_lists, cpuinfo, kernel, write

Tree = Callable[[str], Path]
FOLDER = "/sys/devices/system/clocksource/clocksource0"


def host(root: Path, *hot: int) -> Host:
    return Host(HostRoot(root), CpuSet(hot))


def machine(root: Path, current: str, available: str, *, flags: str = X86_FLAGS, line: str = "quiet") -> Path:
    files = kernel("box") | cpu_lists("0-3") | clock(current, available)
    files |= {"proc/cpuinfo": cpuinfo(4, "A processor", flags), "proc/cmdline": f"{line}\n"}
    return write(root, files)


@pytest.mark.parametrize("current", ["tsc", "kvm-clock", "arch_sys_counter"])
def test_a_clock_that_programs_read_themselves_is_fine(tmp_path: Path, current: str) -> None:
    root = machine(tmp_path, current, f"{current} hpet")
    assert ClockSource().assess(host(root, 3)).state == "ok"
    assert not planning.plan_changes(host(root, 3), [Wanted("clock-source")]).changes


def test_the_tsc_is_better_than_a_device(tmp_path: Path) -> None:
    root = machine(tmp_path, "hpet", "tsc hpet acpi_pm")
    found = ClockSource().assess(host(root, 3))
    assert (found.state, found.value, found.wanted) == ("improve", "hpet", "tsc")
    made = planning.plan_changes(host(root, 3), [Wanted("clock-source")])
    assert [(c.path, c.before, c.after, c.risk) for c in made.changes] == [
        (f"{FOLDER}/current_clocksource", "hpet", "tsc", "medium")
    ]


@pytest.mark.parametrize(
    ("available", "flags", "reason"),
    [
        ("hpet acpi_pm", X86_FLAGS, "no TSC"),
        ("tsc hpet", X86_FLAGS.replace("constant_tsc", ""), "changes its rate"),
        ("tsc hpet", X86_FLAGS.replace("nonstop_tsc", ""), "deep idle states"),
    ],
)
def test_a_tsc_that_is_not_to_be_trusted_is_left_alone(tmp_path: Path, available: str, flags: str, reason: str) -> None:
    root = machine(tmp_path, "hpet", available, flags=flags)
    assert ClockSource().assess(host(root, 3)).state == "info"
    assert reason in planning.plan_changes(host(root, 3), [Wanted("clock-source")]).skipped[0].reason


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({}, "info"),
        ({"line": "tsc=nowatchdog"}, "ok"),
        ({"line": "tsc=reliable quiet"}, "ok"),
        ({"flags": f"{X86_FLAGS} tsc_adjust"}, "ok"),
        ({"flags": f"{X86_FLAGS} tsc_reliable"}, "ok"),
        ({"available": "tsc"}, "ok"),
        ({"current": "hpet", "available": "hpet acpi_pm"}, "ok"),
    ],
)
def test_the_state_of_the_tsc_watchdog_follows_clock_and_parameters(
    tmp_path: Path, changes: dict[str, str], state: str
) -> None:
    given = {"current": "tsc", "available": "tsc hpet acpi_pm"} | changes
    assert TscWatchdog().assess(host(machine(tmp_path, **given), 3)).state == state


def test_no_tsc_has_no_watchdog(host_tree: Tree) -> None:
    assert TscWatchdog().assess(host(host_tree("arm_server"), 7)).state == "unavailable"


def test_temperature_is_told_and_not_judged(host_tree: Tree) -> None:
    found = Temperature().assess(host(host_tree("server64"), 5))
    assert (found.state, found.value, found.wanted) == ("info", "54 °C", None)
    guest = Temperature().assess(host(host_tree("guest"), 1))
    assert (guest.state, guest.only_host) == ("unavailable", True)
    assert Temperature().assess(host(host_tree("small3"), 2)).state == "unavailable"


def test_a_sensor_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    zone = "sys/class/thermal/thermal_zone0"
    root = write(machine(tmp_path, "tsc", "tsc"), {f"{zone}/type": "acpitz\n", f"{zone}/temp": "hot\n"})
    assert "not a temperature" in Temperature().assess(host(root, 3)).reason


def test_throttling_of_the_hot_cpus_alone_is_told(host_tree: Tree, tmp_path: Path) -> None:
    found = Throttling().assess(host(host_tree("server64"), 3, 5))
    assert (found.state, found.value) == ("info", "7 events")
    root = machine(tmp_path, "tsc", "tsc")
    for n, count in enumerate((9, 9, 0, 0)):
        counts = f"{CPU}/cpu{n}/thermal_throttle"
        write(root, {f"{counts}/core_throttle_count": f"{count}\n", f"{counts}/package_throttle_count": "0\n"})
    assert Throttling().assess(host(root, 2, 3)).state == "ok"
    assert "for 0 ms" not in Throttling().assess(host(root, 1)).reason
    assert Throttling().assess(host(host_tree("guest"), 1)).only_host


def test_throttling_costs_no_look_at_the_other_cpus(host_tree: Tree) -> None:
    class Counting(HostRoot):
        seen: ClassVar[list[str]] = []

        def reading(self, path: str, limit: int = 1 << 20) -> TextReading:
            self.seen.append(path)
            return super().reading(path, limit)

    root = Counting(host_tree("server64"))
    root.seen.clear()
    Throttling().assess(Host(root, CpuSet((5,))))
    assert [path for path in root.seen if path.startswith("/") and "/cpu5/" not in path] == []


def test_firmware_interrupts_are_counted_by_perf(tmp_path: Path) -> None:
    root = write(machine(tmp_path, "tsc", "tsc"), {"sys/bus/event_source/devices/msr/events/smi": "event=0x04\n"})
    found = Smi().assess(host(root, 3))
    assert (found.state, "perf stat" in found.reason) == ("info", True)
    found = Smi().assess(host(machine(tmp_path / "other", "tsc", "tsc"), 3))
    assert (found.state, "no such file" in found.reason) == ("unavailable", True)
