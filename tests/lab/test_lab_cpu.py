"""Clock, idle states, SMT and hotplug on a real kernel: applied, seen in what the kernel then does, and given back."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import placing
from tests.lab.machine import PROJECT, Guest, Machine
from tests.lab.placing import do

pytestmark = pytest.mark.lab

CPU = "/sys/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy3"
HIGHEST_KHZ, LOWEST_KHZ = 3_000_000, 1_200_000


def p_state(cpu: int) -> int:
    """(In the guest) what the frequency driver wrote to the register of one CPU: 0 is the fastest state, 3 the slowest
    (the bytes 0xE0 to 0xE3 of the lab's ACPI table)."""
    import os

    port = os.open("/dev/port", os.O_RDONLY)
    try:
        return os.pread(port, 1, 0xE0 + cpu)[0]
    finally:
        os.close(port)


def naps(cpu: int, count: int) -> list[int]:
    """(In the guest) which idle states one CPU entered while a task on it slept ``count`` times for 10 ms."""
    import os
    import time

    def used() -> list[int]:
        folder = f"/sys/devices/system/cpu/cpu{cpu}/cpuidle"
        return [int(open(f"{folder}/state{n}/usage").read()) for n in range(len(os.listdir(folder)))]

    os.sched_setaffinity(0, {cpu})
    # The first nap ends what the CPU was in before.
    time.sleep(0.01)
    before = used()
    for _ in range(count):
        time.sleep(0.01)
    return [now - then for now, then in zip(used(), before, strict=True)]


def naps_while_held(project: str, cpu: int, count: int) -> list[list[int]]:
    """(In the guest) the same while this process holds a latency limit for all CPUs, and after it let go."""
    import sys

    sys.path.insert(0, project)
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.change import Wanted
    from jitter_workshop.model.cpuset import CpuSet
    from jitter_workshop.tuning.context import Host
    from jitter_workshop.tuning.planning import plan_changes
    from jitter_workshop.tuning.setting_types.cpu import effective_limit
    from jitter_workshop.tuning.setting_types.kinds import kind_of
    from jitter_workshop.tuning.writer import HostWriter

    (change,) = plan_changes(Host(HostRoot(), CpuSet((3,))), [Wanted("pm-qos-fd", "10")]).changes
    kind, writer = kind_of(change.kind), HostWriter()
    kind.write(writer, change.path, change.after)
    limits = [effective_limit(change.path) or 0]
    held = naps(cpu, count)
    kind.write(writer, change.path, change.before)
    limits.append(effective_limit(change.path) or 0)
    return [held, naps(cpu, count), limits]


def settings_of(cpu: int) -> dict[str, str]:
    """(In the guest) what is set for one CPU by its own files."""
    import glob

    folder = f"/sys/devices/system/cpu/cpu{cpu}"
    files = [f"/sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_{name}" for name in ("governor", "min_freq")]
    files += [*glob.glob(f"{folder}/cpuidle/state*/disable"), f"{folder}/power/pm_qos_resume_latency_us"]
    return {path: open(path).read().strip() for path in files}


def applied(lab: Machine, hot: str, *ids: str) -> list[dict[str, Any]]:
    """Apply in the guest; every write must have been taken and read back."""
    made = do(lab, placing.apply, hot, list(ids))
    assert made["refused"] == {}
    assert made["skipped"] == {}
    return list(made["changes"])


def undone(lab: Machine, changes: list[dict[str, Any]]) -> None:
    assert do(lab, placing.undo, changes) == []


# Clock --------------------------------------------------------------------------------------------------------------


def test_the_governor_reaches_the_register(lab: Machine) -> None:
    with lab.unchanged():
        for governor, khz, register in (("performance", HIGHEST_KHZ, 0), ("powersave", LOWEST_KHZ, 3)):
            changes = applied(lab, "3", f"governor={governor}")
            assert [c["path"] for c in changes] == [f"{POLICY}/scaling_governor"]
            assert int(lab.read(f"{POLICY}/scaling_cur_freq")) == khz
            assert lab.call(p_state, 3) == register
            undone(lab, changes)


@pytest.mark.soak
def test_the_lowest_frequency_holds_against_the_governor(lab: Machine) -> None:
    with lab.unchanged():
        slow = applied(lab, "3", "governor=powersave")
        assert lab.call(p_state, 3) == 3
        changes = applied(lab, "3", "min-frequency")
        assert lab.call(p_state, 3) == 0
        assert int(lab.read(f"{POLICY}/scaling_cur_freq")) == HIGHEST_KHZ
        undone(lab, changes)
        assert lab.call(p_state, 3) == 3
        undone(lab, slow)


def test_a_tunable_that_this_machine_lacks_has_a_reason(lab: Machine) -> None:
    said = do(lab, placing.assess, "3", ["epp", "epb", "boost", "uncore-frequency", "haltpoll", "throttling", "smi"])
    assert all(state in ("unavailable", "info") and reason for state, reason in said.values()), said


# Idle states --------------------------------------------------------------------------------------------------------


def test_disabled_states_are_not_entered(lab: Machine) -> None:
    with lab.unchanged():
        assert do(lab, placing.assess, "3", ["idle-states"])["idle-states"][0] == "improve"
        changes = applied(lab, "3", "idle-states")
        assert [c["path"].split("/")[-2] for c in changes] == ["state2", "state3"]
        poll, c1, *deep = lab.call(naps, 3, 40)
        assert deep == [0, 0]
        assert poll + c1 >= 40
        assert sum(lab.call(naps, 1, 40)[2:]) > 0, "the other CPUs sleep as before"
        assert do(lab, placing.assess, "3", ["idle-states"])["idle-states"][0] == "ok"
        undone(lab, changes)
        assert sum(lab.call(naps, 3, 40)[2:]) > 0


def test_a_cpu_that_accepts_no_latency_polls(lab: Machine) -> None:
    with lab.unchanged():
        changes = applied(lab, "3", "pm-qos-resume")
        poll, *halts = lab.call(naps, 3, 40)
        assert halts == [0, 0, 0]
        assert poll >= 40
        assert do(lab, placing.assess, "3", ["idle-states"])["idle-states"][0] == "ok"
        undone(lab, changes)
        assert sum(lab.call(naps, 3, 40)[2:]) > 0


def test_a_held_limit_is_for_all_cpus_and_ends_with_its_holder(lab: Machine) -> None:
    source = f"{inspect.getsource(naps)}\n{inspect.getsource(naps_while_held)}"
    with lab.unchanged():
        held, after, limits = lab.call_source(source, "naps_while_held", PROJECT, 1, 40)
        assert held[2:] == [0, 0], "10 µs leave POLL and C1"
        assert sum(after[2:]) > 0
        assert limits == [10, 2_000_000_000]


# CPUs offline -------------------------------------------------------------------------------------------------------


class Bound:
    """A waiting task, an interrupt, and one whose driver has ideas of its own, all bound to CPU 3."""

    def __init__(self, lab: Machine) -> None:
        self.lab = lab
        self.device, self.queue = (interrupt(lab, name) for name in ("virtio1-config", "virtio1-input.0"))
        self.first = {path: lab.read(path) for path in (self.device, self.queue)}
        for path in self.first:
            lab.write(path, "3")
        source = f"{inspect.getsource(restless)}\nrestless(3)\n"
        self.task: Guest = lab.start([lab.python, "-I", "-S", "-c", source])
        self.task.wait_for(b"bound")

    def where(self) -> tuple[str, list[int]]:
        """The interrupt's and the task's CPUs."""
        return self.lab.read(self.device), do(self.lab, placing.affinity, self.task.pid)

    def end(self) -> None:
        self.task.signal(9)
        self.task.wait()
        for path, cpus in self.first.items():
            self.lab.write(path, cpus)


def interrupt(lab: Machine, name: str) -> str:
    """The file with the affinity of the interrupt of this name."""
    lines = lab.read("/proc/interrupts").splitlines()
    number = next(line.split(":")[0].strip() for line in lines if line.endswith(f" {name}"))
    return f"/proc/irq/{number}/smp_affinity_list"


def restless(cpu: int) -> None:
    """(In the guest) a task of one CPU that wakes all the time."""
    import os
    import time

    os.sched_setaffinity(0, {cpu})
    print("bound", flush=True)
    while True:
        time.sleep(0.002)


def freed(pid: int) -> list[int]:
    """(In the guest) the CPUs of a task once they are more than one."""
    import os
    import time

    while len(os.sched_getaffinity(pid)) < 2:
        time.sleep(0.01)
    return sorted(os.sched_getaffinity(pid))


@pytest.fixture
def bound(lab: Machine) -> Iterator[Bound]:
    everything = Bound(lab)
    yield everything
    everything.end()


@pytest.mark.soak
def test_the_kernel_itself_forgets_bound_interrupts_and_tasks(lab: Machine, bound: Bound) -> None:
    """These are changes of their own because nothing else brings them back."""
    lab.write(f"{CPU}/cpu3/online", "0")
    assert lab.call(freed, bound.task.pid) == [0, 1, 2]
    lab.write(f"{CPU}/cpu3/online", "1")
    irq, task = bound.where()
    assert irq != "3"
    assert task != [3]
    assert lab.read(bound.queue) != "3"


def test_a_cycle_moves_bound_interrupts_and_tasks_and_moves_them_back(lab: Machine, bound: Bound) -> None:
    with lab.unchanged():
        changes = applied(lab, "3", "hotplug")
        assert {"cpu-list", "irq-across", "affinity", "cpu-cycle"} <= {c["kind"] for c in changes}
        assert lab.read(f"{CPU}/online") == "0-3"
        # CPU 2 shares a core with the hot one.
        assert bound.where() == ("0-1", [0, 1])
        undone(lab, changes)
        assert bound.where() == ("3", [3])
        assert lab.read(bound.queue) == "3"


def test_a_cpus_own_settings_survive_a_cycle(lab: Machine) -> None:
    with lab.unchanged():
        changes = applied(lab, "3", "governor", "min-frequency", "idle-states", "pm-qos-resume")
        before = lab.call(settings_of, 3)
        cycle = applied(lab, "3", "hotplug")
        assert lab.call(settings_of, 3) == before
        undone(lab, cycle)
        undone(lab, changes)


def test_siblings_go_offline_with_nothing_bound_to_them(lab: Machine, bound: Bound) -> None:
    with lab.unchanged():
        assert do(lab, placing.assess, "2", ["smt"])["smt"][0] == "improve"
        changes = applied(lab, "2", "smt")
        assert lab.read(f"{CPU}/online") == "0-2"
        assert bound.where() == ("0-1", [0, 1])
        assert do(lab, placing.assess, "2", ["smt"])["smt"][0] != "improve"
        undone(lab, changes)
        assert lab.read(f"{CPU}/online") == "0-3"
        assert bound.where() == ("3", [3])


@pytest.mark.soak
def test_smt_is_switched_for_all_cores(lab: Machine, bound: Bound) -> None:
    with lab.unchanged():
        changes = applied(lab, "2", "smt=off")
        assert lab.read(f"{CPU}/online") == "0,2"
        assert lab.read(f"{CPU}/smt/active") == "0"
        assert bound.where() == ("0", [0])
        undone(lab, changes)
        assert lab.read(f"{CPU}/online") == "0-3"
        assert bound.where() == ("3", [3])


@pytest.mark.soak
def test_the_verbs_apply_and_restore_it_all(lab: Machine, bound: Bound) -> None:
    with lab.unchanged():
        ids = ("governor", "min-frequency", "idle-states", "pm-qos-resume", "smt", "hotplug")
        done = lab.workshop("apply", *ids, "--cpus", "2", "--yes", "--json")
        assert (done.code, done.json()["refused"]) == (0, []), done
        assert lab.read(f"{CPU}/online") == "0-2"
        assert bound.where() == ("0-1", [0, 1])
        done = lab.workshop("restore", "--json")
        assert (done.code, done.json()["left_alone"]) == (0, []), done
        assert bound.where() == ("3", [3])
        assert lab.read(bound.queue) == "3"


# Clock source -------------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_the_clock_source_is_judged_by_the_offer_of_the_kernel(lab: Machine) -> None:
    path = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    first = lab.read(path)
    lab.write(path, "hpet")
    try:
        made = do(lab, placing.apply, "3", ["clock-source"])
        steady = {"constant_tsc", "nonstop_tsc"} <= set(lab.read("/proc/cpuinfo").split())
        assert [c["after"] for c in made["changes"]] == (["tsc"] if steady else [])
        assert lab.read(path) == ("tsc" if steady else "hpet")
        undone(lab, made["changes"])
        assert lab.read(path) == "hpet"
    finally:
        lab.write(path, first)
