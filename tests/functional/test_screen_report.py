"""The report on the screen: what it would hold is looked at, then it is written to a file that was not there."""

from __future__ import annotations

import errno
import functools
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.flow.reporting import draft
from jitter_workshop.flow.reporting import files as reporting_files
from jitter_workshop.flow.reporting.draft import FORMATS, Draft
from jitter_workshop.flow.reporting.subject import ReportSubject, subject_of
from jitter_workshop.model.run import SilentObserver
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.report import ReportScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madereports
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

rich = functools.cache(madereports.rich)
SIZES = [(60, 16), (80, 24), (160, 48)]


def measured(*chapters: str) -> FakeWorkshop:
    """A workshop in which these chapters are measured."""
    workshop = open_workshop()
    for chapter in chapters or ("baseline",):
        walk = workshop.walk(chapter)
        for slot in ("measure", "again"):
            if walk.measuring.measures(slot):
                walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    return workshop


def of_made_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the made report, which has everything in it and hostile names, in the place of each session."""
    monkeypatch.setattr(draft, "prepare_report", lambda *_, **__: None)
    monkeypatch.setattr(draft, "build_report", lambda subject: rich())


async def made(pilot: Pilot[None], screen: ReportScreen) -> None:
    """Wait for the file that would be written."""
    for _ in range(400):
        await settled(pilot)
        if screen._made is not None or screen.said:
            return
        await pilot.pause(0.02)
    raise AssertionError("the file is never made")


async def at_report(pilot: Pilot[None], *keys: str) -> ReportScreen:
    """The report's screen after ``r`` and these keys, each with its file made."""
    await settled(pilot)
    await pilot.press("r")
    screen = pilot.app.screen
    assert isinstance(screen, ReportScreen)
    await made(pilot, screen)
    for key in keys:
        await pilot.press(key)
        await made(pilot, screen)
    return screen


def all_said(app: WorkshopApp) -> str:
    """Everything on the screen's sheets, also what is scrolled away, on one line."""
    return " ".join("\n".join(sheet.plain() for sheet in app.screen.query(Sheet) if sheet.display).split())


def unbroken(app: WorkshopApp) -> str:
    """The same without any blank: a path is broken where a line ends."""
    return "".join(all_said(app).split())


@pytest.mark.parametrize("size", SIZES)
async def test_the_screen_shows_the_contents_of_the_report_in_its_own_order(
    size: tuple[int, int], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_made_report(monkeypatch)
    app = WorkshopApp(measured())
    async with app.run_test(size=size) as pilot:
        screen = await at_report(pilot, "f", "f")
        said = all_said(app)
        heads = (
            "VERDICTS irq-affinity",
            "WHO TOOK THE TIME",
            "CHANGES",
            "CHAPTERS AND GUESSES",
            "STATUS BEFORE AND AFTER",
            "STILL OPEN",
            "HOW TO REPEAT THIS",
            "RUNS",
            "ABOUT THIS REPORT",
            "WHAT OTHERS WILL SEE IN THE REPORT",
        )
        assert [said.index(head) for head in heads] == sorted(said.index(head) for head in heads)
        assert "json · " in said
        assert " kB · jitter-workshop-" in said
        assert "Proven of irq-affinity: " in said
        assert "over 100 µs: 21× rarer" in said
        assert "course · chart 1 of 2" in said
        assert len(screen.query_one("#report-chart", ChartView).curves) == 3
        assert "\x1b" not in said
        await pilot.press("right", "down", "pagedown", "pageup", "up")
        assert "chart 2 of 2" in all_said(app)
        assert len(screen.query_one("#report-chart", ChartView).curves) == 6
        await pilot.press("left", "escape")
        assert isinstance(app.screen, HomeScreen)


async def test_it_is_written_to_a_new_file_and_stays_said(folder: Path) -> None:
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await at_report(pilot, "f", "f")
        assert not list(folder.iterdir())
        await pilot.press("enter")
        await settled(pilot)
        (path,) = folder.iterdir()
        assert path.name.startswith("jitter-workshop-")
        assert json.loads(path.read_text())["session_id"] == app.workshop.context.session.id
        said = unbroken(app)
        assert f"kB):{path}" in said
        assert f"xdg-open{path}" in said
        assert f"scp{app.workshop.context.host.name}:{path}." in said
        await pilot.press("down", "pagedown", "enter")
        await settled(pilot)
        assert "This version is already written" in all_said(app)
        assert len(list(folder.iterdir())) == 1
        await pilot.press("y")
        assert app.clipboard.splitlines()[0] == f"xdg-open {path}"
        before = path.read_bytes()
        await pilot.press("escape")
        assert await at_report(pilot, "f", "f") is not screen
        await pilot.press("w")
        await settled(pilot)
        assert {p.name for p in folder.iterdir()} == {path.name, f"{path.stem}-2.json"}
        assert path.read_bytes() == before


async def test_asked_for_before_it_is_made_it_is_written_as_soon_as_it_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    make = Draft.files

    def slowly(*given: Any) -> dict[str, bytes]:
        assert go_on.wait(20)
        return make(*given)

    monkeypatch.setattr(Draft, "files", slowly)
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("r")
        while "being made…" not in all_said(app):
            await pilot.pause(0.01)
        # Another format gives the first one up; going round comes back to it.
        await pilot.press(*"f" * len(FORMATS))
        await pilot.press("enter")
        assert "written as soon as" in all_said(app)
        assert not list(folder.iterdir())
        go_on.set()
        while "Written (" not in all_said(app):
            await pilot.pause(0.01)
        assert "as soon as" not in all_said(app)
        assert len(list(folder.iterdir())) == 1


async def test_a_name_that_was_taken_meanwhile_is_not_overwritten(folder: Path) -> None:
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await at_report(pilot, "f", "f")
        assert screen._made is not None
        screen._made[0].write_text("somebody's")
        await pilot.press("enter")
        await made(pilot, screen)
        assert "exists already. Enter tries another file name.".replace(" ", "") in unbroken(app)
        await pilot.press("enter")
        await settled(pilot)
        assert sorted(p.read_text() == "somebody's" for p in folder.iterdir()) == [False, True]


async def test_formats_are_turned_through(folder: Path) -> None:
    app = WorkshopApp(measured())
    async with app.run_test(size=(160, 48)) as pilot:
        screen = await at_report(pilot)
        seen = [screen._chosen.name]
        for _ in FORMATS:
            await pilot.press("f")
            await made(pilot, screen)
            seen.append(screen._chosen.name)
            assert f"▸ {seen[-1]}" in text_of(app)
        assert seen == [*FORMATS, "html"]


async def test_names_are_left_out_where_that_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_made_report(monkeypatch)
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await at_report(pilot, "f", "f")
        assert "see: 2 host names, 2 task" in all_said(app)
        assert "Names of hosts: lab03, " in all_said(app)
        await pilot.press("n")
        await made(pilot, screen)
        assert "hosts, users and tasks are replaced" in all_said(app)
        assert "guest · 4 CPUs" in all_said(app)
        assert "lab03" not in all_said(app)
        await pilot.press("enter")
        await settled(pilot)
        (path,) = folder.iterdir()
        assert "lab03" not in path.read_text()
        await pilot.press("n")
        await made(pilot, screen)
        assert "2 task names" in all_said(app)


@pytest.mark.parametrize("size", SIZES)
async def test_the_report_before_any_measurement_says_to_measure_first(size: tuple[int, int], folder: Path) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await at_report(pilot)
        await pilot.press("enter", "f", "n", "left", "right", "y", "up", "down")
        await settled(pilot)
        said = all_said(app)
        assert "There is nothing to write yet." in said
        assert "measure first" in said
        assert not list(folder.iterdir())
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_it_is_put_together_on_a_thread_and_can_be_stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    where: list[threading.Thread] = []

    def slowly(workshop: Any, progress: Any) -> ReportSubject:
        where.append(threading.current_thread())
        try:
            progress("explaining run 1 of 3", 2, 20)
            told.set()
            assert go_on.wait(20)
            progress("explaining run 1 of 3", 3, 20)
            return subject_of(workshop, progress=progress)
        finally:
            ended.set()

    monkeypatch.setattr(draft, "subject_of", slowly)
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("r")
        while not told.is_set():
            await pilot.pause(0.01)
        await pilot.pause()
        assert "1 of 3: 2 of 20. Esc" in all_said(app)
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)
        go_on.set()
        while not ended.is_set():
            await pilot.pause(0.01)
        assert where[0] is not threading.main_thread()
        assert not list(folder.iterdir())


async def test_where_nothing_can_be_written_another_folder_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir("/proc")
    # For root every folder looks as if it could be written.
    monkeypatch.setattr(os, "access", lambda *_: True)
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await at_report(pilot, "f", "f")
        assert "into /proc" in all_said(app)
        await pilot.press("enter")
        await made(pilot, screen)
        await settled(pilot)
        assert f"Entertries{home}." in unbroken(app)
        await made(pilot, screen)
        await pilot.press("enter")
        await settled(pilot)
        assert len(list(home.iterdir())) == 1
        assert f"kB):{home}" in unbroken(app)


async def test_a_full_disk_leaves_nothing_half_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        await at_report(pilot, "f", "f")
        monkeypatch.setattr(reporting_files, "_fill", full)
        await pilot.press("enter")
        await settled(pilot)
        assert "no space left on device" in all_said(app)
        assert not list(folder.iterdir())


async def test_a_session_that_is_only_read_is_reported_all_the_same(folder: Path) -> None:
    with measured().context.handle:
        second = open_workshop()
        assert second.context.handle.read_only_error() is not None
        app = WorkshopApp(second)
        async with app.run_test(size=(80, 24)) as pilot:
            await at_report(pilot, "f", "f")
            await pilot.press("enter")
            await settled(pilot)
            assert len(list(folder.iterdir())) == 1


async def test_the_key_is_the_same_everywhere_and_not_while_a_run_is_made(folder: Path) -> None:
    gate = threading.Event()
    workshop = measured()
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for opens in ("c", "l"):
            await pilot.press(opens, "r")
            assert isinstance(app.screen, ReportScreen)
            await pilot.press("r", "escape", "escape")
            await settled(pilot)
            assert isinstance(app.screen, HomeScreen)
        app.open_chapter("pinning")
        await settled(pilot)
        await pilot.press("r")
        assert isinstance(app.screen, ReportScreen)
        await settled(pilot)
        await pilot.press("escape")
        workshop.gate = gate
        await pilot.press("m")
        while not workshop.reached_gate.is_set():
            await pilot.pause(0.01)
        await pilot.press("r")
        await pilot.pause()
        assert isinstance(app.screen, ChapterScreen)
        gate.set()
        await settled(pilot)


async def test_the_home_screen_names_the_key_once_there_is_a_run(folder: Path) -> None:
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert " r report " in text_of(app)
    app = WorkshopApp(open_workshop(session="another"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert " r report " not in text_of(app)


async def test_leaving_while_it_is_put_together_waits_for_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, begun = threading.Event(), threading.Event()

    def never(workshop: Any, progress: Any) -> ReportSubject:
        begun.set()
        go_on.wait(20)
        progress("reading", 1, 2)
        raise AssertionError("it was stopped")

    monkeypatch.setattr(draft, "subject_of", never)
    app = WorkshopApp(measured())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("r")
        while not begun.is_set():
            await pilot.pause(0.01)
        await pilot.press("ctrl+q")
    assert app.return_code == 0
    go_on.set()
