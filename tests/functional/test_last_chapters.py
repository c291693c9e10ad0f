"""The chapters on the program's own part, on caches and on making it last: line by line and by keys."""

from __future__ import annotations

import pytest

from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.measuring.unchanged import UNCHANGED
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
    ("chapter", "memory", "noise"),
    [
        ("memory", ["huge", "ready"], None),
        ("own-part", ["fresh", "ready"], None),
        ("system-calls", ["file", "ready"], None),
        ("caches", ["far", "near"], "bandwidth"),
    ],
)
def test_both_runs_use_memory_as_the_lesson_says(chapter: str, memory: list[str], noise: str | None) -> None:
    workshop = whole()
    said = talk(workshop, "||3|||||||", chapter)
    runs = workshop.context.runs.every()
    assert [run.memory for run in runs] == memory
    assert {run.noise for run in runs} == {noise}
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
