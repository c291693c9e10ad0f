"""The CPUs as boxes: what stands in each box, and that any host fits into any width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from jitter_workshop.model.walk import CpuView
from jitter_workshop.presenter.cpu_boxes import boxes, topology


def machine(count: int, threads: int = 1) -> Topology:
    """``count`` CPUs; with two threads a core, CPU n and CPU n + count/2 are one core, as Intel numbers them."""
    cores = count // threads
    siblings = [CpuSet.of(n % cores + cores * t for t in range(threads)) for n in range(count)]
    return Topology(tuple(Cpu(n, 0, n % cores, 0, True, True, siblings[n]) for n in range(count)), ())


def drawn(view: CpuView, width: int = 76, changes: tuple[Change, ...] = (), *, ascii_only: bool = False) -> str:
    return "\n".join(line.plain for line in boxes(view, width, changes, ascii_only=ascii_only))


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


def test_many_hot_cpus_without_a_thread_share_a_box_and_writes_are_counted_where_they_go() -> None:
    def change(path: str) -> Change:
        return Change(n=1, tunable="governor", path=path, before="a", after="b", when="now", risk="low", why="")

    plan = tuple(change(f"/sys/devices/system/cpu/cpu{n}/cpuidle/state2/disable") for n in (4, 5, 6))
    plan += (change("/sys/devices/system/cpu/cpufreq/policy4/scaling_governor"), change("/proc/sys/vm/stat_interval"))
    told = drawn(CpuView(machine(8), CpuSet((4, 5, 6, 7)), (("sampler", 4),)), 200, plan)
    assert "hot  sampler  2 writes" in told
    assert "CPUs 5-7" in told
    assert "hot  2 writes" in told
    assert "no thread of ours" in told


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


def test_the_machine_has_a_box_a_cache_and_names_what_each_core_is_for() -> None:
    view = CpuView(shared(16, 2, 8), CpuSet.parse_list("3-4,11-12"), (("producer", 3), ("accumulator", 4)))
    assert [line.plain.strip("│ ") for line in topology(view, 50)[1:-1]] == [
        "CPUs 0-2,8-10  housekeeping  3 cores",
        "CPUs 3-4  hot  2 cores",
        "CPUs 11-12  idle sibling",
        "CPUs 5-7,13-15  housekeeping  3 cores",
    ]
    assert topology(view, 50)[0].plain.startswith("┌ L3 32 MiB ─")


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
