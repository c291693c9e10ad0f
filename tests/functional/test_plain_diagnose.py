"""The step ``diagnose`` line by line."""

from __future__ import annotations

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.host_ops.recordings import recorded_host
from jitter_workshop.presenter.course import diagnosis as words
from tests.fakes import FakeWorkshop, open_workshop
from tests.talking import talk
from tests.unit.test_flow_diagnosis import measured


def at_diagnose(*, traced: bool = True) -> FakeWorkshop:
    workshop = open_workshop()
    measured(workshop, traced=traced)
    workshop.walk("baseline").go("diagnose")
    return workshop


def said(workshop: FakeWorkshop, answers: str) -> str:
    return " ".join(talk(workshop, answers, "baseline").split())


def test_a_number_answers_and_enter_goes_on() -> None:
    workshop = at_diagnose()
    text = said(workshop, "x|1||q")
    assert "An example" in text
    assert "Unknown command 'x'" in text
    assert "2 task evil[red] [2J x, in 1 stall" in text
    assert "✗ Not this one. Task evil[red]" in text
    assert "[2J x took the most time: 2" in text
    assert "\x1b" not in text
    walk = workshop.walk("baseline")
    assert walk.progress.diagnosis is not None
    assert walk.current == "again"


def test_a_number_never_leads_to_a_step() -> None:
    workshop = at_diagnose()
    text = said(workshop, "7|0|2|q")
    assert text.count("The answers are 1 to") == 2
    assert "You named: task evil[red]" in text
    assert workshop.walk("baseline").current == "diagnose"


def test_enter_skips_the_question_and_the_next_step_says_so() -> None:
    workshop = at_diagnose()
    text = said(workshop, "|q")
    assert "your answer · Enter skip it" in text
    assert words.SKIPPED in text
    walk = workshop.walk("baseline")
    assert walk.current == "again"
    assert walk.progress.diagnosis is None
    assert walk.diagnosis.skipped
    assert "skipped" not in said(workshop, "b|2||q").rpartition("You named")[2]
    assert not walk.diagnosis.skipped


def test_a_jump_past_the_question_is_noted_too() -> None:
    workshop = open_workshop()
    measured(workshop)
    assert words.SKIPPED in said(workshop, "5|q")
    assert workshop.walk("baseline").diagnosis.skipped


def test_a_letter_is_a_command_at_a_question_too() -> None:
    workshop = at_diagnose()
    text = said(workshop, "a|b|q")
    assert "Unknown command 'a'" in text
    assert workshop.walk("baseline").current == "measure"
    assert workshop.walk("baseline").progress.diagnosis is None
    workshop.walk("baseline").go("diagnose")
    assert "PATH FOR THIS HOST" in said(workshop, "home|q")


def test_an_answer_given_before_is_shown() -> None:
    workshop = at_diagnose()
    said(workshop, "2|q")
    text = said(workshop, "back|q")
    assert "✓ Right. Task" in text
    assert "your answer" not in text
    assert workshop.walk("baseline").current == "measure"


def test_counters_tell_the_needs_of_a_trace() -> None:
    text = said(at_diagnose(traced=False), "q")
    assert "These counters grew during your first run." in text
    assert "Run the workshop as root" in text
    assert "other tasks on our CPU, 41 times" in text


def test_on_a_recording_a_work_item_that_the_mask_moves_is_right() -> None:
    opened = open_workshop(recorded_host("lab-stock").root, course=builtin_course())
    walk = opened.walk("workqueues")
    walk.go("diagnose")
    seen = walk.diagnosis.read()
    assert seen is not None
    place = [one.id for one in seen.suspects].index("workqueue:flush_to_ldisc") + 1
    text = " ".join(talk(opened, f"{place}|q", "workqueues").split())
    assert words.ENDS in text
    assert "no event (hypervisor" not in text
    assert "✓ Right. Work flush_to_ldisc took" in text
    assert "This change can end" in text
