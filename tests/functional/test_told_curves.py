"""The latencies of a run are the same wherever they are told: in its result, at home, in lists and in tables."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from dataclasses import replace

import pytest

from jitter_workshop.cli import main
from jitter_workshop.course.loader import builtin_course
from jitter_workshop.flow.chapters.course_summary import sum_up
from jitter_workshop.flow.reporting.anonymizer import anonymize_report
from jitter_workshop.flow.reporting.build import build_report
from jitter_workshop.flow.reporting.subject import subject_of
from jitter_workshop.model.course import StepName
from jitter_workshop.model.run import INTENDED, Run, of_transit
from jitter_workshop.model.session import Guess
from jitter_workshop.presenter.course.chapter import comparison, explain_page
from jitter_workshop.presenter.runs.curves import curve_rows
from jitter_workshop.presenter.runs.one_run import result_of_one_run
from jitter_workshop.report import markdown
from jitter_workshop.stats.figures import FROM_DUE_TIME, LATENCY_EXPLAINED, KnownRun
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.runs.runs import RunsScreen
from jitter_workshop.tui.widgets.chart import ChartView
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import opened, settled, text_of

STOPPED = ([100] * 4_800 + [16_000_000] * 200, [100] * 5_000 + [169_000_000] * 5_000)
"""Transit of the 5,000 messages that were sent, and the latency of the 10,000 that were planned."""
QUIET = ([100] * 9_900 + [2_000] * 100, [100] * 9_900 + [2_100] * 100)


def add(workshop: FakeWorkshop, number: int, values: tuple[list[int], list[int]], **fields: str) -> Run:
    """Store a run of 0.1 s, of which half was spent in stalls if messages are missing."""
    ident = f"20260101-00000{number}-aaaa"
    made, blocks = madeup.make_run([values[0]], run_id=ident, block_s=0.1, **fields)
    due, due_blocks = madeup.make_run([values[1]], name=INTENDED, block_s=0.1)
    stolen = 6e8 if len(values[0]) < len(values[1]) else 0.0
    made = replace(
        made,
        histograms={**made.histograms, **due.histograms},
        stalls=replace(made.stalls, stolen_ns_per_second=stolen),
    )
    both = zip(blocks, due_blocks, strict=True)
    workshop.context.handle.add_run(
        made, tuple(replace(a, histograms={**a.histograms, **b.histograms}) for a, b in both)
    )
    return made


@pytest.fixture
def workshop() -> FakeWorkshop:
    return open_workshop(course=builtin_course())


def test_a_run_of_transit_alone_says_so_beside_others(workshop: FakeWorkshop) -> None:
    first, second = add(workshop, 1, STOPPED, label="free"), add(workshop, 2, QUIET, label="pinned")
    shown = workshop.context.runs.curves((first, second))
    assert [one.label for one in shown] == ["free", "pinned"]
    older = replace(of_transit(second), id="20260101-000009-aaaa", label="older")
    workshop.context.runs.remember(older)
    assert workshop.context.runs.curves((first, older))[1].label == "older, transit"
    walk = workshop.walk("pinning")
    walk.record("measure", first)
    walk.record("again", second)
    assert [one.label for one in walk.runs.curves()] == [one.label for one in shown]


def test_the_table_of_two_runs_has_the_direction_of_their_result(workshop: FakeWorkshop) -> None:
    """By transit the second run is slower, by latency it is faster."""
    walk = workshop.walk("pinning")
    walk.record("measure", add(workshop, 1, STOPPED, label="free"))
    walk.record("again", add(workshop, 2, ([100] * 9_900 + [20_000_000] * 100,) * 2, label="pinned"))
    view = walk.comparison.view()
    assert view is not None
    ratios = {row.measure: row.ratio for row in view.comparison.rows}
    assert (ratios["p99.9"] or 9) < 1
    assert "p99.9 169 ms, then 20 ms" in view.comparison.text
    assert view.comparison.metric == INTENDED
    page = "\n".join(line.plain for line in comparison(view, 76))
    assert "169 ms" in page


@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_home_and_the_list_of_curves_have_the_figure_of_the_result(
    workshop: FakeWorkshop, size: tuple[int, int]
) -> None:
    run = add(workshop, 1, STOPPED, label="the scheduler chooses the CPUs")
    (result,) = result_of_one_run(KnownRun(run), 200)
    assert result.plain.startswith("p99.9 is ~169 ms · ")
    async with opened(workshop, size) as (app, pilot):
        (drawn,) = [one for one in app.screen.query_one(ChartView).curves if one.run is not None]
        assert drawn.from_due
        if size == (80, 24):
            card = app.screen.query_one("#next", Sheet).plain()
            assert re.search(r"[ ~]169 ms", card)
            assert " 16 ms" not in card
        await pilot.press("c")
        await settled(pilot)
        assert isinstance(app.screen, RunsScreen)
        listed = app.screen.query_one("#runs-sheet", Sheet).plain()
        assert "169 ms" in listed
        assert " 16 ms" not in listed
        facts = app.screen.query_one("#run-detail", Sheet).plain()
        assert "transit its p99.9 is 16 ms" in " ".join(facts.split())
        assert [one.from_due for one in app.screen.curves() if one.run is not None] == [True]


@pytest.mark.parametrize("stopped_first", [True, False])
async def test_the_runs_of_a_chapter_have_one_clock_on_each_of_its_pages(
    workshop: FakeWorkshop, *, stopped_first: bool
) -> None:
    """One run was stopped for long, the other one was not; neither has two values of a percentile on its page."""
    walk = workshop.walk("baseline")
    walk.guess.predict(Guess(value_ns=1_000_000))
    walk.record("measure", add(workshop, 1, STOPPED if stopped_first else QUIET, label="first"))
    walk.record("again", add(workshop, 2, QUIET if stopped_first else STOPPED, label="second"))
    values: dict[StepName, str] = {"measure": "169 ms", "again": "2.1 µs"}
    if not stopped_first:
        values = {"measure": "2.1 µs", "again": "169 ms"}
    guess = walk.guess.outcome()
    assert guess is not None
    assert f"at p99.9; it was ~{values['measure']}" in guess.text
    for step, value in values.items():
        walk.go(step)
        app = WorkshopApp(workshop, "baseline")
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            page = " ".join(text_of(app).split())
            assert re.search(f"p99.9 is ~?{value}", page)
            assert {one.from_due for one in chapter(app)._page.curves() if one.run is not None} == {True}
            assert "with the waits" not in page


def chapter(app: WorkshopApp) -> ChapterScreen:
    assert isinstance(app.screen, ChapterScreen)
    return app.screen


def test_a_table_counts_the_messages_that_were_sent_and_the_others(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("baseline")
    walk.record("measure", add(workshop, 1, QUIET, label="first"))
    assert curve_rows(walk.runs.curves()).rows[-1][1].split() == ["10,000"]
    assert curve_rows(walk.runs.curves()).rows[-1][0] == "count"
    walk.record("again", add(workshop, 2, STOPPED, label="second"))
    *_, sent, waits = curve_rows(walk.runs.curves()).rows
    assert [cell.strip() for cell in sent] == ["sent", "10,000", "5,000"]
    assert [cell.strip() for cell in waits] == ["counted", "10,000", "10,000"]


async def test_a_run_has_its_latency_while_it_is_made() -> None:
    workshop = open_workshop(course=builtin_course(), gate=threading.Event())
    walk = workshop.walk("baseline")
    walk.record("measure", add(workshop, 1, STOPPED, label="first"))
    walk.go("again")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await asyncio.wait_for(asyncio.to_thread(workshop.reached_gate.wait), 10)
        await pilot.pause()
        screen = chapter(app)
        running = screen._page.run
        assert running is not None
        assert running.progress is not None
        curve = running.progress.curve
        points = tuple(replace(point, value_ns=268_000_000) for point in curve.points)
        running.progress = replace(running.progress, due=replace(curve, points=points))
        screen._runs._block_drawn()
        await pilot.pause()
        live = screen._page.curves()[-1]
        assert (live.key, live.from_due) == ("live", True)
        assert "p99.9 so far: 268 ms" in text_of(app)
        assert workshop.gate is not None
        workshop.gate.set()
        await settled(pilot)


async def test_a_later_run_by_the_due_time_has_this_clock_while_it_is_made() -> None:
    workshop = open_workshop(course=builtin_course(), gate=threading.Event())
    walk = workshop.walk("coordinated-omission")
    walk.record("measure", add(workshop, 1, STOPPED, label="stopped", pacing="schedule"))
    walk.go("again")
    app = WorkshopApp(workshop, "coordinated-omission")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("m")
        await asyncio.wait_for(asyncio.to_thread(workshop.reached_gate.wait), 10)
        await pilot.pause()
        running = chapter(app)._page.run
        assert running is not None
        assert running.progress is not None
        running.progress = replace(running.progress, due=running.progress.curve)
        live = [one for one in chapter(app)._page.curves() if one.key.startswith("live")]
        assert [one.label.partition(":")[0] for one in live] == [FROM_DUE_TIME]
        assert [one.curve.role for one in live] == ["after"]
        assert workshop.gate is not None
        workshop.gate.set()
        await settled(pilot)


def test_the_table_of_many_hosts_has_the_latencies_of_the_comparison(workshop: FakeWorkshop) -> None:
    walk = workshop.walk("baseline")
    walk.record("measure", add(workshop, 1, STOPPED, label="first"))
    walk.record("again", add(workshop, 2, QUIET, label="second"))
    page = " ".join(" ".join(line.plain for line in explain_page(walk, (), (), 80)).split())
    assert "169 ms or more" in page
    assert " 16 ms or more" not in page


def test_the_summary_of_a_course_divides_latencies_of_one_kind(workshop: FakeWorkshop) -> None:
    workshop.walk("baseline").record("measure", add(workshop, 1, STOPPED, label="first"))
    workshop.walk("pinning").record("again", add(workshop, 2, QUIET, label="pinned"))
    steps = sum_up(workshop).steps
    assert [step.shown.from_due for step in steps] == [True, True]
    assert [step.values[2] for step in steps] == [169_000_000, 2_100]
    document = build_report(subject_of(workshop.context.handle))
    charts = {chart.title: [curve.label for curve in chart.curves] for chart in document.overlays}
    assert charts["From first to last"] == [step.name for step in steps]
    hidden = {chart.title: [c.label for c in chart.curves] for chart in anonymize_report(document).overlays}
    assert hidden["From first to last"] == charts["From first to last"]


def test_the_verb_and_the_report_have_the_same_figure(
    workshop: FakeWorkshop, capsys: pytest.CaptureFixture[str]
) -> None:
    run = add(workshop, 1, STOPPED, label="mine")
    quiet = add(workshop, 2, QUIET, label="quiet")
    name = workshop.context.session.id
    assert main(["sessions", "show", name]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "mine" in line]
    assert row.endswith("169 ms")
    assert main(["sessions", "show", name, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["run_list"]
    assert (first["id"], second["id"]) == (run.id, quiet.id)
    assert first["percentiles"]["99.9"] < 17_000_000 < first["with_waits"]["percentiles"]["99.9"]
    assert second["with_waits"]["percentiles"]["99.9"] < 3_000
    document = build_report(subject_of(workshop.context.handle))
    labels = {curve.label for chart in document.overlays for curve in chart.curves if not curve.origin}
    assert labels == {"mine", "quiet"}
    first_run, second_run = document.runs
    assert first_run.with_waits is not None
    assert second_run.with_waits is not None
    page = markdown.markdown_text(document, {}).splitlines()
    listed = [line for line in page if "mine" in line and "samples" not in line and "sent)" in line]
    assert all("10,000 (5,000 sent)" in line for line in listed)
    assert listed
    assert sum(LATENCY_EXPLAINED in line for line in page) == 1
    rows = [line for line in page if "mine" in line and "169 ms" in line]
    assert rows
    assert not any(" 16 ms" in row for row in rows)
    hidden = anonymize_report(document)
    assert {curve.label for chart in hidden.overlays for curve in chart.curves if not curve.origin} == {
        "run 1",
        "run 2",
    }
