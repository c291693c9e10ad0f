"""Test what is set for each CPU: frequency policy, bias, idle states, latency limit; and where deferred work may
run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.host.cpu import cpufreq, cpuidle
from jitter_workshop.host.fields import Fields, parse_choice
from jitter_workshop.host.kernel import workqueues
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
    for cpu in (0, 1, 2, 3):
        policy = cpufreq.read_policy(root, cpu)
        assert policy is not None
        assert (policy.id, policy.governor, policy.folder) == (0, "schedutil", f"/{CPU}/cpufreq/policy0")
        assert policy.current_hz is None
    policy = cpufreq.read_policy(root, 4, current=True)
    assert policy is not None
    assert (policy.id, policy.governor, policy.current_hz) == (6, "performance", 1_000)
    assert cpufreq.read_policy(root, 8) is None
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
    assert cpufreq.read_policy(root, 30) is not None
    assert not any("policy" in path and "policy30" not in path for path in root.seen[2:])


def test_the_drivers_switches(tmp_path: Path, host_tree: Callable[[str], Path]) -> None:
    write(
        tmp_path,
        {
            f"{CPU}/intel_pstate/status": "active\n",
            f"{CPU}/intel_pstate/no_turbo": "1\n",
            f"{CPU}/intel_pstate/min_perf_pct": "27\n",
            f"{CPU}/intel_pstate/max_perf_pct": "x\n",
        },
    )
    driver = cpufreq.read_frequency_driver(HostRoot(tmp_path))
    assert (driver.intel_status, driver.no_turbo, driver.min_perf_percent) == ("active", True, 27)
    assert (driver.max_perf_percent, driver.amd_status, driver.boost) == (None, None, None)
    assert driver.reasons["max_perf_percent"] == f"/{CPU}/intel_pstate/max_perf_pct: does not hold a whole number"
    assert driver.reasons["boost"] == f"/{CPU}/cpufreq/boost: no such file"
    nothing = cpufreq.read_frequency_driver(HostRoot(host_tree("guest")))
    assert set(nothing.reasons) == set(cpufreq.DRIVER_PATHS)


@pytest.mark.parametrize(("text", "wanted"), [("0", 0), ("15", 15), ("6", 6), ("16", None), ("performance", None)])
def test_energy_performance_bias(tmp_path: Path, text: str, wanted: int | None) -> None:
    write(tmp_path, {cpufreq.epb_path(3)[1:]: f"{text}\n"})
    assert cpufreq.read_epb(HostRoot(tmp_path), 3) == wanted
    assert cpufreq.read_epb(HostRoot(tmp_path), 4) is None


def test_idle_states_of_one_cpu(tmp_path: Path) -> None:
    names = ("POLL", "C1", "C6")
    for index, name in enumerate(names):
        write(
            tmp_path,
            {
                f"{CPU}/cpu2/cpuidle/state{index}/{key}": f"{value}\n"
                for key, value in {
                    "name": name,
                    "desc": f"state {name}",
                    "latency": 10 * index,
                    "residency": 20 * index,
                    "disable": (0, 1, 2)[index],
                    "usage": 100 + index,
                    "time": 5_000,
                    "above": 1,
                }.items()
            },
        )
    root = HostRoot(tmp_path)
    states = cpuidle.read_idle_states(root, 2)
    assert [(s.name, s.exit_latency_us, s.disabled) for s in states] == [
        ("POLL", 0, False),
        ("C1", 10, True),
        ("C6", 20, False),
    ]
    assert cpuidle.read_disabled(root, 2) == {0: False, 1: True, 2: False}
    assert cpuidle.read_idle_use(root, 2)[1] == cpuidle.IdleUse(1, 101, 5_000, 1, None)
    assert cpuidle.read_idle_states(root, 0) == ()
    assert cpuidle.read_disabled(root, 0) == {}


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


def test_a_guest_that_polls_before_it_halts(tmp_path: Path) -> None:
    folder = "sys/module/haltpoll/parameters"
    write(tmp_path, {f"{folder}/guest_halt_poll_ns": "200000\n", f"{folder}/guest_halt_poll_allow_shrink": "Y\n"})
    found = cpuidle.read_haltpoll(HostRoot(tmp_path))
    assert (found.guest_halt_poll_ns, found.guest_halt_poll_allow_shrink) == (200_000, True)
    assert set(found.reasons) == {"guest_halt_poll_grow", "guest_halt_poll_grow_start", "guest_halt_poll_shrink"}


def test_workqueues(tmp_path: Path) -> None:
    folder = workqueues.FOLDER[1:]
    write(
        tmp_path,
        {
            f"{folder}/cpumask": "ffff,0000000f\n",
            f"{folder}/cpumask_requested": "ffff,ffffffff\n",
            f"{folder}/cpumask_isolated": "what\n",
            f"{folder}/power/control": "auto\n",
            f"{folder}/uevent": "",
            f"{folder}/writeback/cpumask": "f\n",
            f"{folder}/writeback/affinity_scope": "default (cache)\n",
            f"{folder}/writeback/affinity_strict": "0\n",
            f"{folder}/writeback/nice": "-5\n",
            f"{folder}/writeback/per_cpu": "0\n",
            f"{folder}/old/per_cpu": "1\n",
        },
    )
    root = HostRoot(tmp_path)
    masks = workqueues.read_workqueue_masks(root)
    assert masks.cpumask == CpuSet((0, 1, 2, 3, *range(32, 48)))
    assert masks.requested == CpuSet.of(range(48))
    assert (masks.isolated, list(masks.reasons)) == (None, ["isolated"])
    old, writeback = workqueues.read_workqueues(root)
    assert (writeback.name, writeback.cpumask, writeback.nice) == ("writeback", CpuSet((0, 1, 2, 3)), -5)
    assert (writeback.affinity_scope, writeback.affinity_strict, writeback.per_cpu) == ("default", False, False)
    assert (old.cpumask, old.affinity_scope, old.per_cpu) == (None, None, True)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("always [madvise] never", ("madvise", ("always", "madvise", "never"))),
        ("[none] voluntary full", ("none", ("none", "voluntary", "full"))),
        ("none voluntary (full)", (None, ("none", "voluntary", "(full)"))),
        ("[a] [b]", (None, ("a", "b"))),
        ("[]", (None, ("[]",))),
        ("", (None, ())),
        (None, (None, ())),
    ],
)
def test_choices(text: str | None, wanted: tuple[str | None, tuple[str, ...]]) -> None:
    assert parse_choice(text) == wanted


@given(st.text(max_size=80))
def test_any_text_is_a_choice_or_none(text: str) -> None:
    chosen, everything = parse_choice(text)
    assert chosen is None or chosen in everything


def test_every_kind_of_field_says_why_it_has_no_value(tmp_path: Path) -> None:
    write(tmp_path, {"odd": "some [thing\n", "empty": "\n", "minus": "-3\n"})
    fields = Fields(HostRoot(tmp_path), {"odd": "/odd", "empty": "/empty", "minus": "/minus", "none": "/none"})
    assert fields.word("odd") == "some [thing"
    assert fields.reasons == {}
    assert [fields.integer("odd"), fields.switch("odd"), fields.choice("odd")] == [None] * 3
    assert [fields.cpu_list("odd"), fields.cpu_mask("odd"), fields.word("empty")] == [None] * 3
    assert fields.integer("minus") == -3
    assert fields.integer("minus", 0) is None
    assert fields.reasons == {
        "odd": "/odd: does not hold a CPU mask",
        "empty": "/empty: is empty",
        "minus": "/minus: does not hold a whole number",
    }
    for read in (fields.integer, fields.switch, fields.word, fields.choice, fields.cpu_list, fields.cpu_mask):
        assert read("none") is None
    assert fields.reasons["none"] == "/none: no such file"
