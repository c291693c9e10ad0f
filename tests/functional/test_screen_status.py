"""The status screen: all checks of this host, filtered, explained, and the way to the chapters that treat them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.host_status import Findings, find_checks, read_checks, treating
from jitter_workshop.model.status import SettingDrift
from jitter_workshop.report.check_words import MARKS
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.host.status import StatusScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from jitter_workshop.tui.widgets.sheet import Pane, Sheet
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import held, opened, settled, text_of


def with_chapter_for(workshop: FakeWorkshop, chapter_id: str, *words: str) -> FakeWorkshop:
    """The same workshop with a course in which only this chapter treats anything, namely these tunables."""
    chapters = tuple(
        dataclasses.replace(c, tunables=words if c.id == chapter_id else ()) for c in workshop.course.chapters
    )
    workshop.course = dataclasses.replace(workshop.course, chapters=chapters)
    return workshop


@pytest.fixture
def server(host_tree: Callable[[str], Path]) -> FakeWorkshop:
    return with_chapter_for(open_workshop(host_tree("server64")), "pinning", "governor", "workqueue-mask")


def status_of(app: WorkshopApp) -> StatusScreen:
    assert isinstance(app.screen, StatusScreen)
    return app.screen


def go_to(screen: StatusScreen, check: str) -> int:
    """Return how many lines below the first check one stands."""
    return [f.check.id for f in screen.shown()].index(check)


async def test_the_screen_lists_the_checks_of_status_with_the_most_important_first(
    server: FakeWorkshop, host_tree: Callable[[str], Path]
) -> None:
    async with opened(server, (80, 24), "s") as (app, pilot):
        screen = status_of(app)
        checkup = read_checks(host_tree("server64"))
        states = ("improve", "ok", "info", "unavailable")
        every = [check for _, checks in checkup.groups() for check in checks]
        assert [f.check for f in screen.shown()] == [c for state in states for c in every if c.state == state]
        said = screen.query_one("#status-checks", Sheet).plain()
        heads = [line for line in said.splitlines() if not line.startswith((" ", "▸"))]
        assert heads == ["CAN BE BETTER", "OK", "TO KNOW", "NOT HERE"]
        assert "This is a recorded host, not this machine." in text_of(app)
        assert f"{checkup.summary['improve']} can be better" in text_of(app)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_it_opens_at_the_top_on_a_check_that_can_be_better(host_tree: Callable[[str], Path]) -> None:
    async with opened(with_chapter_for(open_workshop(host_tree("guest")), "pinning"), (80, 24), "s") as (app, _):
        screen = status_of(app)
        assert screen.query_one("#status-list", Pane).scroll_offset.y == 0
        assert screen.finding is screen.shown()[0]
        assert screen.finding.check.state == "improve"
        assert screen.shown()[-1].check.state == "unavailable"
        assert any(line.startswith("▸ ▲") for line in screen.sheet("#status-checks").plain().splitlines())
        assert f"▸ ▲ {screen.finding.check.id}" in text_of(app).replace(" ▸", "▸")


async def test_settings_of_this_tool_come_first(server: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.context, "standing", lambda: ({"id": "aslr", "value": "off"},))
    async with opened(server, (80, 24), "s") as (app, _):
        screen = status_of(app)
        assert screen.shown()[0].check.id == "aslr"
        assert screen.sheet("#status-checks").plain().startswith("SET BY THIS TOOL\n▸")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_no_row_is_cut_in_the_middle(server: FakeWorkshop, size: tuple[int, int]) -> None:
    async with opened(server, size, "s") as (app, _):
        rows = status_of(app).sheet("#status-checks").plain().splitlines()
        assert len(rows) > 40
        assert not [row for row in rows if "…" in row]


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_end_and_home_move_the_cursor(server: FakeWorkshop, size: tuple[int, int]) -> None:
    async with opened(server, size, "s") as (app, pilot):
        screen = status_of(app)
        for key, place in (("end", -1), ("home", 0)):
            await pilot.press(key)
            await settled(pilot)
            assert screen.finding is screen.shown()[place]
            assert f"▸ {MARKS[screen.shown()[place].check.state][0]} {screen.shown()[place].check.id}" in text_of(app)


async def test_the_filter_of_checks_that_can_be_better_keeps_the_cursor(server: FakeWorkshop) -> None:
    async with opened(server, (160, 48), "s") as (app, pilot):
        screen = status_of(app)
        better = [f.check.id for f in screen.shown() if f.check.state == "improve"]
        assert 1 < len(better) < len(screen.shown())
        await held(pilot, "down", go_to(screen, better[1]))
        await pilot.press("i")
        assert [f.check.id for f in screen.shown()] == better
        assert screen.finding is not None
        assert screen.finding.check.id == better[1]
        assert ("status.all", "") in screen.query_one(KeyBar).shown
        await pilot.press("up", "up", "a", "down")
        assert screen.finding.check.id == screen.shown()[go_to(screen, better[0]) + 1].check.id


async def test_the_line_on_a_chapter_names_the_key_that_opens_it(server: FakeWorkshop) -> None:
    async with opened(server, (80, 24), "s") as (app, pilot):
        assert "n goes there" in text_of(app)
        await pilot.press("n")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


async def test_a_wide_screen_explains_beside_the_list_and_enter_goes_to_the_chapter(server: FakeWorkshop) -> None:
    async with opened(server, (160, 48), "s") as (app, pilot):
        screen = status_of(app)
        assert screen.shown()[0].check.id == "governor"
        page = screen.query_one("#status-explained", Sheet).plain()
        for name, text in screen.shown()[0].explained.facts:
            assert f"\n{name} " in page
            assert " ".join(text.split()[:3]) in " ".join(page.split())
        assert "n goes there" in page
        assert "Enter goes" not in text_of(app)
        assert [key for key, _ in screen.query_one(KeyBar).shown][:2] == ["status.chapter", "status.improve"]
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.chapter.id == "pinning"
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_a_narrow_screen_opens_the_explanation_first(server: FakeWorkshop) -> None:
    async with opened(server, (80, 24), "s") as (app, pilot):
        screen = status_of(app)
        assert not screen.query_one("#status-page", Pane).display
        await pilot.press("enter")
        await settled(pilot)
        assert "CPU governor (governor)" in text_of(app)
        assert not screen.query_one("#status-list", Pane).display
        assert "n goes there" in text_of(app)
        assert "n chapter" in text_of(app).splitlines()[-1]
        assert "Enter" not in text_of(app)
        await pilot.press("pagedown")
        await pilot.press("escape")
        assert screen.query_one("#status-list", Pane).display
        assert status_of(app) is screen
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


async def test_the_commands_by_hand_are_copied(server: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[str] = []
    monkeypatch.setattr(WorkshopApp, "copy_to_clipboard", lambda self, text: copied.append(text))
    async with opened(server, (100, 30), "s") as (app, pilot):
        screen = status_of(app)
        await pilot.press("y")
        assert copied == ["\n".join(screen.shown()[0].explained.by_hand)]
        assert copied[0].startswith("cat ")
        assert "in the clipboard" in text_of(app)
        nothing = next(f.check.id for f in screen.shown() if not f.explained.by_hand)
        await held(pilot, "down", go_to(screen, nothing))
        await pilot.press("y")
        assert len(copied) == 1


async def test_a_check_that_no_chapter_treats_is_told(server: FakeWorkshop) -> None:
    async with opened(server, (80, 24), "s") as (app, pilot):
        screen = status_of(app)
        await held(pilot, "down", go_to(screen, "stat-interval"))
        await pilot.press("n")
        await settled(pilot)
        assert status_of(app) is screen
        assert "No chapter of this course is about 'stat-interval'" in text_of(app)


async def test_a_reason_why_no_chapter_treats_it_is_shown(server: FakeWorkshop) -> None:
    async with opened(server, (160, 48), "s") as (app, pilot):
        screen = status_of(app)
        await held(pilot, "down", go_to(screen, "aslr"))
        await settled(pilot)
        assert "rounds of new processes" in " ".join(text_of(app).split())


async def test_from_a_chapter_and_into_another_leaves_one_chapter_open(server: FakeWorkshop) -> None:
    app = WorkshopApp(server, chapter="baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("s")
        await settled(pilot)
        status_of(app)
        await pilot.press("s", "n")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.chapter.id == "pinning"
        assert len(app.screen_stack) == 3  # Textual's own, home, the chapter


async def test_it_looks_on_a_thread_and_again_when_asked(server: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    looks: list[threading.Thread] = []

    def slowly(root: Path, course: object) -> Findings:
        looks.append(threading.current_thread())
        assert go_on.wait(20)
        return find_checks(root, server.course)

    monkeypatch.setattr("jitter_workshop.flow.chapters.workshop.find_checks", slowly)
    app = WorkshopApp(server)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("s")
        await pilot.pause()
        assert "Looking at this host…" in text_of(app)
        await pilot.press("down", "i", "enter", "n", "a")
        assert status_of(app).shown() == ()
        go_on.set()
        await settled(pilot)
        assert "can be better" in text_of(app)
        await pilot.press("down", "r")
        await settled(pilot)
        screen = status_of(app)
        assert screen.finding is screen.shown()[1]
        assert len(looks) == 2
        assert threading.main_thread() not in looks


async def test_a_host_that_shows_nothing_is_one_sentence(server: FakeWorkshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(root: Path, course: object) -> Findings:
        raise HostError("this host shows no CPU", "look at /sys")

    monkeypatch.setattr("jitter_workshop.flow.chapters.workshop.find_checks", refuses)
    async with opened(server, (80, 24), "s") as (app, pilot):
        await pilot.press("enter", "down", "n", "i", "pagedown")
        assert "This host could not be read." in text_of(app)
        assert "this host shows no CPU" in text_of(app)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_drift_is_told_and_values_of_a_host_are_shown_as_text(
    server: FakeWorkshop, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    def drifted(root: Path, course: object) -> Findings:
        found = find_checks(root, server.course)
        first = found.checks[0]
        drift = SettingDrift("/sys/x", "performance", "[red]\x1b[31msave", "tuned")
        check = dataclasses.replace(first.check, state="improve", value="[b]\x1b[31mbad[/]", drifted=drift)
        return dataclasses.replace(found, checks=(dataclasses.replace(first, check=check), *found.checks[1:]))

    monkeypatch.setattr("jitter_workshop.flow.chapters.workshop.find_checks", drifted)
    async with opened(server, size, "s") as (app, pilot):
        text = text_of(app)
        assert "governor          drifted CPU governor: [b] [31mbad[/]" in text
        if size[0] < 100:
            await pilot.press("enter")
            await settled(pilot)
        assert "/sys/x: set to performance, found [red] [31msave" in " ".join(text_of(app).split())


async def test_a_click_chooses_and_the_next_one_goes_there(server: FakeWorkshop) -> None:
    async with opened(server, (160, 48), "s") as (app, pilot):
        screen = status_of(app)
        assert await pilot.click("#status-checks", offset=(5, 2))
        assert screen.finding is screen.shown()[1]
        assert await pilot.click("#status-checks", offset=(5, 0))
        assert await pilot.click("#status-checks", offset=(5, 1))
        assert screen.finding is screen.shown()[0]
        assert await pilot.click("#status-checks", offset=(5, 1))
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)


async def test_it_waits_while_something_is_measured() -> None:
    workshop = open_workshop(gate=threading.Event())
    app = WorkshopApp(workshop, chapter="baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        while not workshop.reached_gate.is_set():
            await pilot.pause(0.01)
        await pilot.press("s")
        await pilot.pause()
        assert isinstance(app.screen, ChapterScreen)
        assert workshop.gate is not None
        workshop.gate.set()
        await settled(pilot)


def test_the_first_chapter_that_names_a_check_treats_it() -> None:
    workshop = with_chapter_for(open_workshop(), "migration", "boost=off", "governor")
    chapters = list(workshop.course.chapters)
    place = next(i for i, c in enumerate(chapters) if c.id == "pinning")
    chapters[place] = dataclasses.replace(chapters[place], tunables=("governor", "thp"), treats=())
    migration = next(c for c in chapters if c.id == "migration")
    assert treating(dataclasses.replace(workshop.course, chapters=tuple(chapters))) == {
        "boost": ("migration", migration.title),
        "governor": ("migration", migration.title),
        "thp": ("pinning", chapters[place].title),
    }
