"""The chapters on the program's own part, on caches and on making it last: line by line and by keys."""

from __future__ import annotations

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.model.session import ChapterProgress, Guess
from jitter_workshop.presenter.course.path import progress_signs
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.home.home import HomeScreen
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of
from tests.talking import talk

SIZES = [(80, 24), (160, 48)]


def whole() -> FakeWorkshop:
    return open_workshop(course=builtin_course())


@pytest.mark.parametrize(
    ("chapter", "memory", "noises"),
    [
        ("memory", ["huge", "ready"], [None, None]),
        ("own-part", ["fresh", "ready"], [None, None]),
        ("system-calls", ["file", "ready"], [None, None]),
        ("caches", ["far", "near", "far"], ["bandwidth", "bandwidth", None]),
    ],
)
def test_the_runs_use_memory_as_the_lesson_says(chapter: str, memory: list[str], noises: list[str | None]) -> None:
    workshop = whole()
    said = talk(workshop, "||3|||||||", chapter)
    runs = workshop.context.runs.every()
    assert [run.memory for run in runs] == memory
    assert [run.noise for run in runs] == noises
    # Two uses of memory are a change, and they can be compared.
    assert UNCHANGED not in said
    assert "Not comparable" not in said
    entry = next(one for one in workshop.path() if one.chapter_id == chapter)
    assert (entry.setting, entry.curve, entry.done) == (None, True, True)


def test_the_reading_chapter_measures_nothing_and_asks_for_no_guess() -> None:
    workshop = whole()
    said = talk(workshop, "|more|more|more||", "make-it-last")
    assert workshop.measured == 0
    assert "systemctl enable --now quiet.service" in said
    chapter = workshop.course.chapter("make-it-last")
    assert chapter is not None
    assert chapter.prediction is None, "no run could decide a guess"
    assert "forgets" in [one.id for one in chapter.recall], "what needs no run is a recall question"
    entry = next(one for one in workshop.path() if one.chapter_id == "make-it-last")
    assert (entry.setting, entry.curve, entry.guess, entry.done) == (None, False, None, True)
    assert progress_signs(entry) == ("–", "–", "–")


def test_a_session_from_the_time_when_the_reading_chapter_asked_goes_on() -> None:
    workshop = whole()
    walk = workshop.walk("make-it-last")
    old = ChapterProgress(step="predict", seen=("look",), prediction=Guess(choice="boot"))
    workshop.context.save_progress("make-it-last", old)
    assert walk.current == "look"
    said = talk(workshop, "more|more|more||", "make-it-last")
    assert "systemctl enable --now quiet.service" in said


def test_both_runs_take_the_lock_that_the_lesson_says() -> None:
    workshop = whole()
    said = talk(workshop, "||1|||||||", "locks")
    runs = workshop.context.runs.every()
    assert [(run.lock, run.sched) for run in runs] == [("plain", "fifo:20"), ("inherit", "fifo:20")]
    assert UNCHANGED not in said
    assert "Not comparable" not in said


@pytest.mark.parametrize("size", SIZES)
async def test_enter_makes_the_second_run_and_the_control_run_that_were_told(size: tuple[int, int]) -> None:
    workshop = whole()
    walk = workshop.walk("caches")
    for step in ("predict", "measure"):
        walk.go(step)
    walk.record("measure", workshop.measure(walk.measuring.request("measure"), SilentObserver(), CancelToken()))
    walk.go("again")
    app, told = WorkshopApp(workshop, "caches"), ""
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for _ in range(3):
            if workshop.measured > 1:
                break
            told = text_of(app)
            await pilot.press("enter")
            await settled(pilot)
        await settled(pilot)  # The control run began when the second run ended.
        assert "the first run once more" in " ".join(told.split())
        assert workshop.measured == 3
        control = walk.runs.control
        assert control is not None
        assert (control.memory, control.noise) == ("far", None)
        assert walk.current == "again"
        await pilot.press("enter")
        await settled(pilot)
        assert walk.current == "compare"
        assert control.label in text_of(app)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("chapter", ["memory", "own-part", "system-calls", "locks", "caches", "make-it-last"])
async def test_enter_alone_goes_through_a_last_chapter(chapter: str, size: tuple[int, int]) -> None:
    app = WorkshopApp(whole(), chapter)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        walk = app.screen.walk
        seen = []
        for _ in range(30):
            if not isinstance(app.screen, ChapterScreen):
                break
            if not seen or seen[-1] != walk.current:
                seen.append(walk.current)
            assert walk.current.upper() in text_of(app)
            # Nothing took time in a chapter that measures nothing.
            assert walk.chapter.measurements or "v causes" not in text_of(app)
            await pilot.press("enter")
            await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        assert tuple(seen) == walk.chapter.steps
        assert walk.progress.done
