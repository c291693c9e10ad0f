"""Test the words on one load from memory, and on what a neighbour costs."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.course import CONTROL
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ALONE
from jitter_workshop.presenter.course.loads import cost_of_neighbour, one_load, told_of_loads
from tests import madeup
from tests.fakes import open_workshop


def run(memory: str, ns: int, ident: str = "aaaa", step_ns: int = 10, tail_ns: int | None = None) -> Run:
    """A ``spin`` run whose values are all ``ns``, except for 2 % of them."""
    values = [ns] * 98 + [tail_ns or ns] * 2
    made, _ = madeup.make_run([values], f"20260101-000000-{ident}", name="spin_gap", workload="spin", memory=memory)
    return dataclasses.replace(made, clock=dataclasses.replace(made.clock, resolution_ns=step_ns))


def test_the_division_is_done_and_the_steps_of_the_clock_are_told() -> None:
    told = one_load(run("far", 560), run("near", 20))
    assert told == (
        "One load from far memory takes (560 - 20) / 4 = 135 ns longer than a near one. The clock counts in steps of "
        "10 ns: the near median is 15–25 ns, so the factor of the two medians is 22 to 38."
    )


@pytest.mark.parametrize(("near_ns", "step_ns"), [(20, 1), (200, 10), (4, 10)])
def test_steps_that_hardly_matter_and_those_that_hide_all_are_not_told(near_ns: int, step_ns: int) -> None:
    assert one_load(run("far", 560, step_ns=step_ns), run("near", near_ns, step_ns=step_ns)).endswith(
        "than a near one."
    )


def test_far_memory_that_was_not_slower_has_no_load_to_tell() -> None:
    assert one_load(run("far", 20), run("near", 20)) == ""


def recorded(walk: ChapterWalk, memories: tuple[str, str], far_ns: int, number: int) -> None:
    for slot, memory in zip(("measure", "again"), memories, strict=True):
        made = run(
            memory, far_ns if memory == "far" else 20, f"aa{number}{slot[0]}".replace("m", "b"), tail_ns=2 * far_ns
        )
        walk._context.runs.remember(made)
        walk.record("measure" if slot == "measure" else "again", made)


def test_only_a_pair_of_far_and_near_memory_is_told_and_then_the_cost_of_the_neighbour() -> None:
    walk = open_workshop(course=builtin_course()).walk("caches")
    assert told_of_loads(walk) == []
    recorded(walk, ("far", "far"), 560, 0)
    assert told_of_loads(walk) == []
    recorded(walk, ("far", "near"), 560, 1)
    told, missing = told_of_loads(walk)
    assert "(560 - 20) / 4" in told
    assert "was not measured" in missing
    walk.noise.switch()
    recorded(walk, ("far", "near"), 400, 2)
    told, cost = told_of_loads(walk)
    assert "(400 - 20) / 4" in told
    assert cost == "The neighbour: a far load takes 40 ns more beside it (p50 400 → 560 ns, 40%)."
    walk.noise.switch()
    assert told_of_loads(walk)[1] == cost


@pytest.mark.parametrize(("beside_ns", "told"), [(541, False), (575, False), (585, True), (490, False)])
def test_a_small_difference_is_no_cost(beside_ns: int, told: bool) -> None:
    said = cost_of_neighbour(run("far", beside_ns), run("far", 541))
    assert f"p50 541 → {beside_ns} ns" in said
    assert ("takes" in said, "too small to tell" in said) == (told, not told)


def test_the_control_run_tells_the_cost_and_is_the_third_curve() -> None:
    walk = open_workshop(course=builtin_course()).walk("caches")
    recorded(walk, ("far", "near"), 560, 1)
    assert walk.runs.control is None
    walk.record(CONTROL, run("far", 400, "cccc"))
    assert len(told_of_loads(walk)) == 2
    assert [one.curve.role for one in walk.runs.curves()] == ["cure", "before", "after"]
    assert walk.noise.offer().endswith("The control run is then the first run.")
    walk.noise.switch()
    first = walk.runs.run_in("measure")
    assert first is not None
    assert (first.percentile("50"), walk.progress.noise, walk.runs.control) == (400, ALONE, None)
    walk.noise.switch()
    assert [one.curve.role for one in walk.runs.curves()] == ["cure", "before", "after"]


def test_runs_between_which_a_setting_changed_tell_no_cost() -> None:
    walk = open_workshop(course=builtin_course()).walk("caches")
    recorded(walk, ("far", "near"), 560, 1)
    walk.record(CONTROL, dataclasses.replace(run("far", 400, "cccc"), applied=({"id": "isolation", "value": "1"},)))
    told = told_of_loads(walk)[1]
    assert ("isolation" in told, "p50" in told) == (True, False)


def test_a_control_run_follows_only_the_second_run_beside_the_noise() -> None:
    workshop = open_workshop(course=builtin_course())
    asked = workshop.walk("caches").measuring.control_request
    request = asked("again")
    assert request is not None
    assert (request.memory, request.noise, request.label) == ("far", None, "far, without neighbour")
    assert (asked("measure"), asked(CONTROL), asked(None)) == (None, None, None)
    assert workshop.walk("memory").measuring.control_request("again") is None
    workshop.walk("caches").noise.switch()
    assert asked("again") is None
