"""Test which recall questions are asked, and when each of them comes back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.recall import (
    AT_ONCE,
    WAITS,
    Askable,
    boxes_after_answer,
    boxes_after_skip,
    due_questions,
    visited,
    wait,
)
from jitter_workshop.model.session import RecallBoxes, RecallCard


def deck(*sizes: int) -> list[Askable]:
    """Questions 1a, 1b, 2a, …: so many of each chapter."""
    return [Askable(f"{n}{'abcdef'[i]}", n) for n, size in enumerate(sizes, 1) for i in range(size)]


DECKS = st.lists(st.integers(0, 3), max_size=8).map(lambda sizes: deck(*sizes))
CARDS = st.dictionaries(
    st.sampled_from([one.key for one in deck(*[3] * 8)]),
    st.builds(RecallCard, box=st.integers(-3, 9), due=st.integers(-5, 60)),
)
BOXES = st.builds(RecallBoxes, visits=st.integers(0, 40), cards=CARDS)


@given(DECKS, BOXES)
def test_at_most_two_different_questions_of_the_deck_are_asked_and_always_the_same_ones(
    cards: list[Askable], boxes: RecallBoxes
) -> None:
    keys = due_questions(cards, boxes)
    assert len(keys) <= AT_ONCE
    assert len(set(keys)) == len(keys)
    assert set(keys) <= {one.key for one in cards}
    assert keys == due_questions(cards, boxes)


@given(DECKS, BOXES)
def test_nothing_is_asked_before_its_time_and_a_place_stays_free_only_if_nothing_is_due(
    cards: list[Askable], boxes: RecallBoxes
) -> None:
    keys = due_questions(cards, boxes)
    free = [one.key for one in cards if one.key not in boxes.cards or boxes.cards[one.key].due <= boxes.visits]
    assert set(keys) <= set(free)
    assert len(keys) == min(AT_ONCE, len(free))


@given(BOXES, st.sampled_from(["1a", "new"]))
def test_a_missed_question_comes_back_at_the_next_visit(boxes: RecallBoxes, key: str) -> None:
    missed = visited(boxes_after_answer(boxes, key, right=False))
    assert missed.cards[key].box == 1
    assert key in due_questions([Askable(key, 1)], missed)
    others = [Askable(f"{n}x", n) for n in range(2, 9)]
    assert key in due_questions([*others, Askable(key, 1)], missed)


@given(BOXES, st.sampled_from(["1a", "new"]))
def test_a_right_answer_waits_at_least_two_visits_and_each_further_one_as_long_or_longer(
    boxes: RecallBoxes, key: str
) -> None:
    before = 0
    for _ in range(8):
        boxes = boxes_after_answer(boxes, key, right=True)
        found = wait(boxes, key)
        assert found is not None
        assert found >= max(before, 1)
        assert found in WAITS
        before = found
    assert before == WAITS[-1]


@given(BOXES, st.sampled_from(["1a", "new"]))
def test_a_question_in_a_box_is_not_asked_while_it_waits(boxes: RecallBoxes, key: str) -> None:
    boxes = boxes_after_answer(boxes, key, right=True)
    only = [Askable(key, 1)]
    for _ in range(wait(boxes, key) or 0):
        assert due_questions(only, boxes) == ()
        boxes = visited(boxes)
    assert due_questions(only, boxes) == (key,)


def test_the_waits_of_a_question_that_is_always_right_double() -> None:
    boxes, waits = RecallBoxes(), []
    for _ in range(5):
        boxes = boxes_after_answer(boxes, "1a", right=True)
        waits.append(wait(boxes, "1a"))
    assert waits == [2, 4, 8, 16, 16]
    assert wait(boxes, "2a") is None


def test_new_questions_come_from_the_latest_chapter_of_which_none_was_asked() -> None:
    cards = deck(3, 3)
    first = due_questions(cards, RecallBoxes())
    assert first == ("2a", "1a")
    boxes = visited(boxes_after_answer(boxes_after_answer(RecallBoxes(), "2a", right=True), "1a", right=True))
    assert due_questions(cards, boxes) == ("2b", "1b")


def test_an_old_question_whose_time_has_come_is_asked_beside_a_new_one() -> None:
    boxes = RecallBoxes(visits=4, cards={"1a": RecallCard(3, 4), "1b": RecallCard(2, 3), "1c": RecallCard(1, 9)})
    assert due_questions(deck(3, 1), boxes) == ("1b", "2a")
    assert due_questions(deck(3), boxes) == ("1b", "1a")


def test_two_missed_questions_come_before_all_others() -> None:
    boxes = RecallBoxes(visits=4, cards={"1a": RecallCard(1, 3), "1b": RecallCard(1, 2), "1c": RecallCard(4, 0)})
    assert due_questions(deck(3, 3), boxes) == ("1b", "1a")


def test_a_skipped_question_stays_in_its_box_and_is_not_asked_at_the_next_visit() -> None:
    first = RecallBoxes(cards={"1a": RecallCard(3, 0)})
    asked = due_questions(deck(3), first)
    assert asked == ("1a", "1b")
    second = visited(boxes_after_skip(first, asked))
    assert second.cards == {"1a": RecallCard(3, 2), "1b": RecallCard(1, 2)}
    assert due_questions(deck(3), second) == ("1c",)
    assert due_questions(deck(3), visited(boxes_after_skip(second, ("1c",)))) == ("1b", "1a")
    for visits in range(2, 5):
        assert due_questions(deck(2), visited(boxes_after_skip(RecallBoxes(visits=visits), ("1a", "1b")))) == ()


def test_through_a_course_of_right_answers_every_chapter_is_asked_about() -> None:
    boxes, seen = RecallBoxes(), set[str]()
    for done in range(1, 17):
        cards = deck(*[3] * done)
        keys = due_questions(cards, boxes)
        assert len(keys) == AT_ONCE
        for key in keys:
            boxes = boxes_after_answer(boxes, key, right=True)
        boxes = visited(boxes)
        seen |= {key[:-1] for key in keys}
    assert seen == {str(n) for n in range(1, 17)}
