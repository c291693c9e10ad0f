"""The screen of a run's causes, by key presses: from the list of runs and from a chapter."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.flow.chapters.walk import ChapterWalk
from jitter_workshop.model.run import Stall
from jitter_workshop.presenter.course.keys_that_wait import NO_KEY
from jitter_workshop.presenter.runs.causes import NO_TRACE, RAN_WHERE
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import madecounted, madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.madetrace import OTHER, event, stolen, tick, trace_of
from tests.screens import settled, text_of

HOSTILE = "evil[red]\x1b[2J"


def with_a_trace(label: str = "traced") -> FakeWorkshop:
    """A session with a run without a trace, and a newer one in which a task took 20 µs and a tick 4 µs."""
    workshop = open_workshop()
    events, stalls = stolen(HOSTILE)
    run, blocks = madeup.make_run(run_id="20260101-000000-aaaa", label="plain")
    workshop.context.handle.add_run(run, blocks)
    run, blocks = madeup.make_run(run_id="20260102-000000-bbbb", label=label, name="spin_gap", workload="spin")
    later = dataclasses.replace(run, started_at="2026-01-02T00:00:00.000Z")
    workshop.context.handle.add_run(later, blocks, trace=trace_of(events, stalls))
    return workshop


async def explained(app: WorkshopApp, pilot: Pilot[None]) -> EvidenceScreen:
    """The screen, once its thread has found the causes."""
    screen = app.screen
    assert isinstance(screen, EvidenceScreen)
    await app.workers.wait_for_complete()
    await settled(pilot)
    return screen


MOUNT = "mount -t tracefs nodev /sys/kernel/tracing"


async def at_explain(workshop: FakeWorkshop, pilot: Pilot[None]) -> ChapterWalk:
    """The first chapter at its last step, by Enter alone."""
    walk = workshop.walk("baseline")
    for _ in range(20):
        if walk.current == "explain":
            break
        await pilot.press("enter")
        await settled(pilot)
    return walk


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 48)])
async def test_a_run_shows_the_causes_of_its_stalls(size: tuple[int, int]) -> None:
    app = WorkshopApp(with_a_trace())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        await pilot.press("question_mark")
        await settled(pilot)
        words = app.screen.query_one("#page-sheet", Sheet).plain()
        assert "without it: in a table of causes" in " ".join(words.split())
        await pilot.press("escape")
        await settled(pilot)
        text = text_of(app)
        assert "Who took the time · traced" in text
        assert size[0] < 80 or " g words " in text.splitlines()[-1]
        assert "2 stalls over 1 µs" in text
        assert "task evil[red]" in text
        assert "20 µs" in text
        # The explanations of the causes stand below the table: the footer names the key that leads to them.
        pane, bar = app.screen.pane(), app.screen.query_one(KeyBar)  # type: ignore[attr-defined]
        assert (("causes.page_down", "more below") in bar.shown) is pane.more_below is (size[1] < 48)
        await pilot.press("end")
        await settled(pilot)
        assert ("causes.page_down", "more below") not in bar.shown
        await pilot.press("tab")
        await settled(pilot)
        stalls = text_of(app)
        assert "THE WORST STALLS" in stalls
        assert "sampler on CPU 1" in stalls
        assert "22 µs at 9 µs" in stalls
        await pilot.press("down")
        await settled(pilot)
        assert "4 µs at 50 µs" in text_of(app)
        await pilot.press("tab")
        await settled(pilot)
        assert "WHO ELSE RAN" in text_of(app)
        await pilot.press("tab", "home")
        await settled(pilot)
        assert (("causes.page_down", "more below") in bar.shown) is (size[1] < 48)
        await pilot.press("y", "escape")
        await settled(pilot)
        assert "All curves of this session" in text_of(app)


async def test_a_key_writes_the_tracks_of_the_trace(folder: Path) -> None:
    pytest.importorskip("perfetto")
    app = WorkshopApp(with_a_trace(HOSTILE))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        for count in (1, 2):
            await pilot.press("p")
            await app.workers.wait_for_complete()
            await settled(pilot)
            assert "Open it at https://ui.perfetto.dev." in " ".join(text_of(app).split())
            # The second file does not replace the first.
            assert len(list(folder.glob("jitter-workshop-*.pftrace"))) == count


async def test_a_run_without_a_trace_says_how_to_get_one() -> None:
    app = WorkshopApp(with_a_trace())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "down", "v")
        await settled(pilot)
        assert not isinstance(app.screen, EvidenceScreen)
        assert NO_TRACE in text_of(app)


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 48)])
async def test_without_a_trace_the_counters_are_shown(size: tuple[int, int]) -> None:
    workshop = open_workshop()
    workshop.context.handle.add_run(*madeup.make_run(label="counted", **madecounted.fields()))
    app = WorkshopApp(workshop)
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        text = text_of(app)
        assert "Who took the time · counted" in text
        assert "counters only" in text
        assert "WHAT WAS COUNTED" in text
        assert "8 ms for a CPU" in " ".join(text.split())
        await pilot.press("tab")
        await settled(pilot)
        assert "THE LONGEST STALLS, WITHOUT A CAUSE" in text_of(app)
        assert "30 µs at 10 ns" in text_of(app)
        await pilot.press("down", "tab")
        await settled(pilot)
        assert "BY HAND" in text_of(app)
        assert "schedstat" in text_of(app)
        await pilot.press("y")
        await settled(pilot)
        assert "in the clipboard" in text_of(app)
        assert "--switch-events" in app.clipboard


async def test_a_damaged_trace_is_a_sentence() -> None:
    workshop = with_a_trace()
    (path,) = workshop.context.handle.folder.glob("runs/*/trace.bin")
    path.write_bytes(path.read_bytes()[:50])
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        text = text_of(app)
        assert "Nothing is known about this run's stalls." in text
        assert "the trace is damaged" in text


async def test_end_goes_to_the_end_of_the_causes_and_a_dead_key_is_answered() -> None:
    app = WorkshopApp(with_a_trace())
    async with app.run_test(size=(80, 16)) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        assert isinstance(app.screen, EvidenceScreen)
        pane = app.screen.pane()
        assert pane.more_below
        await pilot.press("end")
        await settled(pilot)
        assert not pane.more_below
        await pilot.press("home")
        await settled(pilot)
        assert pane.scroll_offset.y == 0
        await pilot.press("n")
        await settled(pilot)
        assert NO_KEY in text_of(app)


async def test_a_chapter_makes_one_more_run_where_none_was_traced() -> None:
    workshop = open_workshop()
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        walk = await at_explain(workshop, pilot)
        kept = dict(walk.progress.runs)
        made = workshop.measured
        workshop.context.mount_command = MOUNT
        await pilot.press("v")
        await settled(pilot)
        assert "trace is not mounted" in text_of(app)
        assert MOUNT in text_of(app)
        await pilot.press("y")
        assert app.clipboard == MOUNT
        assert workshop.measured == made
        workshop.context.mount_command = ""
        await pilot.press("v")
        await settled(pilot)
        newest = workshop.context.runs.every()[-1]
        assert newest.label.endswith(", traced")
        assert workshop.asked is not None
        assert workshop.asked.evidence
        assert walk.progress.runs == kept
        assert walk.current == "explain"


async def test_a_chapter_shows_the_causes_of_its_traced_run() -> None:
    workshop = with_a_trace("baseline, traced")
    app = WorkshopApp(workshop, "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await at_explain(workshop, pilot)
        assert "v causes" in text_of(app)
        await pilot.press("v")
        await explained(app, pilot)
        assert "Who took the time · baseline, traced" in text_of(app)


async def test_the_causes_of_a_chapter_begin_with_its_subject() -> None:
    workshop = open_workshop()
    walk = workshop.walk("migration")
    label = walk.chapter.measurements[0].label
    run, blocks = madeup.make_run(
        run_id="20270102-000000-bbbb", label=f"{label}, traced", name="spin_gap", workload="spin"
    )
    workshop.context.handle.add_run(run, blocks, trace=trace_of([*tick(50_000, 4_000)], ()))
    walk.record("measure", run)
    walk.record("again", run)
    walk.go("explain")
    app = WorkshopApp(workshop, "migration")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        flat = " ".join(text_of(app).split())
        assert "v shows where and how long each thread" in flat
        await pilot.press("v")
        await explained(app, pilot)
        assert RAN_WHERE in text_of(app)
        await pilot.press("tab")
        await settled(pilot)
        assert "WHO TOOK THE TIME" in text_of(app)


async def test_time_of_events_that_did_not_fit_is_told_above_all() -> None:
    workshop = open_workshop()
    run, blocks = madeup.make_run(label="missing", name="spin_gap", workload="spin")
    events = [*tick(20_000, 4_000), event(50_000, "softirq_entry", "RCU", pid=OTHER, a=9)]
    workshop.context.handle.add_run(run, blocks, trace=trace_of(events, (Stall(0, "sampler", 1, 30_000, 60_000, 1),)))
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        await explained(app, pilot)
        said = " ".join(text_of(app).split())
        assert said.index("The trace lacks ") < said.index("WHO TOOK THE TIME")
