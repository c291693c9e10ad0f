"""The tool on machines of other shapes: what it changes it gives back to the last thread, killed and cut as well.

The same as ``python -m tests.lab.matrix``, which makes the table in docs/safety.md. The three most ordinary machines
are tried each time; all of them, with kills, cuts and a quick run, are soak.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lab import matrix
from tests.lab.machine import Machine
from tests.lab.shapes import SHAPES

pytestmark = pytest.mark.lab

ShapedLab = Callable[..., Machine]
FACTS: dict[str, dict[str, object]] = {
    "smt": {"present": "0-3", "smt": "on", "siblings": 2, "groups": ["cgroup2"], "domains": 4, "clock": "tsc"},
    "rt": {"realtime": "1", "smt": "on"},
    "v1": {"groups": ["cgroup"], "smt": "on"},
    "none": {"groups": [], "smt": "on"},
    "one": {"present": "0", "siblings": 1},
    "eight": {"present": "0-7", "siblings": 4, "smt": "on"},
    "nodes": {"nodes": 2, "packages": 2, "siblings": 4},
    "shared": {"present": "0-3", "domains": 2},
    "many": {"present": "0-31", "nodes": 2, "packages": 2, "siblings": 16, "domains": 32},
    "hpet": {"clock": "hpet"},
    "newest": {"smt": "on", "drivers": ["acpi-cpufreq"]},
    "amd": {"drivers": ["amd-pstate"], "siblings": 4},
    "hybrid": {"top_khz": ["1800000", "3000000"]},
    "arm64": {"machine": "aarch64", "present": "0-3", "drivers": []},
}
"""The properties that each machine must show to be the one that it is said to be."""

KILLS = 20
CUTS = 8


def check(machine: Machine, hot: str, *words: str) -> None:
    """Applied, every word of it; given back, all of it; and a second restore finds nothing. A write that is refused was
    made impossible by nothing that this plan did itself."""
    row = matrix.apply_and_restore(machine, hot, list(words))
    assert matrix.faults(row) == []
    own = ("but the plan was made for", "no longer there", "jitter-workshop")
    assert [one for one in row["refused"] if any(words in one for words in own)] == []
    assert row["by_tunable"].keys() == set(words)


def test_siblings_taken_away_come_back_with_all_their_tasks(lab: Machine) -> None:
    check(lab, SHAPES["smt"].hot, *matrix.EXPLICIT)


def test_a_real_time_kernel_gets_back_its_interrupts_threads(lab_rt: Machine) -> None:
    check(lab_rt, SHAPES["rt"].hot, "isolation", "irq-affinity", "kernel-threads")


def test_siblings_and_sets_of_version_1(lab_shape: ShapedLab) -> None:
    check(lab_shape(SHAPES["v1"]), SHAPES["v1"].hot, *matrix.EXPLICIT)


def test_the_script_of_a_plan_gives_back_the_same(lab: Machine) -> None:
    """``plan --sh`` has the tool's own order: on a kernel that clamps, everything is back."""
    with lab.unchanged():
        drawn = lab.workshop("plan", *matrix.EXPLICIT, "--cpus", SHAPES["smt"].hot, "--sh", check=True)
        lab.write("/tmp/plan.sh", drawn.stdout)
        for verb in ("apply", "restore"):
            done = lab.run(["sh", "/tmp/plan.sh", verb])
            assert (done.code, done.stderr) == (0, ""), verb


@pytest.mark.soak
@pytest.mark.parametrize("name", SHAPES)
def test_a_machine_agrees_with_its_sentence(name: str, lab_shape: ShapedLab) -> None:
    seen = lab_shape(SHAPES[name]).call(matrix.facts)
    assert {key: seen[key] for key in FACTS[name]} == FACTS[name]


@pytest.mark.soak
@pytest.mark.parametrize("name", SHAPES)
def test_everything_is_applied_and_given_back(name: str, lab_shape: ShapedLab) -> None:
    assert matrix.faults(matrix.everything(lab_shape(SHAPES[name]), SHAPES[name])) == []


@pytest.mark.soak
@pytest.mark.parametrize("name", SHAPES)
def test_a_killed_agent_loses_nothing(name: str, lab_shape: ShapedLab) -> None:
    shape = SHAPES[name]
    lab = lab_shape(shape)
    status = lab.workshop("status", "--cpus", shape.hot, "--json").json()
    with lab.unchanged():
        told = matrix.kills(lab, shape, matrix.words_of(status, shape), KILLS)
        assert matrix.bad(told) == []
    assert len(told["moments"]) == KILLS
    assert sum(one["killed"] for one in told["moments"]) >= KILLS * 3 // 4, told["moments"]


@pytest.mark.soak
@pytest.mark.parametrize("name", SHAPES)
def test_a_power_cut_loses_nothing(name: str, lab_shape: ShapedLab) -> None:
    told = matrix.cuts(lab_shape(SHAPES[name], disk=True), SHAPES[name], CUTS)
    assert matrix.bad(told) == []
    assert sum(one["cut"] for one in told["moments"]) >= CUTS * 3 // 4, told["moments"]


@pytest.mark.soak
@pytest.mark.parametrize("name", SHAPES)
def test_a_quick_run_ends(name: str, lab_shape: ShapedLab) -> None:
    lab = lab_shape(SHAPES[name])
    if why := matrix.cannot_measure(SHAPES[name]):
        pytest.skip(why)
    told = matrix.measured(lab, SHAPES[name])
    assert told.get("trouble") is None
    assert told["code"] == 0, told["said"]
    assert told["complete"], told["notes"]
