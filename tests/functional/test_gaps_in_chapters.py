"""The rates of gaps that two lessons ask the learner to read: line by line and by keys."""

from __future__ import annotations

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.talking import talk

FOUR = ("10 µs and more", "100 µs and more", "the longest gap", "interrupts on this CPU")
DUTIES = ("100 % busy", "10 % busy", "10 to 30 µs", "timer interrupts, a second of")


def whole() -> FakeWorkshop:
    return open_workshop(course=builtin_course())


def test_the_lines_have_the_four_figures_that_the_page_asks_for() -> None:
    said = talk(whole(), "||1|||", "hypervisor")
    assert all(row in said for row in FOUR)


def test_the_lines_have_the_rates_of_both_duties() -> None:
    said = " ".join(talk(whole(), "||1|||||||", "micro-jitter").split())
    assert all(row in said for row in DUTIES)
    assert "Curves not comparable" in said, "the rates of two duties can be compared"
    assert "These two runs cannot" not in said


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
@pytest.mark.parametrize(
    ("chapter", "step", "rows"), [("hypervisor", "measure", FOUR), ("micro-jitter", "compare", DUTIES)]
)
async def test_the_screen_has_the_table(chapter: str, step: str, rows: tuple[str, ...], size: tuple[int, int]) -> None:
    app = WorkshopApp(whole(), chapter)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        walk = app.screen.walk
        for _ in range(30):
            if walk.current == step and (step == "compare" or walk.runs.run_in("measure") is not None):
                break
            await pilot.press("enter")
            await settled(pilot)
        assert walk.current == step
        if size[1] < 48:
            await pilot.press("t")
            await settled(pilot)
        assert all(row in text_of(app) for row in rows)
        if step == "compare":
            above = " ".join(app.screen.sheet("#result").plain().split())
            assert "cannot be compared: duty" in above, "the warning is not below the curves"
