"""The tunables of idle CPUs."""

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
from jitter_workshop.tuning.tunables.cpu_idle import HaltPoll, IdleStates, PmQosFd, PmQosResume
from tests.hosttrees import CPU, cpu_files, cpu_lists, cpuinfo, idle_states, kernel, write

INTEL = (("POLL", 0), ("C1", 2), ("C1E", 10), ("C6", 133))
RESUME = "power/pm_qos_resume_latency_us"


def host(root: Path, *hot: int) -> Host:
    return Host(HostRoot(root), CpuSet(hot))


def plan(root: Path, word: str, hot: tuple[int, ...] = (3,)) -> Plan:
    name, equals, value = word.partition("=")
    return planning.plan_changes(host(root, *hot), [Wanted(name, value if equals else None)])


def disabled(made: Plan) -> list[str]:
    assert all((c.before, c.after) == ("0", "1") for c in made.changes)
    return [c.path.removeprefix(f"/{CPU}/").removesuffix("/disable") for c in made.changes]


def machine(root: Path, *states: tuple[str, int], line: str = "quiet", flags: str = "fpu") -> Path:
    files = kernel("box") | cpu_lists("0-3") | {"proc/cpuinfo": cpuinfo(4, "A processor", flags)}
    files |= {"proc/cmdline": f"{line}\n"}
    for n in range(4):
        files |= idle_states(n, *states) | {f"{CPU}/cpu{n}/{RESUME}": "0\n"}
    return write(root, files)


def test_states_that_take_longer_than_a_shallow_halt_are_disabled_on_hot_cpus(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    found = IdleStates().assess(host(root, 3))
    assert (found.state, found.value, found.wanted) == ("improve", "down to C6, 133 µs", "at most 2 µs")
    assert disabled(plan(root, "idle-states")) == ["cpu3/cpuidle/state2", "cpu3/cpuidle/state3"]


def test_the_accepted_latency_can_be_said(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    assert disabled(plan(root, "idle-states=10")) == ["cpu3/cpuidle/state3"]
    assert disabled(plan(root, "idle-states=0")) == [f"cpu3/cpuidle/state{n}" for n in (1, 2, 3)]
    assert not plan(root, "idle-states=133").changes
    for wrong in ("deep", "-1", "1.5"):
        with pytest.raises(UsageError):
            plan(root, f"idle-states={wrong}")


def test_a_cpu_keeps_its_first_state_at_every_cost(tmp_path: Path) -> None:
    root = machine(tmp_path, ("WFI", 5), ("cpu-sleep", 400))
    assert disabled(plan(root, "idle-states=0")) == ["cpu3/cpuidle/state1"]


def test_states_that_are_disabled_already_are_fine(tmp_path: Path) -> None:
    root = write(machine(tmp_path, *INTEL), idle_states(3, *INTEL, disabled=(2, 3)))
    found = IdleStates().assess(host(root, 3))
    assert (found.state, found.reason) == ("ok", "the hot CPUs' deep states are disabled")
    assert not plan(root, "idle-states").changes


def test_the_drivers_own_bit_is_not_the_users(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    write(root, {f"{CPU}/cpu3/cpuidle/state2/disable": "2\n", f"{CPU}/cpu3/cpuidle/state3/disable": "3\n"})
    made = plan(root, "idle-states")
    assert [(c.kind, c.before, c.after) for c in made.changes] == [("idle-disable", "0", "1")]


def test_a_latency_limit_of_the_cpu_does_as_well(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    write(root, {f"{CPU}/cpu3/{RESUME}": "n/a\n"})
    assert IdleStates().assess(host(root, 3)).state == "ok"
    assert IdleStates().assess(host(root, 2, 3)).state == "improve"
    write(root, {f"{CPU}/cpu3/{RESUME}": "20\n"})
    assert IdleStates().assess(host(root, 3)).state == "improve"


def test_files_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    (root / CPU / "cpu3/cpuidle/state3/disable").unlink()
    write(root, {f"{CPU}/cpu3/cpuidle/state2/disable": "yes\n"})
    found = IdleStates().assess(host(root, 3))
    assert (found.state, "does not hold a number" in found.reason) == ("unavailable", True)
    assert not plan(root, "idle-states").changes


def test_no_idle_states_have_a_reason(tmp_path: Path) -> None:
    found = IdleStates().assess(host(machine(tmp_path / "polling", line="idle=poll quiet"), 3))
    assert (found.state, "idle=poll" in found.reason) == ("info", True)
    found = IdleStates().assess(host(machine(tmp_path / "guest", flags="fpu hypervisor"), 3))
    assert (found.state, found.only_host) == ("unavailable", True)
    found = IdleStates().assess(host(machine(tmp_path / "bare"), 3))
    assert (found.state, found.only_host) == ("unavailable", False)


def test_each_hot_cpus_own_limit(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    assert PmQosResume().assess(host(root, 3)).state == "info"
    made = plan(root, "pm-qos-resume")
    assert [(c.path, c.before, c.after, c.risk) for c in made.changes] == [
        (f"/{CPU}/cpu3/{RESUME}", "0", "n/a", "medium")
    ]
    assert [c.after for c in plan(root, "pm-qos-resume=20").changes] == ["20"]
    with pytest.raises(UsageError):
        plan(root, "pm-qos-resume=never")
    write(root, {f"{CPU}/cpu3/{RESUME}": "n/a\n"})
    found = PmQosResume().assess(host(root, 3))
    assert (found.state, found.value) == ("ok", "n/a (no latency accepted)")


def test_an_idle_sibling_of_a_hot_cpu_does_not_poll(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    for n in range(4):
        write(root, cpu_files(n, core=n // 2, siblings=(n & ~1, n | 1)))
    every = (0, 1, 2, 3)
    assert [c.path for c in plan(root, "pm-qos-resume", every).changes] == [f"/{CPU}/cpu{n}/{RESUME}" for n in (0, 2)]
    assert len(plan(root, "pm-qos-resume=20", every).changes) == 4
    assert {one.split("/")[0] for one in disabled(plan(root, "idle-states=0", every))} == {"cpu0", "cpu2"}
    assert {one.split("/")[0] for one in disabled(plan(root, "idle-states", every))} == {"cpu0", "cpu1", "cpu2", "cpu3"}


def test_a_recorded_host_has_no_device_to_hold(tmp_path: Path) -> None:
    root = machine(tmp_path, *INTEL)
    assert PmQosFd().assess(host(root, 3)).state == "info"
    assert "recorded" in plan(root, "pm-qos-fd").skipped[0].reason
    with pytest.raises(UsageError):
        plan(root, "pm-qos-fd=soon")


def test_a_guest_may_poll_before_it_halts(host_tree: Callable[[str], Path], tmp_path: Path) -> None:
    files = kernel("guest") | cpu_lists("0-1") | {"proc/cpuinfo": cpuinfo(2, "A processor", "fpu hypervisor")}
    parameter = "sys/module/haltpoll/parameters/guest_halt_poll_ns"
    files |= {f"{CPU}/cpuidle/current_governor": "haltpoll\n", parameter: "200000\n"}
    root = write(tmp_path, files)
    found = HaltPoll().assess(host(root, 1))
    assert (found.state, found.value) == ("info", "200000 ns")
    assert "haltpoll=NS" in plan(root, "haltpoll", hot=(1,)).skipped[0].reason
    assert [(c.path, c.before, c.after) for c in plan(root, "haltpoll=0", hot=(1,)).changes] == [
        (f"/{parameter}", "200000", "0")
    ]
    assert HaltPoll().assess(host(host_tree("server64"), 1)).state == "info"
