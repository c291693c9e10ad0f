"""Every reader on trees whose files are all damaged: a value, a None or an empty answer, and never an exception."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.host.cpu import cpufreq, cpuidle, cpuinfo, topology
from jitter_workshop.host.kernel import hypervisor, release
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks import cgroup, cpusets, listing
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.registry import find_tunable, tunables
from tests import hosttrees
from tests.hosttrees import CPU

READERS: dict[str, Callable[[HostRoot], object]] = {
    "cgroup": cgroup.read_cgroup,
    "clocksource": cpuinfo.read_clocksource,
    "governors": cpufreq.read_governors,
    "policy": lambda root: cpufreq.read_policy(root, f"/{CPU}/cpufreq/policy0"),
    "cpuidle": cpuidle.read_idle_driver,
    "latency": lambda root: cpuidle.read_resume_latency(root, 0),
    "cpusets": cpusets.find_cpusets,
    "hypervisor": hypervisor.read_hypervisor,
    "isolation": topology.read_isolation,
    "kernel": release.read_kernel,
    "config": lambda root: release.read_kernel_config(root, "6.12.9").value("HZ"),
    "tasks": lambda root: tuple(listing.each_thread(root)),
    "topology": topology.read_topology,
    "nodes": topology.read_memory_nodes,
    **{f"check {tunable.id}": lambda root, one=tunable: one.assess(Host(root, CpuSet((0,)))) for tunable in tunables()},
}

MORE = (
    "proc/cmdline",
    "proc/config.gz",
    "proc/swaps",
    "proc/7/stat",
    "proc/7/status",
    f"{CPU}/smt/control",
    f"{CPU}/cpuidle/current_governor",
    f"{CPU}/cpu0/cpuidle/state0/usage",
    f"{CPU}/cpufreq/policy0/related_cpus",
    f"{CPU}/intel_uncore_frequency/package_00_die_00/min_freq_khz",
    "sys/devices/system/machinecheck/machinecheck0/check_interval",
    "sys/devices/virtual/workqueue/writeback/cpumask",
    "sys/fs/resctrl/schemata",
    "sys/fs/resctrl/hot/schemata",
    "sys/fs/cgroup/cgroup.controllers",
    "sys/fs/cgroup/hot/cpuset.cpus",
    "sys/kernel/tracing/current_tracer",
)


@pytest.fixture(scope="module", params=hosttrees.DAMAGES)
def damaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> HostRoot:
    """A laptop's tree with more in it, of which every file is damaged in one way."""
    root = hosttrees.hybrid_laptop(tmp_path_factory.mktemp(f"damaged-{request.param}"))
    files = {path for path in root.rglob("*") if path.is_file()}
    for path in files:
        path.unlink()
    for path in sorted(files | {root / name for name in MORE}):
        hosttrees.damage(path, request.param)
    return HostRoot(root)


@pytest.mark.parametrize("name", READERS)
def test_a_reader_on_a_damaged_tree_gives_an_answer(damaged: HostRoot, name: str) -> None:
    READERS[name](damaged)


def test_nothing_is_made_up_from_damaged_files(damaged: HostRoot) -> None:
    machine = topology.read_topology(damaged)
    assert machine.caches == ()
    assert {c.core_type for c in machine.cpus} == {None}
    assert tuple(listing.each_process(damaged)) == ()
    assert cpufreq.policy_folders(damaged, CpuSet((0,))) == {}
    assert cpufreq.read_policy(damaged, f"/{CPU}/cpufreq/policy0").max_hz is None
    assert not topology.read_isolation(damaged).isolated
    assert cpusets.find_cpusets(damaged) is None
    assert find_tunable("swap").assess(Host(damaged, CpuSet((0,)))).state == "unavailable"


@pytest.mark.parametrize("name", READERS)
def test_a_reader_on_an_empty_tree_gives_an_answer(tmp_path: Path, name: str) -> None:
    READERS[name](HostRoot(tmp_path))
