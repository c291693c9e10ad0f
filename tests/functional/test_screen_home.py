"""The home screen, driven by keys and by the mouse."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual import events
from textual.css import stylesheet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.commands.workshop import load_before_fork
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.workshop import ONLY_TIMES
from jitter_workshop.flow.host_ops.settings import StateHere
from jitter_workshop.flow.measuring.isolated_set import CpuBudget
from jitter_workshop.model.course import SLOTS
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import INTENDED, READY, ForeignLoad, SilentObserver
from jitter_workshop.model.walk import PathEntry
from jitter_workshop.presenter.course.own_results import OwnResults
from jitter_workshop.presenter.course.path import (
    HALF_DOT,
    ONLY_READ,
    PATH_HEADINGS,
    WHAT_THIS_IS,
    kind_or_result,
    left_out_told,
    row_told,
    session_told,
)
from jitter_workshop.presenter.runs.own_result import result_in_short
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core import theme
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.help import HelpPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.runs.runs import RunsScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.keybar import MOST_KEYS, KeyBar, KeyHint
from jitter_workshop.tui.widgets.loop import LoopLine
from jitter_workshop.tui.widgets.path_list import PathList, PathPane
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madeup
from tests.fakes import FakeContext, FakeWorkshop, open_workshop
from tests.lessonverbs import built_in_chapter
from tests.screens import opened, settled, text_of

ESCAPES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


async def test_home_names_host_next_step_and_path() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "Jitter Workshop" in text
        assert "nothing changed" in text
        assert WHAT_THIS_IS in text
        assert text.count("has effect") == 2
        assert "NEXT  Why so slow?" in text
        assert any(line.rstrip().endswith("about 7 min") for line in text.splitlines())
        assert not app.screen.query_one(ChartView).region.area
        for chapter in app.workshop.course.chapters:
            assert chapter.title in text


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_a_session_with_a_name_of_its_own_is_in_the_title_and_names_the_others(size: tuple[int, int]) -> None:
    first = open_workshop()
    assert first.named == ""
    assert not first.other_sessions
    first.context.handle.add_run(*madeup.make_run())
    name = first.context.session.name
    first.close()
    app = WorkshopApp(open_workshop(session="big"))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        lines = text_of(app).splitlines()
        assert lines[0].rstrip().endswith("session big")
        told = " ".join(text_of(app).split())
        assert f"1 run is kept: --session '{name}'" in told
    app.workshop.close()
    again = open_workshop()
    assert again.named == "big"
    assert session_told(again.context.session, again.other_sessions)[1] == "accent"


async def test_the_style_sheet_is_parsed_once_in_our_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    known = Stylesheet.reparse
    monkeypatch.setattr(Stylesheet, "reparse", lambda self: (parsed.append(app.theme), known(self))[1])
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert parsed == []
        assert app.screen.styles.background.hex == app.palette.background.upper()
        await pilot.press("ctrl+t")
        await settled(pilot)
        assert parsed == [app.theme]
        assert app.screen.styles.background.hex == app.palette.background.upper()


async def test_home_says_why_a_chapter_cannot_show_here(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = open_workshop(course=builtin_course())
    reason = "the busy interrupts here cannot be moved"
    known = workshop._state
    monkeypatch.setattr(workshop, "_state", lambda c: StateHere(held=reason) if c.id == "interrupts" else known(c))
    monkeypatch.setattr(type(workshop.context.agent_connection), "rights", "root")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        ids = [entry.chapter_id for entry in workshop.path()]
        for _ in range(ids.index("interrupts") - ids.index("baseline")):
            await pilot.press("down")
        await settled(pilot)
        (row,) = [line for line in text_of(app).splitlines() if line.startswith(" ▸ Interrupts ")]
        assert "cannot act" in row
        assert reason in " ".join(text_of(app).split())


@pytest.mark.parametrize("emulated", [True, False, None])
def test_a_chapter_that_only_times_show_is_not_promised_on_an_emulated_host(emulated: bool | None) -> None:
    workshop = open_workshop(course=builtin_course())
    workshop.context.host = dataclasses.replace(workshop.context.host, emulated=emulated)
    held = {entry.chapter_id for entry in workshop.path() if entry.held == ONLY_TIMES}
    assert held == ({"coordinated-omission", "caches", "locks"} if emulated else set())
    assert {entry.chance for entry in workshop.path() if entry.chapter_id in held} <= {"held"}


def test_a_rehearsed_screen_is_not_parsed_again_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    known = stylesheet.parse
    monkeypatch.setattr(stylesheet, "parse", lambda *args, **more: (parsed.append(args), known(*args, **more))[1])
    before = (dict(os.environ), threading.enumerate())
    try:
        load_before_fork()
        first = len(parsed)
        load_before_fork()
        assert (first > 0, len(parsed)) == (True, first)
        assert (dict(os.environ), threading.enumerate()) == before
    finally:
        theme._parsed.clear()


async def test_a_finished_chapter_leaves_the_cursor_in_sight_on_the_next_one() -> None:
    workshop = open_workshop(course=builtin_course())
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        for first in (True, False):
            following = workshop.path()[9]
            app.open_chapter(following.chapter_id)
            await settled(pilot)
            walk = workshop.walk(following.chapter_id)
            walk._save(dataclasses.replace(walk.progress, done=True))
            while not isinstance(app.screen, HomeScreen):  # a question about earlier chapters may come first
                await pilot.press("escape")
                await settled(pilot)
            entry = app.screen.query_one(PathList).entry
            after = workshop.next_chapter()
            assert entry is not None
            assert after is not None
            assert entry.chapter_id == after.chapter_id != following.chapter_id
            (row,) = [line for line in text_of(app).splitlines() if line.startswith(f" ▸ {entry.title} ")]
            assert "has effect" in row or "measures" in row
            # Only the first time it is news.
            news = "'Memory' is done. Enter on its row opens it again." in " ".join(text_of(app).split())
            assert (following.chapter_id, news) == ("memory", first)
        assert WHAT_THIS_IS not in text_of(app)


async def test_the_cursor_stays_on_the_chapter_from_which_one_comes() -> None:
    workshop = open_workshop(course=builtin_course())
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("down", "down", "down")
        path = app.screen.query_one(PathList)
        assert path.entry is not None
        under = path.entry.chapter_id
        for keys in (("s", "escape"), ("enter", "escape")):
            await pilot.press(*keys[:1])
            await settled(pilot)
            await pilot.press(*keys[1:])
            await settled(pilot)
            assert isinstance(app.screen, HomeScreen)
            assert path.entry.chapter_id == under
        app.go_to_chapter("memory")
        await settled(pilot)
        workshop.walk("memory").next()
        await pilot.press("escape")
        await settled(pilot)
        assert path.entry.chapter_id == "memory"


async def test_enter_goes_to_the_next_useful_step() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.chapter.id == "baseline"
        assert app.screen.step == "look"


@pytest.mark.parametrize("at_block", [0, 2])
async def test_a_stopped_first_look_leads_to_the_question_and_not_to_the_run_that_decides_it(at_block: int) -> None:
    workshop = open_workshop(gate=threading.Event())
    workshop.gate_at = at_block
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await asyncio.wait_for(asyncio.to_thread(workshop.reached_gate.wait), 10)
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "predict"
        assert app.screen.walk.runs.run_in("measure") is None
        assert "Your guess is still open. Enter keeps a guess." in " ".join(text_of(app).split())


async def test_a_time_is_told_only_of_the_length_that_the_run_will_have() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("e", "down", "right", "escape")
        await settled(pilot)
        assert app.preferences.preset == "standard"
        assert "m shows your curve first." in text_of(app)


async def test_one_key_measures_and_the_newest_run_is_shown_at_home() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "Enter reads first; m shows your curve" in text_of(app)
        await pilot.press("m")
        await settled(pilot)
        assert len(app.workshop.context.runs.every()) == 1
        # The run takes no guess away: the question follows, beside the new curve.
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.step == "predict"
        assert app.screen.walk.runs.run_in("measure") is None
        assert "Your guess is still open" in text_of(app)
        assert [curve.run is not None for curve in app.screen.query_one("#chart", ChartView).curves] == [False, True]
        await pilot.press("enter", "enter")
        await settled(pilot)
        assert app.screen.walk.progress.prediction is not None
        await pilot.press("escape", "m")
        await settled(pilot)
        assert len(app.workshop.context.runs.every()) == 2
        assert app.screen.walk.runs.run_in("measure") is not None
        await pilot.press("enter")
        await settled(pilot)
        steps = app.screen.query_one(LoopLine).plain()
        assert "measure✓" in steps
        assert "look✓" not in steps
        await pilot.press("question_mark")
        await settled(pilot)
        assert "you have skipped it" in " ".join(app.screen.query_one("#page-sheet", Sheet).plain().split())
        await pilot.press("escape", "escape")
        await settled(pilot)
        assert isinstance(app.screen, HomeScreen)
        text = text_of(app)
        assert re.search(r"p99.9  baseline · Why so .*", text)
        assert "at diagnose" in text
        drawn = app.screen.query_one(ChartView).curves
        assert [curve.run is not None for curve in drawn] == [False, True]


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_run_beside_a_load_is_not_compared_with_the_published_laptop(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    loaded, blocks = madeup.make_run([[100] * 990 + [47_100_000] * 10], label="pinned", noise="unbound")
    workshop.context.handle.add_run(loaded, blocks)
    async with opened(workshop, size) as (app, pilot):
        assert [curve.run is not None for curve in app.screen.query_one(ChartView).curves] == [True]
        card = app.screen.query_one("#next", Sheet).plain()
        assert "laptop" not in card
        assert "pinned, beside a load" in text_of(app)
        if size == (80, 24):
            assert "p99.9  pinned, beside a load  47.1 ms" in card
            assert "…" not in next(line for line in card.splitlines() if "p99.9" in line)
            assert "fewer than ten stalls" in card or " ·" in card
        alone = madeup.make_run([[100] * 999 + [50_000]], label="alone", run_id="20260101-000001-aaaa")
        workshop.context.handle.add_run(*alone)
        later = dataclasses.replace(loaded, id="20260101-000002-aaaa", label="later")
        workshop.context.handle.add_run(later, blocks)
        await pilot.press("c", "escape")
        await settled(pilot)
        drawn = app.screen.query_one(ChartView).curves
        assert [curve.label for curve in drawn if curve.run is not None] == ["alone"]
        assert len(drawn) == 2
        if size == (80, 24):
            assert re.search(r"p99.9  alone .* (~\d+ ns  |ns ·)", app.screen.query_one("#next", Sheet).plain())


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_disturbed_run_is_not_compared_with_the_published_laptop(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    made, blocks = madeup.make_run([[100] * 990 + [24_700_000] * 10], label="alone")
    later = dataclasses.replace(made, id="20260101-000009-aaaa", disturbed=(ForeignLoad(7, "chromium", 1, 2.6),))
    workshop.context.handle.add_run(dataclasses.replace(later, label="later"), blocks)
    async with opened(workshop, size) as (app, pilot):
        assert [curve.label for curve in app.screen.query_one(ChartView).curves] == ["later, disturbed"]
        if size == (80, 24):
            assert "p99.9  later, disturbed  24.7 ms" in app.screen.query_one("#next", Sheet).plain()
        workshop.context.handle.add_run(made, blocks)
        await pilot.press("c", "escape")
        await settled(pilot)
        published, own = app.screen.query_one(ChartView).curves
        assert (published.run, own.label) == (None, "alone")
        if size == (80, 24):
            assert "p99.9  alone" in app.screen.query_one("#next", Sheet).plain()


async def test_cursor_keys_and_mouse_choose_a_chapter() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        path = app.screen.query_one(PathList)
        await pilot.press("down", "down", "down", "up")
        assert path.entry is not None
        assert path.entry.chapter_id == "migration"
        await pilot.click(PathList, offset=(4, 2))
        assert path.entry.chapter_id == "pinning"
        await pilot.click(PathList, offset=(4, 2))
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.chapter.id == "pinning"


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (160, 48)])
async def test_end_home_pages_and_the_wheel_keep_the_cursor_in_sight(size: tuple[int, int]) -> None:
    workshop = open_workshop(course=builtin_course())
    async with opened(workshop, size) as (app, pilot):
        path, chapters = app.screen.query_one(PathList), [entry.chapter_id for entry in workshop.path()]

        def under() -> int:
            assert path.entry is not None
            (row,) = [line for line in text_of(app).splitlines() if line.startswith(f" ▸ {path.entry.title}")]
            about = " ".join(app.screen.query_one("#about", Sheet).plain().split())
            assert path.entry.reason[:30] in about or f"{path.entry.minutes} min" in about, row
            return chapters.index(path.entry.chapter_id)

        for key, where in (("end", len(chapters) - 1), ("home", 0), ("end", len(chapters) - 1)):
            await pilot.press(key)
            await settled(pilot)
            assert under() == where
        pages = []
        while under():
            await pilot.press("pageup")
            await settled(pilot)
            pages.append(under())
        assert len(pages) < len(chapters)
        await pilot.press("pagedown")
        await settled(pilot)
        assert under() > 0 or len(pages) == 1
        pane = app.screen.query_one(PathPane)
        for kind in (events.MouseScrollDown, events.MouseScrollUp):
            for _ in range(12):
                pane.post_message(kind(pane, 1, 1, 0, 1, 0, False, False, False))
            await settled(pilot)
            under()


async def test_a_click_on_a_key_has_the_effect_of_the_key() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        hints = list(app.screen.query(KeyHint))
        curves = next(hint for hint in hints if "curves" in hint.render().plain)
        assert curves.tooltip
        await pilot.click(curves)
        await settled(pilot)
        assert isinstance(app.screen, RunsScreen)


async def test_the_footer_fits_at_every_size() -> None:
    for size in ((60, 16), (80, 24), (100, 30), (160, 48)):
        app = WorkshopApp(open_workshop())
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            await footer_fits(pilot)
        app.workshop.close()


async def footer_fits(pilot: Pilot[None]) -> None:
    bar = pilot.app.screen.query_one(KeyBar)
    assert 1 <= len(bar.shown) <= MOST_KEYS
    assert max(hint.region.right for hint in bar.query(KeyHint)) <= pilot.app.size.width


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_hostile_names_are_shown_as_text(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "[red]boo[/] \x1b[2J\x1b]0;x\x07 [@click=app.quit()]q[/]"
    monkeypatch.setattr(FakeWorkshop, "host_line", lambda self: evil)
    monkeypatch.setattr(FakeContext, "notices", property(lambda self: (evil, evil)))
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "[red]boo[/]" in text
        assert "[@click=app.quit()]q[/]" in text
        assert not ESCAPES.search(text)


async def test_a_bad_preferences_file_falls_back_and_says_so(tmp_path: Path) -> None:
    file = tmp_path / "xdg-config" / "jitter-workshop" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text('theme = "sunny"\n')
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert app.preferences.theme == "dark"
        assert "theme in config.toml is not valid" in text_of(app)


async def test_q_leaves_with_0_and_ctrl_c_as_a_signal_would() -> None:
    for key, code in (("q", 0), ("ctrl+q", 0), ("ctrl+c", 130)):
        app = WorkshopApp(open_workshop())
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            await pilot.press(key)
        assert app.exit_code == code, key
        app.workshop.close()


async def test_an_unknown_chapter_opens_a_dialog_that_can_be_copied() -> None:
    app = WorkshopApp(open_workshop(), "pinnning")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "did you mean 'pinning'?" in text_of(app)
        await pilot.press("y")
        assert "did you mean 'pinning'?" in app.clipboard
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_runs_of_another_workload_are_not_no_runs_at_all() -> None:
    workshop = open_workshop()
    run, blocks = madeup.make_run([[100] * 1_000], workload="spin", name="spin_gap")
    workshop.context.handle.add_run(run, blocks)
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "m shows" not in text
        assert "see your 1 run:" in text


async def test_a_recorded_host_says_once_that_nothing_is_measured_on_it(host_tree: Callable[[str], Path]) -> None:
    app = WorkshopApp(open_workshop(host_tree("guest")))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "recorded host, so nothing can" in text
        assert "m shows" not in text
        assert "PATH FOR THIS HOST" not in text
        assert text.count("can be measured on a recorded") == 1
        assert "a recorded host can be look…" not in text
        (heads,) = [line for line in text.splitlines() if "ON A RECORDING" in line]
        assert heads.strip() == PATH_HEADINGS["recording"]
        for chapter in app.workshop.course.chapters:
            assert chapter.title in text


async def test_a_chapter_that_this_host_cannot_do_as_it_is_is_not_called_done() -> None:
    workshop = open_workshop()
    workshop.context._room = CpuBudget(1, CpuSet((1,)), reduced=True)
    baseline = workshop.walk("baseline")
    baseline._save(dataclasses.replace(baseline.progress, done=True))
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 30)) as pilot:
        await settled(pilot)
        text = text_of(app)
        assert "possible on this host are done." in text
        assert PATH_HEADINGS["neither"] in text
        assert "CPU 1 is isolated, so restore" in text


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_no_letter_of_the_page_behind_stands_beside_a_box(size: tuple[int, int]) -> None:
    async with opened(open_workshop(), size) as (app, pilot):
        await pilot.press("question_mark")
        await settled(pilot)
        box = app.screen.query_one(".frame").region
        for line in text_of(app).splitlines()[box.y : box.bottom]:
            beside = line[max(box.x - 2, 0) : box.x] + line[box.right : box.right + 2]
            assert not beside.strip(), line
            if size[0] == 160:
                ends = line[: box.x] + line[box.right :]
                assert not ends.strip(), line
        assert size[0] > 80 or box.width == 76


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_the_row_under_the_cursor_is_told_in_words_and_each_row_has_its_minutes(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    async with opened(workshop, size) as (app, pilot):
        rows = [line for line in text_of(app).splitlines() if re.match(r" [▸○] .* (has effect|measures) ", line)]
        assert len(rows) >= 3
        assert all(re.search(r"  \d min {2,3}[mch]", row) for row in rows), "no hole between minutes and chance"
        about = " ".join(app.screen.query_one("#about", Sheet).plain().split())
        assert about.startswith("measures: it changes nothing · ")
        assert workshop.path()[0].summary in about
        await pilot.press("g")
        await settled(pilot)
        assert "has effect, is counted, measures, cannot act: What" in " ".join(text_of(app).split())


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (160, 48)])
async def test_the_minutes_and_the_progress_are_whole_words_once_a_chapter_is_begun(size: tuple[int, int]) -> None:
    workshop = open_workshop(course=builtin_course())
    done, begun = (workshop.walk(chapter) for chapter in ("baseline", "pinning"))
    done._save(dataclasses.replace(done.progress, done=True))
    begun._save(dataclasses.replace(begun.progress, step="predict"))
    async with opened(workshop, size) as (app, _):
        path = app.screen.query_one(PathList)
        rows = path.plain().splitlines()[: sum(entry.here for entry in path._entries)]
        told = [re.search(r"  (done|begun|at \w+|\d+ min) +(\w+ ?\w+) ", row) for row in rows]
        assert all(told), rows
        assert not [row for row in rows if "…" in row]
        words = {found[1] for found in told if found}
        assert "done" in words
        assert words & {"begun", "at predict"}


async def test_the_next_chapter_keeps_its_minutes_once_it_is_begun() -> None:
    async with opened(open_workshop(course=builtin_course()), (80, 24)) as (app, pilot):
        card = app.screen.query_one("#next", Sheet)
        minutes = re.search(r"about (\d+) min$", card.plain().splitlines()[0])
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        app.screen.walk._save(dataclasses.replace(app.screen.walk.progress, step="predict"))
        await pilot.press("escape")
        await settled(pilot)
        assert minutes is not None
        assert re.search(rf"about {minutes[1]} min in all$", card.plain().splitlines()[0])


async def test_a_run_that_counts_by_another_clock_has_no_bar_beside_that_of_the_laptop() -> None:
    workshop = open_workshop()
    made, blocks = madeup.make_run([[100] * 990 + [24_700_000] * 10], label="alone", name=INTENDED, transit_from=READY)
    workshop.context.handle.add_run(made, blocks)
    async with opened(workshop, (80, 24)) as (app, pilot):
        card = app.screen.query_one("#next", Sheet)
        assert "p99.9  alone  24.7 ms" in card.plain()
        assert "from when a message was due" in card.plain()
        assert "laptop" not in card.plain()
        transit = madeup.make_run([[100] * 999 + [50_000]], label="sent", run_id="20260101-000009-aaaa")
        workshop.context.handle.add_run(*transit)
        await pilot.press("c", "escape")
        await settled(pilot)
        assert re.search(r"p99.9  sent .*\n +laptop ", card.plain())


async def test_the_chapters_are_asked_for_once_in_each_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[OwnResults] = []
    told = OwnResults.path

    def counted(results: OwnResults) -> tuple[PathEntry, ...]:
        asked.append(results)
        return told(results)

    async with opened(open_workshop(), (80, 24)) as (app, pilot):
        assert isinstance(app.screen, HomeScreen)
        monkeypatch.setattr(OwnResults, "path", counted)
        app.screen.redraw()
        await settled(pilot)
        assert len(asked) == 1
        await pilot.press("down", "up")
        await settled(pilot)
        assert len(asked) == 1


async def test_a_chapter_that_was_only_read_has_a_half_dot() -> None:
    async with opened(open_workshop(course=builtin_course()), (120, 36)) as (app, pilot):
        path = app.screen.query_one(PathList)
        for only_read, sign in ((False, "●"), (True, "◐")):
            first, *rest = app.workshop.path()
            path.show_entries(
                (first, *(dataclasses.replace(e, started=True, done=True, only_read=only_read) for e in rest)), first
            )
            await settled(pilot)
            assert {row[0] for row in path.plain().splitlines()[1:9]} == {sign}


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_live_host_gives_the_meaning_of_the_half_dot_of_a_read_chapter(size: tuple[int, int]) -> None:
    async with opened(open_workshop(course=builtin_course()), size) as (app, pilot):
        path = app.screen.query_one(PathList)
        first, *rest = app.workshop.path()
        read = {"here": False, "rehearsed": True, "started": True, "done": True, "only_read": True}
        away = [dataclasses.replace(entry, **read, reason="this host has no cpufreq") for entry in rest]
        path.show_entries((first, *away), first)
        await pilot.press("down")
        await settled(pilot)
        assert f"{ONLY_READ} · this host has no cpufreq" in " ".join(text_of(app).split())
        await pilot.press("question_mark")
        await settled(pilot)
        assert isinstance(app.screen, HelpPage)
        assert HALF_DOT in " ".join(" ".join(line.plain for line in app.screen.lines(80)).split())


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_the_heads_of_the_columns_stay_when_the_path_scrolls(size: tuple[int, int]) -> None:
    workshop = open_workshop(course=builtin_course())
    baseline = workshop.walk("baseline")
    baseline._save(dataclasses.replace(baseline.progress, done=True))
    async with opened(workshop, size) as (app, pilot):
        path = app.screen.query_one(PathList)
        for _ in workshop.path():
            await pilot.press("down")
            await settled(pilot)
            lines = text_of(app).splitlines()
            pane = app.screen.query_one("#path-pane").region.y
            heads = [
                n for n, line in enumerate(lines) if n == pane and line.strip().startswith((*PATH_HEADINGS.values(),))
            ]
            assert len(heads) == 1
            assert path.entry is not None
            (row,) = [n for n, line in enumerate(lines) if line.startswith(f" ▸ {path.entry.title}")]
            assert heads[0] < row
        scrolled = app.screen.query_one("#path-pane").scroll_offset.y
        assert scrolled > 0 or size != (80, 24)


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_row_tells_the_result_in_words_without_a_legend_of_signs(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    baseline = workshop.walk("baseline")
    baseline._save(dataclasses.replace(baseline.progress, done=True))
    path = tuple(dataclasses.replace(e, guess=True, curve=True) if e.done else e for e in workshop.path())
    async with opened(workshop, size) as (app, pilot):
        shown, about = app.screen.query_one(PathList), app.screen.query_one("#about", Sheet)
        shown.show_entries(path, path[0])
        about.renew()
        await settled(pilot)
        (row,) = [line for line in text_of(app).splitlines() if f"▸ {path[0].title} " in line]
        assert re.search(r" done +guess right", row)
        assert not set("✓✗·–") & set(row), "words need no legend"
        assert about.plain().strip().startswith(row_told(path[0]))
        assert not [sign for sign in "✓–" if sign in about.plain()]


@pytest.mark.parametrize("begun", [False, True])
async def test_no_description_of_a_chapter_is_cut_on_a_small_screen(begun: bool) -> None:
    workshop = open_workshop(course=builtin_course())
    if begun:
        baseline = workshop.walk("baseline")
        baseline._save(dataclasses.replace(baseline.progress, done=True))
    async with opened(workshop, (80, 24)) as (app, pilot):
        about, path = app.screen.query_one("#about", Sheet), app.screen.query_one(PathList)
        for entry in workshop.path():
            if entry.here and not entry.held:
                path.show_entries(workshop.path(), entry)
                about.renew()
                await settled(pilot)
                said = about.plain()
                assert entry.summary in " ".join(said.split()), entry.chapter_id
                assert "…" not in said
                assert said.splitlines()[-1].strip() in text_of(app)


async def test_our_own_isolation_leaves_the_path_as_it_is() -> None:
    workshop = open_workshop()
    before = [(e.chapter_id, e.here) for e in workshop.path()]
    workshop.context._room = CpuBudget(1, CpuSet((1,)), reduced=True, without=2)
    assert [(e.chapter_id, e.here) for e in workshop.path()] == before
    app = WorkshopApp(workshop)
    async with app.run_test(size=(120, 36)) as pilot:
        await settled(pilot)
        assert "NOT ON THIS HOST" not in text_of(app)
        (row,) = [line for line in text_of(app).splitlines() if " Pinning " in line]
        assert "must wait · a CPU is isolated" in row
        while (entry := app.screen.query_one(PathList).entry) is not None and entry.chapter_id != "pinning":
            await pilot.press("down")
        await settled(pilot)
        flat = " ".join(text_of(app).split())
        about = " ".join(app.screen.query_one("#about", Sheet).plain().split())
        assert "must wait: CPU 1 is isolated" in about
        assert "m measure" not in flat
        assert "g words" in flat, "it has the room of the key that does nothing here"


async def test_only_a_new_number_of_lines_lays_the_screen_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    laid_out: list[str] = []
    was = HomeScreen._refresh_layout

    def refresh_layout(screen: HomeScreen, *args: Any, **more: Any) -> None:
        laid_out.append(str(screen))
        was(screen, *args, **more)

    async with opened(open_workshop(), (80, 24)) as (app, pilot):
        monkeypatch.setattr(HomeScreen, "_refresh_layout", refresh_layout)
        sheet = app.screen.query_one("#what", Sheet)
        for wanted, layout in ((["one"], False), (["one"], False), (["two", "three"], True), (["four"], True)):
            laid_out.clear()
            monkeypatch.setattr(sheet, "_build", lambda _, lines=wanted: [Text(line) for line in lines])
            sheet.renew()
            sheet.renew()
            await pilot.pause()
            assert [line.strip() for line in text_of(app).splitlines()[1 : 1 + len(wanted)]] == wanted
            assert bool(laid_out) == layout


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_a_measured_chapter_has_the_learners_own_result_in_the_place_of_the_forecast(
    size: tuple[int, int],
) -> None:
    workshop = open_workshop()
    walk = workshop.walk("pinning")
    async with opened(workshop, size) as (app, _):
        assert "this host" in text_of(app)
        assert re.search(r"Pinning .* has effect", text_of(app))
    for slot in SLOTS:
        walk.record(slot, workshop.measure(walk.measuring.request(slot), SilentObserver(), CancelToken()))
    view, both = walk.comparison.view(), walk.runs.before_and_after()
    assert view is not None
    assert both is not None
    own = result_in_short(view)
    async with opened(workshop, size) as (app, pilot):
        path = app.screen.query_one(PathList)
        while (entry := path.entry) is not None and entry.chapter_id != "pinning":
            await pilot.press("down")
        await settled(pilot)
        assert entry is not None
        assert entry.result == own
        told = kind_or_result(entry)[0]
        assert "your result" in text_of(app)
        assert any(" Pinning " in line and f" {told} " in line for line in text_of(app).splitlines())
        assert f"{told}: by your two runs" in " ".join(text_of(app).split())
        # The newest result stands below the next step, until a newer run of the ring is drawn.
        card = app.screen.query_one("#next", Sheet)
        lines = card.plain().splitlines()
        following = workshop.next_chapter()
        assert following is not None
        assert lines[1].strip() == left_out_told(workshop.path(), following)
        assert lines[2].startswith("  LAST  Pinning · ")
        assert not [line for line in card.plain().splitlines() if "p99.9  " in line and "LAST" not in line]
        now = dataclasses.replace(both[0].run, id="29990101-000000-aaaa", label="mine")
        workshop.context.handle.add_run(now, madeup.make_run()[1])
        await pilot.press("c", "escape")
        await settled(pilot)
        assert "LAST" not in card.plain()


async def test_a_load_message_leaves_room_for_the_explanation_of_a_forecast(tmp_path: Path) -> None:
    course = built_in_chapter("04-pinning", tmp_path / "c")
    lesson = course / "04-pinning" / "lesson.toml"
    lesson.write_text(lesson.read_text().replace("[shows]\n", "[shows]\nlatency = false\n"))
    load = HostLoad(
        4.9, 2, 47.0, 0.3, tuple(ForeignLoad(n, f"a-long-name-of-a-task-{n}", 0, 87.2) for n in range(3)), True
    )
    async with opened(open_workshop(course=course, loads=(load,)), (80, 24)) as (app, pilot):
        path = app.screen.query_one(PathList)
        await settled(pilot)
        assert path.entry is not None
        assert path.entry.chance == "counts"
        told = " ".join(text_of(app).split())
        assert "Load 4.9" in told
        assert "is counted: the forecast" in told
        assert path.entry.summary in told


@pytest.mark.parametrize(("size", "drawn"), [((80, 24), False), ((120, 36), True), ((160, 48), True)])
async def test_the_chart_is_titled_and_the_laptop_keeps_its_name_when_a_run_is_made(
    size: tuple[int, int], drawn: bool
) -> None:
    workshop = open_workshop()
    async with opened(workshop, size) as (app, pilot):
        chart = app.screen.query_one(ChartView)
        assert [curve.label for curve in chart.curves] == ["laptop 2015"]
        assert ("Latency by percentile: a laptop of 2015; m draws yours." in " ".join(text_of(app).split())) == (
            drawn and size[0] == 160
        )
        assert ("Latency by percentile" in text_of(app)) == drawn
        workshop.context.handle.add_run(*madeup.make_run([[100] * 999 + [50_000]], label="alone"))
        await pilot.press("c", "escape")
        await settled(pilot)
        assert [curve.label for curve in chart.curves] == ["laptop 2015", "alone"]
        assert ("omparable: " in text_of(app)) == drawn


async def test_a_reason_on_the_path_is_not_cut_within_a_word() -> None:
    entry = dataclasses.replace(
        open_workshop().path()[0], here=False, rehearsed=True, reason="this guest has none, because of " + "x" * 80
    )
    async with opened(open_workshop(), (120, 36)) as (app, pilot):
        path = app.screen.query_one(PathList)
        path.show_entries([entry, dataclasses.replace(entry, reason="it needs this: " + "x" * 80)], None)
        await settled(pilot)
        lines = [line.rstrip() for line in path.plain().split("\n")]
        assert any(line.endswith("this guest has none") for line in lines)
        assert any(line.endswith("it needs this") for line in lines)
        assert "…" not in path.plain()
