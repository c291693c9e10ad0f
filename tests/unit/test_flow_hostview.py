"""Facts of machines that a test runner is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.course.loader import load_course
from jitter_workshop.flow.chapters.session_context import look_at
from jitter_workshop.flow.host_ops.hostview import TOPICS, HostView, topic_facts
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.course import LOOK_TOPICS
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache
from jitter_workshop.model.text import REASON
from tests import hosttrees

Trees = Callable[[str], Path]


def test_the_lessons_names_and_the_functions_are_the_same() -> None:
    assert set(TOPICS) == set(LOOK_TOPICS)
    assert {topic for chapter in load_course().chapters for topic in chapter.look} <= set(TOPICS)


def test_after_the_first_chapter_the_common_facts_come_last_and_cpus_not_again() -> None:
    first, *later = load_course().chapters
    assert "cpus" in first.look
    for chapter in later:
        assert "cpus" not in chapter.look, chapter.id
        assert "load" not in chapter.look[:-1], chapter.id


@pytest.mark.parametrize("name", sorted(hosttrees.EVERY))
def test_every_machine_gives_printable_facts(host_tree: Trees, name: str) -> None:
    root = HostRoot(host_tree(name))
    topology, host = look_at(root)
    found = topic_facts(HostView(root, host, topology), LOOK_TOPICS)
    assert {"System", "CPUs", "May run on", "Clock"} <= {f.title for f in found}
    for fact in found:
        assert fact.value
        assert all(text.isprintable() for text in (fact.title, fact.value, fact.meaning, fact.source))


def test_an_empty_tree_has_facts_and_no_traceback(tmp_path: Path) -> None:
    root = HostRoot(tmp_path)
    topology, host = look_at(root)
    assert topic_facts(HostView(root, host, topology), LOOK_TOPICS)


@pytest.mark.parametrize(("realtime", "shown"), [(True, True), (False, False), (None, False)])
def test_a_guest_with_the_real_time_kernel_is_told_so(host_tree: Trees, realtime: bool | None, shown: bool) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    (system,) = topic_facts(HostView(root, replace(host, realtime_kernel=realtime), topology), ("system",))
    assert ("(PREEMPT_RT)" in system.value) is shown
    assert "a guest of" in system.value


def test_limits_that_spoil_a_measurement_are_told(host_tree: Trees) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    limited = replace(host, cpu_max_quota_us=50_000, cpu_max_period_us=100_000, memlock_limit_bytes=65_536)
    said = {f.title: f for f in topic_facts(HostView(root, limited, topology), LOOK_TOPICS)}
    assert said["CPU limit"].value == "50000 µs in every 100000 µs"
    assert said["Locked memory"].value == "at most 64 KiB"
    free = replace(host, cpu_max_quota_us=None, cpu_max_period_us=None, memlock_limit_bytes=None)
    assert not {"CPU limit", "Locked memory"} & {
        f.title for f in topic_facts(HostView(root, free, topology), LOOK_TOPICS)
    }


def test_the_right_to_lock_all_memory_lifts_the_limit(host_tree: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    view = HostView(root, replace(host, memlock_limit_bytes=65_536), topology)
    for may_lock in (False, True):
        limits = replace(read_limits(root), may_lock=may_lock)
        monkeypatch.setattr("jitter_workshop.flow.host_ops.hostview.read_limits", lambda root, limits=limits: limits)
        assert bool(topic_facts(view, ("memlock",))) is not may_lock


def test_between_which_cpus_the_scheduler_moves_threads(host_tree: Trees) -> None:
    root = HostRoot(host_tree("server64"))
    topology, host = look_at(root)

    def told(isolated: tuple[int, ...]) -> str:
        (fact,) = topic_facts(HostView(root, replace(host, isolated=isolated), topology), ("allowed",))
        return fact.meaning

    free = topology.allowed
    assert f"an unpinned thread between CPUs {free} at any time" in told(())
    last = free.cpus[-2:]
    assert f"an unpinned thread between CPUs {free - CpuSet(last)} at any time" in told(last)
    assert "between isolated CPUs no thread" in told(free.cpus[1:])
    assert f"between CPUs {CpuSet(last)} at any time" in told(free.cpus[:-2])


def test_two_cpus_are_said_for_one_thread_and_for_two(host_tree: Trees) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    assert len(topology.online) == 2
    (fact,) = topic_facts(HostView(root, host, topology), ("cpus",))
    assert (
        fact.meaning
        == "with one measured thread, one CPU is left for all other tasks; with two measured threads, none is left"
    )


@pytest.mark.parametrize(
    ("governors", "said"),
    [
        (("performance",), "asks for full speed"),
        (("performance", "schedutil"), "clock mostly follows the load"),
        (("schedutil",), "an idle CPU starts slowly"),
    ],
)
def test_each_governor_has_its_meaning(host_tree: Trees, governors: tuple[str, ...], said: str) -> None:
    root = HostRoot(host_tree("server64"))
    topology, host = look_at(root)
    (fact,) = topic_facts(HostView(root, replace(host, governors=governors), topology), ("frequency",))
    assert said in fact.meaning


def test_the_tick_and_the_tasks_are_read_from_the_tree(tmp_path: Path) -> None:
    hosttrees.write(
        tmp_path,
        {
            **hosttrees.kernel("box"),
            "boot/config-6.12.9": "CONFIG_HZ_250=y\nCONFIG_HZ=250\n",
            "proc/loadavg": "0.10 0.2 0.3 2/345 999\n",
        },
    )
    root = HostRoot(tmp_path)
    topology, host = look_at(root)
    said = {f.title: f.value for f in topic_facts(HostView(root, host, topology), ("tick", "neighbours", "load"))}
    assert said == {"Tick": "250 Hz", "Tasks": "345 exist, 2 can run now", "Load": "0.10 over the last minute"}


@pytest.mark.parametrize(
    ("source", "said"),
    [("tsc", "own counter"), ("kvm-clock", "without entering the kernel"), ("hpet", "each reading is a system call")],
)
def test_the_look_step_tells_the_cost_of_the_clock(host_tree: Trees, source: str, said: str) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    (fact,) = topic_facts(HostView(root, replace(host, clocksource=source), topology), ("clock",))
    assert said in fact.meaning


@pytest.mark.parametrize(
    ("average", "said"),
    [
        ("0.19", "few tasks ran or waited"),
        ("0.20", "on average 0.2 tasks ran or waited on 2 CPUs, our runs included"),
        ("0.87", "on average 0.87 tasks ran or waited on 2 CPUs, our runs included"),
    ],
)
def test_the_load_is_called_small_only_where_its_number_is(host_tree: Trees, average: str, said: str) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    hosttrees.write(Path(root.root), {"proc/loadavg": f"{average} 0.2 0.3 1/99 999\n"})
    (fact,) = topic_facts(HostView(root, host, topology), ("load",))
    assert fact.meaning.startswith(said)


@pytest.mark.parametrize("loadavg", ["", "x", "1 2 3 4 5", "1 2 3 a/b 5", "\x1b 2 3 1/2 5"])
def test_a_garbled_loadavg_says_nothing(tmp_path: Path, loadavg: str) -> None:
    hosttrees.write(tmp_path, {"proc/loadavg": loadavg})
    root = HostRoot(tmp_path)
    topology, host = look_at(root)
    assert all(f.value.isprintable() for f in topic_facts(HostView(root, host, topology), ("neighbours", "load")))


def test_the_caches_of_each_level_have_their_sizes_and_their_cpus(host_tree: Trees) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    both, one, other = CpuSet((0, 1)), CpuSet((0,)), CpuSet((1,))
    cpus = tuple(replace(topology.cpus[0], id=n, online=True, allowed=True) for n in (0, 1))
    caches = (
        Cache(1, "Data", 48 << 10, one),
        Cache(1, "Data", 48 << 10, other),
        Cache(1, "Instruction", 32 << 10, one),
        Cache(2, "Unified", 1 << 20, one),
        Cache(2, "Unified", 3 << 19, other),
        Cache(3, "Unified", None, both),
    )
    (fact,) = topic_facts(HostView(root, host, replace(topology, cpus=cpus, caches=caches)), ("cache-sizes",))
    assert fact.value.split("; ") == [
        "L1 data 48 KiB (CPU 0, CPU 1)",
        "L2 1 MiB (CPU 0)",
        "L2 1.5 MiB (CPU 1)",
        "L3 of unknown size (CPUs 0-1)",
    ]


def test_of_many_caches_of_one_sort_only_the_first_name_their_cpus(host_tree: Trees) -> None:
    root = HostRoot(host_tree("guest"))
    topology, host = look_at(root)
    cpus = tuple(replace(topology.cpus[0], id=n, online=True, allowed=True) for n in range(64))
    caches = tuple(Cache(1, "Data", 32 << 10, CpuSet((n, n + 32))) for n in range(32))
    (fact,) = topic_facts(HostView(root, host, replace(topology, cpus=cpus, caches=caches)), ("cache-sizes",))
    assert fact.value == "L1 data 32 KiB (CPUs 0,32, CPUs 1,33, 30 more)"


def test_the_chapter_on_caches_shows_the_facts_of_its_page(host_tree: Trees) -> None:
    root = HostRoot(host_tree("server64"))
    topology, host = look_at(root)
    said = {f.title: f.value for f in topic_facts(HostView(root, host, topology), load_course().chapter("caches").look)}
    assert all(f"L{level}" in said["Caches"] for level in {cache.level for cache in topology.caches})
    assert len(said["Caches"]) <= REASON


def test_isolated_cpus_name_the_file_that_lists_them(tmp_path: Path) -> None:
    boot, listed = tmp_path / "sys/devices/system/cpu/isolated", tmp_path / "sys/fs/cgroup/cpuset.cpus.isolated"
    for path in (boot, listed):
        path.parent.mkdir(parents=True)
    root = HostRoot(tmp_path)

    def source(by_boot: str, at_run_time: str) -> str:
        boot.write_text(by_boot)
        listed.write_text(at_run_time)
        topology, host = look_at(root)
        (fact,) = topic_facts(HostView(root, host, topology), ("isolation",))
        return fact.source

    assert source("\n", "\n").startswith("/sys/devices/system/cpu/isolated")
    assert source("3\n", "\n").startswith("/sys/devices/system/cpu/isolated")
    assert source("\n", "3\n") == "cpuset (a cgroup)"
    assert source("2\n", "3\n").startswith("cpuset, /sys/devices/system/cpu/isolated")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("always [madvise] never\n", "madvise"),
        ("[always] madvise never\n", "always"),
        ("\n", "this host does not show them"),
    ],
)
def test_the_kernel_says_which_programs_get_huge_pages(tmp_path: Path, text: str, value: str) -> None:
    path = tmp_path / "sys/kernel/mm/transparent_hugepage/enabled"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    root = HostRoot(tmp_path)
    topology, host = look_at(root)
    (fact,) = topic_facts(HostView(root, host, topology), ("huge-pages",))
    assert fact.value == value
