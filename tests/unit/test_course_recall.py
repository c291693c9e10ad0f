"""Test which recall questions are asked, and when each of them comes back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.course.recall import (
    AT_ONCE,
    MISSED_AGAIN_WAIT,
    SKIPPED_WAIT,
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
    first = replace(boxes, cards={**boxes.cards, key: RecallCard(2, 0)})
    missed = visited(boxes_after_answer(first, key, right=False))
    assert missed.cards[key].box == 1
    assert key in due_questions([Askable(key, 1)], missed)
    others = [Askable(f"{n}x", n) for n in range(2, 9)]
    assert key in due_questions([*others, Askable(key, 1)], missed)


@given(DECKS, BOXES, st.lists(st.sampled_from(["right", "wrong", "skip"]), min_size=1, max_size=12))
def test_no_question_comes_back_too_soon(cards: list[Askable], boxes: RecallBoxes, answers: list[str]) -> None:
    """Visits whose questions are all answered alike: right ones stay away for three chapters, skipped ones, too. Wrong
    ones come back sooner, but never at three visits in a row."""
    asked: list[tuple[str, ...]] = []
    for said in answers:
        keys = due_questions(cards, boxes)
        for key in keys:
            if said != "skip":
                boxes = boxes_after_answer(boxes, key, right=said == "right")
        boxes = visited(boxes_after_skip(boxes, keys) if said == "skip" else boxes)
        asked.append(keys)
    for at, keys in enumerate(asked):
        nearest = [set(later) & set(keys) for later in asked[at + 1 : at + 4]]
        assert answers[at] == "wrong" or not any(nearest)
        assert len(nearest) < 2 or not nearest[0] & nearest[1]


@given(DECKS, BOXES)
def test_the_questions_of_a_visit_are_about_different_chapters_where_there_are_several(
    cards: list[Askable], boxes: RecallBoxes
) -> None:
    chapter = {one.key: one.chapter for one in cards}
    free = {one.chapter for one in cards if one.key not in boxes.cards or boxes.cards[one.key].due <= boxes.visits}
    keys = due_questions(cards, boxes)
    assert len({chapter[key] for key in keys}) == min(len(free), len(keys))


def test_a_question_that_is_missed_again_and_again_is_not_asked_before_each_chapter() -> None:
    boxes, waits = RecallBoxes(), []
    for _ in range(4):
        boxes = boxes_after_answer(boxes, "1a", right=False)
        waits.append(wait(boxes, "1a"))
    assert waits == [1, *[MISSED_AGAIN_WAIT] * 3]


def test_after_skipped_questions_new_ones_are_asked_as_long_as_there_are_any() -> None:
    boxes, asked = RecallBoxes(), list[str]()
    for done in range(1, 13):
        keys = due_questions(deck(*[3] * done), boxes)
        boxes, asked = visited(boxes_after_skip(boxes, keys)), [*asked, *keys]
    assert len(set(asked)) == len(asked)


@given(BOXES, st.sampled_from(["1a", "new"]))
def test_a_right_answer_waits_more_than_three_visits_and_each_further_one_as_long_or_longer(
    boxes: RecallBoxes, key: str
) -> None:
    before = 0
    for _ in range(8):
        boxes = boxes_after_answer(boxes, key, right=True)
        found = wait(boxes, key)
        assert found is not None
        assert found >= max(before, 4)
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


def test_the_waits_of_a_question_that_is_always_right_grow() -> None:
    boxes, waits = RecallBoxes(), []
    for _ in range(5):
        boxes = boxes_after_answer(boxes, "1a", right=True)
        waits.append(wait(boxes, "1a"))
    assert waits == [4, 8, 12, 16, 16]
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


def test_missed_questions_come_before_all_others_and_those_of_one_chapter_one_by_one() -> None:
    boxes = RecallBoxes(visits=4, cards={"1a": RecallCard(1, 3), "1b": RecallCard(1, 2), "1c": RecallCard(4, 0)})
    assert due_questions(deck(3, 3), boxes) == ("1b", "2a")
    boxes = replace(boxes, cards={**boxes.cards, "2c": RecallCard(1, 3)})
    assert due_questions(deck(3, 3), boxes) == ("1b", "2c")


def test_a_skipped_question_stays_in_its_box_and_waits() -> None:
    first = RecallBoxes(cards={"1a": RecallCard(3, 0)})
    asked = due_questions(deck(3), first)
    assert asked == ("1a", "1b")
    second = visited(boxes_after_skip(first, asked))
    assert second.cards == {"1a": RecallCard(3, SKIPPED_WAIT), "1b": RecallCard(0, SKIPPED_WAIT)}
    assert due_questions(deck(3), second) == ("1c",)
    third = replace(second, visits=SKIPPED_WAIT)
    assert due_questions(deck(3), third) == ("1a", "1c"), "what was never answered comes last"


def test_a_question_that_was_skipped_at_first_is_judged_like_a_new_one() -> None:
    for skipped in (RecallBoxes(), boxes_after_skip(RecallBoxes(), ["1a"])):
        assert boxes_after_answer(skipped, "1a", right=True).cards["1a"] == RecallCard(2, WAITS[1])
        assert boxes_after_answer(skipped, "1a", right=False).cards["1a"] == RecallCard(1, WAITS[0])


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
