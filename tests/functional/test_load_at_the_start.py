"""A load that drowns every lesson is named once, after the first frame; a quiet host is asked nothing."""

from __future__ import annotations

import dataclasses

import pytest

from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core import actions
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.help import HelpPage
from jitter_workshop.tui.screens.common.load import LoadPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from tests.fakes import open_workshop
from tests.screens import settled, text_of

BUSY = HostLoad(4.9, 2, 47.0, 0.0, (ForeignLoad(1, "qemu-system-x86", 0, 87.2),), True)
QUIET = HostLoad(0.1, 2, 1.0, 0.0, (), False)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_load_is_named_looked_at_again_and_never_in_the_way(size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop(loads=(BUSY, BUSY, QUIET)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, LoadPage)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpPage)
        await pilot.press("escape")
        assert isinstance(app.screen, LoadPage)
        shown = " ".join(text_of(app).split())
        assert "qemu-system-x86 takes 87 %" in shown
        assert "Enter goes on · r looks again" in shown
        await pilot.press("r")
        await settled(pilot)
        assert "87 %" in text_of(app)
        await pilot.press("r")
        await settled(pilot)
        assert "87 %" not in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        # Once a start: home does not ask again.
        app.open_chapter("baseline")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_key_meant_for_home_goes_to_home_and_the_load_is_a_sentence(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "TYPED_AHEAD_S", 600.0)
    app = WorkshopApp(open_workshop(loads=(BUSY,)))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, LoadPage)
        await pilot.press("question_mark")
        await settled(pilot)
        assert isinstance(app.screen, HelpPage)
        assert isinstance(app.screen_stack[-2], HomeScreen)
        assert "Open the chapter under the cursor" in text_of(app)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert "▸ Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 %" in text_of(app)


async def test_an_enter_meant_for_home_opens_its_chapter_and_the_load_is_told_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(actions, "TYPED_AHEAD_S", 600.0)
    app = WorkshopApp(open_workshop(loads=(BUSY,)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, LoadPage)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "▸ Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 %" in text_of(app)


async def test_over_an_opened_chapter_a_load_is_one_calm_sentence() -> None:
    app = WorkshopApp(open_workshop(loads=(BUSY,)), chapter="baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "▸ Load 4.9 on 2 CPUs; qemu-system-x86 takes 87 %" in text_of(app)


async def test_over_help_that_was_opened_no_box_opens() -> None:
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
