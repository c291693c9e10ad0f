"""The tunables of the CPUs' clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.ordering import ordered, ordering_facts
from jitter_workshop.tuning.tunables.cpu_frequency import (
    Boost,
    EnergyBias,
    EnergyPreference,
    Governor,
    MinFrequency,
    UncoreFrequency,
)
from tests.hosttrees import CPU, cpu_lists, cpuinfo, kernel, policy, write

POLICIES = f"/{CPU}/cpufreq"


def host(root: Path, *hot: int) -> Host:
    return Host(HostRoot(root), CpuSet(hot))


def plan(root: Path, *words: str, hot: tuple[int, ...] = (3,)) -> Plan:
    wanted = [Wanted(name, value if equals else None) for name, equals, value in (w.partition("=") for w in words)]
    return planning.plan_changes(host(root, *hot), wanted)


def writes(made: Plan) -> list[tuple[str, str, str]]:
    return [(change.path, change.before, change.after) for change in made.changes]


def machine(
    root: Path, driver: str, governor: str, *, epp: str | None = "balance_performance", flags: str = "", **more: str
) -> Path:
    """Four CPUs with a policy each; ``more``: further files of each policy."""
    files = kernel("box") | cpu_lists("0-3") | {"proc/cpuinfo": cpuinfo(4, "A processor", f"fpu tsc {flags}")}
    preference = {} if epp is None else {"energy_performance_preference": epp}
    for n in range(4):
        files |= policy(
            n, cpus=str(n), driver=driver, governor=governor, low_khz=800_000, high_khz=3_000_000, **preference, **more
        )
    return write(root, files)


# Governor and preference ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("driver", ["intel_pstate", "amd-pstate-epp"])
def test_a_governor_that_sets_the_preference_too_notes_it_first(tmp_path: Path, driver: str) -> None:
    made = plan(machine(tmp_path, driver, "powersave"), "governor")
    assert writes(made) == [
        (f"{POLICIES}/policy3/scaling_governor", "powersave", "performance"),
        (f"{POLICIES}/policy3/energy_performance_preference", "balance_performance", "performance"),
    ]


def test_a_governor_of_the_kernel_leaves_the_preference_alone(tmp_path: Path) -> None:
    made = plan(machine(tmp_path, "acpi-cpufreq", "powersave"), "governor")
    assert writes(made) == [(f"{POLICIES}/policy3/scaling_governor", "powersave", "performance")]


def test_the_preference_is_written_after_the_governor_that_displaces_it_and_only_once(tmp_path: Path) -> None:
    made = plan(machine(tmp_path, "intel_pstate", "powersave"), "governor", "epp")
    assert [(c.tunable, c.path.rpartition("/")[2]) for c in made.changes] == [
        ("governor", "scaling_governor"),
        ("governor", "energy_performance_preference"),
    ]
    # On the way back the driver takes another preference only under another governor.
    back = ordered([ordering_facts(c.path, c.kind, c.before) for c in reversed(made.changes)])
    assert made.changes[::-1][back[0]].path.endswith("/scaling_governor")


def test_the_preference_that_a_governor_holds_is_not_to_be_changed(tmp_path: Path) -> None:
    root = machine(tmp_path, "intel_pstate", "performance", epp="performance")
    assert EnergyPreference().assess(host(root, 3)).state == "ok"
    write(root, {f"{POLICIES[1:]}/policy3/energy_performance_available_preferences": "performance power\n"})
    made = plan(root, "epp=power")
    assert not made.changes
    assert "the governor is performance" in made.skipped[0].reason


def test_a_passive_driver_takes_any_preference(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        "intel_cpufreq",
        "performance",
        energy_performance_available_preferences="default performance power",
    )
    assert [w[2] for w in writes(plan(root, "epp=power"))] == ["power"]
    with pytest.raises(UsageError, match="cannot be 'fast'"):
        plan(root, "epp=fast")


def test_without_a_preference_the_driver_is_named(tmp_path: Path) -> None:
    found = EnergyPreference().assess(host(machine(tmp_path, "acpi-cpufreq", "powersave", epp=None), 3))
    assert (found.state, "acpi-cpufreq" in found.reason) == ("unavailable", True)


@pytest.mark.parametrize("tunable", [Governor(), EnergyPreference(), EnergyBias(), MinFrequency(), Boost()])
def test_a_guest_points_at_its_hypervisor(host_tree: Callable[[str], Path], tunable: Governor) -> None:
    found = tunable.assess(host(host_tree("guest"), 1))
    assert (found.state, found.only_host, found.fix) == ("unavailable", True, "")


def test_only_the_hot_cpus_policies_are_judged(tmp_path: Path) -> None:
    root = machine(tmp_path, "acpi-cpufreq", "powersave")
    write(root, {f"{CPU}/cpufreq/policy2/scaling_governor": "performance\n"})
    assert Governor().assess(host(root, 2)).state == "ok"
    found = Governor().assess(host(root, 2, 3))
    assert (found.state, found.value, found.fix) == (
        "improve",
        "performance, powersave",
        "jitter-workshop apply governor",
    )


def test_a_shared_policy_is_written_once(tmp_path: Path) -> None:
    files = kernel("box") | cpu_lists("0-3")
    files |= policy(0, cpus="0 1 2 3", driver="cppc_cpufreq", governor="powersave", low_khz=1_000, high_khz=2_000)
    assert writes(plan(write(tmp_path, files), "governor", hot=(1, 2, 3))) == [
        (f"{POLICIES}/policy0/scaling_governor", "powersave", "performance")
    ]


# Bias -------------------------------------------------------------------------------------------------------------


def test_the_bias_is_a_number_of_each_hot_cpu(tmp_path: Path) -> None:
    root = machine(tmp_path, "intel_pstate", "powersave")
    write(root, {f"{CPU}/cpu{n}/power/energy_perf_bias": f"{6 * (n > 1)}\n" for n in range(4)})
    assert EnergyBias().assess(host(root, 1)).state == "ok"
    assert writes(plan(root, "epb", hot=(1, 2))) == [(f"/{CPU}/cpu2/power/energy_perf_bias", "6", "0")]
    for wrong in ("16", "-1", "fast", ""):
        with pytest.raises(UsageError):
            plan(root, f"epb={wrong}")


# Lowest frequency ---------------------------------------------------------------------------------------------------


def test_the_lowest_frequency_becomes_the_highest(tmp_path: Path) -> None:
    root = machine(tmp_path, "acpi-cpufreq", "schedutil")
    found = MinFrequency().assess(host(root, 3))
    assert (found.state, found.value, found.wanted) == ("improve", "800 MHz", "3,000 MHz")
    assert found.fix == "jitter-workshop apply min-frequency"
    assert writes(plan(root, "min-frequency")) == [(f"{POLICIES}/policy3/scaling_min_freq", "800000", "3000000")]
    assert [w[2] for w in writes(plan(root, "min-frequency=2000000"))] == ["2000000"]
    for wrong in ("799999", "3000001", "2 GHz"):
        with pytest.raises(UsageError):
            plan(root, f"min-frequency={wrong}")


def test_under_the_governor_performance_the_lowest_frequency_does_not_matter(tmp_path: Path) -> None:
    found = MinFrequency().assess(host(machine(tmp_path, "acpi-cpufreq", "performance"), 3))
    assert (found.state, found.fix) == ("ok", "")


def test_the_limit_for_all_cpus_is_written_only_when_it_is_asked_for(tmp_path: Path) -> None:
    root = machine(tmp_path, "intel_pstate", "powersave")
    assert "intel_pstate" in plan(root, "min-frequency=all").skipped[0].reason
    write(root, {f"{CPU}/intel_pstate/min_perf_pct": "27\n", f"{CPU}/intel_pstate/max_perf_pct": "90\n"})
    assert len(plan(root, "min-frequency").changes) == 1
    assert writes(plan(root, "min-frequency=all"))[-1] == (f"/{CPU}/intel_pstate/min_perf_pct", "27", "90")


# Boost --------------------------------------------------------------------------------------------------------------


def test_boost_teaches_both_sides_and_wants_to_be_told(tmp_path: Path) -> None:
    root = machine(tmp_path, "intel_pstate", "powersave")
    write(root, {f"{CPU}/intel_pstate/no_turbo": "0\n"})
    found = Boost().assess(host(root, 3))
    assert (found.state, found.value, found.wanted, found.fix) == ("info", "on", None, "")
    assert "fast" in found.reason
    assert "steady" in found.reason
    assert "boost=on or boost=off" in plan(root, "boost").skipped[0].reason
    assert writes(plan(root, "boost=off")) == [(f"/{CPU}/intel_pstate/no_turbo", "0", "1")]
    assert not plan(root, "boost=on").changes
    with pytest.raises(UsageError):
        plan(root, "boost=maybe")


def test_boost_of_the_hot_cpus_alone_where_each_has_a_switch(tmp_path: Path) -> None:
    root = machine(tmp_path, "amd-pstate-epp", "powersave", boost="1")
    write(root, {f"{CPU}/cpufreq/boost": "1\n"})
    assert writes(plan(root, "boost=off")) == [(f"{POLICIES}/policy3/boost", "1", "0")]


def test_boost_that_is_off_for_all_is_switched_on_for_all(tmp_path: Path) -> None:
    root = machine(tmp_path, "amd-pstate-epp", "powersave", boost="0")
    write(root, {f"{CPU}/cpufreq/boost": "0\n"})
    assert writes(plan(root, "boost=on")) == [(f"/{CPU}/cpufreq/boost", "0", "1")]


# Uncore -------------------------------------------------------------------------------------------------------------


def uncore(name: str, low_khz: int, high_khz: int, package: int | None = None) -> dict[str, str]:
    folder = f"{CPU}/intel_uncore_frequency/{name}"
    files = {f"{folder}/min_freq_khz": f"{low_khz}\n", f"{folder}/max_freq_khz": f"{high_khz}\n"}
    return files if package is None else files | {f"{folder}/package_id": f"{package}\n"}


def test_the_mesh_of_the_hot_cpus_package_keeps_its_clock(tmp_path: Path) -> None:
    files = kernel("box") | cpu_lists("0-3")
    files |= {f"{CPU}/cpu{n}/topology/physical_package_id": f"{n // 2}\n" for n in range(4)}
    files |= uncore("package_00_die_00", 800_000, 2_400_000) | uncore("package_01_die_00", 800_000, 2_400_000)
    files |= uncore("uncore00", 900_000, 2_000_000, package=1) | uncore("uncore01", 900_000, 2_000_000, package=0)
    made = plan(write(tmp_path, files), "uncore-frequency")
    folder = f"/{CPU}/intel_uncore_frequency"
    assert writes(made) == [
        (f"{folder}/package_01_die_00/min_freq_khz", "800000", "2400000"),
        (f"{folder}/uncore00/min_freq_khz", "900000", "2000000"),
    ]
    found = UncoreFrequency().assess(host(tmp_path, 3))
    assert (found.state, found.value) == ("improve", "800 MHz, 900 MHz")


# A capped clock ---------------------------------------------------------------------------------------------------


def test_the_fastest_governor_of_a_capped_clock_is_told_with_both_numbers(tmp_path: Path) -> None:
    root = machine(tmp_path, "acpi-cpufreq", "performance")
    assert Governor().assess(host(root, 3)).state == "ok"
    write(root, {f"{CPU}/cpufreq/policy3/scaling_max_freq": "1200000\n"})
    told = Governor().assess(host(root, 3))
    assert told.state == "info"
    assert "capped at 1,200 of 3,000 MHz" in told.reason
    assert f"{POLICIES}/policy3/scaling_max_freq" in told.reason
    assert Governor().assess(host(root, 2)).state == "ok", "of CPUs that are not hot nothing is said"
    assert writes(plan(root, "governor")) == []


def test_a_slow_governor_comes_before_a_capped_clock(tmp_path: Path) -> None:
    root = machine(tmp_path, "acpi-cpufreq", "powersave")
    write(root, {f"{CPU}/cpufreq/policy3/scaling_max_freq": "1200000\n"})
    assert Governor().assess(host(root, 3)).state == "improve"
