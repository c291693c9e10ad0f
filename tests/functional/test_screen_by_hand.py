"""Test the apply step while the learner types the writes: a real agent journals, the workshop looks and takes over."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.agent.client import AgentClient, no_sudo
from jitter_workshop.flow.chapters.command_checks import CommandChecks, CommandFound
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.model.change import Change
from jitter_workshop.presenter.host.by_hand import TAKE_OVER
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter import by_hand
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from tests import madecourse, madeup, tuned_tree
from tests.agent_on_tree import FakeKernel, Steps
from tests.fakes import FakeWorkshop
from tests.functional.test_screen_settings import at, figures, said, to_apply
from tests.livehost import give_agent, open_live
from tests.screens import settled, text_of
from tests.settings_screen import SIZES, THP, offered, to_the_plans_end

INTERVAL = "/proc/sys/vm/stat_interval"


@pytest.fixture
def live(tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeWorkshop]:
    monkeypatch.setattr(by_hand, "LOOK_EVERY_S", 0.1)
    workshop = open_live(tree, madecourse.write(tmp_path / "course"), monkeypatch)
    give_agent(workshop, tree, monkeypatch)
    yield workshop
    workshop.close()


def type_it(tree: Path, change: Change, value: str | None = None) -> None:
    """Write a value as the learner does in a shell."""
    FakeKernel(tree, Steps({}), {}).write(change.path, change.after if value is None else value)


def writes(tree: Path) -> dict[str, Change]:
    return {one.path: one for one in tuned_tree.planned(tree, ("thp=madvise", "stat-interval=10")).changes}


async def watch(pilot: Pilot[None]) -> None:
    """Go to the step apply, and begin to make the writes by hand."""
    await to_apply(pilot)
    await pilot.press("d")
    await settled(pilot)


async def shown(pilot: Pilot[None], words: str) -> str:
    """Return the screen once it shows ``words``."""
    for _ in range(200):
        text = " ".join(text_of(pilot.app).split())
        if words in text:
            return text
        await pilot.pause(0.02)
    raise AssertionError(f"{words!r} is not shown: {text_of(pilot.app)}")


def signs(app: WorkshopApp) -> dict[str, str]:
    """Return the sign before each line that is to be typed."""
    assert isinstance(app.screen, ChapterScreen)
    lines = app.screen.sheet("#data-sheet").plain().splitlines()
    return {line.split("> ")[1].strip(): line.strip()[0] for line in lines if " > " in line}


@pytest.mark.parametrize("size", SIZES)
async def test_each_write_is_seen_live_and_taken_over(live: FakeWorkshop, tree: Path, size: tuple[int, int]) -> None:
    before = tuned_tree.contents(tree)
    made = writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        assert offered(app)["chapter.by_hand"] == ""
        assert "d lets you type" in said(app)
        await pilot.press("d")
        await settled(pilot)
        assert tuned_tree.contents(tree) == before
        assert tuned_tree.journals(tree)
        assert signs(app) == {INTERVAL: "▸", THP: "·"}
        assert "0 of 2 writes are made." in said(app)
        assert "root's journal" in said(app)
        # Nothing is taken over before something is made.
        await pilot.press("enter")
        await settled(pilot)
        assert "No write is made yet" in said(app)
        type_it(tree, made[INTERVAL], "77")
        assert "the plan has 10 (before: 1)" in await shown(pilot, "the value is 77")
        assert signs(app)[INTERVAL] == "✗"
        assert TAKE_OVER in said(app)
        await pilot.press("enter")
        await settled(pilot)
        assert f"Not as planned: {INTERVAL}." in said(app)
        assert not live.context.standing()
        type_it(tree, made[INTERVAL])
        await shown(pilot, "1 of 2 writes is made.")
        assert signs(app) == {INTERVAL: "✓", THP: "▸"}
        await pilot.press("y")
        assert app.clipboard == f"echo madvise > {THP}"
        type_it(tree, made[THP])
        await shown(pilot, "All 2 writes are made.")
        await pilot.press("enter")
        await settled(pilot)
        assert "read back: 2 settings, 2 writes." in figures(app)
        assert "The host now has the wanted values" in figures(app)
        assert {one["id"] for one in live.context.standing()} == {"thp", "stat-interval"}
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "again"
        await pilot.press("u")
        await settled(pilot)
        assert "Restored: 2 settings, 2 writes" in said(app)
    assert tuned_tree.contents(tree) == before


async def test_restore_includes_typed_writes_that_were_not_adopted(live: FakeWorkshop, tree: Path) -> None:
    before, made = tuned_tree.contents(tree), writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await watch(pilot)
        type_it(tree, made[INTERVAL])
        await shown(pilot, "1 of 2 writes is made.")
        await pilot.press("u")
        await settled(pilot)
        assert "Restored: 1 setting, 1 write (stat-interval)." in said(app)
        assert "WHAT WOULD BE WRITTEN" in figures(app)
        assert tuned_tree.contents(tree) == before
        assert tuned_tree.journals(tree) == []


async def test_a_value_that_is_not_in_the_plan_is_taken_over_by_a_second_enter_and_restored(
    live: FakeWorkshop, tree: Path
) -> None:
    before, made = tuned_tree.contents(tree), writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await watch(pilot)
        type_it(tree, made[INTERVAL], "77")
        await shown(pilot, "the value is 77")
        await pilot.press("enter")
        await settled(pilot)
        assert "Enter once more" in said(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "1 write, 2 not as planned." in figures(app)
        await pilot.press("u")
        await settled(pilot)
    assert tuned_tree.contents(tree) == before


async def test_leaving_the_workshop_restores_typed_writes(live: FakeWorkshop, tree: Path) -> None:
    before, made = tuned_tree.contents(tree), writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await watch(pilot)
        type_it(tree, made[THP])
    live.close()
    assert tuned_tree.contents(tree) == before
    assert tuned_tree.journals(tree) == []


async def test_stopping_goes_back_to_the_plan_of_the_rest(live: FakeWorkshop, tree: Path) -> None:
    made = writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await watch(pilot)
        type_it(tree, made[INTERVAL])
        await shown(pilot, "1 of 2 writes is made.")
        await pilot.press("d")
        await settled(pilot)
        assert "1 write, 1 not as planned." in said(app)
        assert "1 write, in this order." in figures(app)
        await to_the_plans_end(pilot)
        assert offered(app)["chapter.enter"].startswith("apply ")
        await pilot.press("escape")
        await settled(pilot)
        # The write that was made lasts as long as the workshop; the other one is no longer awaited.
        assert [one["id"] for one in live.context.standing()] == ["stat-interval"]


async def test_a_watch_without_a_write_leaves_nothing_behind(live: FakeWorkshop, tree: Path) -> None:
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await watch(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert tuned_tree.journals(tree) == []
        assert not live.context.agent_connection.holding


async def test_without_root_s_rights_the_learner_restores_by_hand(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(ask: bool = True, purpose: object = None) -> AgentClient:
        raise no_sudo()

    monkeypatch.setattr(connection_module, "connect_to_agent", refuse)
    monkeypatch.setattr(connection_module, "rights", lambda: "none")
    before, made = tuned_tree.contents(tree), writes(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        assert "You are not root" in said(app)
        await pilot.press("d")
        await settled(pilot)
        assert "cannot restore your writes (changing" in said(app)
        for one in made.values():
            type_it(tree, one)
        await shown(pilot, "All 2 writes are made.")
        await pilot.press("enter")
        await settled(pilot)
        assert "Only you can restore the old values" in figures(app)
        # From a later step restore leads back to the lines.
        await pilot.press("enter")
        await settled(pilot)
        await pilot.press("u")
        await settled(pilot)
        assert f"echo 1 > {INTERVAL}" in figures(app)
        await pilot.press("escape")
        await settled(pilot)
        assert tuned_tree.contents(tree) != before
    # Nothing but the session knows the old values now: a later visit restores by them.
    again = at(live, "pages", "apply")
    async with again.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("u")
        await settled(pilot)
        assert "RESTORE THE OLD VALUES BY HAND" in figures(again)
        assert f"echo 1 > {INTERVAL}" in figures(again)
        for one in made.values():
            type_it(tree, one, one.before)
        await shown(pilot, "All 2 writes are restored.")
        await pilot.press("enter")
        await settled(pilot)
        assert "All old values are restored." in said(again)
        assert "chapter.restore" not in offered(again)
    assert tuned_tree.contents(tree) == before
    assert live.walk("pages").progress.by_hand is None


async def test_three_commands_are_open_and_a_checked_one_is_seen(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(by_hand, "LOOK_EVERY_S", 0.1)
    looks: list[int] = []
    look = CommandChecks.look

    def counted(checks: CommandChecks, wanted: list[str]) -> dict[str, CommandFound]:
        found = look(checks, wanted)
        looks.append(len(wanted))
        return found

    monkeypatch.setattr(CommandChecks, "look", counted)
    course = madecourse.write(tmp_path / "course")
    lesson = course / "01-pages" / "lesson.toml"
    more = [f'\n[[by_hand]]\ncommand = "echo number{n}"\nwhy = "A line."\n' for n in range(4)]
    more[0] += 'check = "stat-interval=10"\n'
    lesson.write_text(lesson.read_text() + "".join(more))
    app = at(open_live(tree, course, monkeypatch), "pages", "explain")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert offered(app)["chapter.fold"] == ""
        assert [n for n in range(4) if f"echo number{n}" in figures(app)] == [0, 1]
        assert "▸ echo number0" in figures(app)
        assert "2 more are folded" in figures(app)
        # A wrong value is one that differs from the value at the first look, too.
        for _ in range(500):
            if looks:
                break
            await pilot.pause(0.02)
        assert looks, "the host is looked at"
        (tree / INTERVAL[1:]).write_text("5\n")
        await shown(pilot, "✗ echo number0")
        (tree / INTERVAL[1:]).write_text("10\n")
        await shown(pilot, "✓ echo number0")
        await pilot.press("f")
        await settled(pilot)
        assert [n for n in range(4) if f"echo number{n}" in figures(app)] == [2, 3]
        await pilot.press("f")
        await settled(pilot)
        assert [n for n in range(4) if f"echo number{n}" in figures(app)] == [0, 1]


@pytest.mark.parametrize("size", [(80, 24), (100, 24)])
async def test_f_shows_the_commands_before_it_shows_the_next_ones(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """They stand below all that was learnt, so the key seemed dead while others came up below the screen's end."""
    course = madecourse.write(tmp_path / "course")
    lesson = course / "01-pages" / "lesson.toml"
    words = "A sentence to remember has as many words as this one, so that it takes more than two lines of the screen: "
    learnt = "learnt = [" + ", ".join(f'"{words} {n}."' for n in range(8))
    more = "".join(f'\n[[by_hand]]\ncommand = "echo number{n}"\nwhy = "A line."\n' for n in range(4))
    lesson.write_text(re.sub(r"(?m)^learnt = \[[^]]*", learnt, lesson.read_text()) + more)
    (course / "01-pages" / "lesson.md").write_text(
        (course / "01-pages" / "lesson.md").read_text().replace("for explain.", "for explain.\n" + "\nA line.\n" * 12)
    )
    live = open_live(tree, course, monkeypatch)
    run, blocks = madeup.make_run()
    live.context.handle.add_run(run, blocks)
    live.walk("pages").record("measure", run)
    app = at(live, "pages", "explain")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert "echo number" not in text_of(app), "below the screen's end"
        await pilot.press("f")
        await settled(pilot)
        assert [n for n in range(4) if f"echo number{n}" in text_of(app)] == [0, 1]
        assert "commands 1 to 3 of 5" in said(app)
        assert "2 $ echo number0" in text_of(app)
        await pilot.press("f")
        await settled(pilot)
        assert "commands 4 to 5 of 5" in said(app)
        assert "4 $ echo number2" in text_of(app)
