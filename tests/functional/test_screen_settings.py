"""Chapters that set something on the host, on the screen, by keys: plan, apply, restore, recordings, leaving."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input
from textual.worker import WorkerCancelled

from jitter_workshop.agent.client import asks_password
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.course.loader import BUILTIN_ID
from jitter_workshop.errors import HostError
from jitter_workshop.flow.chapters.by_hand import NO_THREAD_YET
from jitter_workshop.flow.chapters.chapter_host import REBOOT
from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.model.change import ApplyResult, Change
from jitter_workshop.model.course import StepName
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Cpu, Topology
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.presenter.host.by_hand import not_for_hand
from jitter_workshop.presenter.host.plan import NO_RIGHTS, TOO_EARLY
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core import actions
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.chapter.hunting import NONE_HERE
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.host.cpus import CpuPicker
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.sheet import Pane
from tests import hosttrees, tuned_tree
from tests.fake_agent_connection import FakeAgentConnection
from tests.fakes import FakeWorkshop, open_workshop
from tests.livehost import give_agent, open_live
from tests.madeplans import isolation
from tests.screens import settled, text_of
from tests.settings_screen import SIZES, THP, applied, offered, to_the_plans_end


@pytest.fixture
def live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    return open_live(tree, course, monkeypatch)


@pytest.fixture
def bare(tmp_path: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """A host that has none of the chapters' tunables."""
    return open_live(hosttrees.small(tmp_path / "bare", 4), course, monkeypatch)


def at(workshop: FakeWorkshop, chapter: str, step: StepName) -> WorkshopApp:
    """The screen with a chapter at a step, as a session would have left it there."""
    walk = workshop.walk(chapter)
    seen = walk.chapter.steps[: walk.chapter.steps.index(step)]
    walk._save(dataclasses.replace(walk.progress, step=step, seen=seen))
    return WorkshopApp(workshop, chapter)


async def to_apply(pilot: Pilot[None]) -> None:
    """From ``measure`` by Enter alone: measure, go to apply and, on a narrow screen, turn its page to the plan."""
    screen = pilot.app.screen
    assert isinstance(screen, ChapterScreen)
    for _ in range(4):
        if screen.step != "apply" or screen.now.reading_first:
            await pilot.press("enter")
            await settled(pilot)
    assert screen.step == "apply"
    await to_the_plans_end(pilot)


def figures(app: WorkshopApp) -> str:
    """All of the figures, also those below the screen's end, as one line."""
    assert isinstance(app.screen, ChapterScreen)
    return " ".join(app.screen.sheet("#data-sheet").plain().split())


def said(app: WorkshopApp) -> str:
    assert isinstance(app.screen, ChapterScreen)
    return " ".join(app.screen.sheet("#say").plain().split())


# -- applying and restoring---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_the_plan_shows_every_write_and_the_way_without_rights(live: FakeWorkshop, size: tuple[int, int]) -> None:
    app = at(live, "pages", "apply")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        shown = figures(app)
        plan = live.walk("pages").plan()
        assert plan.changes
        if size[0] < 100:
            assert "The page of pages for apply." in text_of(app)
            assert offered(app)["chapter.enter"] == "show plan"
            assert "chapter.by_hand" not in offered(app)
            assert said(app) == ""
            await pilot.press("enter")
            await settled(pilot)
        assert plan.changes[0].path in text_of(app)
        for change in plan.changes:
            assert change.path in shown.replace(" ", "")
            assert f"{change.before} → {change.after}" in shown
            assert shown.count(change.why) == 1
        assert "risk low" in shown
        # Root makes the changes itself.
        assert "plan --sh" not in shown
        live.context.agent_connection = FakeAgentConnection(None)
        chapter = app.screen
        assert isinstance(chapter, ChapterScreen)
        chapter.redraw()
        await settled(pilot)
        assert "jitter-workshop plan --sh thp stat-interval > plan.sh" in figures(app)


@pytest.mark.parametrize("size", SIZES)
async def test_enter_applies_shows_the_result_and_then_goes_on(
    live: FakeWorkshop, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_agent(live, tree, monkeypatch)
    before = tuned_tree.contents(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        assert offered(app)["chapter.enter"] == "apply 2 writes"
        assert "restored when you leave" in said(app)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        walk = app.screen.walk
        assert walk.current == "apply"
        assert "read back: 2 settings, 2 writes." in figures(app)
        assert "READ AGAIN ON THIS HOST" in figures(app)
        assert tuned_tree.contents(tree) != before
        assert "2 settings changed" in text_of(app).splitlines()[0]
        assert offered(app)["chapter.enter"] == "go on"
        assert "chapter.restore" in offered(app)
        assert walk.progress.marks["setting"]
        await pilot.press("u")
        await settled(pilot)
        assert "Restored: " in said(app)
        assert tuned_tree.contents(tree) == before
        await to_the_plans_end(pilot)
        assert offered(app)["chapter.enter"].startswith("apply ")
        await pilot.press("enter")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert walk.progress.step == "again"
        assert live.context.agent_connection.holding
        assert live.context.agent_connection.close().restored
    assert tuned_tree.contents(tree) == before


async def test_enter_applies_no_plan_whose_end_was_not_seen(live: FakeWorkshop, tree: Path) -> None:
    """The key that skips unread text on other pages is not offered here, and writes nothing."""
    agent = live.context.agent_connection = FakeAgentConnection(tree)
    app = at(live, "pages", "apply")
    async with app.run_test(size=(80, 20)) as pilot:
        await settled(pilot)
        while "WHAT WOULD BE WRITTEN" not in text_of(app):
            await pilot.press("enter")
            await settled(pilot)
        assert "At the plan's end, Enter writes this" in said(app)
        assert offered(app)["chapter.enter"] == "read on"
        assert "chapter.skip" not in offered(app)
        pane = app.screen.query_one("#data", Pane)
        for key in ("n", "enter"):
            before = pane.scroll_offset.y
            await pilot.press(key)
            await settled(pilot)
            assert (pane.scroll_offset.y > before) == (key == "enter")
            assert agent.calls == []
        await to_the_plans_end(pilot)
        assert not pane.more_below
        assert offered(app)["chapter.enter"].startswith("apply ")
        await pilot.press("enter")
        await settled(pilot)
        assert [call[0] for call in agent.calls] == ["apply"]


@pytest.mark.parametrize("size", SIZES)
async def test_equal_writes_are_one_line_and_plus_shows_each_before_enter_writes(
    live: FakeWorkshop, tree: Path, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = live.context.agent_connection = FakeAgentConnection(tree)
    made, plan = isolation(60), ChapterWalk.plan
    monkeypatch.setattr(ChapterWalk, "plan", lambda self: dataclasses.replace(plan(self), changes=made))
    app = at(live, "pages", "apply")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        while "WHAT WOULD BE WRITTEN" not in text_of(app):
            await pilot.press("enter")
            await settled(pilot)
        pane = app.screen.query_one("#data", Pane)
        assert "60 tasks leave the hot CPUs: 1 → 0 (+ shows each)" in figures(app)
        assert made[-1].path not in figures(app)
        await pilot.press("end")
        await settled(pilot)
        assert not pane.more_below
        assert figures_last(app) in text_of(app)
        assert offered(app)["chapter.enter"].startswith("apply ")
        await pilot.press("plus")
        await settled(pilot)
        assert all(one.path in figures(app) for one in made)
        assert offered(app)["chapter.every"] == "one line"
        assert offered(app)["chapter.enter"] == "read on"
        await pilot.press("end")
        await settled(pilot)
        assert figures_last(app) in text_of(app)
        assert made[-1].path in text_of(app)
        assert offered(app)["chapter.enter"].startswith("apply ")
        assert agent.calls == []
        await pilot.press("plus")
        await settled(pilot)
        assert made[-1].path not in figures(app)
        await to_the_plans_end(pilot)
        assert offered(app)["chapter.enter"].startswith("apply ")
        assert agent.calls == []


def figures_last(app: WorkshopApp) -> str:
    """The last line of the figures."""
    assert isinstance(app.screen, ChapterScreen)
    return app.screen.sheet("#data-sheet").plain().splitlines()[-1].strip()


async def test_restored_writes_are_told_apart_from_those_that_need_no_restore(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    monkeypatch.setattr(type(live), "written", lambda self: ("thp",) * 5 if self.context.standing() else ())
    app = at(live, "pages", "again")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("u")
        await settled(pilot)
        assert "Restored: 2 settings, 2 of 5 writes" in said(app)
        assert "3 writes need no restore" in said(app)


async def test_a_foreign_value_is_told_and_left_alone(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(live, tree, monkeypatch)
    (tree / "proc/sys/vm/stat_interval").write_text("7\n")
    app = at(live, "pages", "look")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "set 10, the host now has 7" in figures(app)
        await pilot.press("u")
        await settled(pilot)
        assert "Restored: 1 setting, 1 write (thp)." in said(app)
        assert "Left alone: /proc/sys/vm/stat_interval" in said(app)
    assert (tree / "proc/sys/vm/stat_interval").read_text() == "7\n"


async def test_restore_where_nothing_stands_says_so(live: FakeWorkshop) -> None:
    app = at(live, "pages", "look")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("u")
        assert "No setting of this chapter is applied" in said(app)


@pytest.mark.parametrize("size", SIZES)
async def test_without_rights_the_script_is_the_way_out_and_enter_goes_on(
    live: FakeWorkshop, tree: Path, size: tuple[int, int]
) -> None:
    live.context.agent_connection = FakeAgentConnection(None)
    before = tuned_tree.contents(tree)
    app = at(live, "pages", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "Changing this host needs root's rights" in figures(app)
        assert "jitter-workshop plan --sh thp stat-interval > plan.sh" in figures(app)
        assert tuned_tree.contents(tree) == before
        await pilot.press("enter")
        await settled(pilot)
        assert app.screen.step == "again"


async def test_a_write_that_the_host_refuses_is_listed(live: FakeWorkshop, tree: Path) -> None:
    live.context.agent_connection = FakeAgentConnection(tree, refuse=(THP,))
    app = at(live, "pages", "apply")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert f"✗ {THP}: the kernel says EIO" in figures(app)
        assert "1 refused" in figures(app)


class SlowSession(FakeAgentConnection):
    """Waits in the middle of an apply."""

    def __init__(self, tree: Path) -> None:
        super().__init__(tree)
        self.begun, self.may_end = threading.Event(), threading.Event()

    def apply(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change]) -> ApplyResult:
        self.begun.set()
        assert self.may_end.wait(30)
        return super().apply(words, cpus, shown)


async def test_while_the_host_is_changed_nothing_else_begins_and_leaving_waits(live: FakeWorkshop, tree: Path) -> None:
    slow = live.context.agent_connection = SlowSession(tree)
    app = at(live, "pages", "apply")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        await pilot.press("enter")
        assert slow.begun.wait(30)
        await pilot.pause()
        assert "Applying: 2 settings, 2 writes…" in said(app)
        await pilot.press("enter", "escape", "b", "u", "m", "c", "s", "e", "ctrl+p", "ctrl+c")
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "apply"
        assert not offered(app)
        app.end_by_signal(15)
        await pilot.pause()
        assert app.is_running
        slow.may_end.set()
        with contextlib.suppress(WorkerCancelled):  # the app may have gone before the thread itself has
            await settled(pilot)
    assert app.exit_code == 143
    assert [call[0] for call in slow.calls] == ["apply"]


async def test_sudo_asks_in_the_plain_terminal_on_the_screens_own_thread(
    live: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    @contextlib.contextmanager
    def suspend(self: WorkshopApp) -> Iterator[None]:
        seen.append("below")
        yield
        seen.append("back")

    def connect(ask: bool = True, purpose: object = None) -> None:
        if not ask:
            raise asks_password()
        seen.append(threading.current_thread().name)
        raise HostError("sudo does not let you change this host", "ask an administrator")

    monkeypatch.setattr(WorkshopApp, "suspend", suspend)
    monkeypatch.setattr(connection_module, "connect_to_agent", connect)
    live.context.agent_connection = connection_module.AgentConnection()
    app = at(live, "pages", "apply")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert seen == ["below", threading.main_thread().name, "back"]
        assert "Sudo does not let you change" in figures(app)


async def test_a_chapter_that_waits_for_a_reboot_says_so_and_goes_home(live: FakeWorkshop) -> None:
    walk = live.walk("pages")
    walk._save(dataclasses.replace(walk.progress, step="apply", reboot_from=walk.host.boot_id))
    assert walk.host.awaits_reboot
    app = WorkshopApp(live, "pages")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert REBOOT in said(app)
        assert offered(app)["chapter.enter"] == "home"
        await pilot.press("enter")
        assert isinstance(app.screen, HomeScreen)
        walk._save(dataclasses.replace(walk.progress, reboot_from="another boot"))
        app.open_chapter("pages")
        await settled(pilot)
        assert "This host was rebooted:" in said(app)


# -- on a recording, and without a run ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("chapter", ["pages", "clock"])
async def test_enter_alone_rehearses_a_chapter_on_its_recording(
    bare: FakeWorkshop, chapter: str, size: tuple[int, int]
) -> None:
    app = WorkshopApp(bare, chapter)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        walk = app.screen.walk
        assert walk.host.rehearsed
        seen: dict[str, str] = {}
        for _ in range(20):
            if not isinstance(app.screen, ChapterScreen):
                break
            shown = " ".join(text_of(app).split())
            assert "ON A RECORDING" in shown
            assert walk.host.reason[1:30] in shown
            assert "chapter.again" not in offered(app)
            seen[walk.current] = f"{seen.get(walk.current, '')} {figures(app)} {said(app)}"
            await pilot.press("m")
            assert not app.measuring
            assert "Nothing is measured on a recording." in said(app)
            await pilot.press("enter")
            await settled(pilot)
        assert tuple(seen) == walk.chapter.steps
        assert walk.progress.done
        assert "Nothing is measured on a recording" in seen["measure"]
        assert "Nothing is written on a recording" in seen["apply"]
        assert all(change.path in seen["apply"].replace(" ", "") for change in walk.plan().changes)
        for change in walk.host.compared():
            assert change.before in seen["compare"]
            assert change.after in seen["compare"]
        task = walk.chapter.prediction
        assert task is not None
        for answer in task.answers if task.slot is not None else ():
            assert answer.explanation in seen["compare"]
        assert ("(your guess)" in seen["compare"]) is (task.slot is not None)
        assert f"Take this along from {chapter}." in seen["explain"]
        assert bare.context.runs.every() == ()
        assert isinstance(bare.context.agent_connection, FakeAgentConnection)
        assert bare.context.agent_connection.calls == []


async def test_published_curves_stand_only_in_the_chapters_that_they_are_of(
    bare: FakeWorkshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop = ["baseline", "performance governor"]
    for ident, course, expected in (
        ("governor", BUILTIN_ID, laptop),
        ("other", BUILTIN_ID, []),
        ("governor", "c2", []),
    ):
        monkeypatch.setattr(bare.context, "course_id", course)
        chapters = tuple(dataclasses.replace(c, id=ident) if c.id == "clock" else c for c in bare.course.chapters)
        monkeypatch.setattr(bare, "course", dataclasses.replace(bare.course, chapters=chapters))
        app = at(bare, ident, "again")
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            assert isinstance(app.screen, ChapterScreen)
            shown = app.screen.query_one("#chart", ChartView).curves if app.screen.has_class("-chart") else ()
            assert [curve.label for curve in shown] == [f"laptop 2015, {name}" for name in expected]
            assert all(curve.curve.origin == "published" for curve in shown)
            assert ("These curves were published in 2015" in said(app)) is bool(expected)
        chapters = tuple(dataclasses.replace(c, id="clock") if c.id == ident else c for c in bare.course.chapters)
        monkeypatch.setattr(bare, "course", dataclasses.replace(bare.course, chapters=chapters))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("key", "near"), [("1", True), ("2", False)])
async def test_an_answer_that_no_run_decides_is_judged_at_once(
    live: FakeWorkshop, size: tuple[int, int], key: str, near: bool
) -> None:
    app = at(live, "reading", "predict")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        assert offered(app)["chapter.enter"] == "no guess"
        await pilot.press(key)
        await settled(pilot)
        assert offered(app)["chapter.enter"] == "keep guess"
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        walk = app.screen.walk
        assert walk.current == "predict"
        assert ("✓ You said" if near else "✗ You said") in figures(app)
        assert "vmstat_update folds them, on each CPU." in figures(app)
        await pilot.press("1" if key == "2" else "2")
        kept = walk.progress.prediction
        assert kept is not None
        assert kept.choice == ("vmstat" if near else "nobody")
        await pilot.press("enter")
        await settled(pilot)
        assert walk.progress.step == "explain"
        assert "on CPU 1 among others" in figures(app)
        assert "Take this along from reading." in figures(app)
        await pilot.press("y")
        assert app.clipboard == "vmstat 1 5"
        await pilot.press("enter")
        assert isinstance(app.screen, HomeScreen)


@pytest.mark.parametrize("rights", ["root", "sudo", "none"])
@pytest.mark.parametrize("size", [(60, 16), *SIZES])
async def test_the_effect_of_enter_is_said_before_it(
    live: FakeWorkshop, rights: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeAgentConnection, "rights", property(lambda self: rights))
    app = WorkshopApp(live, "pages")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        screen.walk._save(dataclasses.replace(screen.walk.progress, step="apply"))
        screen.enter_step()
        await settled(pilot)
        if screen.now.reading_first:
            await pilot.press("enter")
            await settled(pilot)
        told = {
            "root": "as root. d lets",
            "sudo": "password first). d lets",
            "none": f"{NO_RIGHTS} Enter shows",
        }
        for name, words in told.items():
            assert (words in said(app)) == (name == rights)
        await to_the_plans_end(pilot)
        assert offered(app)["chapter.enter"].partition(" ")[0] == ("who" if rights == "none" else "apply")


# -- what is agreed to is what was shown ------------------------------------------------------------------------------


def pinning() -> FakeWorkshop:
    """A machine of four CPUs, in whose chapter on placement CPUs can be chosen."""
    made = open_workshop()
    cpus = tuple(Cpu(n, 0, n, 0, online=True, allowed=True, smt_siblings=CpuSet((n,))) for n in range(4))
    made.context.topology = Topology(cpus, ())
    return made


async def to_apply_of_pinning(pilot: Pilot[None], workshop: FakeWorkshop) -> ChapterScreen:
    """By Enter alone from ``measure``, with that run made."""
    screen = pilot.app.screen
    assert isinstance(screen, ChapterScreen)
    for _ in range(20):
        if screen.step == "apply":
            break
        await pilot.press("enter")
        await settled(pilot)
    assert screen.step == "apply"
    return screen


@pytest.mark.parametrize("size", SIZES)
async def test_p_picks_cpus_before_a_run_also_where_chart_and_figures_stand_together(size: tuple[int, int]) -> None:
    workshop = pinning()
    # The chart shows the learner's last run, until the chapter has a run of its own.
    workshop.measure(MeasureRequest(label="earlier", placement="none"), SilentObserver(), CancelToken())
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        assert screen.now.layout.both is screen.tall
        await pilot.press("i")
        await settled(pilot)
        assert NONE_HERE in said(app), "imported curves are shown at 'compare' alone"
        await pilot.press("p")
        await settled(pilot)
        assert isinstance(app.screen, CpuPicker)


@pytest.mark.parametrize("size", SIZES)
async def test_other_cpus_are_on_the_screen_before_enter_agrees_to_them(size: tuple[int, int]) -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        assert "sched_setaffinity(producer)" in figures(app)
        assert "any (0-3) → CPU 1" in figures(app)
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("slash")
        app.screen.query_one(Input).value = "3,2"
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert app.screen is screen
        assert screen.step == "apply"
        shown = text_of(app)
        assert "any (0-3) → CPU 3" in shown, "also where a page stands above the table"
        for placed in ("Producer on CPU 3,", "accumulator on CPU 2,", "journaller on CPU 1, as you asked"):
            assert placed in figures(app)
        assert "This is the plan with these CPUs." in said(app)
        await to_the_plans_end(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "again"
        request = screen.walk.measuring.request("again")
        assert (request.producer_cpu, request.accumulator_cpu) == (3, 2)


@pytest.mark.parametrize("size", SIZES)
async def test_d_says_why_a_placement_cannot_be_typed(size: tuple[int, int]) -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        await pilot.press("d")
        await settled(pilot)
        assert not_for_hand(NO_THREAD_YET) in said(app)
        assert screen.step == "apply"


async def test_without_another_choice_nothing_is_told() -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        before = figures(app)
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is screen
        assert figures(app) == before
        assert "Enter agrees to it" in said(app)


@pytest.mark.parametrize("way", ["enter", "m", "click"])
async def test_no_key_agrees_to_a_placement_that_is_not_on_the_screen(way: str) -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        screen.walk.cpus.choose(3, 2, None)
        for expected in ("apply", "again"):
            await to_the_plans_end(pilot)
            if way == "click":
                screen.post_message(LoopLine.Clicked("again"))
            else:
                await pilot.press(way)
            await settled(pilot)
            assert screen.step == expected
            if expected == "apply":
                assert "The plan has changed" in said(app)
                for placed in ("Producer on CPU 3,", "accumulator on CPU 2,", "journaller on CPU 1, as you asked"):
                    assert placed in figures(app)
                assert screen._page.run is None
                assert screen.walk.runs.run_in("again") is None


@pytest.mark.parametrize("size", SIZES)
async def test_an_enter_that_was_typed_ahead_agrees_to_no_plan(
    size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        monkeypatch.setattr(actions, "TYPED_AHEAD_S", 600.0)
        await pilot.press("b")
        await settled(pilot)
        while screen.step != "apply":
            await pilot.press("enter")
            await settled(pilot)
        await pilot.press("enter", "enter", "enter")
        await settled(pilot)
        assert screen.step == "apply"
        assert "sched_setaffinity(producer)" in figures(app)
        monkeypatch.setattr(actions, "TYPED_AHEAD_S", 0.0)
        await to_the_plans_end(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "again"


async def test_enter_agrees_to_no_placement_whose_end_was_not_seen() -> None:
    workshop = pinning()
    app = at(workshop, "pinning", "measure")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        screen = await to_apply_of_pinning(pilot, workshop)
        pane = app.screen.query_one("#data", Pane)
        assert pane.more_below
        assert offered(app)["chapter.enter"] == "read on"
        assert "chapter.skip" not in offered(app)
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "apply"
        assert pane.scroll_offset.y > 0
        await to_the_plans_end(pilot)
        assert offered(app)["chapter.enter"] == "agree"
        await pilot.press("enter")
        await settled(pilot)
        assert screen.step == "again"


async def test_an_enter_that_was_typed_ahead_writes_nothing(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_agent(live, tree, monkeypatch)
    monkeypatch.setattr(actions, "TYPED_AHEAD_S", 600.0)
    app = at(live, "pages", "apply")
    interval = tree / "proc/sys/vm/stat_interval"
    before = interval.read_text()
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await to_apply(pilot)
        await pilot.press("enter", "enter", "enter")
        await settled(pilot)
        assert "1 → 10" in figures(app)
        assert interval.read_text() == before
        assert TOO_EARLY in " ".join(said(app).split())
        monkeypatch.setattr(actions, "TYPED_AHEAD_S", 0.0)
        await pilot.press("enter")
        await settled(pilot)
        assert interval.read_text() != before


async def test_a_write_that_changed_since_it_was_shown_is_not_made(
    live: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_agent(live, tree, monkeypatch)
    app = at(live, "pages", "apply")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "1 → 10" in figures(app)
        (tree / "proc/sys/vm/stat_interval").write_text("7\n")
        await to_apply(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert "✗ /proc/sys/vm/stat_interval: this change was not" in figures(app)
        assert "1 refused" in figures(app)
    assert (tree / "proc/sys/vm/stat_interval").read_text() == "7\n"
    assert (tree / THP.lstrip("/")).read_text() == "always [madvise] never\n", "this one is as it was shown"
