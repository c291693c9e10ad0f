"""Test the words on one load from memory, and on what a neighbour costs."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.run import Run
from jitter_workshop.presenter.course.loads import one_load, told_of_loads
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
    (told,) = told_of_loads(walk)
    assert "(560 - 20) / 4" in told
    walk.noise.switch()
    recorded(walk, ("far", "near"), 400, 2)
    told, cost = told_of_loads(walk)
    assert "(400 - 20) / 4" in told
    assert cost == (
        "Far memory: p50 is 560 ns with the neighbour, 400 ns without it; p99 is 1.12 µs with the neighbour, "
        "800 ns without it."
    )
    walk.noise.switch()
    assert told_of_loads(walk)[1] == cost
