"""Cgroups that hold CPUs for themselves, in both versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.host.cpu.topology import read_isolation
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cpusets import Cpusets, find_cpusets, isolated_at_run_time, read_group, read_groups
from jitter_workshop.model.cpuset import CpuSet, PartitionState
from tests import hosttrees
from tests.hosttrees import write

TOP = {"cgroup.controllers": "cpuset cpu\n", "cpuset.cpus.effective": "0-5\n"}


def group(path: str, cpus: str, effective: str, partition: str = "member", **more: str) -> dict[str, str]:
    files = {"cpuset.cpus": cpus, "cpuset.cpus.effective": effective, "cpuset.cpus.partition": partition, **more}
    return {f"{path}/{name}": f"{text}\n" for name, text in files.items()}


def version2(tmp_path: Path, files: dict[str, str]) -> tuple[HostRoot, Cpusets]:
    root = HostRoot(write(tmp_path, hosttrees.cgroup2("/", TOP | files)))
    sets = find_cpusets(root)
    assert sets == Cpusets(2, "/sys/fs/cgroup", "/")
    return root, sets


def test_partitions_of_version_2(tmp_path: Path) -> None:
    files = group("system.slice", "", "0-5") | {"user.slice/cgroup.procs": ""}
    files |= group("jitter", "6-7", "6-7", "isolated", **{"cpuset.cpus.exclusive": "6-7"})
    files |= group("broken", "5", "0-5", "isolated invalid (Cpu list in cpuset.cpus not exclusive)")
    root, sets = version2(tmp_path, files)
    broken, jitter, system = read_groups(root, sets)
    assert broken.partition == PartitionState("isolated", False, "Cpu list in cpuset.cpus not exclusive")
    assert (jitter.cpus, jitter.effective, jitter.exclusive_file) == (CpuSet((6, 7)), CpuSet((6, 7)), True)
    assert (system.cpus, system.partition, system.exclusive_file) == (CpuSet(), PartitionState("member"), False)
    # Kernels before 6.8 have no list: a partition that does not hold counts for nothing.
    assert isolated_at_run_time(root, sets) == CpuSet((6, 7))
    assert read_isolation(root).isolated == CpuSet((6, 7))


def test_the_kernels_own_list_is_believed(tmp_path: Path) -> None:
    root, sets = version2(tmp_path, {"cpuset.cpus.isolated": "3\n"} | group("a", "6", "6", "isolated"))
    assert isolated_at_run_time(root, sets) == read_isolation(root).isolated == CpuSet((3,))


@pytest.mark.parametrize(("top", "isolated"), [("0", "2-3"), ("1", "")])
def test_cpusets_of_version_1(tmp_path: Path, top: str, isolated: str) -> None:
    mount = "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    mount += "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    folder = "sys/fs/cgroup/cpuset"
    files = {
        "proc/self/mountinfo": mount,
        f"{folder}/cpuset.sched_load_balance": f"{top}\n",
        f"{folder}/system/cpuset.cpus": "0-1\n",
        f"{folder}/system/cpuset.sched_load_balance": "1\n",
        f"{folder}/hot/cpuset.cpus": "2-3\n",
        f"{folder}/hot/cpuset.sched_load_balance": "0\n",
    }
    root = HostRoot(write(tmp_path, files))
    sets = find_cpusets(root)
    assert sets == Cpusets(1, f"/{folder}", "/")
    hot, system = read_groups(root, sets)
    assert (hot.name, hot.cpus, hot.effective, hot.balanced) == ("hot", CpuSet((2, 3)), CpuSet((2, 3)), False)
    assert system.balanced
    assert read_isolation(root).isolated == CpuSet.parse_list(isolated)


def test_a_host_without_the_controller_has_none(tmp_path: Path) -> None:
    assert find_cpusets(HostRoot(tmp_path)) is None
    assert isolated_at_run_time(HostRoot(tmp_path), None) == CpuSet()
    write(tmp_path, hosttrees.cgroup2("/", {"cgroup.controllers": "cpu memory\n"}))
    assert find_cpusets(HostRoot(tmp_path)) is None
    assert read_isolation(HostRoot(tmp_path)).partitions is None


@pytest.mark.parametrize("damage", hosttrees.DAMAGES)
def test_damaged_groups_are_none_or_unknown(tmp_path: Path, damage: str) -> None:
    root, sets = version2(tmp_path, group("fine", "1", "1", "isolated"))
    folder = tmp_path / "sys/fs/cgroup/odd"
    for name in ("cpuset.cpus", "cpuset.cpus.effective", "cpuset.cpus.partition", "cpuset.cpus.exclusive"):
        hosttrees.damage(folder / name, damage)
    assert isolated_at_run_time(root, sets) == CpuSet((1,))
    odd = read_group(root, sets, "/sys/fs/cgroup/odd")
    assert odd is None or not (odd.cpus or odd.effective or odd.partition)


def test_this_host_has_a_hierarchy_or_none() -> None:
    root = HostRoot()
    sets = find_cpusets(root)
    assert sets is None or all(g.folder.startswith(sets.where) for g in read_groups(root, sets))
