"""The cgroup's limits on both versions, ancestors and containers included."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import (
    Membership,
    parse_cpu_max,
    parse_memberships,
    parse_mounts,
    read_cgroup,
    read_throttled,
)
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees


def test_version_1_beside_an_empty_version_2(host_tree: Callable[[str], Path]) -> None:
    root = HostRoot(host_tree("guest"))
    cgroup = read_cgroup(root)
    assert cgroup.version == 1
    assert (cgroup.quota_us, cgroup.period_us, cgroup.cpu_limit) == (150_000, 100_000, 1.5)
    assert cgroup.nr_throttled == 7
    assert cgroup.cpuset == CpuSet((0, 1))
    assert read_throttled(root, cgroup) == 7


def test_version_2_with_a_limit_and_an_ancestors_cpuset(host_tree: Callable[[str], Path]) -> None:
    cgroup = read_cgroup(HostRoot(host_tree("server64")))
    assert (cgroup.version, cgroup.cpu_limit) == (2, 4.0)
    assert cgroup.nr_throttled == 3
    assert cgroup.cpuset == CpuSet.parse_list("0-15,32-47")


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    files = {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "300000 100000\n", "a/b/c/cpu.max": "max 100000\n"}
    files |= {f"{name}/cpu.stat": f"nr_periods 9\nnr_throttled {n}\n" for n, name in enumerate(("a", "a/b"), 1)}
    root = HostRoot(hosttrees.write(tmp_path, hosttrees.cgroup2("/a/b/c", files)))
    cgroup = read_cgroup(root)
    assert cgroup.cpu_limit == 0.5
    assert cgroup.nr_throttled == 3
    (tmp_path / "sys/fs/cgroup/a/cpu.stat").write_text("nr_periods 10\nnr_throttled 4\n")
    assert read_throttled(root, cgroup) == 6


def test_a_container_sees_its_limit_at_the_mount_point(tmp_path: Path) -> None:
    """With a cgroup namespace the path is / and the mount shows the container's own group."""
    root = HostRoot(
        hosttrees.write(
            tmp_path, hosttrees.cgroup2("/", {"cpu.max": "200000 100000\n", "cpuset.cpus.effective": "4-5\n"})
        )
    )
    assert read_cgroup(root).cpu_limit == 2.0
    assert read_cgroup(root).cpuset == CpuSet((4, 5))


def test_a_container_without_a_namespace(tmp_path: Path) -> None:
    """The mount shows only /docker/abc, and the path is written as the host sees it."""
    files = {
        "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc/inner\n",
        "proc/self/mountinfo": "1 2 0:9 /docker/abc /sys/fs/cgroup/cpu\\040set ro - cgroup cgroup rw,cpu,cpuacct\n",
        "sys/fs/cgroup/cpu set/inner/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu set/inner/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu set/cpu.cfs_quota_us": "25000\n",
        "sys/fs/cgroup/cpu set/cpu.cfs_period_us": "100000\n",
    }
    assert read_cgroup(HostRoot(hosttrees.write(tmp_path, files))).cpu_limit == 0.25


@pytest.mark.parametrize("path", ["/../..", "/../../other", "/a/../../b", "/" + "deep/" * 200])
def test_paths_outside_the_mount_fall_back_to_it(tmp_path: Path, path: str) -> None:
    outside = {"sys/cpu.max": "1 2000\n", "sys/fs/cpu.max": "1 2000\n", "sys/fs/other/cpu.max": "1 2000\n"}
    root = HostRoot(hosttrees.write(tmp_path, outside | hosttrees.cgroup2(path, {"cpu.max": "1000 2000\n"})))
    assert read_cgroup(root).cpu_limit == 0.5


def test_no_limit_and_no_cgroups(tmp_path: Path) -> None:
    nothing = read_cgroup(HostRoot(tmp_path))
    assert nothing.version is None
    assert nothing.reason == "/proc/self/cgroup: no such file"
    hosttrees.write(tmp_path, {"proc/self/cgroup": "0::/\n"})
    assert read_cgroup(HostRoot(tmp_path)).reason == "no cgroup hierarchy with a cpu controller is mounted"
    hosttrees.write(tmp_path, hosttrees.cgroup2("/x"))
    plain = read_cgroup(HostRoot(tmp_path))
    assert (plain.version, plain.cpu_limit, plain.nr_throttled, plain.cpuset, plain.reason) == (2, None, None, None, "")
    assert read_throttled(HostRoot(tmp_path), plain) is None


@given(st.integers(1, 10**12), st.integers(1, 10**6))
def test_cpu_max_round_trips(quota: int, period: int) -> None:
    assert parse_cpu_max(f"{quota} {period}\n") == (quota, period)
    assert parse_cpu_max(f"max {period}\n") is None
    assert parse_cpu_max(str(quota)) == (quota, 100_000)


@pytest.mark.parametrize("text", [None, "", "max", "0 100000", "-1 100000", "100 0", "1 2 3", "a b", "9" * 400])
def test_cpu_max_that_is_no_limit(text: str | None) -> None:
    assert parse_cpu_max(text) is None


controller = st.from_regex(r"[a-z]{1,8}|name=[a-z]{1,8}", fullmatch=True)
group = st.from_regex(r"/[A-Za-z0-9:_.\\/-]{0,30}", fullmatch=True)


@given(st.lists(st.tuples(st.lists(controller, max_size=3), group), max_size=6))
def test_memberships_round_trip(made: list[tuple[list[str], str]]) -> None:
    text = "\n".join(f"{n}:{','.join(controllers)}:{path}" for n, (controllers, path) in enumerate(made))
    assert parse_memberships(text) == tuple(Membership(tuple(controllers), path) for controllers, path in made)


def test_mounts_are_told_apart_and_later_ones_win() -> None:
    mounts = parse_mounts(
        "22 27 0:21 / /proc rw - proc proc rw\n"
        "32 31 0:29 / /cg rw,relatime shared:1 master:2 - cgroup cgroup rw,cpu,cpuacct\n"
        "33 31 0:29 /top /cg rw - cgroup2 cgroup2 rw\n"
        "34 31 0:29 / relative rw - cgroup2 cgroup2 rw\n"
        "damaged - cgroup2\n"
    )
    assert [(m.version, m.where, m.top, m.controllers) for m in mounts] == [(2, "/cg", "/top", ())]


@given(st.text(max_size=200), st.text(max_size=200))
def test_garbage_never_raises(first: str, second: str) -> None:
    parse_memberships(first)
    parse_mounts(first)
    parse_mounts(f"1 2 0:3 {first} {second} rw - cgroup cgroup {first}")
    parse_cpu_max(first)


def test_this_process_has_a_cgroup() -> None:
    cgroup = read_cgroup(HostRoot())
    assert (cgroup.version is None) == bool(cgroup.reason)
