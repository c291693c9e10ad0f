"""Recall questions before a chapter's first step: on the screen by keys, and line by line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jitter_workshop.course.loader import builtin_course, load_course
from jitter_workshop.course.recall import NEVER, SKIPPED_WAIT
from jitter_workshop.flow.chapters import recalling
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.presenter.course import keys_that_wait
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.recalling import RecallPage
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

NONE_CHOSEN = "An answer comes first"
SIZES = [(80, 24), (160, 48)]


@pytest.fixture
def workshop() -> FakeWorkshop:
    made = open_workshop()
    made.context.save_progress("baseline", ChapterProgress(step="explain", done=True))
    return made


def page_of(app: WorkshopApp) -> RecallPage:
    assert isinstance(app.screen, RecallPage)
    return app.screen


def right_of(page: RecallPage) -> int:
    return page._now.question.right


def text(page: RecallPage) -> str:
    return page.sheet("#page-sheet").plain()


@pytest.mark.parametrize("size", SIZES)
async def test_two_questions_are_answered_by_number_before_the_chapter_begins(
    workshop: FakeWorkshop, size: tuple[int, int]
) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        page = page_of(app)
        assert "1 of 2" in text(page)
        below = app.screen_stack[-2]
        assert isinstance(below, ChapterScreen)
        assert not below.query_one("#chapter-main").visible, "the chapter's own page is drawn after the questions"
        assert "'Who moves my threads?'" in str(page.query_one(".frame").border_title)
        await pilot.press("up", "9")
        assert "✓" not in text(page)
        assert keys_that_wait.NO_NUMBER in text(page)
        await pilot.press(str(right_of(page) + 1))
        assert "✓ That is right." in text(page)
        # A second answer does not count, and no line is hidden below the end of the page.
        await pilot.press("1", "2", "3")
        assert page.pane().max_scroll_y == 0
        await pilot.press("enter")
        assert "2 of 2" in text(page)
        wrong = (right_of(page) + 1) % 3
        await pilot.press(str(wrong + 1))
        assert f"✗ The answer is {right_of(page) + 1}." in text(page)
        assert page.pane().max_scroll_y == 0
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "look"
        assert app.screen.query_one("#chapter-main").visible
        cards = workshop.context.session.recall.cards
        assert sorted(card.box for card in cards.values()) == [1, 2]
        assert workshop.context.session.recall.visits == 1
        assert workshop.context.progress("migration").recalled


async def test_each_question_of_the_course_fits_a_small_screen_with_its_explanation(workshop: FakeWorkshop) -> None:
    course = load_course(builtin_course())
    asked = [recalling.Asked("k", c.title, question) for c in course.chapters for question in c.recall]
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        page = RecallPage(app.screen.walk, asked)
        app.push_screen(page)
        for one in asked:
            await settled(pilot)
            wrong = (right_of(page) + 1) % 3
            await pilot.press(str(wrong + 1))
            await settled(pilot)
            assert page.pane().max_scroll_y == 0, one.question.id
            await pilot.press("enter")


@pytest.mark.parametrize("size", SIZES)
async def test_enter_without_an_answer_asks_for_one_and_stays(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        page = page_of(app)
        first = page._now.key
        assert "Enter" not in text_of(app)
        assert NONE_CHOSEN not in text(page)
        for _ in range(3):
            await pilot.press("enter")
            assert app.screen is page
            assert page._now.key == first
            told = f"{NONE_CHOSEN}: a number from 1 to {len(page._now.question.answers)}, or 0 to see it."
            assert told in text(page)
        assert not workshop.context.session.recall.cards
        await pilot.press(str(right_of(page) + 1))
        assert NONE_CHOSEN not in text(page)
        await pilot.press("enter")
        assert "2 of 2" in text(page)
        assert NONE_CHOSEN not in text(page)
        # The last question does not let Enter pass, either, and its Esc skips only this one.
        await pilot.press("enter")
        assert NONE_CHOSEN in text(page)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        cards = workshop.context.session.recall.cards
        assert sorted(card.box for card in cards.values()) in ([NEVER, 1], [NEVER, 2])


@pytest.mark.parametrize("keys", [("escape",), ("q",), ("enter", "escape")])
async def test_all_questions_are_skipped_by_escape_and_none_comes_twice(
    workshop: FakeWorkshop, keys: tuple[str, ...]
) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        page_of(app)
        await pilot.press(*keys)
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "LOOK" in text_of(app)
        assert {(card.box, card.due) for card in workshop.context.session.recall.cards.values()} == {
            (NEVER, SKIPPED_WAIT)
        }
        await pilot.press("escape")
        await settled(pilot)
        app.open_chapter("migration")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


async def test_questions_skipped_by_escape_are_not_asked_before_the_next_chapter(workshop: FakeWorkshop) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        first = {one.key for one in page_of(app)._asked}
        await pilot.press("escape")
        await settled(pilot)
        await pilot.press("escape")
        app.open_chapter("pinning")
        await settled(pilot)
        if isinstance(app.screen, RecallPage):
            assert not first & {one.key for one in app.screen._asked}


async def test_no_question_comes_before_a_measurement_by_one_key_or_in_the_first_chapter(
    workshop: FakeWorkshop,
) -> None:
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        await pilot.press("escape")
        await settled(pilot)
        app.open_chapter("pinning", measure=True)
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


def walk(workshop: FakeWorkshop, *answers: str) -> str:
    written: list[str] = []
    typed: Iterator[str] = iter(answers)

    def read(prompt: str) -> str:
        written.append(prompt)
        try:
            answer = next(typed)
        except StopIteration:
            raise EOFError from None
        written.append(f"{answer}\n")
        return answer

    PlainWalk(workshop, read, written.append, 80).run("migration")
    return "".join(written)


def test_line_by_line_a_number_answers_and_enter_skips(workshop: FakeWorkshop) -> None:
    said = walk(workshop, "7", "x", "1", "", "")
    assert "0 = I do not know; Enter = skip" in said
    asked, _, chapter = said.partition("▸LOOK")
    assert asked.count("Type a number") == 2
    assert "REMEMBER?   1 of 2" in asked
    assert "REMEMBER?   2 of 2" in asked
    assert "Skipped" in asked
    assert "▸PREDICT" in chapter
    assert sorted(card.box for card in workshop.context.session.recall.cards.values()) in ([NEVER, 1], [NEVER, 2])
    assert "REMEMBER" not in walk(open_workshop(), "b")


def test_line_by_line_q_leaves_and_the_questions_come_again(workshop: FakeWorkshop) -> None:
    assert "REMEMBER?   1 of 2" in walk(workshop, "q")
    assert not workshop.context.progress("migration").recalled
    assert "REMEMBER?   1 of 2" in walk(workshop, "", "")


async def test_one_key_line_is_in_sight_and_a_key_that_does_nothing_says_which_do(workshop: FakeWorkshop) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        page = page_of(app)
        seen = text_of(app)
        assert "Esc skips all: they come again later" in seen
        assert "Enter go on" not in seen
        assert seen.splitlines()[-1].strip() == "", "the footer of the chapter waits"
        await pilot.press("n")
        assert NONE_CHOSEN in text(page)
        assert "Esc" not in text(page), "the line with the keys tells it"
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "n go on" in text_of(app)


@pytest.mark.parametrize("size", SIZES)
async def test_zero_shows_the_answer_and_is_no_wrong_answer(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        page = page_of(app)
        assert "0  I do not know" in text(page)
        assert f"0–{len(page._now.question.answers)} answers" in text_of(app)
        first, right = page._now.key, right_of(page) + 1
        await pilot.press("0")
        said = text(page)
        assert f"The answer is {right}." in said
        assert f"→ {right}  " in said
        assert "✗" not in said
        assert "0  I do not know" not in said
        assert workshop.context.session.recall.cards[first].box == 1
        # A second key does not count.
        await pilot.press("0", str(right))
        assert text(page) == said
        await pilot.press("enter")
        assert "2 of 2" in text(page)


def test_line_by_line_zero_shows_the_answer(workshop: FakeWorkshop) -> None:
    asked, _, _ = walk(workshop, "0", "").partition("▸LOOK")
    assert "The answer is " in asked
    assert "✗" not in asked
    assert sorted(card.box for card in workshop.context.session.recall.cards.values()) == [NEVER, 1]
