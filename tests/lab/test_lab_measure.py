"""Measuring on isolated CPUs of a real kernel: where the threads ran. Latencies in an emulator mean nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from jitter_workshop.flow.measuring.isolated_set import not_used
from tests.lab.machine import Machine

pytestmark = [pytest.mark.lab, pytest.mark.soak]

HOT = "2-3"
# Reading an emulated clock may take microseconds, which no threshold or interval may be near to.
SPIN = ("--workload", "spin", "--threshold-us", "1000")
RING = ("--workload", "ring", "--interval-us", "100")
NOT_USED = not_used("")


def measured(machine: Machine, *words: str, user: str = "root") -> dict[str, Any]:
    """A run of one second in the guest."""
    done = machine.workshop("measure", "--duration", "1", "--json", *words, user=user, check=True)
    run: dict[str, Any] = done.json()
    assert run["complete"], run["notes"]
    return run


def ran_on(run: dict[str, Any]) -> set[int]:
    return {cpu for thread in run["threads"] for cpu in thread["cpus"]}


def check_on_isolated_cpus(machine: Machine) -> None:
    with machine.unchanged():
        machine.workshop("apply", "isolation", "--cpus", HOT, "--yes", "--json", check=True)
        try:
            spin = measured(machine, *SPIN)
            ring = measured(machine, *RING)
            free = measured(machine, *SPIN, "--placement", "none")
            learners = measured(machine, *SPIN, user="learner")
        finally:
            machine.workshop("restore", "--json", check=True)
    for inside in (spin, ring):
        assert "isolation" not in inside["notes"]
        assert "isolated from the scheduler" in inside["placement"]["why"]
    assert len(ran_on(spin)) == 1
    assert ran_on(spin) <= {2, 3}
    assert ran_on(ring) == {2, 3}
    # A run that stays outside has the other CPUs, and says so.
    for outside in (free, learners):
        assert ran_on(outside) <= {0, 1}
        assert outside["notes"]["isolation"].startswith(NOT_USED)
    assert [one["id"] for one in spin["applied"]] == ["isolation"]
    assert "isolation" not in measured(machine, *SPIN)["notes"]


def test_a_run_is_made_on_the_isolated_cpus(lab: Machine) -> None:
    check_on_isolated_cpus(lab)


def test_a_run_is_made_in_a_set_of_version_1(lab_factory: Callable[..., Machine]) -> None:
    check_on_isolated_cpus(lab_factory(cgroup="v1"))


def check_on_both_sides(machine: Machine) -> None:
    """With one CPU isolated and its sibling offline, the ring has its accumulator there and its producer outside,
    before and after a whole process was inside."""
    with machine.unchanged():
        machine.workshop("apply", "smt", "isolation", "--cpus", "3", "--yes", "--json", check=True)
        try:
            runs = [measured(machine, *RING), measured(machine, *SPIN), measured(machine, *RING)]
        finally:
            machine.workshop("restore", "--json", check=True)
    assert ran_on(runs[1]) == {3}
    for ring in (runs[0], runs[2]):
        assert "isolation" not in ring["notes"]
        assert ring["placement"]["inside"] == ["accumulator"]
        assert ring["clock"]["offset_ns"] is not None
        where = {thread["name"]: set(thread["cpus"]) for thread in ring["threads"]}
        assert where.pop("accumulator") == {3}
        assert where["producer"] == {ring["placement"]["producer"]}
        assert all(3 not in cpus for cpus in where.values())


def test_a_ring_is_on_both_sides_of_a_partition(lab: Machine) -> None:
    check_on_both_sides(lab)


def test_a_ring_is_on_both_sides_of_a_set_of_version_1(lab_factory: Callable[..., Machine]) -> None:
    check_on_both_sides(lab_factory(cgroup="v1"))
