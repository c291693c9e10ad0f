"""A lesson's measurement as a host can make it, and what placing its threads would change."""

from __future__ import annotations

import pytest

from jitter_workshop.bench.placement import choose_cpus
from jitter_workshop.flow.measuring.placement_plan import placement_plan, request_of
from jitter_workshop.flow.measuring.request import check_request
from jitter_workshop.model.course import Measurement
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cache, Cpu, Topology
from tests import madeup

FOUR = Topology(
    tuple(Cpu(n, 0, n, 0, True, True, CpuSet.of([n])) for n in range(4)),
    (Cache(3, "Unified", 1 << 20, CpuSet.of(range(4))),),
)


def asked(workload: str, placement: str = "auto", **other: object) -> Measurement:
    return Measurement("measure", "a", workload, placement, "quick", **other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("workload", "threads"),
    [
        ("ring", {"producer", "accumulator", "journaller"}),
        ("spin", {"sampler"}),
        ("wakeup", {"sleeper"}),
        ("ack", {"sender", "receiver"}),
    ],
)
def test_each_thread_is_called_by_its_name(workload: str, threads: set[str]) -> None:
    request = request_of(asked(workload), None, {}, 4)
    check_request(request)
    placement = choose_cpus(FOUR, request.wish(), CpuSet())
    view = placement_plan(placement, FOUR.allowed, request.workload)
    assert {c.path for c in view.changes} == {f"sched_setaffinity({name})" for name in threads}
    assert {int(str(c.after)) for c in view.changes} == set(placement.hot)
    assert all(c.why for c in view.changes)
    free = choose_cpus(FOUR, request_of(asked(workload, "none"), None, {}, 4).wish(), CpuSet())
    assert placement_plan(free, FOUR.allowed, workload).changes == ()


def test_chosen_cpus_go_to_the_threads_that_a_workload_has() -> None:
    chosen = {"producer": 2, "accumulator": 3}
    for workload in ("ring", "ack"):
        request = request_of(asked(workload), None, chosen, 4)
        assert (request.producer_cpu, request.accumulator_cpu, request.cpu) == (2, 3, None)
        placed = choose_cpus(FOUR, request.wish(), CpuSet())
        assert (placed.producer, placed.accumulator) == (2, 3)
    for workload in ("spin", "wakeup"):
        request = request_of(asked(workload), None, chosen, 4)
        assert (request.producer_cpu, request.cpu) == (None, 2)
        assert choose_cpus(FOUR, request.wish(), CpuSet()).sampler == 2


@pytest.mark.parametrize(
    ("workload", "cpus", "measured"),
    [("ring", 1, "spin"), ("ack", 1, "spin"), ("wakeup", 1, "wakeup"), ("spin", 1, "spin"), ("ack", 2, "ack")],
)
def test_one_cpu_is_enough_for_one_thread_only(workload: str, cpus: int, measured: str) -> None:
    assert request_of(asked(workload), None, {}, cpus).workload == measured
    # Beside a run of the clock loop another one is measured: the two shall compare.
    spin, _ = madeup.make_run(workload="spin", name="spin_gap")
    beside = request_of(asked(workload), None, {}, 4, spin).workload
    assert beside == ("wakeup" if workload == "wakeup" else "spin")


def test_a_duty_is_for_the_clock_loop() -> None:
    assert request_of(asked("spin", duty=10), None, {}, 4).duty == 10
    assert request_of(asked("ring", duty=10), None, {}, 4).duty == 100


def test_memory_is_for_the_lesson_s_own_workload() -> None:
    assert request_of(asked("ring", memory="fresh"), None, {}, 4).memory == "fresh"
    assert request_of(asked("ring", memory="fresh"), None, {}, 1).memory == "none"
