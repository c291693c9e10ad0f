"""Test the readers of each CPU's settings: frequency policy, bias, latency limit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.host.cpu import cpufreq, cpuidle
from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.model.cpuset import CpuSet
from tests import hosttrees
from tests.hosttrees import CPU, write


class Counting(HostRoot):
    """Remembers what was read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.seen: list[str] = []

    def _read(self, path: str, limit: int, *, whole: bool) -> TextReading:
        self.seen.append(path)
        return super()._read(path, limit, whole=whole)


def shared_policies(root: Path) -> Path:
    """Policy 0 governs CPUs 0-3 with 3 offline; the other came to life with CPU 6, so that it is named after it."""
    made = hosttrees.policy(0, cpus="0 1 2", driver="acpi-cpufreq", governor="schedutil", low_khz=1, high_khz=2)
    made |= {f"{CPU}/cpufreq/policy0/related_cpus": "0 1 2 3\n"}
    made |= hosttrees.policy(6, cpus="4 5 6 7", driver="acpi-cpufreq", governor="performance", low_khz=1, high_khz=2)
    return write(root, made)


def test_one_cpus_policy(tmp_path: Path) -> None:
    root = HostRoot(shared_policies(tmp_path))
    for cpu, number, governor in ((0, 0, "schedutil"), (3, 0, "schedutil"), (4, 6, "performance")):
        (folder,) = cpufreq.policy_folders(root, CpuSet((cpu,)))
        assert folder == f"/{CPU}/cpufreq/policy{number}"
        assert cpufreq.read_policy(root, folder).governor == governor
    assert cpufreq.policy_folders(root, CpuSet((1, 2, 5, 9))) == {
        f"/{CPU}/cpufreq/policy0": CpuSet((1, 2)),
        f"/{CPU}/cpufreq/policy6": CpuSet((5,)),
    }
    assert cpufreq.policy_folders(root, CpuSet()) == {}


def test_the_governors_cost_one_file_a_policy(tmp_path: Path, host_tree: Callable[[str], Path]) -> None:
    root = Counting(host_tree("server64"))
    assert cpufreq.read_governors(root) == ("powersave",)
    assert len(root.seen) == 64
    assert cpufreq.read_governors(HostRoot(shared_policies(tmp_path))) == ("performance", "schedutil")
    assert cpufreq.read_governors(HostRoot(host_tree("guest"))) == ()


def test_hot_cpus_cost_no_look_at_the_others(host_tree: Callable[[str], Path]) -> None:
    root = Counting(host_tree("server64"))
    assert list(cpufreq.policy_folders(root, CpuSet((30, 31)))) == [
        f"/{CPU}/cpufreq/policy30",
        f"/{CPU}/cpufreq/policy31",
    ]
    assert len(root.seen) == 2


@pytest.mark.parametrize(("text", "wanted"), [("0", 0), ("15", 15), ("6", 6), ("16", None), ("performance", None)])
def test_energy_performance_bias(tmp_path: Path, text: str, wanted: int | None) -> None:
    write(tmp_path, {cpufreq.epb_path(3)[1:]: f"{text}\n"})
    assert cpufreq.read_epb(HostRoot(tmp_path), 3) == wanted
    assert cpufreq.read_epb(HostRoot(tmp_path), 4) is None


@pytest.mark.parametrize(
    ("text", "wanted", "limit"),
    [
        ("n/a", "n/a", 0),
        ("0", "0", None),
        ("20", "20", 20),
        ("", None, None),
        ("-1", None, None),
        ("1" * 11, None, None),
    ],
)
def test_the_latency_limit_of_one_cpu(tmp_path: Path, text: str, wanted: str | None, limit: int | None) -> None:
    write(tmp_path, {cpuidle.resume_latency_path(1)[1:]: f"{text}\n"})
    found = cpuidle.read_resume_latency(HostRoot(tmp_path), 1)
    assert (found.text, found.limit_us) == (wanted, limit)
    assert bool(found.reason) == (wanted is None)
    assert cpuidle.read_resume_latency(HostRoot(tmp_path), 2).reason == "no such file"


def test_the_current_frequency_is_in_hz_and_unknown_where_none_is_shown(tmp_path: Path) -> None:
    write(
        tmp_path, {f"{CPU}/cpu3/cpufreq/scaling_cur_freq": "1200000\n", f"{CPU}/cpu4/cpufreq/scaling_cur_freq": "<x>\n"}
    )
    found = [cpufreq.read_current_hz(HostRoot(tmp_path), cpu) for cpu in (3, 4, 5)]
    assert found == [1_200_000_000, None, None]


def test_the_use_of_idle_states_is_added_up_over_states_and_cpus(tmp_path: Path) -> None:
    states = {(1, 0): (9, 0), (1, 1): (100, 2), (2, 0): (1, 0), (2, 1): (10, 133)}
    for (cpu, state), (usage, latency) in states.items():
        folder = f"{CPU}/cpu{cpu}/cpuidle/state{state}"
        write(tmp_path, {f"{folder}/usage": f"{usage}\n", f"{folder}/latency": f"{latency}\n"})
    root = HostRoot(tmp_path)
    for cpus, used in (([1], (109, 200)), ([1, 2], (120, 200 + 1_330)), ([], (0, 0))):
        latencies = cpuidle.read_exit_latencies(root, cpus)
        assert latencies is not None
        assert cpuidle.read_idle_use(root, latencies) == used
    assert cpuidle.read_exit_latencies(root, [1, 3]) is None  # a CPU without idle states: not zero
