"""Writing a mask in *Workqueues*: by bits and by digits with keys, and line by line."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.masking import MaskPage
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import read_on, settled


def at_apply() -> FakeWorkshop:
    made = open_workshop(course=builtin_course())
    made.context.save_progress("workqueues", ChapterProgress(step="apply", recalled=True))
    return made


def page_of(app: WorkshopApp) -> MaskPage:
    assert isinstance(app.screen, MaskPage)
    return app.screen


def text(page: MaskPage) -> str:
    return page.sheet("#page-sheet").plain()


def in_one_line(page: MaskPage) -> str:
    return " ".join(text(page).split())


OUT = ("space", "left") * 4


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_mask_is_written_with_keys_and_checked_and_the_host_s_follows(size: tuple[int, int]) -> None:
    workshop = at_apply()
    app = WorkshopApp(workshop, "workqueues")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await read_on(pilot)
        page = page_of(app)
        # The classic mistake first: the right end is CPU 0, and neither end is left.
        await pilot.press("right", *["left"] * 12, *OUT)
        page._at = 44
        await pilot.press(*OUT, "enter")
        assert "ffff0fff,ffff0fff" in text(page)
        assert "✗" in text(page)
        assert page.pane().max_scroll_y == 0
        # A change of a bit takes the judgement away; the bits come back by the same key.
        page._at = 44
        await pilot.press(*OUT)
        assert "✗" not in text(page)
        await pilot.press(*OUT)
        page._at = 12
        await pilot.press(*OUT, *OUT, "enter")
        assert "✓" in text(page)
        assert page.pane().max_scroll_y == 0
        await pilot.press("enter")
        assert "2 of 2" in text(page)
        hot = page._asked[1].wanted.out
        for cpu in hot:
            page._at = cpu
            await pilot.press("space")
        await pilot.press("enter", "enter")
        await settled(pilot)
        # Enter applies from now on; a opens the mask again.
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.now.enter_key.label != "write a mask"
        await pilot.press("a", "escape")
        assert isinstance(app.screen, ChapterScreen)
        assert workshop.context.standing() == ()


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_typed_digits_are_the_bits_and_wrong_ones_say_why(size: tuple[int, int]) -> None:
    app = WorkshopApp(at_apply(), "workqueues")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await read_on(pilot)
        page = page_of(app)
        await pilot.press(*"fffffffd")
        assert page._mask.left == CpuSet.of(range(32)) - CpuSet((1,))
        assert "the mask fffffffd_" in in_one_line(page)
        assert "1111 1101" in text(page)
        # A ninth digit needs a comma, and a letter behind f is no digit.
        await pilot.press("0")
        assert "! A group has at most 8 digits; type a comma" in in_one_line(page)
        await pilot.press("x")
        assert "! 'x' is no digit of a mask; " in in_one_line(page)
        assert "the mask fffffffd_" in in_one_line(page)
        await pilot.press("backspace", "D", "comma", *"00000003")
        assert "!" not in text(page)
        assert page._mask.left == CpuSet.of(range(32, 64)) - CpuSet((33,)) | CpuSet((0, 1))
        await pilot.press("comma", "1")
        assert "would name CPU 95; the last CPU is 63." in in_one_line(page)
        # A changed bit changes the digits, and the next digit begins a new mask.
        await pilot.press("space")
        assert "the mask fffffffd,00000002" in in_one_line(page)
        await pilot.press(*"fff0ffff", "comma", *"fff0ffff", "enter")
        assert "✓" in text(page)
        assert page.pane().max_scroll_y == 0


async def test_a_row_is_moved_by_up_and_down() -> None:
    app = WorkshopApp(at_apply(), "workqueues")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await read_on(pilot)
        await pilot.press("up", "left", "down", "down")
        assert page_of(app)._at == 1


async def test_escape_skips_the_mask_and_other_chapters_have_none() -> None:
    workshop = at_apply()
    workshop.context.save_progress(
        "governor", dataclasses.replace(workshop.context.progress("governor"), step="apply", recalled=True)
    )
    app = WorkshopApp(workshop, "workqueues")
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("enter", "escape")
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.now.enter_key.label != "write a mask"
        await pilot.press("escape")
        app.open_chapter("governor")
        await settled(pilot)
        await pilot.press("a")
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.now.enter_key.label != "write a mask"


def test_line_by_line_a_mask_or_a_list_is_checked() -> None:
    said: list[str] = []
    replies = iter(["mask ffff0fff,ffff0fff", "mask 0-15,20-47,52-63", "mask never", "mask", "q"])
    PlainWalk(at_apply(), lambda _: next(replies), said.append, 80).run("workqueues")
    told = "".join(said)
    assert told.count("WRITE A MASK") == 2
    wrong, right, refused = (told.find(sign) for sign in ("✗", "✓ Right", "! "))
    assert 0 < wrong < right < refused


async def test_home_and_end_go_to_the_ends_of_the_mask_and_the_cursor_row_says_that_one_types() -> None:
    app = WorkshopApp(at_apply(), "workqueues")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await read_on(pilot)
        page = page_of(app)
        assert "Space sets 0 or 1" in page.key_words()
        await pilot.press("home")
        assert "CPU 63, digit 16 from the right" in text(page)
        await pilot.press("end")
        assert "CPU 0, digit 1 from the right" in text(page)
        await pilot.press("f")
        assert "digits that are not typed are 0" in text(page)
        assert "CPU 0, digit" not in text(page)
        await pilot.press("left")
        assert "CPU 1, digit 1 from the right" in text(page)
