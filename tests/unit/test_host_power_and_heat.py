"""Frequency policies, temperatures, throttling and the battery."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu.cpufreq import policy_folders, read_policy
from jitter_workshop.host.power import Sensor, Thermal, parse_millicelsius, read_on_battery, read_thermal
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import CPU


def test_policies_of_a_server(host_tree: Callable[[str], Path]) -> None:
    root = HostRoot(host_tree("server64"))
    assert len(policy_folders(root, CpuSet.of(range(64)))) == 64
    one = read_policy(root, f"/{CPU}/cpufreq/policy7")
    assert (one.driver, one.governor) == ("intel_pstate", "powersave")
    assert (one.min_hz, one.max_hz) == (1_000_000_000, 3_700_000_000)
    assert one.available_governors == ("performance", "powersave")
    assert (one.epp, len(one.available_epp), one.own_boost) == ("balance_performance", 4, None)


def test_a_guest_has_no_policies(host_tree: Callable[[str], Path]) -> None:
    assert policy_folders(HostRoot(host_tree("guest")), CpuSet((0, 1))) == {}


def test_shared_policies_unknown_values_and_boost_of_its_own(tmp_path: Path) -> None:
    made = hosttrees.policy(0, cpus="0 1 3", driver="acpi-cpufreq", governor="schedutil", low_khz=1, high_khz=2)
    made |= hosttrees.policy(
        4, cpus="4", driver="amd-pstate-epp", governor="powersave", low_khz=1, high_khz=2, boost="0"
    )
    made |= {
        f"{CPU}/cpufreq/policy0/scaling_governor": "<unsupported>\n",
        f"{CPU}/cpufreq/policy9/affected_cpus": "damaged\n",
    }
    root = HostRoot(hosttrees.write(tmp_path, made))
    first, second, broken = (read_policy(root, f"/{CPU}/cpufreq/policy{number}") for number in (0, 4, 9))
    assert (first.governor, first.own_boost) == (None, None)
    assert (second.epp, second.own_boost) == (None, False)
    assert (broken.driver, broken.max_hz) == (None, None)


def test_heat_of_a_server_is_its_processors(host_tree: Callable[[str], Path]) -> None:
    thermal = read_thermal(HostRoot(host_tree("server64")))
    assert [(z.name, z.celsius) for z in thermal.zones] == [("x86_pkg_temp", 50.0), ("x86_pkg_temp", 54.0)]
    assert [s.name for s in thermal.sensors] == ["coretemp Package id 0", "coretemp Package id 1"]
    assert thermal.hottest_celsius == 54.0
    # Core 3 of both packages counted 2, each package 5; their other threads count the same events again.
    assert thermal.throttle_events == 2 + 2 + 5 + 5


def test_a_host_without_sensors(host_tree: Callable[[str], Path]) -> None:
    assert read_thermal(HostRoot(host_tree("guest"))) == Thermal((), (), None)
    assert Thermal().hottest_celsius is None


def test_other_chips_are_read_only_where_no_processor_has_a_sensor(tmp_path: Path) -> None:
    chips = {0: ("nvme", 71_000), 1: ("drivetemp", 60_000), 2: ("nct6798", 38_000)}
    for n, (name, heat) in chips.items():
        hosttrees.write(
            tmp_path, {f"sys/class/hwmon/hwmon{n}/name": name, f"sys/class/hwmon/hwmon{n}/temp1_input": str(heat)}
        )
    root = HostRoot(tmp_path)
    assert [s.name for s in read_thermal(root).sensors] == ["nct6798"]
    zone = "sys/class/thermal/thermal_zone0"
    hosttrees.write(tmp_path, {f"{zone}/type": "cpu-thermal\n", f"{zone}/temp": "45000\n"})
    thermal = read_thermal(root)
    assert (thermal.sensors, thermal.hottest_celsius) == ((), 45.0)


def test_any_sensor_is_better_than_none() -> None:
    assert Thermal((Sensor("acpitz", "x", 41.0), Sensor("acpitz", "y", None, "asleep"))).hottest_celsius == 41.0


def test_sensors_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    files = {
        "sys/class/thermal/thermal_zone0/type": "acpitz\n",
        "sys/class/thermal/thermal_zone1/type": "evil\x1b[31m\n",
        "sys/class/thermal/thermal_zone1/temp": "-273200\n",
        "sys/class/hwmon/hwmon0/temp3_input": "48000\n",
        "sys/class/hwmon/hwmon0/tempx_input": "1\n",
    }
    thermal = read_thermal(HostRoot(hosttrees.write(tmp_path, files)))
    assert [(z.name, z.celsius, z.reason) for z in thermal.zones] == [
        ("acpitz", None, "no such file"),
        ("evil [31m", None, "not a temperature"),
    ]
    assert [(s.name, s.celsius) for s in thermal.sensors] == [("hwmon0", 48.0)]


def test_throttle_counts_without_topology_stand_alone(tmp_path: Path) -> None:
    files = {f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": f"{n}\n" for n in range(3)}
    files[f"{CPU}/cpu3/thermal_throttle/core_throttle_count"] = "none\n"
    assert read_thermal(HostRoot(hosttrees.write(tmp_path, files))).throttle_events == 0 + 1 + 2


@given(st.integers(-40_000, 150_000))
def test_temperatures_round_trip(thousandths: int) -> None:
    assert parse_millicelsius(str(thousandths)) == thousandths / 1_000


@given(st.text(max_size=20))
def test_a_text_that_is_no_temperature_is_none(text: str) -> None:
    celsius = parse_millicelsius(text)
    assert celsius is None or -40 <= celsius <= 150


@pytest.mark.parametrize("thousandths", ["-273200", "255000", "999999999999", "", "n/a"])
def test_implausible_temperatures_are_none(thousandths: str) -> None:
    assert parse_millicelsius(thousandths) is None


def supply(name: str, **files: str) -> dict[str, str]:
    return {f"sys/class/power_supply/{name}/{key}": f"{text}\n" for key, text in files.items()}


@pytest.mark.parametrize(
    ("supplies", "on_battery"),
    [
        ({}, None),
        (supply("AC", type="Mains", online="1") | supply("BAT0", type="Battery", status="Discharging"), False),
        (supply("AC", type="Mains", online="0") | supply("BAT0", type="Battery", status="Discharging"), True),
        (supply("BAT0", type="Battery", status="Discharging"), True),
        (supply("BAT0", type="Battery", status="Full") | supply("BAT1", type="Battery", status="Discharging"), True),
        (supply("BAT0", type="Battery", status="Not charging"), False),
        (supply("BAT0", type="Battery", status="Unknown"), None),
        (supply("ucsi", type="USB", online="1") | supply("BAT0", type="Battery", status="Charging"), False),
        (supply("mouse", type="Battery", scope="Device", status="Discharging"), None),
        (supply("x", type="UPS", online="1"), None),
        (supply("AC", type="Mains", online="garbage"), None),
    ],
)
def test_battery_or_mains(tmp_path: Path, supplies: dict[str, str], on_battery: bool | None) -> None:
    assert read_on_battery(HostRoot(hosttrees.write(tmp_path, supplies))) is on_battery


def test_the_laptop_is_on_battery(host_tree: Callable[[str], Path]) -> None:
    assert read_on_battery(HostRoot(host_tree("hybrid_laptop"))) is True
