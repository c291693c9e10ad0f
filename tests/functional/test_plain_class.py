"""A class host line by line: the turn and the instructor in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jitter_workshop.flow.classes.classboard import CourseJudge
from jitter_workshop.flow.turns.classhost import TurnOver
from jitter_workshop.presenter.course import action_meanings as meanings
from jitter_workshop.presenter.course.action_meanings import beside_a_word
from tests.fakes import open_workshop
from tests.madeclass import MadeClass, view_of, waits
from tests.talking import Talk, talk


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeClass:
    return MadeClass(tmp_path / "class", monkeypatch)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_elsewhere_the_words_of_a_class_are_none() -> None:
    said = talk(open_workshop(), "take|?|1|?|q")
    assert "Unknown command 'take'" in said
    assert "the turn" not in said
    assert "instructor" not in said


def test_the_turn_and_the_instructor_are_told_before_the_prompt(made: MadeClass) -> None:
    made.busy()
    made.at("pinning", "predict", "guess first")
    said = flat(talk(made.open(), "turn|1|h|?|path|q"))
    assert "○ alan has the turn (Pinning" in said
    assert "· pinned), at most 3 min more" in said
    assert "◆ ada: Pinning · predict · guess first (go" in said
    assert said.count("◆ ada") == 1, "once, while it stays"
    assert "turn: who waits · take: the" in said
    assert "go: to the instructor · ?" in said
    assert "give end your turn" in said


def test_help_on_the_path_names_every_word_that_works_there(made: MadeClass) -> None:
    said = flat(talk(made.open(), "?|q"))
    for words in (
        "turn show who has the turn",
        "take take the turn",
        "give end your turn",
        "go go to the chapter",
    ):
        assert words in said
    assert f"status {beside_a_word(meanings.STATUS)}" in said
    assert "Unknown command" not in said
    assert "give: end your turn" in flat(talk(made.open(), "take|q"))


def test_a_chapter_has_the_number_that_the_instructors_board_gives_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although a class of other chapters has another path."""
    made = MadeClass(tmp_path / "class", monkeypatch, 'chapters = ["isolation", "pinning"]\n')
    numbers = {column.id: column.number for column in CourseJudge().columns}
    workshop = made.open(course=Path(__file__).parents[2] / "lessons")
    said = talk(workshop, f"{numbers['pinning']}|path|q")
    assert {entry.chapter_id: entry.number for entry in workshop.path()} == numbers
    assert re.search(rf"(?m)^ *{numbers['pinning']} . Pinning", said)
    assert "Pinning: ▸LOOK" in flat(said)


def test_take_and_give(made: MadeClass) -> None:
    said = flat(talk(made.open(), "take|take|give|q"))
    assert "● Your turn: 4 min left" in said
    assert "You have the turn already." in said
    assert "Your turn has ended." in said
    assert made.state.turn is None


def test_the_queue_is_told_in_order(made: MadeClass) -> None:
    made.busy()
    made.publish(queue=(waits(5, "edsger", "barbara"), waits(6, "mary")))
    said = flat(talk(made.open(), "turn|q"))
    assert "1. edsger and barbara at most 3 min" in said
    assert "2. mary at most 7 min" in said


def test_go_follows_the_instructor_as_far_as_one_has_come(made: MadeClass) -> None:
    made.at("migration", "predict")
    said = flat(talk(made.open(), "go|q"))
    assert "▸PREDICT" in said
    made.at("pinning", "compare")
    said = flat(talk(made.open(), "1|go|q"))
    assert "! the step 'compare' cannot begin yet" in said
    assert "Pinning: ▸LOOK" in said
    made.at("elsewhere")
    assert "which this course" in flat(talk(made.open(), "go|q"))


def test_a_measurement_takes_the_turn_and_keeps_it(made: MadeClass) -> None:
    workshop = made.open()
    conversation = Talk(workshop, "1|3||q")
    conversation.walk.run()
    assert len(workshop.context.runs.every()) == 1
    assert made.state.turn is not None
    assert "● Your turn: 4 min left" in conversation.text


def test_the_end_of_a_turn_is_told_with_the_kept_blocks(made: MadeClass) -> None:
    workshop = made.open()
    talk(workshop, "1|take|3||q")
    kept = workshop.context.runs.every()[0]
    workshop.fail = TurnOver(over := "your turn is over: 4 minutes are the limit in this class", kept)
    said = flat(talk(workshop, "1|3|m|q"))
    assert f"! {over}; kept: 4 finished blocks" in said


def test_a_turn_that_an_instructor_ends_is_told_at_the_next_prompt(made: MadeClass) -> None:
    workshop = made.open()
    conversation = Talk(workshop, "")
    answers = iter(("take", "turn", "q"))

    def answer(prompt: str) -> str:
        word = next(answers)
        if word == "turn":
            made.end_turn()
        return word

    conversation.walk._talk._read = answer
    conversation.walk.run()
    assert "! ada ended your turn; its changes are restored." in flat(conversation.text)
    assert not view_of(workshop).has_turn
