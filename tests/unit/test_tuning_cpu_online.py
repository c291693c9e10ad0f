"""The tunables that take CPUs offline, and what that would break."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning import planning
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.cpu import CYCLED
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.cpu_online import Hotplug, Smt
from jitter_workshop.tuning.writer import HostWriter
from tests import hosttrees
from tests.hosttrees import CPU, cpu_files, cpu_lists, cpuinfo, interrupts, irq, kernel, task, write

SETS = "sys/fs/cgroup/cpuset"


def host(root: Path, *hot: int) -> Host:
    return Host(HostRoot(root), CpuSet(hot))


def assess(root: Path, *hot: int) -> Assessment:
    return Smt().assess(host(root, *hot))


def plan(root: Path, word: str, *hot: int) -> Plan:
    name, equals, value = word.partition("=")
    return planning.plan_changes(host(root, *hot), [Wanted(name, value if equals else None)])


def writes(made: Plan) -> list[tuple[str, str, str]]:
    return [(change.path.removeprefix(f"/{CPU}/"), change.before, change.after) for change in made.changes]


def machine(root: Path, *, isolated: str = "", flags: str = "fpu", control: str = "on") -> Path:
    """Two cores with two threads each: 0 and 2 share one, 1 and 3 the other; CPU 0 cannot go offline."""
    files = kernel("box") | cpu_lists("0-3", isolated=isolated) | {"proc/cpuinfo": cpuinfo(4, "A processor", flags)}
    files |= {f"{CPU}/smt/control": f"{control}\n", f"{CPU}/smt/active": "1\n"}
    for n in range(4):
        files |= cpu_files(n, core=n % 2, siblings=(n % 2, n % 2 + 2), online=None if n == 0 else True)
    return write(root, files)


# Siblings ---------------------------------------------------------------------------------------------------------


def test_the_siblings_of_hot_cpus_go_offline(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = assess(root, 1)
    assert (found.state, found.value, found.wanted) == ("improve", "in use", "idle")
    assert writes(plan(root, "smt", 1)) == [("cpu3/online", "1", "0")]


def test_an_isolated_sibling_is_idle_already(tmp_path: Path) -> None:
    assert assess(machine(tmp_path, isolated="1,3"), 1).state == "ok"


def test_both_threads_of_the_only_hot_core_are_a_matter_of_choice_where_there_is_another_core(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = assess(root, 1, 3)
    assert (found.state, found.fix) == ("info", "")
    assert not plan(root, "smt", 1, 3).changes
    files = kernel("box") | cpu_lists("0-2")
    for n in range(3):
        files |= cpu_files(n, core=min(n, 1), siblings=(0,) if n == 0 else (1, 2), online=None if n == 0 else True)
    assert assess(write(tmp_path / "one", files), 1, 2).fix == ""
    for n in (3, 4):
        files |= cpu_files(n, core=n, siblings=(n,), online=True)
    assert assess(write(tmp_path / "more", files | cpu_lists("0-4")), 1, 2).fix


def test_the_last_housekeeping_cpu_stays(tmp_path: Path) -> None:
    files = kernel("box") | cpu_lists("0-1") | cpu_files(0, siblings=(0, 1), online=True)
    root = write(tmp_path, files | cpu_files(1, siblings=(0, 1), online=True))
    assert assess(root, 1).state == "info"
    assert "no CPU would be left" in plan(root, "smt", 1).skipped[0].reason


def test_a_cpu_without_a_switch_stays(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = assess(root, 2)
    assert (found.state, "CPU 0 cannot be taken offline" in found.reason) == ("info", True)
    assert not plan(root, "smt", 2).changes


def test_cores_with_one_thread_have_no_sibling(tmp_path: Path) -> None:
    assert assess(hosttrees.small(tmp_path / "box", 3), 2).state == "ok"
    found = assess(hosttrees.guest(tmp_path / "guest"), 1)
    assert (found.state, found.only_host) == ("info", True)


# The switch for all -------------------------------------------------------------------------------------------------


def test_smt_is_switched_off_for_all_cores_on_demand(tmp_path: Path) -> None:
    root = machine(tmp_path)
    assert writes(plan(root, "smt=off", 1)) == [("smt/control", "on", "off")]
    with pytest.raises(UsageError):
        plan(root, "smt=on", 1)


@pytest.mark.parametrize(
    ("hot", "reason"),
    [
        ((3,), "CPU 3 is hot and also the second thread of its core: it would go offline"),
        ((2, 3), "CPU 2-3 are hot and also the second threads of their cores: they would go offline"),
        ((0, 1), "no CPU would be left"),
    ],
)
def test_smt_stays_on_if_off_would_take_needed_cpus(tmp_path: Path, hot: tuple[int, ...], reason: str) -> None:
    assert reason in plan(machine(tmp_path), "smt=off", *hot).skipped[0].reason


@pytest.mark.parametrize("control", ["forceoff", "notsupported", "notimplemented"])
def test_smt_that_cannot_be_switched_says_why(tmp_path: Path, control: str) -> None:
    assert control in plan(machine(tmp_path, control=control), "smt=off", 1).skipped[0].reason


def test_switching_smt_on_again_must_bring_back_only_the_cpus_that_it_took(tmp_path: Path) -> None:
    root = write(machine(tmp_path), cpu_lists("0-2", possible="0-3", offline="3") | {f"{CPU}/cpu3/online": "0\n"})
    assert "CPU 3 are offline already" in plan(root, "smt=off", 1).skipped[0].reason


# Hotplug ------------------------------------------------------------------------------------------------------------


def test_each_hot_cpu_goes_and_comes_back(tmp_path: Path) -> None:
    root = machine(tmp_path)
    made = plan(root, "hotplug", 2, 3)
    assert writes(made) == [("cpu2/online", "1", CYCLED), ("cpu3/online", "1", CYCLED)]
    for change in made.changes:
        kind_of(change.kind).write(HostWriter(root), change.path, change.after)
    assert (root / CPU / "cpu2/online").read_text().strip() == "1"
    assert not plan(root, "hotplug", 2, 3).changes
    for change in reversed(made.changes):
        kind_of(change.kind).write(HostWriter(root), change.path, change.before)
    assert writes(plan(root, "hotplug", 2, 3)) == writes(made)


def test_some_cpus_cannot_go(tmp_path: Path) -> None:
    root = machine(tmp_path)
    assert Hotplug().assess(host(root, 3)).state == "info"
    assert Hotplug().assess(host(root, 0)).state == "unavailable"
    assert [path for path, _, _ in writes(plan(root, "hotplug", 0, 1))] == ["cpu1/online"]
    assert "every CPU is hot" in plan(root, "hotplug", 0, 1, 2, 3).skipped[0].reason


def test_an_isolated_partition_would_break(tmp_path: Path) -> None:
    files = hosttrees.cgroup2("/", {"cgroup.controllers": "cpuset cpu\n", "cpuset.cpus.isolated": "3\n"})
    root = write(machine(tmp_path), files)
    assert "would no longer work" in plan(root, "hotplug", 3).skipped[0].reason
    assert len(plan(root, "hotplug", 2).changes) == 1


# Things that would break-----------------------------------------------------------------------------------------------


def test_interrupts_that_may_arrive_nowhere_else_move_first(tmp_path: Path) -> None:
    table = {
        "30": ((1, 0, 0, 0), "PCI-MSI   0-edge      eth0"),
        "31": ((1, 0, 0, 0), "PCI-MSI   1-edge      eth1"),
        "32": ((1, 0, 0, 0), "PCI-MSI   2-edge      nvme0q3"),
        "33": ((1, 0, 0, 0), "PCI-MSI   3-edge      eth2"),
    }
    files = {"proc/interrupts": interrupts(range(4), table)}
    files |= irq(30, "3") | irq(31, "0-3") | irq(32, "3") | irq(33, "2-3")
    for number, device in ((30, "eth0"), (31, "eth1"), (32, "nvme0q3"), (33, "eth2")):
        files[f"proc/irq/{number}/{device}/.keep"] = ""
    root = write(machine(tmp_path), files)
    moved = [(c.path, c.before, c.after) for c in plan(root, "hotplug", 3).changes if c.kind == "cpu-list"]
    assert moved == [("/proc/irq/30/smp_affinity_list", "3", "0,2")]
    moved = [(c.path, c.before, c.after) for c in plan(root, "hotplug", 2, 3).changes if c.kind == "cpu-list"]
    assert moved == [("/proc/irq/30/smp_affinity_list", "3", "0-1"), ("/proc/irq/33/smp_affinity_list", "2-3", "0-1")]


def test_a_setting_that_a_driver_sets_again_is_noted_in_every_place(tmp_path: Path) -> None:
    table = {
        "40": ((1, 0, 0, 0), "PCI-MSI   0-edge      virtio1-input.0"),
        "41": ((1, 0, 0, 0), "PCI-MSI   1-edge      virtio1-output.0"),
        "42": ((1, 0, 0, 0), "PCI-MSI   2-edge      virtio0-req.3"),
    }
    files = {"proc/interrupts": interrupts(range(4), table)} | irq(40, "3") | irq(41, "1") | irq(42, "3")
    for device, driver in (("eth0", "virtio_net"), ("eth1", "e1000e")):
        folder = f"sys/class/net/{device}"
        files |= {f"{folder}/device/uevent": f"DRIVER={driver}\n", f"{folder}/queues/tx-0/xps_cpus": "3\n"}
        files |= {f"{folder}/queues/rx-0/rps_cpus": "0\n"}
    made = plan(write(machine(tmp_path), files), "hotplug", 3)
    # All is noted before the first write; the driver's own are written once more behind the cycle.
    assert [(c.kind, c.path, c.before, c.after) for c in made.changes] == [
        ("cpu-cycle", f"/{CPU}/cpu3/online", "1", CYCLED),
        ("irq-across", "/proc/irq/40/smp_affinity_list", "3", "0,2"),
        ("irq-across", "/proc/irq/41/smp_affinity_list", "1", "1"),
        ("mask-across", "/sys/class/net/eth0/queues/tx-0/xps_cpus", "3", "3"),
    ]


def test_tasks_that_may_run_nowhere_else_move_first(tmp_path: Path) -> None:
    files = task(50, "pinned", allowed="3", start=700)
    files |= task(51, "anywhere", allowed="0-3") | task(52, "two", allowed="2-3")
    files |= task(53, "ksoftirqd/3", allowed="3", flags=0x0420_0040)
    files |= task(54, "irq/30-eth0", allowed="3", flags=0x0020_0040)
    root = write(machine(tmp_path), files)
    made = plan(root, "smt", 1)
    assert [(c.kind, c.path, c.before, c.after) for c in made.changes] == [
        ("affinity", "sched_setaffinity(50@700)", "3", "0,2"),
        ("number", f"/{CPU}/cpu3/online", "1", "0"),
    ]
    assert "Host" not in made.changes[0].why
    assert "'pinned'" in made.changes[0].why


def version1(sets: dict[str, str]) -> dict[str, str]:
    """Version 1 cpusets by folder below the mount."""
    files = {
        "proc/self/cgroup": "3:cpuset:/\n",
        "proc/self/mountinfo": "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n",
        f"{SETS}/cpuset.cpus": "0-3\n",
        f"{SETS}/tasks": "",
    }
    for folder, cpus in sets.items():
        files |= {f"{SETS}/{folder}/cpuset.cpus": f"{cpus}\n", f"{SETS}/{folder}/tasks": ""}
    return files


def test_version_1_sets_are_narrowed_from_the_inside_out(tmp_path: Path) -> None:
    files = version1({"jobs": "0-3", "jobs/a": "2-3", "other": "0-1"})
    files[f"{SETS}/jobs/a/tasks"] = "60\n61\n62\n"
    files |= task(60, "own", allowed="3", start=9) | task(61, "as the set", allowed="2-3")
    root = write(machine(tmp_path), files)
    made = plan(root, "hotplug", 3)
    assert [(c.kind, c.path, c.before, c.after) for c in made.changes] == [
        ("cpu-list", f"/{SETS}/jobs/a/cpuset.cpus", "2-3", "2"),
        ("cpu-list", f"/{SETS}/jobs/cpuset.cpus", "0-3", "0-2"),
        ("affinity-across", "sched_setaffinity(60@9)", "3", "2"),
        ("cpu-cycle", f"/{CPU}/cpu3/online", "1", CYCLED),
    ]


@pytest.mark.parametrize(
    ("sets", "reason"),
    [({"only": "3"}, "no other CPU"), ({"a/b/c/d/e/f/g": "2-3"}, "first remove these CPUs")],
)
def test_a_version_1_set_that_cannot_be_narrowed_stops_it(tmp_path: Path, sets: dict[str, str], reason: str) -> None:
    made = plan(write(machine(tmp_path), version1(sets)), "hotplug", 3)
    assert not made.changes
    assert reason in made.skipped[0].reason


def test_without_siblings_nothing_is_planned(tmp_path: Path) -> None:
    """Nor is what a driver would put elsewhere if a CPU went: none goes."""
    hosttrees.small(tmp_path, 4)
    rows = {"24": ((5, 0, 0, 0), "PCI-MSIX-0000:00:03.0   0-edge      virtio0-input.0")}
    write(tmp_path, irq(24, "0-3") | {"proc/interrupts": interrupts(range(4), rows)})
    write(tmp_path, hosttrees.network_card("eth0", rps=("0",), xps=("f",)))
    write(tmp_path, {"sys/class/net/eth0/device/uevent": "DRIVER=virtio_net\n"})
    assert assess(tmp_path, 3).state == "ok"
    made = plan(tmp_path, "smt", 3)
    assert made.changes == ()
    assert [one.reason for one in made.skipped] == ["nothing to do: the setting has this value already"]


def test_which_cpus_share_a_core_may_be_hidden(tmp_path: Path) -> None:
    write(tmp_path, kernel("box") | cpu_lists("0-3") | {"proc/cpuinfo": cpuinfo(4, "A processor")})
    told = assess(tmp_path, 3)
    assert (told.state, told.reason) == ("unavailable", "this host does not show which CPUs share a core")
    assert plan(tmp_path, "smt", 3).changes == ()


# Whole cores --------------------------------------------------------------------------------------------------------


def cores(root: Path, count: int = 4, *, isolated: str = "", partition: str = "") -> Path:
    """Cores with two threads each: 0 and 1 share one, 2 and 3 the next. Every CPU but the first can go offline."""
    threads = range(2 * count)
    files = kernel("box") | cpu_lists(f"0-{threads[-1]}", isolated=isolated)
    files |= {"proc/cpuinfo": cpuinfo(2 * count, "A processor", "fpu")}
    files |= {f"{CPU}/smt/control": "on\n", f"{CPU}/smt/active": "1\n"}
    files |= {"sys/fs/cgroup/cpuset.cpus.isolated": f"{partition}\n"} if partition else {}
    for n in threads:
        files |= cpu_files(n, core=n // 2, siblings=(n & ~1, n | 1), online=None if n == 0 else True)
    return write(root, files)


def test_of_whole_hot_cores_the_first_threads_stay_online(tmp_path: Path) -> None:
    root = cores(tmp_path)
    found = assess(root, 2, 3, 4, 5)
    assert (found.state, found.value, "CPU 3,5" in found.reason) == ("improve", "in use", True)
    assert writes(plan(root, "smt", 2, 3, 4, 5)) == [("cpu3/online", "1", "0"), ("cpu5/online", "1", "0")]
    assert writes(plan(root, "smt=off", 2, 3, 4, 5)) == [("smt/control", "on", "off")]


def test_whole_hot_cores_that_are_isolated_keep_their_threads(tmp_path: Path) -> None:
    assert assess(cores(tmp_path / "boot", isolated="2-5"), 2, 3, 4, 5).state == "ok"
    root = cores(tmp_path / "partition", partition="2-5")
    assert assess(root, 2, 3, 4, 5).state == "ok"
    for word in ("smt", "smt=off"):
        made = plan(root, word, 2, 3, 4, 5)
        assert not made.changes
        assert "already belongs to an isolated cpuset" in made.skipped[0].reason


def test_without_its_idle_siblings_a_core_is_isolated_by_its_first_thread(tmp_path: Path) -> None:
    groups = {
        "cgroup.controllers": "cpuset cpu\n",
        "cgroup.subtree_control": "cpuset\n",
        "cpuset.cpus.effective": "0-7\n",
    }
    root = write(cores(tmp_path), hosttrees.cgroup2(files=groups))
    wanted = [Wanted("smt"), Wanted("isolation")]
    alone = planning.plan_changes(host(root, 2, 3, 4, 5), wanted[1:])
    both = planning.plan_changes(host(root, 2, 3, 4, 5), wanted)
    listed = [[c.after for c in made.changes if c.path.endswith("cpuset.cpus")] for made in (alone, both)]
    assert listed == [["2-5"], ["2,4"]]
