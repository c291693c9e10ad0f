"""Hot CPUs, their siblings and housekeeping CPUs: which are chosen on hosts of many shapes, what is said of it, and
what is kept off which of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.bench.placement import Wish, choose_cpus
from jitter_workshop.flow.host_ops.hotcpus import KEPT_FREE, SIBLINGS, choose_hot
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes
from jitter_workshop.tuning.tunables.registry import find_tunable
from tests.hosttrees import (
    CPU,
    cgroup2,
    cpu_files,
    cpu_lists,
    interrupts,
    irq,
    kernel,
    network_card,
    ranges,
    task,
    write,
)

KTHREAD = 0x0020_0000
Core = tuple[int, ...]

UNIFORM = (((0,), (1,), (2,), (3,)),)
NEIGHBOURS = (((0, 1), (2, 3)),)
FAR_APART = (((0, 2), (1, 3)),)
TWO_BY_TWO = (((0, 1),), ((2, 3),))
TWO_BY_FOUR = (((0, 1), (2, 3)), ((4, 5), (6, 7)))
TWO_BY_FOUR_FAR = (((0, 4), (1, 5)), ((2, 6), (3, 7)))
TWO_BY_EIGHT = tuple(tuple((c, c + 8) for c in range(n * 4, n * 4 + 4)) for n in range(2))
SERVER = tuple(tuple((c, c + 16) for c in range(n * 8, n * 8 + 8)) for n in range(2))
ONE_CORE = (((0, 1),),)


def machine(
    root: Path, nodes: Sequence[Sequence[Core]], caches: Sequence[Core] = (), more: dict[str, str] | None = None
) -> HostRoot:
    """A host of ``nodes``, each the threads of its cores. ``caches``: the last-level caches; one a node without."""
    files: dict[str, str] = kernel("box")
    count = sum(len(core) for node in nodes for core in node)
    files |= cpu_lists(f"0-{count - 1}" if count > 1 else "0")
    for number, node in enumerate(nodes):
        mine = sorted(cpu for core in node for cpu in core)
        files[f"sys/devices/system/node/node{number}/cpulist"] = f"{ranges(mine)}\n"
        for index, core in enumerate(node):
            for cpu in core:
                shared = next((cache for cache in caches if cpu in cache), tuple(mine))
                files |= cpu_files(
                    cpu,
                    package=number,
                    core=index,
                    siblings=core,
                    package_cpus=mine,
                    caches=[(1, "Data", "32K", ranges(core)), (3, "Unified", "8M", ranges(shared))],
                    online=None if cpu == 0 else True,
                )
    return HostRoot(write(root, files | (more or {})))


def looked_at(root: HostRoot, cpus: str | None = None) -> tuple[Host, str, str]:
    """The host with its hot CPUs, why these, and what is noted of them."""
    topology = read_topology(root)
    hot = choose_hot(root, cpus, topology)
    return Host(root, hot.cpus, topology), hot.why, hot.note


def planned(host: Host, *names: str) -> list[Change]:
    return list(plan_changes(host, [Wanted(name) for name in names]).changes)


@pytest.mark.parametrize(
    ("nodes", "caches", "threads", "idle", "rest", "said", "noted"),
    [
        ((((0,),),), (), "0", "", "", "it is the only CPU", "every online CPU is hot"),
        ((((0,), (1,)),), (), "1", "", "0", "CPU 0 is left to the ring's producer and to other tasks", ""),
        (
            ONE_CORE,
            (),
            "1",
            "",
            "0",
            "which may use CPU 1 until it is isolated",
            "tasks on CPU 0 slow this hot CPU down",
        ),
        (UNIFORM, (), "1-3", "", "0", "cores that share a cache, away from CPU 0", ""),
        (
            NEIGHBOURS,
            (),
            "2-3",
            "",
            "0-1",
            "which slow each other down: the other core is left for other work, away from CPU 0",
            "",
        ),
        (
            FAR_APART,
            (),
            "1,3",
            "",
            "0,2",
            "which slow each other down: the other core is left for other work, away from CPU 0",
            "",
        ),
        (
            TWO_BY_TWO,
            (),
            "2-3",
            "",
            "0-1",
            "which slow each other down: the other cores are on other nodes, away from CPU 0",
            "",
        ),
        (TWO_BY_FOUR, (), "4,6", "5,7", "0-3", "cores that share a cache, away from CPU 0", ""),
        (TWO_BY_FOUR_FAR, (), "2-3", "6-7", "0-1,4-5", "cores that share a cache, away from CPU 0", ""),
        (TWO_BY_EIGHT, (), "1-3", "9-11", "0,4-8,12-15", "cores that share a cache, away from CPU 0", ""),
        (SERVER, (), "1-3", "17-19", "0,4-16,20-31", "cores that share a cache, away from CPU 0", ""),
        (
            (tuple((c,) for c in range(8)),),
            ((0, 1, 2, 3), (4, 5, 6, 7)),
            "1-3",
            "",
            "0,4-7",
            "cores that share a cache, away from CPU 0",
            "",
        ),
        (
            (((0,), (1,), (2,), (3,)),),
            ((0,), (1,), (2,), (3,)),
            "1-3",
            "",
            "0",
            "cores without a common cache, away from CPU 0",
            "",
        ),
        (
            (((0, 1), (2, 3), (4, 5), (6, 7)),),
            ((0, 1, 2, 3), (4, 5, 6, 7)),
            "2,4,6",
            "3,5,7",
            "0-1",
            "cores of which some share a cache, away from CPU 0",
            "",
        ),
        ((((0,),), ((1,),), ((2,),)), (), "1-2", "", "0", "cores of the memory nodes 1 and 2, away from CPU 0", ""),
        ((((0,), (1,)), ((2,), (3,))), (), "2-3", "", "0-1", "cores that share a cache, away from CPU 0", ""),
    ],
)
def test_the_choice_of_cpus_and_its_words_agree(
    nodes: Sequence[Sequence[Core]],
    caches: Sequence[Core],
    threads: str,
    idle: str,
    rest: str,
    said: str,
    noted: str,
    tmp_path: Path,
) -> None:
    host, why, note = looked_at(machine(tmp_path, nodes, caches))
    assert (str(host.hot - host.hot_siblings), str(host.hot_siblings)) == (threads, idle)
    assert (str(host.housekeeping), str(host.clear_siblings)) == (rest, "")
    assert said in why
    assert (noted in note) if noted else not note
    assert bool(host.housekeeping & host.siblings) == ("sibling" in note)


CCX = tuple(tuple((core, core + 8) for core in range(first, first + 4)) for first in (0, 4))
"""An AMD processor of two core complexes (CCX): four cores of two threads each share a last-level cache."""


@pytest.mark.parametrize(
    ("cores", "caches", "hot", "idle", "ring", "rest", "smt"),
    [
        ([(0, 1)], (), "1", "", (0, 1), "0", "in use"),
        ([(0,), (1,)], (), "1", "", (0, 1), "0", "idle"),
        ([(0, 1), (2, 3)], (), "2-3", "", (2, 3), "0-1", "shared"),
        ([(0, 2), (1, 3)], (), "1,3", "", (1, 3), "0,2", "shared"),
        ([(0, 1), (2,)], (), "1-2", "", (1, 2), "0", "in use"),
        ([(0, 1), (2, 3), (4, 5), (6, 7)], (), "2-7", "3,5,7", (2, 4), "0-1", "in use"),
        ([*CCX[0], *CCX[1]], [sum(ccx, ()) for ccx in CCX], "1-3,9-11", "9-11", (1, 2), "0,4-8,12-15", "in use"),
    ],
    ids=["1x2", "2x1", "2x2", "2x2 thread by thread", "2x2 one sibling offline", "4x2", "two CCX"],
)
def test_the_choice_on_small_machines_and_on_core_complexes(
    cores: Sequence[Core],
    caches: Sequence[Core],
    hot: str,
    idle: str,
    ring: tuple[int, int],
    rest: str,
    smt: str,
    tmp_path: Path,
) -> None:
    root = machine(tmp_path, (cores,), caches)
    host, _, _ = looked_at(root)
    assert (str(host.hot), str(host.hot_siblings), str(host.housekeeping)) == (hot, idle, rest)
    placed = choose_cpus(host.topology, Wish())
    assert (placed.producer, placed.accumulator) == ring
    assert not CpuSet.of(ring) & host.hot_siblings
    assert find_tunable("smt").assess(host).value == smt
    assert choose_cpus(host.topology, Wish(workload="spin")).sampler in host.hot - host.hot_siblings


def test_performance_cores_are_hot_before_efficiency_cores(tmp_path: Path) -> None:
    cores = (*((c, c + 1) for c in range(0, 8, 2)), *((c,) for c in range(8, 16)))
    kinds = {"sys/devices/cpu_core/cpus": "0-7\n", "sys/devices/cpu_atom/cpus": "8-15\n"}
    host, why, _ = looked_at(machine(tmp_path, (cores,), more=kinds))
    assert (str(host.hot), str(host.hot_siblings), str(host.housekeeping)) == ("2-7", "3,5,7", "0-1,8-15")
    assert "cores that share a cache, " in why
    assert ", away from CPU 0" in why


def test_cpus_that_show_no_topology_are_taken_for_cores_of_their_own(tmp_path: Path) -> None:
    root = HostRoot(write(tmp_path, kernel("box") | cpu_lists("0-3")))
    host, why, note = looked_at(root)
    assert "cores of one package, " in why, "of caches nothing is known"
    assert ", away from CPU 0" in why
    assert (str(host.hot), str(host.siblings), str(host.housekeeping), note) == ("1-3", "", "0", "")


@pytest.mark.parametrize(
    ("asked", "siblings", "rest", "crowded"),
    [("4", "5", "0-3,6-7", False), ("0,2,4,6", "1,3,5,7", "1,3,5,7", True), ("0-7", "", "", False)],
)
def test_every_online_cpu_is_one_of_three(asked: str, siblings: str, rest: str, crowded: bool, tmp_path: Path) -> None:
    host, _, note = looked_at(machine(tmp_path, TWO_BY_FOUR), asked)
    beside = bool(host.housekeeping & host.siblings)
    assert (str(host.siblings), str(host.housekeeping), beside) == (
        siblings,
        rest,
        crowded,
    )
    assert host.hot | host.clear_siblings | host.housekeeping == host.online
    assert len(host.hot) + len(host.clear_siblings) + len(host.housekeeping) == len(host.online)
    assert (SIBLINGS in note) == crowded
    assert (KEPT_FREE in note) == bool(host.clear_siblings)


def test_an_offline_sibling_is_none(tmp_path: Path) -> None:
    root = machine(tmp_path, TWO_BY_FOUR, more={f"{CPU}/online": "0-4,6-7\n", f"{CPU}/cpu5/online": "0\n"})
    host, _, _ = looked_at(root, "4")
    assert (str(host.siblings), str(host.housekeeping)) == ("", "0-3,6-7")


def busy(tmp_path: Path) -> Host:
    """Two nodes of two cores with two threads each; CPU 4 is hot, CPU 5 its sibling; everything may run anywhere, on
    the node of CPU 4, or on CPU 4 and 5 alone."""
    table = {str(n): ((1,) * 8, f"PCI-MSI   {n}-edge      eth{n}") for n in (30, 31, 32)}
    work = "sys/devices/virtual/workqueue"
    files = {"proc/interrupts": interrupts(range(8), table), "proc/irq/default_smp_affinity": "ff\n"}
    for number, affinity in ((30, "0-7"), (31, "4-7"), (32, "5")):
        files |= irq(number, affinity) | {f"proc/irq/{number}/eth{number}/.keep": ""}
    files |= {f"{work}/cpumask": "ff\n", f"{work}/writeback/cpumask": "30\n"}
    files |= network_card("eth0", rps=("20", "f0"), xps=("30",))
    files |= {"proc/sys/kernel/watchdog_cpumask": "0-7\n", "proc/sys/kernel/watchdog": "1\n"}
    files |= {"proc/sys/kernel/soft_watchdog": "1\n", "proc/sys/kernel/nmi_watchdog": "0\n"}
    for tid, name, allowed in (
        (50, "kswapd0", "0-3"),
        (51, "kswapd1", "4-7"),
        (52, "kcompactd1", "4-7"),
        (53, "x", "4"),
    ):
        files |= task(tid, name, flags=KTHREAD, allowed=allowed)
    return looked_at(machine(tmp_path, TWO_BY_FOUR, more=files), "4")[0]


def test_work_is_kept_off_siblings_and_stays_on_its_node(tmp_path: Path) -> None:
    host = busy(tmp_path)
    made = planned(host, "irq-affinity", "workqueue-mask", "rps-xps", "watchdogs", "kernel-threads")
    assert {c.path: c.after for c in made} == {
        "/proc/irq/default_smp_affinity": "cf",
        "/proc/irq/30/smp_affinity_list": "0-3,6-7",
        "/proc/irq/31/smp_affinity_list": "6-7",
        "/proc/irq/32/smp_affinity_list": "6-7",
        "/sys/devices/virtual/workqueue/cpumask": "cf",
        "/sys/devices/virtual/workqueue/writeback/cpumask": "c0",
        "/sys/class/net/eth0/queues/rx-0/rps_cpus": "c0",
        "/sys/class/net/eth0/queues/rx-1/rps_cpus": "c0",
        "/sys/class/net/eth0/queues/tx-0/xps_cpus": "c0",
        "/proc/sys/kernel/watchdog_cpumask": "0-3,6-7",
        "sched_setaffinity(51@100)": "6-7",
        "sched_setaffinity(52@100)": "6-7",
        "sched_setaffinity(53@100)": "6-7",
    }


def test_the_words_say_that_work_is_kept_off_siblings(tmp_path: Path) -> None:
    host = busy(tmp_path)
    told = find_tunable("irq-affinity").assess(host)
    assert (told.value, told.wanted) == ("3 interrupts may use hot CPUs or their siblings", "all on CPU 0-3,6-7")
    assert "moved off CPU 4-5" in told.reason
    assert "hot CPUs or their siblings" in (find_tunable("kernel-threads").assess(host).value or "")
    assert "or their siblings" in find_tunable("irqaffinity").assess(host).reason
    assert "some are hot CPUs or their siblings" in find_tunable("watchdogs").assess(host).reason


def test_on_a_crowded_host_every_check_names_the_same_cpus(tmp_path: Path) -> None:
    """Each core has a hot thread, so the siblings do the work. No reason then calls them CPUs to keep clear."""
    work = "sys/devices/virtual/workqueue"
    files = {
        **irq(24, "0-3"),
        "proc/irq/default_smp_affinity": "f\n",
        "proc/irq/24/eth0/.keep": "",
        f"{work}/cpumask": "f\n",
        **{f"proc/sys/kernel/{name}": "1\n" for name in ("watchdog", "soft_watchdog", "nmi_watchdog")},
        "proc/sys/kernel/watchdog_cpumask": "0-3\n",
    }
    host = looked_at(machine(tmp_path, NEIGHBOURS, more=files), "1-2")[0]
    assert (str(host.siblings), str(host.housekeeping)) == ("0,3", "0,3")
    told = {name: find_tunable(name).assess(host) for name in ("irq-affinity", "workqueue-mask", "watchdogs")}
    assert [one.wanted for one in told.values()] == ["all on CPU 0,3", "CPUs 0,3", "0,3"]
    assert {one.state for one in told.values()} == {"improve"}
    assert [name for name, one in told.items() if "sibling" in one.reason] == []
    assert told["watchdogs"].reason == "CPUs 0-3 are watched, and some are hot CPUs; it is enough to watch CPUs 0,3"


def test_interrupts_start_on_housekeeping_cpus_from_boot_on(tmp_path: Path) -> None:
    host = busy(tmp_path)
    assert find_tunable("irqaffinity").assess(host).wanted == "irqaffinity=0-3,6-7"
    write(tmp_path, {"proc/cmdline": "quiet irqaffinity=0-3,5\n"})
    assert find_tunable("irqaffinity").assess(looked_at(HostRoot(tmp_path), "4")[0]).state == "improve", (
        "CPU 5 is a sibling"
    )
    write(tmp_path, {".dockerenv": ""})
    inside = find_tunable("irqaffinity").assess(looked_at(HostRoot(tmp_path), "4")[0])
    assert (inside.state, inside.only_host, inside.wanted) == ("info", True, "irqaffinity=0-3,6-7")
    assert "ask the administrator who starts this machine" in inside.fix
    write(tmp_path, {"proc/cmdline": "quiet irqaffinity=0-3,6-7\n"})
    assert find_tunable("irqaffinity").assess(looked_at(HostRoot(tmp_path), "4")[0]).state == "ok"


def test_a_thread_of_a_node_is_planned_once_and_goes_elsewhere_only_where_its_node_is_full(tmp_path: Path) -> None:
    host = busy(tmp_path)
    why = {c.path: c.why for c in planned(host, "kernel-threads")}
    assert "kswapd1" in why["sched_setaffinity(51@100)"]
    assert "stays on its memory node" in why["sched_setaffinity(51@100)"]
    assert why["sched_setaffinity(53@100)"] == "The kernel thread 'x'."
    full = Host(host.root, CpuSet.parse_list("4,6"), host.topology)
    made = {c.path: c for c in planned(full, "kernel-threads")}
    assert made["sched_setaffinity(51@100)"].after == "0-3"
    assert "all CPUs of its memory node" in made["sched_setaffinity(51@100)"].why
    assert len(made) == 3, "each once; kswapd0 keeps its node"


def test_where_only_siblings_are_left_they_do_the_work(tmp_path: Path) -> None:
    more = {"proc/irq/default_smp_affinity": "f\n", "proc/interrupts": interrupts(range(4), {})}
    root = machine(tmp_path, NEIGHBOURS, more=more)
    host = looked_at(root)[0]
    assert [(c.path, c.after) for c in planned(host, "irq-affinity")] == [("/proc/irq/default_smp_affinity", "3")]
    host = Host(host.root, CpuSet((1, 2)))
    assert [(c.path, c.after) for c in planned(host, "irq-affinity")] == [("/proc/irq/default_smp_affinity", "9")]
    assert find_tunable("irqaffinity").assess(host).wanted == "irqaffinity=0,3"


def isolating(tmp_path: Path, cpus: str, more: dict[str, str]) -> Host:
    """The host of :func:`busy` with control groups of version 2 and ``more`` files; these CPUs are hot."""
    files = cgroup2(files={"cgroup.controllers": "cpuset\n", "cgroup.subtree_control": "\n"}) | more
    return looked_at(machine(tmp_path, TWO_BY_FOUR, more=files), cpus)[0]


def test_the_siblings_of_named_cpus_are_isolated_with_them(tmp_path: Path) -> None:
    host = isolating(tmp_path, "4,7", task(60, "near", allowed="4-5"))
    told = find_tunable("isolation").assess(host)
    assert (told.state, told.wanted) == ("improve", "CPUs 4-7")
    assert "a task on CPU 5-6, siblings of hot CPUs," in told.reason
    made = {c.path.rpartition("/")[2]: c.after for c in planned(host, "isolation")}
    assert made["cpuset.cpus"] == "4-7"
    assert made["sched_setaffinity(60@100)"] == "0-3", "its own CPUs are all taken"
    assert find_tunable("isolcpus").assess(host).wanted == "isolcpus=managed_irq,domain,4-7"


@pytest.mark.parametrize(("isolated", "state"), [("4", "improve"), ("5", "improve"), ("4-5", "ok"), ("4-7", "ok")])
def test_isolation_is_whole_with_the_siblings(isolated: str, state: str, tmp_path: Path) -> None:
    host = isolating(tmp_path, "4", {f"{CPU}/isolated": f"{isolated}\n"})
    told = find_tunable("isolation").assess(host)
    assert told.state == state
    assert ("hot CPUs and their siblings are isolated" in told.reason) == (state == "ok")
    assert (find_tunable("smt").assess(host).value == "isolated") == (isolated != "4")


def test_siblings_that_another_group_has_are_said_to_stay_out(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/theirs"
    files = {
        f"{CPU}/isolated": "4\n",
        f"{group}/cpuset.cpus": "5\n",
        f"{group}/cpuset.cpus.effective": "5\n",
        f"{group}/cpuset.cpus.partition": "root\n",
        f"{group}/cgroup.controllers": "cpuset\n",
    }
    told = find_tunable("isolation").assess(isolating(tmp_path, "4", files))
    assert told.state == "info"
    assert "CPU 5, a sibling of hot CPUs, cannot be isolated" in told.reason


WORK = ("isolation", "irq-affinity", "workqueue-mask", "rps-xps", "kernel-threads", "watchdogs")


@settings(max_examples=40, deadline=None)
@given(
    count=st.integers(1, 6),
    threads=st.sampled_from((1, 2, 4)),
    by_core=st.booleans(),
    named=st.none() | st.sets(st.integers(0, 23), min_size=1),
)
def test_no_plan_puts_work_on_a_core_with_a_hot_thread(
    count: int, threads: int, by_core: bool, named: set[int] | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """On any machine of whole cores, what is moved goes to cores of its own, but where each core has a hot thread.
    ``named``: the hot CPUs that a user names, None for the workshop's choice."""
    total = count * threads
    asked = None if named is None else str(CpuSet.of(n % total for n in named))
    core = [[n for n in range(total) if (n // threads if by_core else n % count) == c] for c in range(count)]
    root = machine(tmp_path_factory.mktemp("cores"), (tuple(map(tuple, core)),))
    every = f"{(1 << total) - 1:x}"
    write(
        root.root,
        {
            **cgroup2(files={"cgroup.controllers": "cpuset\n", "cgroup.subtree_control": "\n"}),
            **irq(24, f"0-{total - 1}"),
            "proc/irq/default_smp_affinity": f"{every}\n",
            "sys/devices/virtual/workqueue/cpumask": f"{every}\n",
            "sys/devices/virtual/workqueue/writeback/cpumask": f"{every}\n",
            **network_card("eth0", rps=(every,), xps=(every,)),
            "proc/sys/kernel/watchdog": "1\n",
            "proc/sys/kernel/watchdog_cpumask": f"0-{total - 1}\n",
        },
    )
    host, _, note = looked_at(root, asked)
    taken = host.hot | host.siblings
    everywhere = taken == host.online
    made = planned(host, *WORK) if host.not_hot else []
    spread = {"isolation", "irq-affinity", "workqueue-mask"} if host.not_hot else set()
    assert {one.tunable for one in made} >= spread
    for change in made:
        if change.path.endswith("cpuset.cpus"):
            assert CpuSet.parse_list(change.after) == (host.hot if everywhere else taken)
        elif change.kind in ("cpu-mask", "workqueue-mask", "cpu-list"):
            read = CpuSet.parse_list if change.kind == "cpu-list" else CpuSet.parse_mask
            assert not read(change.after) & (host.hot if everywhere else taken), change.path
    assert asked is not None or count == 1 or not host.siblings
    assert (SIBLINGS in note) == bool(host.not_hot and everywhere)
