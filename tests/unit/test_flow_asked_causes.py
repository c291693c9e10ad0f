"""The question of a chapter's diagnosis about the causes of a run, here and on recordings."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.flow.chapters.asked_causes import asked_causes
from jitter_workshop.flow.chapters.levers import chapter_treats
from jitter_workshop.flow.chapters.recorded import recorded_chapter
from jitter_workshop.flow.chapters.suspects import PERHAPS, is_unnamed, judge_diagnosis, suspect, woken_by
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.diagnosis import SeenCauses
from jitter_workshop.presenter.course import diagnosis as words
from jitter_workshop.report.cause_words import ANOTHER_TASK
from jitter_workshop.report.diagnosis_words import TASKS

COURSE = load_course(builtin_course())
ASKED = [one for one in COURSE.chapters if "diagnose" in one.steps]
ENDS = {"pinning", "interrupts", "workqueues", "memory", "realtime"}


def chapter(ident: str) -> Chapter:
    return next(one for one in ASKED if one.id == ident)


def recorded(of: Chapter) -> SeenCauses:
    """Return the causes of the recorded first run, as the chapter asks about them."""
    entry = recorded_chapter(of)
    assert entry is not None
    seen = entry.runs["measure"].seen
    assert seen is not None
    return asked_causes(seen, of)


def judged(seen: SeenCauses, ident: str) -> bool | None:
    found = judge_diagnosis(seen, ident)
    assert found is not None
    return found.right


def test_the_chapters_about_one_kind_of_cause_ask_for_the_causes_that_their_change_ends() -> None:
    assert {one.id for one in ASKED if one.asks == "ends"} == ENDS


@pytest.mark.parametrize("of", ASKED, ids=lambda one: one.id)
def test_a_recorded_list_is_asked_about_by_the_rules_of_a_live_one(of: Chapter) -> None:
    seen = recorded(of)
    assert seen.asks == of.asks, "on the recording there is such a cause"
    assert not [one for one in seen.suspects if one.kind == "no_event"]
    right = {one.id for one in seen.suspects if judged(seen, one.id)}
    assert right
    for one in seen.suspects:
        acts = chapter_treats(woken_by(one, seen), of)
        assert one.acts is acts
        if of.asks == "ends" and one.kind != TASKS and not is_unnamed(seen, one):
            assert judged(seen, one.id) is acts
    acting = any(one.acts for one in seen.suspects)
    assert all(one.acts for one in seen.suspects if one.id in right) or not acting or of.asks == "most"


def test_an_item_that_the_mask_moves_is_right_beside_a_task_that_took_more() -> None:
    seen = recorded(chapter("workqueues"))
    assert judged(seen, "workqueue:flush_to_ldisc") is True
    assert judged(seen, "task:terminal") is False
    assert judged(dataclasses.replace(seen, wanted="most"), "task:terminal") is True


def test_if_the_change_acts_on_no_cause_the_largest_is_asked_for() -> None:
    causes = (suspect("timer", "", 9, 900), suspect("softirq", "RCU", 9, 100))
    seen = asked_causes(SeenCauses("r", "trace", causes, 9, 1_000, 0), chapter("workqueues"))
    assert seen.asks == "most"
    assert judged(seen, "timer:") is True
    assert judged(seen, "softirq:RCU") is False
    asked = words.diagnosis_question(seen)
    assert "acts on none of them" in asked
    assert asked.endswith("Which of them took most time in all?")
    assert "acts on none of them" not in words.diagnosis_question(asked_causes(seen, chapter("baseline")))


def test_counters_do_not_say_which_tasks_ran_so_they_do_not_decide() -> None:
    causes = (suspect("migration", "", 9, 0), dataclasses.replace(suspect("task", "x", 9, 0), id="tasks:", kind=TASKS))
    seen = asked_causes(SeenCauses("r", "counters", causes, 9, 1_000, 1_000), chapter("pinning"))
    assert judged(seen, "migration:") is True
    assert judged(seen, "tasks:") is None
    found = judge_diagnosis(seen, "tasks:")
    assert found is not None
    assert "neither right nor wrong" in words.judged_diagnosis(found, seen, chapter("pinning"), COURSE)


@pytest.mark.parametrize(
    ("others_ns", "largest", "right"), [(800, 100, True), (800, 780, False), (100, 800, False), (780, 800, False)]
)
def test_tasks_that_a_recording_does_not_name_are_right_only_alone(others_ns: int, largest: int, right: bool) -> None:
    causes = (suspect("task", "kdamond.0", 9, largest), suspect("task", ANOTHER_TASK, 9, others_ns))
    seen = SeenCauses("r", "trace", causes, 9, 2_000, 0, recorded="measured on a desk machine")
    assert judged(seen, f"task:{ANOTHER_TASK}") is right
    live = dataclasses.replace(seen, recorded="")
    assert judged(live, f"task:{ANOTHER_TASK}") is (others_ns >= 0.9 * max(others_ns, largest))


def test_tasks_that_a_recording_does_not_name_are_last_and_called_so() -> None:
    seen = recorded(chapter("isolation"))
    assert seen.suspects[-1].name == ANOTHER_TASK
    assert seen.suspects[-1].label == "other tasks (not named in the recording)"
    answered = judge_diagnosis(seen, "task:unbound")
    rows = [line.plain for line in words.suspect_lines(seen, -1, answered, 100) if "task" in line.plain]
    assert "other tasks" in rows[-1], "after the answer, too, although other causes took less time"


def test_the_change_may_act_on_tasks_without_a_name_which_decides_nothing() -> None:
    seen = recorded(chapter("realtime"))
    assert judged(seen, f"task:{ANOTHER_TASK}") is None
    assert judged(seen, "task:unbound") is True
    assert judged(seen, "timer:") is False


@pytest.mark.parametrize("ident", ["baseline", "migration", "isolation", "memory"])
def test_time_without_an_event_is_no_answer_in_any_chapter(ident: str) -> None:
    causes = (suspect("no_event", "", 9, 900), suspect("timer", "", 9, 100))
    notes = (f"{PERHAPS}memory.", "The frequency changed.")
    seen = asked_causes(SeenCauses("r", "trace", causes, 9, 1_000, 0, notes=notes), chapter(ident))
    assert [one.kind for one in seen.suspects] == ["timer"]
    assert (seen.unnamed_ns, seen.notes) == (900, notes)
    assert words.unnamed(seen)
    alone = asked_causes(SeenCauses("r", "trace", causes[:1], 9, 1_000, 0), chapter(ident))
    assert alone.quiet
