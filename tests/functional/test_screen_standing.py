"""Test the home screen with applied settings: it names them, restores them, applies them again, and asks on leaving."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.flow.chapters.kept_settings import KeptSetting, KeptSettings
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.presenter.course.kept_settings import GIVE_BACK
from jitter_workshop.presenter.host.changes import GONE_ALREADY, NOTHING_OF_CHAPTER, farewell
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter import steps
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.dialogs import Question
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.widgets.keybar import KeyHint
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madecourse, tuned_tree
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import FakeWorkshop
from tests.livehost import give_agent, open_live
from tests.screens import settled, text_of
from tests.settings_screen import SIZES, THP, applied, offered


@pytest.fixture
def live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    return open_live(tree, course, monkeypatch)


@pytest.mark.parametrize("size", [(60, 16), *SIZES])
async def test_home_lists_the_applied_changes_and_restores_them_after_a_question(
    live: FakeWorkshop, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    applied(live, tree, monkeypatch)
    app = WorkshopApp(live)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert "now: 2 settings, 2 writes (stat-interval, thp)" in text_of(app)
        assert "home.restore" in offered(app)
        assert max(hint.region.right for hint in app.screen.query(KeyHint)) <= size[0]
        await pilot.press("u")
        assert isinstance(app.screen, Question)
        assert "thp" in text_of(app)
        assert "stat-interval" in text_of(app)
        await pilot.press("escape")
        assert tuned_tree.contents(tree) != before
        await pilot.press("u", "enter")
        await settled(pilot)
        assert "Restored: 2 settings, 2 writes (thp, stat-interval)." in text_of(app)
        assert "home.restore" not in offered(app)
        assert "nothing changed" in text_of(app)
        await pilot.press("s")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert "Restored: 2" not in text_of(app), "the message of a key is old after another screen"
    assert tuned_tree.contents(tree) == before


async def test_settings_that_others_applied_are_told_apart_and_asked_about(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    live.context.agent_connection.made.clear()
    app = WorkshopApp(live)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        assert "2 settings changed by others" in text_of(app)
        assert "Not yours: " in text_of(app)
        assert "u asks before it restores any of this" in text_of(app)
        await pilot.press("u")
        assert isinstance(app.screen, Question)
        assert "may be measuring now" in text_of(app)


@pytest.mark.parametrize("size", SIZES)
async def test_a_later_chapter_tells_the_settings_of_an_earlier_one_and_gives_them_back(
    course: Path, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    madecourse.add_alone(course)
    live = open_live(tree, course, monkeypatch)
    applied(live, tree, monkeypatch)
    live.walk("alone").go("measure")
    app = WorkshopApp(live, "alone")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        told = " ".join(text_of(app).split())
        assert "u restores them." in told
        # In the list of what the run will be, and above the keys.
        assert told.count("stat-interval=10 (from Pages)") == 2
        assert "u restore" in text_of(app)
        await pilot.press("u")
        assert isinstance(app.screen, Question)
        assert GIVE_BACK in text_of(app)
        await pilot.press("escape")
        assert tuned_tree.contents(tree) != before
        await pilot.press("u", "enter")
        await settled(pilot)
        assert tuned_tree.contents(tree) == before
        assert "Restored: 2 settings, 2 writes" in text_of(app)
        assert "Still applied" not in text_of(app)
        assert "chapter.restore" not in offered(app)
        await pilot.press("u")
        assert NOTHING_OF_CHAPTER in " ".join(text_of(app).split())


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_page_asks_to_restore_settings_that_hinder_the_lesson(
    course: Path, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    madecourse.add_alone(course)
    live = open_live(tree, course, monkeypatch)
    applied(live, tree, monkeypatch)
    hinders = KeptSettings((KeptSetting("stat-interval", "10", "Pages"),), no_load=("stat-interval",))
    monkeypatch.setattr(steps, "hinders_lesson", lambda *_: hinders if live.context.standing() else None)
    monkeypatch.setattr(steps, "kept_settings", lambda *_: hinders if live.context.standing() else None)
    app = WorkshopApp(live, "alone")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "look"
        told = " ".join(text_of(app).split())
        assert "stat-interval=10 is still applied (from Pages)" in told
        assert "For the lesson's result, restore it first: u." in told
        assert "u restore" in text_of(app)
        await pilot.press("u")
        assert GIVE_BACK in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "stat-interval" not in {one["id"] for one in live.context.standing()}


@pytest.mark.parametrize("size", SIZES)
async def test_the_guess_restores_settings_that_hinder_the_lesson_by_the_same_key(
    live: FakeWorkshop, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    hinders = KeptSettings((KeptSetting("stat-interval", "10", "Pages"),), no_load=("stat-interval",))
    monkeypatch.setattr(steps, "hinders_lesson", lambda *_: hinders if live.context.standing() else None)
    app = WorkshopApp(live, "reading")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        while app.screen.step == "look":
            await pilot.press("n")
            await settled(pilot)
        assert app.screen.step == "predict"
        assert "chapter.restore" in offered(app)
        await pilot.press("u")
        assert GIVE_BACK in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "stat-interval" not in {one["id"] for one in live.context.standing()}


@pytest.mark.parametrize("size", SIZES)
async def test_settings_of_a_session_are_applied_again_as_one_plan(
    live: FakeWorkshop, tree: Path, course: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    applied(live, tree, monkeypatch)
    live.close()
    assert tuned_tree.contents(tree) == before
    later = open_live(tree, course, monkeypatch)
    give_agent(later, tree, monkeypatch)
    app = WorkshopApp(later)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert "This session applied thp, stat-interval" in text_of(app)
        assert "nothing changed" in text_of(app)
        await pilot.press("a")
        assert isinstance(app.screen, Question)
        plan = " ".join(app.screen.query_one("#page-sheet", Sheet).plain().split())
        assert THP in plan
        assert "/proc/sys/vm/stat_interval" in plan
        assert "Enter applies" in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "Applied: 2 settings, 2 writes (stat-interval, thp)." in text_of(app)
        assert [one["id"] for one in later.context.standing()] == ["thp", "stat-interval"]
        assert later.resumable() == ()
    later.close()
    assert tuned_tree.contents(tree) == before


@pytest.mark.parametrize(("leave", "code"), [("q", 0), ("ctrl+q", 0), ("ctrl+c", 130)])
async def test_leaving_asks_and_enter_gives_back(
    live: FakeWorkshop, tree: Path, leave: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tuned_tree.contents(tree)
    applied(live, tree, monkeypatch)
    app = WorkshopApp(live)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press(leave)
        assert isinstance(app.screen, Question)
        assert "now: 2 settings, 2 writes (stat-interval, thp)." in text_of(app)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)
        await pilot.press(leave, "enter")
        await pilot.pause()
    assert app.exit_code == code
    left = farewell(live)
    assert left.startswith("Restored: 2 settings, 2 writes")
    assert left.endswith("(thp, stat-interval).\n")
    assert tuned_tree.contents(tree) == before


async def test_k_keeps_the_applied_changes(live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tuned_tree.contents(tree)
    applied(live, tree, monkeypatch)
    app = WorkshopApp(live)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("q", "k")
        await pilot.pause()
    left = farewell(live)
    assert left.startswith("Applied now: 2 settings, 2 writes")
    assert len(left.splitlines()) == 1
    assert "(stat-interval, thp). 'jitter-workshop restore' restores them" in left
    assert tuned_tree.contents(tree) != before
    assert live.restore_all().restored
    assert tuned_tree.contents(tree) == before


async def test_a_signal_leaves_without_a_question(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    app = WorkshopApp(live)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.end_by_signal(15)
        await pilot.pause()
    assert app.exit_code == 143
    assert farewell(live).startswith("Restored: 2 settings, 2 writes")


async def test_leaving_with_nothing_held_asks_nothing(live: FakeWorkshop) -> None:
    app = WorkshopApp(live)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("q")
        await pilot.pause()
    assert app.exit_code == 0
    assert farewell(live) == ""


async def test_applied_again_without_the_tasks_that_ended(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    live.close()
    later = open_live(tree, course, monkeypatch)
    agent_connection = later.context.agent_connection = FakeAgentConnection(tree)
    agent_connection.ended = 1
    app = WorkshopApp(later)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        await pilot.press("a", "enter")
        await settled(pilot)
        assert "1 write was not needed: the task had ended." in " ".join(text_of(app).split())


async def test_home_tells_the_restore_after_a_lease_ran_out(
    live: FakeWorkshop, tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    live.close()
    later = open_live(tree, course, monkeypatch)
    give_agent(later, tree, monkeypatch)
    app = WorkshopApp(later)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("a", "enter")
        await settled(pilot)
        assert "Applied: " in text_of(app)
        assert later.context.agent_connection._agent is not None
        assert later.context.agent_connection._agent.restore().restored  # as the agent does by itself
        app.going_on()
        await settled(pilot)
        said = text_of(app)
        assert "nothing changed" in said
        assert "This session applied thp, stat-interval" in said
        assert "this workshop was suspended for too long" in " ".join(said.split())
        assert "have been restored" in " ".join(said.split())
        assert "read back" not in said
        assert later.context.agent_connection.holding
        await pilot.press("q")
        await pilot.pause()
    assert farewell(later) == f"{GONE_ALREADY}\n"


async def left_during_a_run(live: FakeWorkshop, pilot: Pilot[None]) -> None:
    """Ctrl+Q, in the third block of a run."""
    await settled(pilot)
    await pilot.press("m")
    assert live.gate is not None
    while not live.reached_gate.is_set():
        await pilot.pause(0.01)
    await pilot.press("ctrl+q")
    await settled(pilot)


async def test_to_leave_during_a_run_stops_it_keeps_it_and_asks(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    live.gate = threading.Event()
    app = WorkshopApp(live, "pages")
    async with app.run_test(size=(80, 24)) as pilot:
        await left_during_a_run(live, pilot)
        assert isinstance(app.screen, Question)
        assert "Applied now: 2 settings, 2 writes" in text_of(app)
        assert [run.complete for run in live.context.runs.every()] == [False]
        await pilot.press("escape")
        assert "Stopped after 2 blocks" in text_of(app)
        await pilot.press("ctrl+q", "k")
        await pilot.pause()
    assert app.exit_code == 0
    assert farewell(live).startswith("Applied now: ")
    assert live.restore_all().restored


async def test_to_leave_during_a_run_with_nothing_held_stops_it_keeps_it_and_leaves(live: FakeWorkshop) -> None:
    live.gate = threading.Event()
    app = WorkshopApp(live, "pages")
    async with app.run_test(size=(80, 24)) as pilot:
        await left_during_a_run(live, pilot)
    assert app.leaving
    assert [run.complete for run in live.context.runs.every()] == [False]


async def test_restore_all_removes_the_marks_of_restored_settings(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    live.walk("reading").go("look")
    app = WorkshopApp(live)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert entry_of(live, "pages").setting is True
        await pilot.press("u", "enter")
        await settled(pilot)
        assert entry_of(live, "pages").setting is False
    assert live.context.session.current_chapter == "reading"
    assert "clock" not in live.context.session.chapters


def entry_of(workshop: FakeWorkshop, chapter: str) -> PathEntry:
    return next(entry for entry in workshop.path() if entry.chapter_id == chapter)
