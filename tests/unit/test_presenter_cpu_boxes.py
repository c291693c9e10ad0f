"""The CPUs as boxes: what stands in each box, and that any host fits into any width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.change import Change, When
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.text.cpu_boxes import boxes, of_settings, topology


def machine(count: int, threads: int = 1) -> Topology:
    """``count`` CPUs; with two threads a core, CPU n and CPU n + count/2 are one core, as Intel numbers them."""
    cores = count // threads
    siblings = [CpuSet.of(n % cores + cores * t for t in range(threads)) for n in range(count)]
    return Topology(tuple(Cpu(n, 0, n % cores, 0, True, True, siblings[n]) for n in range(count)), ())


def drawn(view: CpuView, width: int = 76, *, ascii_only: bool = False) -> str:
    return "\n".join(line.plain for line in boxes(view, width, ascii_only=ascii_only))


def change(path: str, before: str, after: str, kind: str = "value", when: When = "runtime") -> Change:
    return Change(1, "any", path, before, after, when, "low", "", kind=kind)


def said(view: CpuView, changes: tuple[Change, ...], width: int = 120, *, made: bool = False) -> list[str]:
    """Return the text inside the boxes of a plan, line by line."""
    lines = [line.plain for line in of_settings(view, width, changes, made=made, waits=not made)]
    return [" | ".join(cell.strip() for cell in line.strip("│ ").split("│") if cell.strip()) for line in lines]


GUEST = CpuView(machine(2), CpuSet((1,)), (("sampler", 1),))
"""Two CPUs, of which the second is hot and has the measured thread."""

QUEUES = (change("/sys/devices/virtual/workqueue/cpumask", "3", "1", "workqueue-mask"),)
INTERRUPTS = (
    *(change(f"/proc/irq/{n}/smp_affinity_list", "0-1", "0", "cpu-list") for n in (4, 9)),
    change("/proc/irq/5/smp_affinity_list", "1", "0", "cpu-list"),
    change("/proc/irq/default_smp_affinity", "3", "1", "cpu-mask"),
)
GROUP_V2 = (
    change("/sys/fs/cgroup/jitter-workshop/cpuset.cpus", "", "1", "cgroup-cpus"),
    change("/sys/fs/cgroup/jitter-workshop/cpuset.cpus.partition", "member", "isolated", "partition"),
    change("sched_setaffinity(7@9)", "0-1", "0", "affinity-across"),
)
GROUP_V1 = (
    change("/sys/fs/cgroup/cpuset/jitter-workshop-hot", "absent", "cpus 1 mems 0", "cpuset"),
    change("/sys/fs/cgroup/cpuset/jitter-workshop-rest", "absent", "cpus 0 mems 0", "cpuset"),
    change("cgroup(7@9)", "/", "/jitter-workshop-rest", "task-cgroup"),
)
IDLE = tuple(change(f"/sys/devices/system/cpu/cpu1/cpuidle/state{n}/disable", "0", "1", "number") for n in (2, 3))
TICK = (change("/etc/default/grub.d/99-x.cfg", "nohz_full=0", "nohz_full=1", "grub", "boot"),)


@pytest.mark.parametrize(
    ("changes", "planned", "made"),
    [
        (QUEUES, "unbound work  may run | unbound work  may run → kept off", "kept off  before: may run"),
        (INTERRUPTS, "movable interrupts  2 → 3 | movable interrupts  3 → 0", "movable interrupts  0  before: 3"),
        (INTERRUPTS, "new interrupts  may come | new interrupts  may come → kept off", "kept off  before: may come"),
        (GROUP_V2, "tasks  any | tasks  any → only tasks placed here", "only tasks placed here  before: any"),
        (GROUP_V1, "tasks  any | tasks  any → only tasks placed here", "only tasks placed here  before: any"),
        (IDLE, "deep idle states  2 in use → none in use", "none in use  before: 2 in use"),
    ],
)
def test_a_plan_shows_its_changes_on_each_cpu_before_and_after_they_are_made(
    changes: tuple[Change, ...], planned: str, made: str
) -> None:
    assert planned in said(GUEST, changes)
    after = said(GUEST, changes, made=True)
    assert any(line.endswith(made) for line in after)
    assert said(GUEST, changes) != after


def test_boot_parameters_are_told_with_the_boot_that_they_wait_for() -> None:
    assert "nohz_full  yes → no, from the next boot | nohz_full  no → yes, from the next boot" in said(GUEST, TICK)
    assert "nohz_full  no  before: yes | nohz_full  yes  before: no" in said(GUEST, TICK, made=True)


def test_a_plan_that_changes_no_single_cpu_has_no_boxes() -> None:
    assert of_settings(GUEST, 76, (change("/proc/sys/vm/stat_interval", "1", "120"),)) == []
    assert of_settings(GUEST, 76, ()) == []


def test_masks_that_differ_are_counted_and_a_damaged_one_counts_as_none() -> None:
    two = (*QUEUES, change("/sys/devices/virtual/workqueue/writeback/cpumask", "2", "1", "cpu-mask"))
    assert "unbound work  may run, 1 of 2 → may run | unbound work  may run → kept off" in said(GUEST, two)
    torn = (*QUEUES, change("/sys/devices/virtual/workqueue/x/cpumask", "no mask", "1", "cpu-mask"))
    assert "may run, 1 of 2 → kept off" in said(GUEST, torn)[2]


def test_a_guest_of_two_cpus() -> None:
    view = CpuView(machine(2), CpuSet((1,)), (("producer", 0), ("accumulator", 1)))
    assert drawn(view) == (
        "┌ CPU 0 ─────────────────┐ ┌ CPU 1 ───────────┐\n"
        "│ housekeeping  producer │ │ hot  accumulator │\n"
        "└────────────────────────┘ └──────────────────┘"
    )
    assert drawn(view, ascii_only=True).splitlines()[0] == "+ CPU 0 -----------------+ + CPU 1 -----------+"
    narrow = drawn(view, 40)
    assert [line[0] for line in narrow.splitlines()] == list("┌│└┌│└")


def test_siblings_stand_in_their_core_and_all_others_in_one_box() -> None:
    view = CpuView(machine(64, 2), CpuSet((2, 3, 34, 35)), (("producer", 2), ("accumulator", 3)))
    told = drawn(view)
    assert "CPUs 2,34, one core" in told
    assert " 2  hot  producer" in told
    assert "34  idle sibling" in told
    assert "CPUs 0-1,4-33,36-63" in told
    assert told.count("housekeeping") == 1
    # A sibling that was left out of the hot CPUs is no idle one: other work runs there.
    assert "34  sibling" in drawn(CpuView(machine(64, 2), CpuSet((2,)), (("sampler", 2),)))


def test_many_hot_cpus_share_a_box_and_their_effects_and_writes_stand_where_they_go() -> None:
    here = "/sys/devices/system/cpu"
    plan = tuple(change(f"{here}/cpu{n}/cpuidle/state2/disable", "0", "1", "number") for n in (4, 5, 6))
    plan += (change(f"{here}/cpufreq/policy4/scaling_governor", "powersave", "performance"),)
    plan += (change(f"{here}/cpu7/online", "1", "0"), change("/proc/sys/vm/stat_interval", "1", "120"))
    told = "\n".join(said(CpuView(machine(8), CpuSet((4, 5, 6, 7)), (("sampler", 4),)), plan, 200))
    assert "CPUs 0-3 " in told.partition("CPU 4")[0], "boxes are in the order of their CPUs"
    assert "governor  powersave → performance" in told
    assert "hot  1 write  no thread of ours" in told
    assert "CPUs 5-6: deep idle states  1 in use → none in use" in told
    assert told.count("write") == 1


def test_a_host_that_shows_no_cpu_has_no_boxes() -> None:
    assert boxes(CpuView(Topology((), ()), CpuSet()), 76) == []


@settings(deadline=None)
@given(
    st.sampled_from([(1, 1), (2, 1), (2, 2), (8, 2), (12, 1), (256, 2), (256, 4)]),
    st.lists(st.integers(0, 255), max_size=8),
    st.lists(st.integers(0, 255), max_size=3),
    st.integers(40, 160),
    st.booleans(),
)
def test_every_online_cpu_is_named_once_and_no_line_is_too_long(
    size: tuple[int, int], hot: list[int], placed: list[int], width: int, ascii_only: bool
) -> None:
    topology = machine(*size)
    names = ("producer", "accumulator", "journaller")
    # Two threads never have one CPU.
    threads = tuple(zip(names, dict.fromkeys(cpu % size[0] for cpu in placed), strict=False))
    lines = boxes(CpuView(topology, CpuSet.of(n % size[0] for n in hot), threads), width, ascii_only=ascii_only)
    assert max(line.cell_len for line in lines) <= width
    assert not ascii_only or all(line.plain.isascii() for line in lines)
    titles = "".join(line.plain for line in lines)
    for name, _ in threads:
        assert name in titles


@pytest.mark.parametrize("threads", [1, 2])
def test_each_cpu_is_in_exactly_one_title(threads: int) -> None:
    view = CpuView(machine(16, threads), CpuSet((1, 2, 3, 4, 5)), (("producer", 2),))
    titles = [part for line in boxes(view, 4000) for part in line.plain.split("┌ ")[1:]]
    named = [CpuSet.parse_list(title.split()[1].rstrip(",")) for title in titles]
    assert sorted(cpu for cpus in named for cpu in cpus) == list(range(16))
    first = [cpus.cpus[0] for cpus in named]
    assert first == sorted(first)


def shared(count: int, threads: int, a_cache: int) -> Topology:
    """Return a host whose cores share a last-level cache by groups of ``a_cache``; each two caches are a package."""
    cores = count // threads
    cpus = tuple(
        Cpu(n, n % cores // (2 * a_cache), n % cores, 0, True, True, CpuSet.of(range(n % cores, count, cores)))
        for n in range(count)
    )
    groups = sorted({n % cores // a_cache for n in range(count)})
    members = [CpuSet.of(n for n in range(count) if n % cores // a_cache == group) for group in groups]
    return Topology(cpus, tuple(Cache(3, "Unified", 32 << 20, one) for one in members))


def test_the_machine_has_a_box_for_each_cache_and_names_the_use_of_each_core() -> None:
    view = CpuView(shared(16, 2, 8), CpuSet.parse_list("3-4,11-12"), (("producer", 3), ("accumulator", 4)))
    assert [line.plain.strip("│ ") for line in topology(view, 50)[1:-1]] == [
        "CPUs 0-2,8-10  housekeeping  3 cores",
        "CPUs 3-4  hot  2 cores",
        "CPUs 11-12  idle sibling",
        "CPUs 5-7,13-15  housekeeping  3 cores",
    ]
    assert topology(view, 50)[0].plain.startswith("┌ L3 32 MiB ─")


def test_a_line_of_the_machine_without_room_for_its_cores_continues_below() -> None:
    narrow = [line.plain for line in topology(CpuView(shared(8, 2, 8), CpuSet.parse_list("2-3")), 34)]
    assert [line.strip("│ ") for line in narrow[1:4]] == [
        "CPUs 0-1,4-5  housekeeping",
        "2 cores",
        "CPUs 2-3  hot  2 cores",
    ]
    assert not any("…" in line for line in narrow)


def test_a_large_machine_names_the_hot_cache_and_counts_the_others() -> None:
    text = "\n".join(line.plain for line in topology(CpuView(shared(256, 2, 8), CpuSet.parse_list("12,140")), 76))
    assert "package 0, L3" in text
    assert "15 other caches" in text
    assert "120 cores" in text


@settings(max_examples=40)
@given(
    st.sampled_from((1, 2)), st.integers(1, 40), st.integers(1, 9), st.sets(st.integers(0, 79)), st.integers(34, 160)
)
def test_any_machine_fits_and_has_each_cpu_once(
    threads: int, cores: int, a_cache: int, hot: set[int], width: int
) -> None:
    view = CpuView(shared(cores * threads, threads, a_cache), CpuSet.of(cpu for cpu in hot if cpu < cores * threads))
    lines = topology(view, 400)
    named = [word for line in lines for cell in line.plain.split("│") for word in cell.split("  ")]
    lists = [word.split()[1] for word in (one.strip() for one in named) if word.startswith(("CPU ", "CPUs "))]
    assert sorted(cpu for one in lists for cpu in CpuSet.parse_list(one)) == list(range(cores * threads))
    assert all(line.cell_len <= width for line in topology(view, width))
