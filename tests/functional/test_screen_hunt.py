"""The hunt on the screen, by key presses, with a noise that makes none."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.errors import MeasureError
from jitter_workshop.flow.chapters.hunt import ISOLATED_REMEDY, NONE_HIDDEN
from jitter_workshop.model.course import TREATED
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.noise import noise
from jitter_workshop.model.run import HUNTED, MEANWHILE, UNSTEADY
from jitter_workshop.model.spec import Placement
from jitter_workshop.presenter.course.hunt import (
    ENOUGH,
    FIRST_QUIET,
    GIVING_UP,
    HAS_ENDED,
    NOT_TOLD,
    R_MEASURES,
    RESTORED_FOR_HUNT,
    can_be_cure,
    quiet_run_without,
)
from jitter_workshop.presenter.host.changes import NOTHING_OF_CHAPTER
from jitter_workshop.presenter.runs.causes import NO_TRACE
from jitter_workshop.stats.figures import KnownRun
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter import hunting as chapter_hunt
from jitter_workshop.tui.screens.chapter import steps
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.hunting import SuspectsPage
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog
from jitter_workshop.tui.screens.common.help import GlossaryPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.home.summary import SummaryScreen
from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import fakes, madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.isolated_hunt import isolate
from tests.madetrace import TIDS, switch, trace_of
from tests.screens import read_on, settled, text_of

pytestmark = pytest.mark.slow

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 48)])
RUNS = "a hidden noise is running"
NAMED = "the named noise is running"


@pytest.fixture
def workshop(tmp_path: Path) -> FakeWorkshop:
    return open_workshop(course=fakes.hunt_course(tmp_path / "course"))


@asynccontextmanager
async def at(
    workshop: FakeWorkshop, size: tuple[int, int], *keys: str
) -> AsyncIterator[tuple[WorkshopApp, Pilot[None]]]:
    """In the chapter, after these keys, settled after each."""
    app = WorkshopApp(workshop, "hunt")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await press(pilot, *keys)
        yield app, pilot


async def press(pilot: Pilot[None], *keys: str) -> None:
    for key in keys:
        if key == "enter" and isinstance(pilot.app.screen, ChapterScreen):
            await read_on(pilot)
        else:
            await pilot.press(key)
            await settled(pilot)


def flat(app: WorkshopApp) -> str:
    return " ".join(text_of(app).replace("│", " ").split())


def framed(app: WorkshopApp) -> str:
    """Return what stands in the frame over the screen, in a line."""
    return " ".join(" ".join(sheet.plain() for sheet in app.screen.query(Sheet)).split())


def past_compare(size: tuple[int, int]) -> list[str]:
    """The keys from the step compare to the next one, without a name for the noise: a narrow screen shows the lesson's
    page first."""
    return [*(["enter"] if size[0] < 100 else []), "n"]


QUIET = ("enter", "enter", "enter")
"""From the first page to the step of the hidden noise."""
HIDDEN = (*QUIET, "enter", "enter")
BESIDE = (*HIDDEN, "enter")


@SIZES
async def test_the_whole_hunt(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    async with at(workshop, size, *QUIET) as (app, pilot):
        assert workshop.measured == 1
        assert "Hide a noise first." in flat(app)
        assert "Enter hide a noise" in flat(app)
        assert RUNS not in flat(app)
        await press(pilot, "enter")
        asked = framed(app)
        for said in ("Hide a noise?", NOT_TOLD, "Timers", "after 30 minutes", "Esc changes nothing"):
            assert said in asked
        await press(pilot, "escape")
        assert workshop.hunts.hunt is None
        await press(pilot, "enter", "enter")
        assert RUNS in text_of(app).splitlines()[0]
        assert "Find out which" in flat(app)
        assert "noise a hidden noise" in flat(app)
        await press(pilot, "enter")
        assert workshop.measured == 2
        assert workshop.context.runs.every()[-1].notes[HUNTED]
        assert "Measured while a hidden noise" in flat(app)
        # It goes on while the learner looks elsewhere, and every title says so.
        await press(pilot, "c")
        assert RUNS in text_of(app).splitlines()[0]
        await press(pilot, "escape", "enter", *past_compare(size))
        assert "EXPLAIN" in text_of(app)
        assert "Enter name it" in flat(app)
        assert "n go on without a name" in flat(app)
        assert "i name it" not in flat(app)
        await press(pilot, "enter", "enter")
        assert isinstance(app.screen, SuspectsPage)
        assert f"1–{len(workshop.hunts.suspects(workshop.walk('hunt')))} choose" in framed(app)
        found = f"The noise that you named has these signs: {noise('spinners').found_as}"
        assert f"✗ Not: Spinners. {found}" in framed(app)
        assert noise("greedy").what not in framed(app)
        assert workshop.hunts.hiding
        await press(pilot, "down", "enter")
        caught = framed(app)
        greedy = noise("greedy")
        for said in ("✓ Found: A greedy thread, at try 2.", greedy.what, greedy.found_as, greedy.treatment):
            assert said in caught
        below = app.screen_stack[-2]
        assert isinstance(below, ChapterScreen)
        for known in ("#title", "#say"):
            assert "hidden noise is running" not in below.sheet(known).plain(), "known while the page is still open"
        assert workshop.starts.made[0].ended == 0
        await press(pilot, "enter")
        assert not isinstance(app.screen, SuspectsPage)
        assert RUNS not in flat(app)
        assert NAMED in text_of(app).splitlines()[0]
        assert "1 of 1 hidden noise found: A greedy" in flat(app)
        assert "thread (named at try 2)" in flat(app)
        assert "The noise goes on" in flat(app)
        assert "r try a cure" in flat(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, HomeScreen)
        assert workshop.starts.made[0].ended == 1
        (line,) = [line for line in text_of(app).splitlines() if line.startswith((" ● The hunt", " ▸ The hunt"))]
        assert " done " in line
        assert "noise named" in line
        assert workshop.hunts.hunt is None


@SIZES
async def test_a_number_names_one_and_giving_up_tells_it(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    workshop.hidden = ("softirq",)
    async with at(workshop, size, *BESIDE, "i", "3", "enter") as (app, pilot):
        assert "✗ Not: Timers." in framed(app)
        await press(pilot, "9", "up", "escape")
        assert "1 wrong answer so far" in flat(app)
        await press(pilot, "i", "g")
        assert isinstance(app.screen, GlossaryPage), "g explains the page, and gives nothing up"
        await press(pilot, "escape", "x")
        assert GIVING_UP in framed(app)
        await press(pilot, "escape")
        assert isinstance(app.screen, SuspectsPage)
        assert workshop.hunts.hiding
        await press(pilot, "x", "enter")
        assert "It was: Network softirqs." in framed(app)
        assert noise("softirq").treatment in framed(app)
        await press(pilot, "x", "down", "escape", "i")
        assert "No noise is hidden now" in flat(app)
        await press(pilot, "x", "enter")
        assert workshop.hunts.hiding
        assert len(workshop.starts.made) == 1


@SIZES
@pytest.mark.parametrize("tries", [True, False])
async def test_after_the_name_enter_tries_a_cure_and_n_ends_the_noise(
    workshop: FakeWorkshop, size: tuple[int, int], tries: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def difference(before: KnownRun, after: KnownRun, _: str | None = None) -> None:
        asked.append([before.run.id, after.run.id])

    monkeypatch.setattr(steps, "judged_effect", difference)
    read = ["enter"] if size[0] < 100 else []
    async with at(workshop, size, *BESIDE, "enter", *read, "enter", "2", "enter", "escape") as (app, pilot):
        assert "▸COMPARE" in text_of(app)
        assert "r lists cures" in flat(app)
        for key in ("Enter try a cure", "n end the noise", "m measure again"):
            assert key in flat(app), key
        await press(pilot, "i")
        assert "r lists cures" in flat(app), "it is named already"
        if tries:
            await press(pilot, "m")
            assert workshop.measured == 3
            assert "▸AGAIN" in text_of(app)
            await press(pilot, "enter", *read, "enter", "enter")
            assert workshop.measured == 4
            assert workshop.context.runs.every()[-1].notes[HUNTED]
            assert "kept away" not in flat(app), "no trace shows that"
            # The chart marks the newest pair, and the sentences on the cure are not cut.
            runs = workshop.walk("hunt").progress.runs
            asked.clear()
            assert isinstance(app.screen, ChapterScreen)
            app.screen.now.drawing()
            assert asked == [[runs["again"], runs[TREATED]]]
            assert "t: more" not in text_of(app)
        else:
            await press(pilot, "n")
            assert ENOUGH in flat(app)
            assert workshop.measured == 2
        assert "▸COMPARE" in text_of(app)
        assert NAMED not in text_of(app)
        assert workshop.starts.made[0].ended == 1
        assert "Enter try a cure" not in flat(app)
        assert "x hide another" in flat(app)


async def test_a_noise_is_not_judged_and_an_unsteady_run_is_not_compared(workshop: FakeWorkshop) -> None:
    async with at(workshop, (120, 36), *BESIDE, "enter") as (app, pilot):
        told = flat(app)
        assert "▸COMPARE" in told
        assert "Beside the noise" in told
        assert not any(word in told for word in ("Looks ", "two runs", " shorter", " longer"))
        walk = workshop.walk("hunt")
        first = walk.runs.run_in("measure")
        assert first is not None
        said = f"isolation changed {MEANWHILE}: its blocks were not all measured with the same settings"
        workshop.context.runs._runs[first.id] = dataclasses.replace(first, notes={**first.notes, UNSTEADY: said})
        await press(pilot, "b", "enter")
        assert "Not comparable: isolation changed during the first run" in flat(app)
        assert "Beside the noise" not in flat(app)
        assert [curve.label.endswith("(settings changed)") for curve in walk.runs.curves()] == [True, False]


@SIZES
async def test_enter_leads_past_no_noise_without_a_name(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    async with at(workshop, size, *BESIDE, "enter") as (app, pilot):
        read_on = ["enter"] if size[0] < 100 else []
        assert "▸COMPARE" in text_of(app)
        await press(pilot, *read_on)
        assert "Enter name it" in flat(app)
        assert "n go on without a name" in flat(app)
        await press(pilot, "enter")
        assert isinstance(app.screen, SuspectsPage)
        await press(pilot, "escape")
        assert "▸COMPARE" in text_of(app)
        await press(pilot, "n")
        assert "▸EXPLAIN" in text_of(app)
        await press(pilot, "enter", "x", "enter", "escape")
        assert "▸EXPLAIN" in text_of(app)
        while "Enter read on" in flat(app):
            await pilot.press("enter")
            await settled(pilot)
        assert "Enter finish" in flat(app)
        await press(pilot, "n")
        assert "EXPLAIN" not in text_of(app), "at the last step n finishes the chapter, as Enter does"


async def test_leaving_the_chapter_ends_it(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *HIDDEN) as (app, pilot):
        assert workshop.hunts.hiding
        await press(pilot, "escape")
        assert isinstance(app.screen, HomeScreen)
        assert RUNS not in flat(app)
        assert workshop.starts.made[0].ended == 1
        assert workshop.hunts.hunt is None


async def test_going_to_another_chapter_ends_it(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *HIDDEN) as (app, pilot):
        app.go_to_chapter("hunt")
        await settled(pilot)
        assert workshop.starts.made[0].ended == 1


async def test_a_noise_that_was_killed_can_still_be_named(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *BESIDE) as (app, pilot):
        workshop.starts.made[0].death = MeasureError("killed")
        await press(pilot, "enter")
        assert RUNS not in flat(app)
        await press(pilot, "enter")
        assert HAS_ENDED in flat(app)
        await press(pilot, "i", "2", "enter")
        assert "✓ Found and stopped: A greedy thread" in framed(app)
        assert "thread, at the first try." in framed(app)


async def test_measuring_again_waits_for_a_noise(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *QUIET, "m") as (app, pilot):
        assert workshop.measured == 1
        assert "Hide a noise first." in flat(app)
        await press(pilot, "i")
        assert "No noise is hidden now" in flat(app)
        await press(pilot, "x", "enter", "x")
        assert "is running already" in flat(app)
        await press(pilot, "m", "m")
        assert workshop.measured == 3
        await press(pilot, "enter", "enter", "m")
        assert workshop.measured == 4
        assert "▸AGAIN" in text_of(app)


async def test_a_host_that_can_hide_none_says_why(workshop: FakeWorkshop) -> None:
    workshop.refused = tuple(suspect.id for suspect in workshop.hunts.suspects(workshop.walk("hunt")))
    async with at(workshop, (80, 24), *HIDDEN) as (app, pilot):
        assert NONE_HIDDEN[1:] in framed(app)
        await press(pilot, "escape")
        assert "Enter hide a noise" in flat(app)


async def test_where_no_noise_reaches_the_cpu_nothing_is_offered(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jitter_workshop.flow.chapters.hunt.suspected_noises", lambda *_: ())
    async with at(workshop, (80, 24), *QUIET, "x") as (app, pilot):
        assert isinstance(app.screen, ErrorDialog)
        assert "no noise" in framed(app)
        assert "Enter hides a noise" not in framed(app)
        monkeypatch.undo()
        await press(pilot, "escape", "x")
        assert "Enter hides a noise" in framed(app)
        below = app.screen_stack[-2]
        assert isinstance(below, ChapterScreen)
        assert not below.said


@SIZES
async def test_applied_isolation_is_said_at_the_first_page_and_u_restores_it(
    workshop: FakeWorkshop, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = isolate(workshop, monkeypatch)
    async with at(workshop, size) as (app, pilot):
        assert "Applied now: isolation." in flat(app)
        assert "u let noises in" in flat(app)
        await press(pilot, "u")
        assert "Let the noises in?" in framed(app)
        await press(pilot, "escape")
        assert agent.calls == []
        await press(pilot, "u", "enter")
        assert agent.calls == [("restore", "isolation")]
        assert "Restored: 1 setting, 1 write (isolation)." in flat(app)
        assert "u let noises in" not in flat(app)
        await press(pilot, "u")
        assert NOTHING_OF_CHAPTER in flat(app)


@SIZES
async def test_the_quiet_run_is_made_without_isolation_unless_the_learner_keeps_it(
    workshop: FakeWorkshop, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = isolate(workshop, monkeypatch)
    async with at(workshop, size, "enter") as (app, pilot):
        assert workshop.walk("hunt").current == "measure"
        assert app.screen.query_one(KeyBar).shown[0] == ("chapter.restore", "let noises in")
        for key in ("enter", "m"):
            await press(pilot, key)
            assert "Measure without these settings?" in framed(app)
            assert quiet_run_without(("isolation",)) in framed(app)
            await press(pilot, "escape")
            assert (agent.calls, workshop.measured) == ([], 0)
        await press(pilot, "enter", "k")
        assert (agent.calls, workshop.measured) == ([], 1)
        await press(pilot, "m", "enter")
        assert (agent.calls, workshop.measured) == ([("restore", "isolation")], 2)
        await press(pilot, "m")
        assert workshop.measured == 3, "nothing keeps noises away now"


async def test_a_refusal_to_hide_leads_to_the_restore_of_the_isolation(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = isolate(workshop, monkeypatch)
    monkeypatch.setattr("jitter_workshop.flow.chapters.hunt.suspected_noises", lambda *_: ())
    async with at(workshop, (80, 24), "enter", "m", "k", "x") as (app, pilot):
        assert "Let the noises in?" in framed(app)
        await press(pilot, "enter")
        assert agent.calls == [("restore", "isolation")]
        assert RESTORED_FOR_HUNT in flat(app)


async def test_during_a_hunt_isolation_is_the_learners_cure(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at(workshop, (80, 24), *BESIDE) as (app, pilot):
        isolate(workshop, monkeypatch)
        await press(pilot, "c")
        assert "keeps noises off" not in flat(app)
        assert "let noises in" not in flat(app)


async def test_during_a_hunt_u_asks_about_a_cure_and_advises_no_new_quiet_run(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with at(workshop, (80, 24), *BESIDE) as (app, pilot):
        agent = isolate(workshop, monkeypatch)
        await press(pilot, "u")
        asked = framed(app)
        assert "Restore the settings?" in asked
        assert can_be_cure(("isolation",)) in " ".join(asked.split())
        assert "Let the noises in?" not in asked
        assert "Before you measure" not in asked
        await press(pilot, "enter")
        assert agent.calls == [("restore", "isolation")]
        assert "Restored: 1 setting, 1 write (isolation)." in flat(app)
        assert RESTORED_FOR_HUNT not in flat(app)


async def test_the_causes_are_those_of_the_steps_own_run(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *BESIDE, "v") as (app, pilot):
        assert NO_TRACE in flat(app)
        walk = workshop.walk("hunt")
        run, blocks = madeup.make_run(run_id="20260102-000000-bbbb", label="beside", name="spin_gap", workload="spin")
        events = [switch(10_000, TIDS["sampler"], 77, stays=True, names=("", "thief"))]
        workshop.context.handle.add_run(run, blocks, trace=trace_of(events, ()))
        walk.record("again", dataclasses.replace(run, notes={}))
        await press(pilot, "v")
        assert isinstance(app.screen, EvidenceScreen)
        assert "Who took the time · beside" in flat(app)


async def test_another_chapter_hides_nothing() -> None:
    workshop = open_workshop()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "x")
        assert isinstance(app.screen, ChapterScreen)
        await press(pilot, "l")
        assert isinstance(app.screen, SummaryScreen)
        await press(pilot, "escape", "i")
        assert "No noise is hidden here" in flat(app)


@SIZES
async def test_a_cure_is_tried_and_compared(workshop: FakeWorkshop, size: tuple[int, int]) -> None:
    async with at(workshop, size, *BESIDE, "r") as (app, pilot):
        asked = framed(app)
        for told in ("$ kill PID", "$ taskset -apc 0 PID", "apply isolation", "1 Measure here"):
            assert told in asked
        assert "1–4 choose" in flat(app)
        await press(pilot, "y")
        assert app.clipboard.splitlines()[1] == "kill PID"
        await press(pilot, "escape")
        assert workshop.measured == 2
        # The measured thread steps aside: the number chooses, Enter measures, and the three runs are compared.
        await press(pilot, "r", "9", "2", "up", "down", "enter")
        assert workshop.measured == 3
        assert workshop.asked is not None
        assert (workshop.asked.cpu, workshop.asked.label, workshop.asked.evidence) == (0, "with the cure", True)
        assert "▸COMPARE" in text_of(app)
        assert "without the noise" in flat(app)
        await press(pilot, "t")
        table = " ".join(app.screen.query_one("#data-sheet", Sheet).plain().split())
        assert "quiet beside the noise with the cure" in table
        assert workshop.hunts.hiding
        await press(pilot, *past_compare(size))
        assert isinstance(app.screen, ChapterScreen)
        evidence = "\n".join(line.plain for line in app.screen.now.figures(76))
        for told in ("run 1: before the hunt", "run 2: beside the noise", "run 3: with the cure"):
            assert told in evidence
        assert "newest run (run 3: with the cure)" in evidence


async def test_a_cure_needs_a_noise_that_was_measured(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *HIDDEN, "r") as (app, pilot):
        assert "press x to hide a noise" in flat(app)
        await press(pilot, "enter", "i", "x", "enter", "enter", "r")
        assert "press x to hide a noise" in flat(app)
        # Another noise: what was measured beside the first one leaves its place.
        await press(pilot, "x", "enter")
        assert "▸AGAIN" in text_of(app)
        assert workshop.walk("hunt").runs.run_in("again") is None
        assert len(workshop.context.runs.every()) == 2


async def test_how_it_came_out_is_said_at_the_pages_that_are_seen_again(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), *BESIDE, "i", "x", "enter", "enter", "enter") as (app, pilot):
        assert "0 of 1 hidden noise found: A greedy thread (not named)." in flat(app)
        assert "another noise" not in flat(app)
        await press(pilot, "enter", "enter")
        assert "EXPLAIN" in text_of(app)
        assert "0 of 1 hidden noise found" in flat(app)


async def test_nothing_is_hidden_before_the_quiet_run(workshop: FakeWorkshop) -> None:
    async with at(workshop, (80, 24), "x") as (app, _):
        assert FIRST_QUIET in flat(app)
        assert workshop.hunts.hunt is None


async def test_the_screen_notices_that_the_noise_was_ended(
    workshop: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chapter_hunt, "LOOK_EVERY_S", 0.01)
    async with at(workshop, (80, 24), *BESIDE) as (app, pilot):
        workshop.starts.made[0].death = MeasureError("killed")
        for _ in range(500):
            if R_MEASURES in flat(app):
                break
            await pilot.pause(0.01)
        assert R_MEASURES in flat(app)
        assert RUNS not in flat(app)
        await press(pilot, "m")
        assert "The noise has ended. r measures" in flat(app)


@SIZES
async def test_a_hunt_without_a_choice_is_refused_with_the_reason(
    workshop: FakeWorkshop, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another workshop isolates the hot CPU, so one kind of noise is left.
    ground = Placement("auto", sampler=1, hot=(1,), housekeeping=(0,)), CpuSet((0,))
    monkeypatch.setattr(workshop.hunts, "_ground", lambda walk: ground)
    async with at(workshop, size, *QUIET) as (app, pilot):
        await press(pilot, "x")
        assert isinstance(app.screen, ErrorDialog)
        said = framed(app)
        assert "only 1 kind of noise can be hidden now" in said
        assert ISOLATED_REMEDY in said
        await press(pilot, "escape")
        assert workshop.hunts.hunt is None
