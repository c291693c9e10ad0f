"""Several courses in one session: what was done in a chapter belongs to its course and to what its lesson asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.course.checks import chapter_marks
from jitter_workshop.course.loader import BUILTIN_ID, load_course
from jitter_workshop.flow.chapters import tour
from jitter_workshop.flow.chapters.newlesson import new_lesson
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.model.spec import Placement
from tests.fakes import open_workshop

Trees = Callable[[str], Path]
DONE = ChapterProgress(step="explain", marks={"setting": True, "curve": True}, runs={"measure": "x"}, done=True)


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A course with chapters of the ids of built-in ones."""
    folder = tmp_path / "c2"
    for ident in ("baseline", "pinning"):
        new_lesson(ident, folder)
    return folder


def test_the_built_in_course_has_the_id_by_which_it_is_known() -> None:
    assert load_course().id == BUILTIN_ID


def test_progress_in_one_course_is_none_in_another(host_tree: Trees, second: Path) -> None:
    tree = host_tree("guest")
    first = open_workshop(tree, session="one")
    first.context.save_progress("pinning", DONE)
    first.close()
    other = open_workshop(tree, session="one", course=second)
    assert other.context.progress("pinning") == ChapterProgress()
    assert all(not (e.started or e.done or e.curve or e.setting) for e in other.path())
    following = other.next_chapter()
    assert following is not None
    assert following.chapter_id == "baseline", "one is in the other course's chapter"
    begun = dataclasses.replace(DONE, done=False, marks={})
    other.context.save_progress("pinning", begun)
    following = other.next_chapter()
    assert following is not None
    assert following.chapter_id == "pinning"
    other.close()
    again = open_workshop(tree, session="one")
    assert again.context.progress("pinning") == DONE
    assert again.context.session.chapters["c2/pinning"] == begun
    again.close()


def test_a_list_and_a_tour_show_the_courses_own_progress(host_tree: Trees, second: Path) -> None:
    tree = host_tree("guest")
    workshop = open_workshop(tree, session="one")
    workshop.context.save_progress("pinning", DONE)
    workshop.close()
    assert {one.chapter_id: (one.done, one.curve) for one in tour.take_tour("one", second, tree).path} == {
        "baseline": (False, False),
        "pinning": (False, False),
    }
    assert {one.chapter_id: one.done for one in tour.take_tour("one", None, tree).path}["pinning"]
    following = tour.take_tour("one", second, tree).next_entry
    assert following is not None
    assert following.chapter_id == "baseline"


def test_a_new_course_does_not_take_the_built_in_ones_id(tmp_path: Path) -> None:
    new_lesson("first", tmp_path / BUILTIN_ID)
    assert load_course(tmp_path / BUILTIN_ID).id == "my-course"


@pytest.fixture
def run(make_run: Callable[..., tuple[Any, Any]]) -> Run:
    placed = Placement("auto", 0, 1, None, None, (0, 1), (), "")
    return dataclasses.replace(make_run()[0], placement=placed, complete=True)


def measured(**changed: Any) -> Chapter:
    """A chapter that measures once: the ring, on CPUs of its own, with whatever is ``changed``."""
    found = load_course().chapter("pinning")
    assert found is not None
    asked = found.measurement("again")
    assert asked is not None
    asked = dataclasses.replace(asked, slot="measure", **changed)
    return dataclasses.replace(found, changes="nothing", measurements=(asked,), checks=())


@pytest.mark.parametrize(
    ("asked", "made", "earned"),
    [
        ({}, {}, True),
        ({"workload": "spin"}, {}, False),
        # If a run has one CPU, the clock loop takes the place of the ring.
        ({}, {"workload": "spin"}, True),
        ({"placement": "none"}, {}, False),
        ({"sched_priority": 10}, {}, False),
        ({"sched_priority": 10}, {"sched": "fifo:10"}, True),
        ({}, {"sched": "fifo:10"}, False),
        ({"pacing": "schedule"}, {}, False),
        ({"pacing": "schedule"}, {"pacing": "schedule"}, True),
        ({}, {"pacing": "schedule"}, False),
        ({"workload": "spin", "duty": 10}, {"workload": "spin"}, False),
        ({"workload": "spin", "duty": 10}, {"workload": "spin", "duty": 10}, True),
        ({"noise": "spinners"}, {}, True),
        ({}, {"noise": "spinners"}, True),
        ({"preset": "long"}, {}, True),
    ],
)
def test_a_curve_counts_only_if_the_lesson_measures_it(
    run: Run, asked: dict[str, Any], made: dict[str, Any], earned: bool
) -> None:
    assert chapter_marks(measured(**asked), {"measure": dataclasses.replace(run, **made)})["curve"] is earned
