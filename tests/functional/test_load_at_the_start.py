"""A load that drowns every lesson is named once, after the first frame; a quiet host is asked nothing."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.presenter.host.host_load import ALL_THE_SAME
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.help import HelpPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from tests.fakes import open_workshop
from tests.screens import settled, text_of

BUSY = HostLoad(4.9, 2, 47.0, 0.0, (ForeignLoad(1, "qemu-system-x86", 0, 87.2),), True)
QUIET = HostLoad(0.1, 2, 1.0, 0.0, (), False)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_home_tells_a_load_in_a_sentence_and_looks_again(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(loads=(BUSY, BUSY, QUIET)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "▸ Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 %" in text_of(app)
        assert ALL_THE_SAME in " ".join(text_of(app).split())
        await pilot.press("L")
        await settled(pilot)
        assert "87 %" in text_of(app)
        await pilot.press("L")
        await settled(pilot)
        assert "87 %" not in text_of(app)
        assert "Load 0.1 on 2 CPUs" in text_of(app)


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_a_load_that_is_told_moves_no_row_of_the_path(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(loads=(QUIET, QUIET)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        home = app.screen

        def rows() -> list[str]:
            path = home.query_one("#path-pane").region
            return [line[path.x : path.right] for line in text_of(app).splitlines()[path.y : path.bottom]]

        before = rows()
        await pilot.press("L")
        await settled(pilot)
        assert "Load 0.1 on 2 CPUs" in text_of(app)
        assert rows() == before


async def test_a_load_told_at_home_is_not_told_in_a_chapter() -> None:
    app = WorkshopApp(open_workshop(loads=(BUSY,)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.open_chapter("baseline")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        while app.screen.step != "measure":
            await pilot.press("enter")
            await settled(pilot)
        assert "Load 4.9" not in text_of(app)


async def test_an_opened_chapter_tells_a_load_before_its_run_and_not_after_it() -> None:
    app = WorkshopApp(open_workshop(loads=(BUSY,)), chapter="baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "Load 4.9" not in text_of(app)
        while app.screen.step != "measure":
            await pilot.press("enter")
            await settled(pilot)
        assert "▸ Load 4.9 on 2 CPUs, most from qemu-system-x86" in text_of(app)
        await pilot.press("m")
        await settled(pilot)
        assert app.workshop.context.runs.every()
        assert "Load 4.9" not in text_of(app)


async def test_over_help_the_load_waits_for_home() -> None:
    app = WorkshopApp(open_workshop(loads=()))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await settled(pilot)
        app.workshop.look_at_load = lambda: BUSY  # type: ignore[method-assign]
        await app._look_at_load()
        await settled(pilot)
        assert isinstance(app.screen, HelpPage)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "▸ Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 %" in text_of(app)


async def test_a_quiet_host_is_asked_nothing() -> None:
    app = WorkshopApp(open_workshop(loads=(QUIET,)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)


def test_the_plain_walk_tells_it_once_and_takes_no_answer_for_it() -> None:
    workshop = open_workshop(loads=(BUSY, dataclasses.replace(QUIET, average=0.2)))
    answers, said = iter(["load", "q"]), []
    walk = PlainWalk(workshop, lambda prompt: next(answers), said.append, 100)
    assert walk._look is not None
    walk._look.thread.join()
    assert walk.run() == 0
    told = " ".join("".join(said).split())
    assert told.count("qemu-system-x86 takes 87 %") == 1
    assert told.index("Type load to look again.") < told.index("Load 0.2 on 2 CPUs")
