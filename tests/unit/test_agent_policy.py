"""Test the limits of every caller's plan: the last housekeeping CPU stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.agent import policy
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from tests import hosttrees, tuned_tree

CPU = "/sys/devices/system/cpu"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tuned_tree.make(tmp_path_factory.mktemp("policy"))


def host(tree: Path, hot: str) -> Host:
    return Host(HostRoot(tree), CpuSet.parse_list(hot))


def change(tunable: str, path: str, after: str, kind: str = "value", n: int = 1, **more: Any) -> Change:
    return Change(n, tunable, path, "x", after, "runtime", "low", "because", kind=kind, **more)


def refused(tree: Path, hot: str, *changes: Change) -> list[str]:
    return [one.reason for one in policy.permitted(host(tree, hot), changes)[1]]


def test_a_path_that_the_tunable_does_not_own_is_refused(tree: Path) -> None:
    for path in ("/etc/passwd", f"{CPU}/cpufreq/policy0/../../../../etc/passwd", f"{CPU}/cpufreq/policy0/x"):
        assert "may not write this path" in refused(tree, "2-3", change("governor", path, "performance"))[0]
    assert refused(tree, "2-3", change("governor", f"{CPU}/cpufreq/policy2/scaling_governor", "performance")) == []


def test_the_last_housekeeping_cpu_is_never_taken_offline(tree: Path) -> None:
    cycles = [change("hotplug", f"{CPU}/cpu{n}/online", "0, then 1", "cpu-cycle", n) for n in (1, 2, 3)]
    assert refused(tree, "1-3", *cycles) == []
    assert "last housekeeping CPU" in refused(tree, "0,2-3", *cycles)[0]


@pytest.mark.parametrize(
    ("tunable", "path", "after", "kind"),
    [
        ("irq-affinity", "/proc/irq/24/smp_affinity_list", "2-3", "cpu-list"),
        ("irq-affinity", "/proc/irq/default_smp_affinity", "c", "cpu-mask"),
        ("irq-affinity", "/proc/irq/24/smp_affinity_list", "9", "cpu-list"),
        ("irq-affinity", "/proc/irq/24/smp_affinity_list", "", "cpu-list"),
        ("workqueue-mask", "/sys/devices/virtual/workqueue/cpumask", "c", "workqueue-mask"),
        ("workqueue-mask", "/sys/devices/virtual/workqueue/cpumask", "nonsense", "workqueue-mask"),
        ("isolation", "/sys/fs/cgroup/jitter-workshop/cpuset.cpus", "0-3", "cpu-list"),
    ],
)
def test_housekeeping_cpus_keep_interrupts_work_and_their_freedom(
    tree: Path, tunable: str, path: str, after: str, kind: str
) -> None:
    assert "housekeeping CPU" in refused(tree, "2-3", change(tunable, path, after, kind))[0]
    good = "2-3" if tunable == "isolation" else "0-1" if kind == "cpu-list" else "3"
    assert refused(tree, "2-3", change(tunable, path, good, kind)) == []


def test_one_interrupt_may_be_sent_to_the_hot_cpus_for_a_lesson(tree: Path) -> None:
    path = "/proc/irq/24/smp_affinity_list"
    assert refused(tree, "2-3", change("irq-here", path, "2", "cpu-list")) == []
    other = change("irq-here", "/proc/irq/default_smp_affinity", "c", "cpu-mask")
    assert "may not write this path" in refused(tree, "2-3", other)[0]


def test_nothing_is_isolated_where_every_cpu_is_hot(tree: Path) -> None:
    made = change("isolation", "/sys/fs/cgroup/jitter-workshop", "present", "cgroup")
    assert "isolate every housekeeping CPU" in refused(tree, "0-3", made)[0]


def test_smt_off_may_not_take_the_last_one(tmp_path: Path) -> None:
    files = hosttrees.kernel("smt") | hosttrees.cpu_lists("0-3")
    for n in range(4):
        files |= hosttrees.cpu_files(n, core=n // 2, siblings=(n // 2 * 2, n // 2 * 2 + 1), package_cpus=range(4))
    tree = hosttrees.write(tmp_path, files)
    off = change("smt", f"{CPU}/smt/control", "off")
    assert refused(tree, "2-3", off) == []
    assert "last housekeeping CPU" in refused(tree, "0,2", off)[0]


@pytest.mark.parametrize(
    ("cpus", "error"), [("", UsageError), ("two", UsageError), ("7", HostError), ("0-9", HostError), ("-1", UsageError)]
)
def test_hot_cpus_are_checked(tree: Path, cpus: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        policy.host_for(HostRoot(tree), cpus)
    assert policy.host_for(HostRoot(tree), "2,3").hot == CpuSet((2, 3))


@given(st.sets(st.integers(0, 3), min_size=1), st.lists(st.integers(0, 3), unique=True))
def test_a_housekeeping_cpu_stays_online_for_every_choice_of_offline_cpus(
    tree: Path, hot: set[int], going: list[int]
) -> None:
    changes = [change("hotplug", f"{CPU}/cpu{n}/online", "0", n=n) for n in going]
    one = Host(HostRoot(tree), CpuSet.of(hot))
    allowed, _ = policy.permitted(one, changes)
    gone = {change.n for change in allowed}
    assert not gone or set(one.online) - gone - hot
