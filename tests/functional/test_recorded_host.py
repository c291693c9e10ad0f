"""A recorded host (``--root``) on the screen and in the plain walk: every key on every step works or says why not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.flow.chapters.path import NOT_MEASURED
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.model.course import STEPS, StepName
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.presenter.course import keys_that_wait
from jitter_workshop.presenter.host.plan import TOO_EARLY, TOO_EARLY_TO_READ
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core import actions
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from tests.screens import settled, text_of

Trees = Callable[[str], Path]

CHAPTERS: dict[str, tuple[StepName, ...]] = {
    "pinning": STEPS,
    "baseline": ("measure", "explain"),
    "workqueues": ("apply", "compare"),
}
"""Every step of one of placements; of one that changes nothing and of one of tunables the steps that differ by that."""
KEYS = ("w", "t", "tab", "o", "h", "y", "down", "left", "pagedown", "1", "9")
ASKING = ("m", "p")
"""The keys that measure or open the choice of CPUs: m says why nothing is measured."""
PAGES = ("question_mark", "c", "e")
"""The keys that open a page over the chapter, at each of its steps."""


@pytest.mark.parametrize(("chapter", "steps"), CHAPTERS.items())
async def test_every_key_on_every_step(host_tree: Trees, chapter: str, steps: tuple[StepName, ...]) -> None:
    workshop = Workshop.open(root=host_tree("guest"))
    app = WorkshopApp(workshop, chapter)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        assert "a recorded host" in text_of(app).splitlines()[0]
        for step in steps:
            screen.walk._save(dataclasses.replace(screen.walk.progress, step=step))
            screen.enter_step()
            await pilot.press(*KEYS)
            for key in ASKING if step != "look" else (*ASKING, *PAGES):
                await pilot.press(key)
                assert not app.measuring
                if app.screen is not screen:
                    await pilot.press("escape")
            assert app.screen is screen
        assert workshop.context.runs.every() == ()
    assert app.return_code in (0, None)


@pytest.mark.parametrize("chapter", ["pinning", "governor"])
async def test_an_enter_that_was_typed_ahead_is_not_asked_to_agree(
    host_tree: Trees, chapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = WorkshopApp(Workshop.open(root=host_tree("guest")), chapter)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        monkeypatch.setattr(actions, "TYPED_AHEAD_S", 600.0)
        screen.walk._save(dataclasses.replace(screen.walk.progress, step="apply"))
        screen.enter_step()
        await settled(pilot)
        assert "agree" not in screen.now.enter_key.label
        while screen._unread() is not None:
            await pilot.press("enter")
            await settled(pilot)
        if screen.said == "":
            await pilot.press("enter")
            await settled(pilot)
        assert screen.said == TOO_EARLY_TO_READ
        assert TOO_EARLY not in text_of(app)


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_answer_on_every_step_of_the_plain_walk(host_tree: Trees, chapter: str) -> None:
    answers = [
        a for n in range(1, 9) for a in (str(n), "m", "w", "h", "c", "o", "t", "cpus 1,2", "cpus auto", "?", "x")
    ]
    said: list[str] = []
    replies = iter([*answers, "r", "", "b", "p", "q"])
    workshop = Workshop.open(root=host_tree("server64"))
    assert PlainWalk(workshop, lambda _: next(replies), said.append, 80).run(chapter) == 0
    assert "a recorded host" in said[0]
    assert NOT_MEASURED in "".join(said)
    assert workshop.context.runs.every() == ()


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_n_goes_on_wherever_enter_only_goes_on(host_tree: Trees, size: tuple[int, int]) -> None:
    app = WorkshopApp(Workshop.open(root=host_tree("guest")), "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        steps = screen.walk.chapter.steps
        walked: tuple[StepName, ...] = ("measure", "again", "compare")
        for at in walked:
            screen.walk._save(dataclasses.replace(screen.walk.progress, step=at))
            screen.enter_step()
            await settled(pilot)
            # A narrow screen shows the page behind the figures first.
            for _ in range(1 + (screen.now.enter_key.label == "read on")):
                await pilot.press("n")
                await settled(pilot)
            assert screen.step == steps[steps.index(at) + 1]
            assert keys_that_wait.NO_SKIP not in text_of(app)
