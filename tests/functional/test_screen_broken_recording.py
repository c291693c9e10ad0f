"""A course whose recordings are missing or damaged: home says so, and its chapters open without a crash."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madecourse
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.talking import talk


def damaged(folder: Path) -> None:
    (folder / "recordings").mkdir()
    (folder / "recordings" / "nowhere.tar.xz").write_bytes(b"no archive")


def empty(folder: Path) -> None:
    (folder / "recordings" / "nowhere").mkdir(parents=True)


@pytest.fixture(params=[lambda folder: None, damaged, empty], ids=["missing", "damaged", "empty"])
def broken(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    host_tree: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> FakeWorkshop:
    """On a guest without cpufreq, so that the chapter of the clock would be taught on its recording."""
    course = madecourse.write(tmp_path / "course")
    lesson = course / "03-clock" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace('"lab-stock"', '"nowhere"'))
    request.param(course)
    workshop = open_workshop(host_tree("guest"), session="broken", course=course)
    monkeypatch.setattr(workshop.context.root, "recorded", False)
    return workshop


async def test_home_says_so_and_the_chapter_opens_all_the_same(broken: FakeWorkshop) -> None:
    (clock,) = [entry for entry in broken.path() if entry.chapter_id == "clock"]
    assert (clock.here, clock.rehearsed) == (False, False)
    assert clock.reason.startswith("the recording nowhere cannot be shown: ")
    app = WorkshopApp(broken)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("down", "down", "down")
        about = "".join(app.screen.query_one("#about", Sheet).plain().split())
        assert about == "".join(clock.reason.split())
        assert "the recording nowhere" in text_of(app)
        app.open_chapter("clock")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        for step in screen.walk.chapter.steps:
            screen.walk._save(dataclasses.replace(screen.walk.progress, step=step))
            screen.enter_step()
            await settled(pilot)
            for key in ("m", "u", "t", "tab", "h"):
                await pilot.press(key)
                if app.screen is not screen:
                    await pilot.press("escape")
            assert app.screen is screen
            assert "ON A RECORDING nowhere" in text_of(app)
        assert app.return_code in (0, None)


def test_line_by_line_it_is_said_too(broken: FakeWorkshop) -> None:
    said = " ".join(talk(broken, "3||||||||p|q", width=100).split())
    assert "the recording nowhere cannot be shown" in said
