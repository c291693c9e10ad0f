"""Cgroups that hold CPUs for themselves, in both versions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.host.cpusets import read_cpusets, read_group
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet, PartitionState
from tests import hosttrees
from tests.hosttrees import write


def group(path: str, cpus: str, effective: str, partition: str = "member", **more: str) -> dict[str, str]:
    files = {"cpuset.cpus": cpus, "cpuset.cpus.effective": effective, "cpuset.cpus.partition": partition, **more}
    return {f"{path}/{name}": f"{text}\n" for name, text in files.items()}


def test_partitions_of_version_2(tmp_path: Path) -> None:
    files = {"cgroup.controllers": "cpuset cpu io memory\n", "cgroup.subtree_control": "cpuset cpu\n"}
    files |= {"cpuset.cpus.isolated": "6-7\n", "cpuset.cpus.effective": "0-5\n"}
    files |= group("system.slice", "", "0-5") | {"cpu.max": "max 100000\n"}
    files |= group(
        "jitter",
        "6-7",
        "6-7",
        "isolated",
        **{"cpuset.cpus.exclusive": "6-7", "cpuset.cpus.exclusive.effective": "6-7"},
    )
    files |= group("broken", "5", "0-5", "isolated invalid (Cpu list in cpuset.cpus not exclusive)")
    files |= (
        group("kubepods", "0-3", "0-3") | group("kubepods/pod1", "", "0-3") | group("kubepods/pod1/c", "2", "2", "root")
    )
    # No cpuset files in here, so that nothing below can have any.
    files |= {"user.slice/cgroup.procs": "", "user.slice/x/cpuset.cpus": "1\n"}
    root = HostRoot(write(tmp_path, hosttrees.cgroup2("/", files)))
    found = read_cpusets(root)
    assert (found.version, found.folder, found.delegated, found.complete) == (2, "/sys/fs/cgroup", True, True)
    assert found.isolated == CpuSet((6, 7))
    assert [g.path for g in found.groups] == ["/broken", "/jitter", "/kubepods", "/kubepods/pod1/c"]
    broken, jitter, inner = found.partitions
    assert broken.partition == PartitionState("isolated", False, "Cpu list in cpuset.cpus not exclusive")
    assert (jitter.folder, jitter.cpus, jitter.exclusive) == ("/sys/fs/cgroup/jitter", CpuSet((6, 7)), CpuSet((6, 7)))
    assert jitter.exclusive_effective == jitter.effective == CpuSet((6, 7))
    assert inner.partition == PartitionState("root")
    few = read_cpusets(root, max_groups=2)
    assert not few.complete
    assert [g.path for g in few.groups] == ["/broken", "/jitter"]


def test_cpusets_of_version_1(tmp_path: Path, host_tree: Callable[[str], Path]) -> None:
    assert read_cpusets(HostRoot(host_tree("guest"))).version == 1
    mount = "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    mount += "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    folder = "sys/fs/cgroup/cpuset"
    files = {
        "proc/self/mountinfo": mount,
        f"{folder}/cpuset.cpus": "0-3\n",
        f"{folder}/cpuset.sched_load_balance": "0\n",
        f"{folder}/system/cpuset.cpus": "0-1\n",
        f"{folder}/system/cpuset.effective_cpus": "0-1\n",
        f"{folder}/system/cpuset.cpu_exclusive": "1\n",
        f"{folder}/system/cpuset.sched_load_balance": "1\n",
        f"{folder}/hot/cpuset.cpus": "2-3\n",
        f"{folder}/hot/cpuset.sched_load_balance": "0\n",
        f"{folder}/empty/cpuset.cpus": "\n",
        f"{folder}/empty/cpuset.sched_load_balance": "1\n",
    }
    found = read_cpusets(HostRoot(write(tmp_path, files)))
    assert (found.version, found.folder, found.delegated, found.isolated) == (1, f"/{folder}", True, None)
    hot, system = found.groups
    assert (hot.path, hot.cpus, hot.effective, hot.load_balance) == ("/hot", CpuSet((2, 3)), CpuSet((2, 3)), False)
    assert (system.cpu_exclusive, system.load_balance, system.partition) == (True, True, None)
    top = read_group(HostRoot(tmp_path), 1, f"/{folder}")
    assert top is not None
    assert top.load_balance is False


def test_a_host_without_the_controller_says_so(tmp_path: Path) -> None:
    assert read_cpusets(HostRoot(tmp_path)).reason == "/proc/self/mountinfo: no such file"
    write(tmp_path, hosttrees.cgroup2("/", {"cgroup.controllers": "cpu memory\n"}))
    assert read_cpusets(HostRoot(tmp_path)).reason == "no cgroup hierarchy with a cpuset controller is mounted"
    assert read_group(HostRoot(tmp_path), 2, "/sys/fs/cgroup/none") is None


def test_groups_deeper_than_anyone_makes_them_are_left_alone(tmp_path: Path) -> None:
    files = {"cgroup.controllers": "cpuset\n"}
    for depth in range(1, 15):
        files |= group("/".join(["g"] * depth), "1", "1")
    found = read_cpusets(HostRoot(write(tmp_path, hosttrees.cgroup2("/", files))))
    assert len(found.groups) == 9
    assert not found.delegated


@pytest.mark.parametrize("damage", hosttrees.DAMAGES)
def test_damaged_groups_are_none_or_unknown(tmp_path: Path, damage: str) -> None:
    write(tmp_path, hosttrees.cgroup2("/", {"cgroup.controllers": "cpuset\n"} | group("fine", "1", "1", "root")))
    folder = tmp_path / "sys/fs/cgroup/odd"
    for name in ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.cpus.partition", "cpuset.cpus.exclusive"):
        hosttrees.damage(folder / name, damage)
    found = read_cpusets(HostRoot(tmp_path))
    assert [g.path for g in found.partitions] == ["/fine"]
    odd = read_group(HostRoot(tmp_path), 2, "/sys/fs/cgroup/odd")
    assert odd is None or not (odd.cpus or odd.effective or odd.partition or odd.exclusive)


def test_this_host_has_a_hierarchy_or_a_reason() -> None:
    found = read_cpusets(HostRoot())
    assert found.version is not None or found.reason
    assert all(g.folder == found.folder + g.path for g in found.groups)
