"""The screen of the course from first to last."""

from __future__ import annotations

import dataclasses
import re
import threading
from typing import Any

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.chart.marks import VARIABLE
from jitter_workshop.errors import SessionError
from jitter_workshop.flow.chapters.course_summary import CourseSummary, sum_up
from jitter_workshop.model.palette import PALETTES
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.session import ChapterProgress
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.home.summary import SummaryScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.sheet import Sheet
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

SIZES = [(60, 16), (80, 24), (160, 48)]


def finished(*chapters: str) -> FakeWorkshop:
    """A workshop in which these chapters are measured and done."""
    workshop = open_workshop()
    for chapter in chapters:
        walk = workshop.walk(chapter)
        for slot in ("measure", "again"):
            if walk.measuring.measures(slot):
                walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
        workshop.context.save_progress(chapter, dataclasses.replace(walk.progress, done=True))
    return workshop


def all_said(app: WorkshopApp) -> str:
    """Everything on the screen's sheets, also what is scrolled away."""
    return "\n".join(sheet.plain() for sheet in app.screen.query(Sheet) if sheet.display)


@pytest.mark.parametrize("size", SIZES)
async def test_the_summary_shows_the_curves_and_the_gain_of_each_step(size: tuple[int, int]) -> None:
    app = WorkshopApp(finished("baseline", "migration", "pinning"))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("l")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, SummaryScreen)
        chart = screen.query_one("#summary-chart", ChartView)
        steps = sum_up(app.workshop).steps
        # The run of the second chapter is made beside a noise, so it is not joined to the others.
        assert [c.key for c in chart.curves] == [steps[0].run.id, steps[2].run.id]
        assert steps[1].unlike
        assert len(steps) == 3
        said = all_said(app)
        for title in ("1 Why so slow?", "2 Who moves my", "3 Pinning", "÷ row 1"):
            assert title in said
        for head in ("APPLIED ON THIS HOST NOW", "3 OF 3 DONE", "WHAT COULD STILL BE BETTER", "YOUR GUESSES"):
            assert head in said
        assert "Single runs are described here, not judged" in " ".join(said.split())
        assert chart.highlight == 0
        await pilot.press("right")
        assert chart.highlight is None
        await pilot.press("left", "left")
        await settled(pilot)
        assert chart.highlight == 1
        assert "▸ ■ 3 Pinning" in text_of(app)
        await pilot.press("t")
        assert not chart.display
        await pilot.press("t", "down", "pagedown", "pageup", "up", "escape")
        assert isinstance(app.screen, HomeScreen)


async def test_home_offers_it_when_the_last_chapter_here_is_done() -> None:
    workshop = finished("baseline", "migration")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "SUMMARY" not in text_of(app)
        workshop.context.save_progress("pinning", ChapterProgress(done=True))
        await pilot.press("c", "escape")
        await settled(pilot)
        assert "▸ SUMMARY  the course from first to last" in text_of(app)
        assert await pilot.click("#next", offset=(5, 1))
        await settled(pilot)
        assert isinstance(app.screen, SummaryScreen)
        await pilot.press("l", "s", "escape", "escape")
        assert isinstance(app.screen, HomeScreen)


@pytest.mark.parametrize("size", SIZES)
async def test_before_anything_is_measured_it_says_so(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("l", "left", "right", "t", "t")
        await settled(pilot)
        assert "Nothing is measured yet. Your first run" in " ".join(text_of(app).split())
        assert "m on the home screen measures" in " ".join(text_of(app).split())
        assert app.screen.query_one("#summary-left").region.area == 0, "an empty frame"
        assert "Not begun: Why so slow?, " in " ".join(all_said(app).split())


async def test_it_is_added_up_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    where: list[threading.Thread] = []

    def slowly(workshop: Any) -> CourseSummary:
        where.append(threading.current_thread())
        assert go_on.wait(20)
        return sum_up(workshop)

    monkeypatch.setattr("jitter_workshop.tui.screens.home.summary.sum_up", slowly)
    app = WorkshopApp(finished("baseline"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("l")
        await pilot.pause()
        assert "Adding up…" in text_of(app)
        go_on.set()
        await settled(pilot)
        assert "1 Why so slow?" in text_of(app)
        assert threading.main_thread() not in where


async def test_a_summary_that_cannot_be_read_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(workshop: Any) -> CourseSummary:
        raise SessionError("the session's folder is gone", "start again")

    monkeypatch.setattr("jitter_workshop.tui.screens.home.summary.sum_up", refuses)
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("l", "right", "t")
        await settled(pilot)
        assert "! the session's folder is gone" in text_of(app)


@pytest.mark.parametrize("theme", list(PALETTES))
async def test_every_look_shows_the_same_text(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = WorkshopApp(finished("baseline", "pinning"))
    async with app.run_test(size=(160, 48)) as pilot:
        app.change_preferences(theme=theme)
        await settled(pilot)
        await pilot.press("l")
        await settled(pilot)
        assert "▸ ● 1 Why so slow?" in text_of(app)
        assert "■ 2 Pinning" in text_of(app)


async def test_lists_beside_an_ascii_chart_have_its_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "ascii")
    app = WorkshopApp(finished("baseline", "migration", "pinning"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for key in ("l", "c"):
            await pilot.press(key)
            await settled(pilot)
            assert app.screen.query_one(ChartView).curves
            said = all_said(app)
            assert re.search(r"^[▸ ] ?[o#@A] +\w", said, re.MULTILINE), key
            assert not set("●■◆▲") & set(said), key
            await pilot.press("escape")
            await settled(pilot)
