"""All curves, CPU picker, help, preferences, and every size and look."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from textual.command import Command, CommandList, CommandPalette
from textual.pilot import Pilot
from textual.widgets import Input

from jitter_workshop import paths
from jitter_workshop.chart.style import looks, theme_named
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring.curves import published_curves
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.palette import PALETTES
from jitter_workshop.presenter.text.styled import Text
from jitter_workshop.session import foreign
from jitter_workshop.session.preferences import load
from jitter_workshop.stats.sample_size import FEW_TOLD
from jitter_workshop.tui import app as app_module
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core.actions import ACTIONS, BY_ID, SCOPE_TITLES
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.dialogs import Question
from jitter_workshop.tui.screens.common.help import NOW, GlossaryPage, HelpPage
from jitter_workshop.tui.screens.common.preferences import PreferencesPage
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.home.summary import SummaryScreen
from jitter_workshop.tui.screens.host.cpus import CpuPicker
from jitter_workshop.tui.screens.host.status import StatusScreen
from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen
from jitter_workshop.tui.screens.runs.runs import MOST_DRAWN, RunsScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.cpu_map import CpuMap
from jitter_workshop.tui.widgets.heat import HeatView
from jitter_workshop.tui.widgets.keybar import KeyBar
from jitter_workshop.tui.widgets.sheet import ListSheet, Pane, Sheet
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import opened, settled, text_of


def with_runs(count: int, label: str = "run") -> FakeWorkshop:
    """A workshop with some runs behind it."""
    from jitter_workshop.bench.cancel import CancelToken
    from jitter_workshop.flow.measuring.request import MeasureRequest
    from jitter_workshop.model.run import SilentObserver

    workshop = open_workshop()
    for number in range(count):
        request = MeasureRequest(label=f"{label} {number}", placement="none")
        workshop.measure(request, SilentObserver(), CancelToken())
    return workshop


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_runs_are_listed_newest_first_and_drawn_as_chosen(size: tuple[int, int]) -> None:
    app = WorkshopApp(with_runs(3))
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("c")
        await settled(pilot)
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        chart = screen.query_one("#chart-of-runs", ChartView)
        assert len(chart.curves) == 3
        await pilot.press("o")
        assert len(chart.curves) == len(published_curves()) + 3
        listed = screen.query_one("#runs-sheet", Sheet).plain()
        assert listed.index("run 2") < listed.index("run 1") < listed.index("run 0")
        await pilot.press("o")
        assert [curve.label for curve in chart.curves] == ["run 0", "run 1", "run 2"]
        assert chart.highlight == 2
        assert ("stalls a second" in text_of(app)) == (size[0] >= 100)
        await pilot.press("down", "space")
        assert [curve.label for curve in chart.curves] == ["run 0", "run 2"]
        await pilot.press("a")
        assert len(chart.curves) == 3
        await pilot.press("a")
        assert chart.curves == ()
        assert "No curve is chosen" in text_of(app)
        await pilot.press("a", "t")
        assert "p99.9999" in screen.query_one("#runs-table", Sheet).plain()
        # The heat map is that of the run under the cursor, and takes the chart's place.
        await pilot.press("h")
        await settled(pilot)
        drawn = screen.query_one(HeatView).render().plain
        assert drawn.split("\n")[-2].startswith("run 1 ")
        assert "how many in a block" in text_of(app)
        assert not chart.display
        assert len(screen.query_one(KeyBar).shown) <= 7
        await pilot.press("up")
        await settled(pilot)
        assert screen.query_one(HeatView).render().plain.split("\n")[-2].startswith("run 2 ")
        app.workshop.context.handle.blocks_file(app.workshop.context.runs.every()[0].id).unlink()
        await pilot.press("down", "down")
        await settled(pilot)
        assert "of single blocks" in " ".join(text_of(app).split())
        await pilot.press("h")
        assert screen.query_one("#runs-data").display
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_the_page_opens_with_the_newest_chapters_runs_and_one_key_draws_all() -> None:
    workshop = with_runs(5)
    first, second, *_, near, far = (run.id for run in workshop.context.runs.every())
    earlier, later = (chapter.id for chapter in workshop.course.chapters[:2])
    for chapter, runs, others in (
        (earlier, {"measure": first, "again": second}, {}),
        (later, {"measure": far}, {"measure": near}),
    ):
        kept = workshop.context.progress(chapter)
        workshop.context.save_progress(chapter, dataclasses.replace(kept, runs=runs, other_runs=others))
    async with opened(workshop, (80, 24), "c") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        chart = screen.query_one("#chart-of-runs", ChartView)
        assert [curve.run.id for curve in chart.curves if curve.run] == [near, far]
        # The run with the other choice of noise is of the chapter, too, so the same figure judges it.
        assert {screen._chapters[ident] for ident in (near, far)} == {later}
        assert screen._judged[near] == screen._judged[far]
        await pilot.press("a")
        assert len(chart.curves) == 5
        await pilot.press("a")
        assert chart.curves == ()


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_imported_curves_lie_beside_the_runs_and_are_marked(size: tuple[int, int]) -> None:
    workshop = with_runs(1)
    sample = Path(__file__).parents[1] / "imports" / "cyclictest.json"
    (theirs,) = foreign.parse_foreign_file(sample.read_bytes(), sample.name)
    workshop.context.handle.add_import(theirs)
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("c")
        await settled(pilot)
        chart = app.screen.query_one("#chart-of-runs", ChartView)
        assert [(curve.label, curve.curve.origin) for curve in chart.curves] == [
            ("cyclictest", "by cyclictest 2.40"),
            ("run 0", ""),
        ]
        assert "hide imported" in text_of(app)
        await pilot.press("t")
        # 31 of its 3,000 samples lie beyond its histogram, so its p99 is not known.
        assert "by cyclictest 2.40" in text_of(app)
        lines = (line.strip(" │") for line in text_of(app).splitlines())
        row = next(line for line in lines if line.startswith("p99 "))
        assert row.split()[1] == "–"
        assert "beyond the other tool's histogram" in text_of(app)
        await pilot.press("t", "i")
        assert [curve.label for curve in chart.curves] == ["run 0"]


async def test_nothing_was_imported() -> None:
    app = WorkshopApp(with_runs(1))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "i")
        await settled(pilot)
        assert "No curve was imported" in text_of(app)


async def test_no_more_curves_than_can_be_told_apart() -> None:
    app = WorkshopApp(with_runs(MOST_DRAWN + 1))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", *["down"] * MOST_DRAWN, "space")
        await settled(pilot)
        assert "the most that can be told apart" in text_of(app)
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        assert len([c for c in screen.curves() if c.run]) == MOST_DRAWN


@pytest.mark.parametrize("size", [(120, 27), (120, 36), (160, 48), (80, 24)])
async def test_names_of_runs_are_whole_and_no_run_is_listed_twice(size: tuple[int, int]) -> None:
    """A list beside the chart is narrow, so a name there has a line of its own. The legend has only the curves that are
    not in the list."""
    workshop = with_runs(MOST_DRAWN, "new wake-ups beside spinners")
    async with opened(workshop, size, "c") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        shown = screen.query_one("#chart-of-runs", ChartView).render().plain
        assert "new wake" not in shown
        listed = screen.sheet("#runs-sheet").plain()
        assert sum(line[1] == "■" for line in listed.splitlines()) == 6, listed
        assert "…" not in listed or size == (80, 24)
        rows = [line for line in listed.splitlines() if "new wake" in line]
        assert len(rows) == MOST_DRAWN
        assert all("…" not in row.rstrip()[:20] for row in rows), "cut at the end"
        tall = 2 if size == (160, 48) else 1
        assert screen._row_height == tall
        await pilot.press("o")
        shown = screen.query_one("#chart-of-runs", ChartView).render().plain
        assert "published" in shown
        assert "new wake" not in shown
        # A click on any line of a run takes it.
        screen._clicked(ListSheet.Clicked(3 * tall))
        assert screen._cursor == 2
        await pilot.press("down", "down")
        assert screen._cursor == 4


async def test_a_ring_is_never_drawn_over_a_loop_and_each_row_has_its_curves_mark() -> None:
    workshop = with_runs(2)
    spin, parts = madeup.make_run(run_id="20270101-000000-aaaa", label="loop", workload="spin", name="spin_gap")
    workshop.context.handle.add_run(spin, parts)
    workshop.walk("pinning").record("measure", spin)
    async with opened(workshop, (120, 40), "c") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        assert [curve.label for curve in screen.curves()] == ["loop"]
        listed = screen.sheet("#runs-sheet").plain().splitlines()
        assert listed[0].split() == ["RUN", "p50", "p99.9", "stalls/s", "max", "AT"]
        rows = list(screen._list(76))[1:3]
        bold = [[str(one.style) for one in row.spans[3:7]] for row in rows]
        assert bold == [["text", "dim", "bold text", "text"], ["text", "bold text", "dim", "text"]], "judged by its own"
        assert listed[1].split()[-4] == screen._stalls[spin.id], "no percentile judges a run of spin"
        assert screen.query_one("#chart-of-runs", ChartView)._asked == 99.9999
        assert listed[1].startswith("▸■  Pinning: loop")
        assert listed[2].startswith(" ·  run 1")
        await pilot.press("down", "space", "down", "space")
        assert [curve.label for curve in screen.curves()] == ["run 0", "run 1"]
        listed = screen.sheet("#runs-sheet").plain().splitlines()
        assert [line[1] for line in listed[1:4]] == ["·", "■", "■"]
        await pilot.press("up", "up", "space")
        await settled(pilot)
        assert [curve.label for curve in screen.curves()] == ["loop"]
        assert "spin and ring cannot share a chart" in " ".join(text_of(app).split())


async def test_a_small_list_of_runs_has_the_figure_that_judges_each_run_and_no_other() -> None:
    workshop = with_runs(1)
    spin, parts = madeup.make_run(run_id="20270101-000000-aaaa", label="loop", workload="spin", name="spin_gap")
    workshop.context.handle.add_run(spin, parts)
    async with opened(workshop, (80, 24), "c") as (app, _):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        head, loop, ring = screen.sheet("#runs-sheet").plain().splitlines()[:3]
        assert head.split() == ["RUN", "JUDGED", "BY", "max", "AT"]
        assert f" {screen._stalls[spin.id]} stalls/s " in loop
        assert " p99.9 " in ring
        assert "bold" not in text_of(app)


async def test_a_sign_has_one_colour_in_the_chart_and_in_the_list() -> None:
    async with opened(with_runs(3), (80, 24), "c", "down") as (app, _):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        chart = screen.query_one("#chart-of-runs", ChartView)
        drawn = looks([one.curve for one in chart.curves], theme_named(app.palette.name), chart.highlight)
        rows = [next(iter(row.spans[1:2])) for row in list(screen._list(76))[1:4]]
        assert [str(one.style) for one in rows] == [str(look.point) for look in reversed(drawn)]


@pytest.mark.parametrize(
    ("room", "named"),
    [
        (30, "Coordinated omission: before"),
        (27, "Coordinated omission: befo…"),
        (20, "Coordinated…: befo…"),
        (14, "Coordi…: befo…"),
        (12, "Coor…: befo…"),
        (11, "before"),
        (5, "befo…"),
    ],
)
async def test_a_name_in_the_list_keeps_a_part_of_its_chapter(room: int, named: str) -> None:
    async with opened(with_runs(1, "before"), (80, 24), "c") as (app, _):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        (run,) = screen._runs
        run = dataclasses.replace(run, label="before")
        screen._titles = {run.id: "Coordinated omission"}
        assert screen._named(run, room) == named


@pytest.mark.parametrize(("room", "named"), [(40, "Why so slow? before"), (18, "Why so slo…: befo…")])
async def test_a_title_that_is_a_question_keeps_its_sign_alone(room: int, named: str) -> None:
    async with opened(with_runs(1, "before"), (80, 24), "c") as (app, _):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        (run,) = screen._runs
        run = dataclasses.replace(run, label="before")
        screen._titles = {run.id: "Why so slow?"}
        assert screen._named(run, room) == named


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_value_of_few_stalls_has_its_mark_in_the_list_too(size: tuple[int, int]) -> None:
    async with opened(with_runs(1), size, "c") as (app, _):
        screen = app.screen
        assert isinstance(screen, RunsScreen)
        (run,) = screen._runs
        value = screen._figure(run, "99.9").lstrip("~")
        for few in (set(), {"99.9"}):
            screen._few = {run.id: few}
            listed = "\n".join(line.plain for line in screen._list(size[0] - 4))
            assert (f" ~{value} " in listed) == bool(few)
            assert (f" {value} " in listed) != bool(few)
            assert (FEW_TOLD in listed) == bool(few)


async def test_no_run_yet_is_said() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "space", "down", "up")
        await settled(pilot)
        assert "No run yet" in text_of(app)


async def test_labels_of_runs_are_text() -> None:
    app = WorkshopApp(with_runs(1, label="[red]x[/] \x1b[31m"))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "t")
        await settled(pilot)
        assert "[red]x[/] [31m" in text_of(app)


def on_tree(tree: Path) -> FakeWorkshop:
    workshop = open_workshop()
    workshop.context.topology = read_topology(HostRoot(tree))
    return workshop


@pytest.mark.parametrize("name", ["guest", "server64", "hybrid_laptop", "small3", "offline", "arm_server"])
@pytest.mark.parametrize("width", [60, 80, 160])
async def test_the_map_of_any_machine_takes_twelve_rows_at_most(
    name: str, width: int, host_tree: Callable[[str], Path]
) -> None:
    workshop = on_tree(host_tree(name))
    app = WorkshopApp(workshop)
    async with app.run_test(size=(width, 24)) as pilot:
        await settled(pilot)
        app.push_screen(CpuPicker(workshop.walk("pinning"), workshop.context.topology))
        await settled(pilot)
        cpu_map = app.screen.query_one(CpuMap)
        limit = 12 if len(workshop.context.topology.cpus) <= 64 else 40
        assert cpu_map.region.height <= limit
        said = cpu_map.render().plain.replace("·", " ").replace("×", " ").replace("–", " ")
        assert all(f" {cpu.id} " in said for cpu in workshop.context.topology.cpus)
        assert max(len(line.rstrip()) for line in said.splitlines()) <= cpu_map.content_size.width


async def test_cpus_are_picked_by_cursor_and_by_typing(host_tree: Callable[[str], Path]) -> None:
    workshop = on_tree(host_tree("server64"))
    walk = workshop.walk("pinning")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(pilot)
        app.push_screen(CpuPicker(walk, workshop.context.topology))
        await settled(pilot)
        await pilot.press("right", "right", "p", "right", "a")
        picker = app.screen
        assert isinstance(picker, CpuPicker)
        assert picker.chosen == {"producer": 2, "accumulator": 3}
        await pilot.press("p")
        assert picker.chosen == {"producer": 3}
        await pilot.press("slash")
        typed = picker.query_one(Input)
        assert typed.has_focus
        assert not typed.cursor_blink
        typed.value = "4,6,6"
        await pilot.press("enter")
        assert "CPU 6 cannot run two measured threads" in text_of(app)
        typed.value = "4,6"
        await pilot.press("enter")
        assert picker.chosen == {"producer": 4, "accumulator": 6}
        await pilot.press("enter")
        assert isinstance(app.screen, HomeScreen)
        request = walk.measuring.request("again")
        assert (request.producer_cpu, request.accumulator_cpu) == (4, 6)


async def test_refused_cpus_say_why_and_change_nothing(host_tree: Callable[[str], Path]) -> None:
    workshop = on_tree(host_tree("server64"))
    walk = workshop.walk("pinning")
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        app.push_screen(CpuPicker(walk, workshop.context.topology))
        await settled(pilot)
        await pilot.press("slash")
        app.screen.query_one(Input).value = "4,9999"
        await pilot.press("enter", "enter")
        with pytest.raises(HostError) as refused:
            walk.cpus.choose(4, 9999, None)
        assert refused.value.message[:30] in text_of(app)
        assert isinstance(app.screen, CpuPicker)
        assert walk.progress.chosen_cpus == {}
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_a_sheet_that_grows_while_its_layout_is_due_shows_every_line() -> None:
    app = WorkshopApp(open_workshop())
    lines = [Text("one")]
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        sheet = Sheet(lambda width: list(lines))
        await app.screen.mount(sheet)
        await pilot.pause()
        sheet.renew()
        # The screen lays itself out for another reason before the sheet's own turn comes.
        app.screen._clear_arrangement_cache()
        app.screen._refresh_layout()
        lines.append(Text("two"))
        sheet.renew()
        await pilot.pause()
        assert sheet.size.height == 2


async def test_a_scroll_bar_that_comes_back_stands_where_the_text_is() -> None:
    """It stood at the bottom of a text at its first line, if the pane had gone home while its text was short."""
    app = WorkshopApp(open_workshop())
    lines = [Text(f"line {n}") for n in range(90)]
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        sheet, pane = Sheet(lambda width: list(lines)), Pane()
        await app.screen.mount(pane)
        await pane.mount(sheet)
        await settled(pilot)
        pane.scroll_end(animate=False)
        await settled(pilot)
        assert pane.vertical_scrollbar.position > 0
        every, lines[:] = list(lines), lines[:1]
        sheet.renew()
        await settled(pilot)
        pane.scroll_home(animate=False)
        await settled(pilot)
        lines[:] = every
        sheet.renew()
        await settled(pilot)
        assert pane.show_vertical_scrollbar
        assert (pane.scroll_y, pane.vertical_scrollbar.position) == (0, 0)


async def test_help_lists_every_key_of_every_screen() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        await settled(pilot)
        assert isinstance(app.screen, HelpPage)
        said = " ".join(app.screen.query_one("#page-sheet", Sheet).plain().split())
        for action in ACTIONS:
            # Those of a class are there on a class host alone.
            assert (action.tooltip in said) is not action.of_class, action.id
        assert said.index("HOME") < said.index("EVERYWHERE")
        await pilot.press("down", "escape")
        assert isinstance(app.screen, HomeScreen)


async def test_a_wide_help_has_keys_and_words_side_by_side_and_copies_one_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied: list[str] = []
    app = WorkshopApp(open_workshop())
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(160, 48)) as pilot:
        await settled(pilot)
        await pilot.press("question_mark", "y")
        await settled(pilot)
        shown = app.screen.query_one("#page-sheet", Sheet).plain().splitlines()
        first = next(line for line in shown if "WORDS" in line)
        assert first.startswith(NOW)
        assert all(len(line) <= 156 for line in shown)
        lines = copied[0].splitlines()
        assert "WORDS" in lines
        assert max(map(len, lines)) <= 92


def test_every_action_has_an_id_a_tooltip_and_a_way_to_run_it() -> None:
    from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
    from jitter_workshop.tui.screens.chapter.hunting import CuresPage, SuspectsPage
    from jitter_workshop.tui.screens.chapter.masking import MaskPage
    from jitter_workshop.tui.screens.chapter.program import CommandPage
    from jitter_workshop.tui.screens.chapter.recalling import RecallPage
    from jitter_workshop.tui.screens.chapter.steps import NOT_HERE, WORK_OF_KEYS, Step
    from jitter_workshop.tui.screens.class_host.turn import TurnPage
    from jitter_workshop.tui.screens.common.dialogs import ErrorDialog
    from jitter_workshop.tui.screens.programs import ProcessesScreen
    from jitter_workshop.tui.screens.proving import ProvingScreen
    from jitter_workshop.tui.screens.report import ReportScreen

    screens = {
        "app": WorkshopApp,
        "home": HomeScreen,
        "chapter": ChapterScreen,
        "runs": RunsScreen,
        "causes": EvidenceScreen,
        "programs": ProcessesScreen,
        "cpus": CpuPicker,
        "preferences": PreferencesPage,
        "status": StatusScreen,
        "summary": SummaryScreen,
        "report": ReportScreen,
        "proving": ProvingScreen,
        "dialog": ErrorDialog,
        "question": Question,
        "suspects": SuspectsPage,
        "cures": CuresPage,
        "recall": RecallPage,
        "mask": MaskPage,
        "command": CommandPage,
        "queue": TurnPage,
    }
    assert len(BY_ID) == len(ACTIONS)
    for action in ACTIONS:
        assert action.tooltip
        assert action.shown
        namespace, _, name = action.run.rpartition(".")
        owner = WorkshopApp if namespace == "app" else screens[action.scope]
        method, _, shown = name.partition("(")
        if action.keys:
            assert hasattr(owner, f"action_{method}"), action.id
        if method == "press":
            assert hasattr(Step, f"key_{action.name}") or action.name in {*WORK_OF_KEYS, *NOT_HERE}, action.id
            assert shown == f"'{action.name}')"
        if method == "show":
            assert shown.strip("')") in app_module._SCREENS


async def test_the_palette_runs_the_actions_of_the_registry() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        offered = [command.title for command in app.get_system_commands(app.screen)]
        assert "Measure  (m)" in offered
        assert "Preferences  (e)" in offered
        await pilot.press("ctrl+p")
        await pilot.pause()
        assert isinstance(app.screen, CommandPalette)
        await pilot.press("escape")
        command = next(c for c in app.get_system_commands(app.screen) if c.title == "Preferences  (e)")
        await command.callback()
        await settled(pilot)
        assert isinstance(app.screen, PreferencesPage)


@pytest.mark.parametrize(
    ("keys", "changes"),
    [((), {"Apply again  (a)", "Restore all  (u)"}), (("enter",), {"Go on  (Enter)", "Restore  (u)"})],
)
async def test_the_palette_begins_with_no_command_that_changes_the_host(
    keys: tuple[str, ...], changes: set[str]
) -> None:
    async with opened(open_workshop(), (80, 24), *keys) as (app, pilot):
        below = app.screen
        await pilot.press("ctrl+p")
        listed = app.screen.query_one(CommandList)
        for _ in range(100):
            await pilot.pause(0.05)
            if listed.option_count:
                break
        await pilot.pause(0.5)
        assert listed.highlighted is None
        titles = [cast(Command, one).hit.text for one in listed.options]
        assert set(titles[-len(changes) :]) == changes
        # The first Enter only moves the cursor to the first command, which changes nothing.
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, CommandPalette)
        assert listed.highlighted == 0
        await pilot.press("escape")
        await settled(pilot)
        assert app.screen is below


@pytest.mark.parametrize("typed", ["light", "dark", "color", "colour", "contrast", "theme"])
async def test_the_palette_finds_the_themes_by_name_and_by_colour(typed: str) -> None:
    async with opened(open_workshop(), (80, 24)) as (app, pilot):
        await pilot.press("ctrl+p", *typed)
        for _ in range(100):
            await pilot.pause(0.05)
            if "Colours: " in text_of(app):
                break
        assert "Colours: " in text_of(app)


async def found_by(app: WorkshopApp, pilot: Pilot[None], title: str, *typed: str) -> None:
    """Type into the palette until it shows this title, and choose the first hit."""
    await pilot.press("ctrl+p", *typed)
    for _ in range(100):
        await pilot.pause(0.05)
        if title in text_of(app):
            break
    assert title in text_of(app)
    await pilot.press("enter")
    await settled(pilot)


@pytest.mark.parametrize("typed", [("p", "i", "n", "n"), ("c", "h", "a", "p", "t", "e", "r", "space", "3")])
async def test_the_palette_finds_a_chapter_by_name_and_by_number(typed: tuple[str, ...]) -> None:
    workshop = open_workshop()
    title = workshop.course.chapters[2].title
    async with opened(workshop, (80, 24)) as (app, pilot):
        await found_by(app, pilot, f"Chapter 3: {title}", *typed)
        assert isinstance(app.screen, ChapterScreen)
        assert app.screen.walk.chapter.id == "pinning"


async def test_the_palette_finds_a_tunable_and_opens_its_check() -> None:
    async with opened(open_workshop(), (80, 24)) as (app, pilot):
        await found_by(app, pilot, "CPU governor (governor)", *"gov")
        assert isinstance(app.screen, StatusScreen)
        assert app.screen.finding is not None
        assert app.screen.finding.check.id == "governor"


async def test_the_palette_finds_a_step_of_the_chapter_on_the_screen() -> None:
    async with opened(open_workshop(), (80, 24), "enter") as (app, pilot):
        screen = app.screen
        assert isinstance(screen, ChapterScreen)
        await found_by(app, pilot, "Step: predict", *"predict")
        assert app.screen is screen
        assert screen.step == "predict"


async def test_a_theme_of_the_palette_is_used_at_once_and_kept() -> None:
    async with opened(open_workshop(), (80, 24)) as (app, pilot):
        for name in PALETTES:
            wanted = f"Colours: {name.replace('-', ' ')} theme"
            (command,) = [one for one in app.get_system_commands(app.screen) if one.title == wanted]
            command.callback()
            await settled(pilot)
            assert load()[0].theme == app.preferences.theme == name
            assert app.screen.styles.background.hex == app.palette.background.upper()


async def test_preferences_change_at_once_and_are_kept() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("e", "enter", "down", "right", "down", "space")
        await settled(pilot)
        assert app.theme == "workshop-light"
        assert dataclasses.astuple(app.preferences) == ("light", "standard", False)
        assert load() == (app.preferences, "")
        await pilot.press("left")
        assert app.preferences.show_published
        await pilot.press("escape", "m")
        await settled(pilot)
        assert app.workshop.context.runs.every()


async def test_preferences_that_cannot_be_kept_are_a_dialog_and_hold_for_now() -> None:
    paths.config_file().parent.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file().parent.write_text("a file where a folder should be")
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("ctrl+t")
        await settled(pilot)
        assert app.theme == "workshop-light"
        assert "could not be written" in text_of(app)


@pytest.mark.parametrize("theme", list(PALETTES))
async def test_every_look_shows_the_same_text(theme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = WorkshopApp(with_runs(1))
    async with app.run_test(size=(100, 30)) as pilot:
        app.change_preferences(theme=theme)
        await settled(pilot)
        text = text_of(app)
        assert "▸ Why so slow?" in text
        assert "● run 0" in text
        assert app.animation_level == "none"


async def test_a_terminal_too_small_gets_one_sentence_and_recovers() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(20, 5)) as pilot:
        await settled(pilot)
        words = " ".join(text_of(app).split())
        assert "needs 60×16 characters" in words
        assert "Why so slow?" not in words
        for key in ("question_mark", "escape", "e", "escape", "c", "escape", "enter", "escape"):
            await pilot.press(key)
        await pilot.resize_terminal(80, 24)
        await settled(pilot)
        assert "Why so slow?" in text_of(app)
        await pilot.resize_terminal(60, 16)
        await settled(pilot)
        assert "Why so slow?" in text_of(app)


async def test_the_words_of_a_page_are_explained_on_every_screen() -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        for screen, key, word, absent in (
            ("enter", "g", "ring", "knee"),
            ("s", "g", "governor", "knee"),
        ):
            await pilot.press(screen)
            await settled(pilot)
            below = app.screen
            await pilot.press(key)
            assert isinstance(app.screen, GlossaryPage), screen
            told = app.screen.sheet("#page-sheet").plain()
            assert f"  {word}: " in told
            assert f"  {absent}: " not in told
            await pilot.press("y", "escape")
            assert app.clipboard == told
            assert app.screen is below


@pytest.mark.parametrize("size", [(80, 20), (80, 24), (100, 30), (120, 36), (160, 48)])
async def test_no_page_of_keys_ends_at_a_heading(size: tuple[int, int]) -> None:
    """One more line of the terminal, or one less, must not leave a heading alone, either."""
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("question_mark")
        for rows in range(size[1], size[1] + 8):
            await pilot.resize_terminal(size[0], rows)
            await settled(pilot)
            page = app.screen
            shown = page.query_one("#page-sheet", Sheet).plain().splitlines()[: page.query_one(Pane).size.height]
            assert shown[-1].partition("  ")[0] not in SCOPE_TITLES.values()
