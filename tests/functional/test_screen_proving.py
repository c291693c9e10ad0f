"""Proving a chapter's change on the screen, by keys: the cost, the rounds, stopping, the verdict."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.model.change import LeftAlone
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog
from jitter_workshop.tui.screens.common.help import NOW, HelpPage
from jitter_workshop.tui.screens.proving import ProvingScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from jitter_workshop.tui.widgets.sheet import Sheet
from tests import fakeprover
from tests.fakeprover import FakeProver
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

pytestmark = pytest.mark.slow

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 48)])
SMALL = (80, 24)


@asynccontextmanager
async def at_compare(size: tuple[int, int] = SMALL) -> AsyncIterator[tuple[WorkshopApp, Pilot[None], FakeWorkshop]]:
    """The pinning chapter at its compare step."""
    workshop = open_workshop()
    app = WorkshopApp(workshop, "pinning")
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await to_compare(app, pilot)
        yield app, pilot, workshop


async def to_compare(app: WorkshopApp, pilot: Pilot[Any]) -> None:
    screen = app.screen
    assert isinstance(screen, ChapterScreen)
    for _ in range(20):
        if screen.step == "compare":
            return
        await pilot.press("enter")
        await settled(pilot)
    raise AssertionError(screen.step)


def proving(app: WorkshopApp) -> ProvingScreen:
    assert isinstance(app.screen, ProvingScreen)
    return app.screen


def said(app: WorkshopApp) -> str:
    return " ".join(text_of(app).split())


async def reached(made: type[FakeProver]) -> None:
    await asyncio.wait_for(asyncio.to_thread(made.reached_gate.wait), 20)


async def paused(pilot: Pilot[Any]) -> None:
    for _ in range(3):
        await pilot.pause()


@SIZES
async def test_from_the_offer_to_the_verdict_and_back(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    made = fakeprover.use(monkeypatch)
    async with at_compare(size) as (app, pilot, workshop):
        assert "two runs, no proof (p)" in said(app)
        assert "p prove it" in said(app)
        await pilot.press("p")
        await settled(pilot)
        assert "10 rounds are 20 runs of ring, 5 s each: about 2 min 50 s." in said(app)
        assert "sched_setaffinity(producer) any (0-3) → CPU 1" in said(app)
        assert "No file of this host is written" in said(app)
        request = fakeprover.asked(made)
        assert request.chapter == "pinning"
        assert request.like is not None
        assert request.like.workload == "ring"
        await pilot.press("enter")
        await settled(pilot)
        assert "Proven: stalls over 100 µs" in said(app)
        assert "rarer" in said(app)
        assert "No setting of the host was changed." in said(app)
        assert not app.measuring
        assert not app.at_work
        assert [proof.complete for proof in workshop.context.handle.proofs()] == [True]
        await pilot.press("escape")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "Proven: stalls over 100 µs" in said(app)
        assert "10 rounds" in said(app)
        assert "Press p" not in said(app)
        told = app.screen.query_one("#result", Sheet).plain()
        assert told.startswith("Proven: stalls over 100 µs"), "the verdict of many rounds leads"
        assert "these two runs" in told
        assert not any(word in told for word in ("Looks ", "perhaps ", "did its work"))
        await pilot.press("p")
        await settled(pilot)
        assert "Proven: stalls over 100 µs" in said(app)


@SIZES
async def test_the_rounds_while_they_are_made(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    gate = threading.Event()
    made = fakeprover.use(monkeypatch, gate=gate, hold=5)
    async with at_compare(size) as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        await paused(pilot)
        text = said(app)
        assert "not judged yet" in text
        assert "stalls over 100 µs, with ÷ without" in text
        assert "round 3 of 10" in text
        assert f"block 1 of {fakeprover.BLOCKS}" in text
        assert "left" in text
        assert "rarer" not in text
        assert text.count("●") + text.count("▼") == 2
        assert app.measuring
        assert app.at_work
        for key in ("question_mark", "c", "e", "s", "ctrl+p", "ctrl+t", "p", "y", "1", "down"):
            await pilot.press(key)
        assert isinstance(app.screen, ProvingScreen)
        gate.set()
        await settled(pilot)
        assert "Proven" in said(app)


async def test_a_stop_asks_and_keeps_the_finished_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    made = fakeprover.use(monkeypatch, gate=gate, hold=5)
    async with at_compare() as (app, pilot, workshop):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        await paused(pilot)
        screen = proving(app)
        await pilot.press("escape", "escape")
        # A block is measured: nothing is painted until it is over, and nothing but a question was asked for.
        assert "Stop now" not in said(app)
        assert screen._asking == "due"
        screen.under_way.in_block = False
        screen._settle_question()
        await paused(pilot)
        assert "keep 2 finished rounds?" in said(app)
        assert "Enter stop and keep" in said(app)
        await pilot.press("escape")
        await paused(pilot)
        assert "Stop now" not in said(app)
        await pilot.press("escape")
        await paused(pilot)
        assert "Stop now" in said(app)
        await pilot.press("enter")
        await settled(pilot)
        assert "Not proven" in said(app)
        assert "after 2 of 10 rounds: stopped" in said(app)
        assert "needs 10 rounds. This proof has 2" in said(app)
        (proof,) = workshop.context.handle.proofs()
        assert not proof.complete
        assert len(proof.rounds) == 2


async def test_the_question_comes_with_the_end_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    made = fakeprover.use(monkeypatch, gate=gate, hold=2)
    monkeypatch.setattr(made, "_keep", made._keep)
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        await paused(pilot)
        screen = proving(app)
        await pilot.press("escape")
        assert screen._asking == "due"
        shown: list[str] = []
        monkeypatch.setattr(app, "when_painted", lambda s, call: (shown.append(screen._asking), call()))
        gate.set()
        await settled(pilot)
        assert shown[0] == "shown"


async def test_stopped_before_a_round_there_is_nothing_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch, gate=threading.Event(), hold=0)
    async with at_compare() as (app, pilot, workshop):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        await pilot.press("ctrl+c")
        await settled(pilot)
        assert "Stopped before a round was finished" in said(app)
        assert "10 rounds are 20 runs" in said(app)
        assert not app.measuring
        assert not app.at_work
        assert not workshop.context.handle.proofs()
        await pilot.press("escape")
        assert isinstance(app.screen, ChapterScreen)


async def test_a_wait_for_another_measurement_can_be_stopped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch, queue="Waiting: user 1000 measures.")
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        for _ in range(200):
            await pilot.pause()
            if "Waiting: user 1000 measures." in said(app):
                break
        assert "Waiting: user 1000 measures. Esc stops waiting." in said(app)
        await pilot.press("escape")
        await settled(pilot)
        assert "nothing is proven" in said(app)


@pytest.mark.parametrize("how", ["key", "signal"])
async def test_leaving_in_the_middle_waits_until_all_is_given_back(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    made = fakeprover.use(monkeypatch, gate=threading.Event(), hold=5)
    async with at_compare() as (app, pilot, workshop):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        if how == "key":
            await pilot.press("ctrl+q")
        else:
            app.end_by_signal(1)
        # An app that ends may cancel what is waited for here; what was kept is looked at below.
        with contextlib.suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await paused(pilot)
    assert app.exit_code == (0 if how == "key" else 129)
    assert [len(proof.rounds) for proof in workshop.context.handle.proofs()] == [2]
    (proof,) = workshop.context.handle.proofs()
    assert proof.ended_at
    assert proof.stopped == f"stopped by {'hand' if how == 'key' else 'SIGHUP'}"


@SIZES
async def test_beside_a_proof_that_cannot_tell_the_figures_are_those_of_two_runs(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    fakeprover.use(monkeypatch, ratio=1.0)
    async with at_compare(size) as (app, pilot, _):
        assert "THESE TWO RUNS" not in said(app)
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        await pilot.press("escape")
        await settled(pilot)
        told = app.screen.query_one("#result", Sheet).plain()
        assert told.startswith("Not proven: ")
        assert "these two runs" in told
        await pilot.press("t")
        await settled(pilot)
        assert "THESE TWO RUNS: COUNTS, PER SECOND" in said(app)


async def test_the_number_of_rounds_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch, ratio=1.0)
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("down", "down", "down", "up")
        assert "▸ 2 20 rounds are 40 runs of ring, 5 s each: about 5 min 40 s." in said(app)
        await pilot.press("1", "9", "enter")
        await settled(pilot)
        assert fakeprover.asked(made).rounds == 10
        assert "Not proven" in said(app)
        asked = "with this spread, about"
        assert asked in said(app)
        # The number of rounds that the proof named is offered, and chosen.
        needed = int(said(app).split(asked)[1].split()[0].replace(",", ""))
        await pilot.press("p")
        await settled(pilot)
        assert f"{needed} rounds are" in said(app)
        assert "needs this number of rounds" in said(app)
        assert proving(app)._rounds == needed
        await pilot.press("1", "down", "enter")
        await settled(pilot)
        assert fakeprover.asked(made).rounds == 20


async def test_a_plan_that_has_changed_meanwhile_is_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch, others=fakeprover.PLACED[:1])
    async with at_compare() as (app, pilot, workshop):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("2", "enter")
        await settled(pilot)
        assert "The plan has changed" in said(app)
        assert "sched_setaffinity(accumulator)" not in said(app)
        assert not workshop.context.handle.proofs()
        await pilot.press("enter")
        await settled(pilot)
        assert [proof.planned for proof in workshop.context.handle.proofs()] == [20]


async def test_a_refused_proof_tells_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fakeprover.use(monkeypatch, fail=fakeprover.REFUSED)
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        assert "proven now: governor is applied already" in said(app)
        assert "restore governor first" in said(app)
        await pilot.press("enter", "1", "up")
        assert not app.measuring
        await pilot.press("escape")
        assert isinstance(app.screen, ChapterScreen)


async def test_a_failure_is_a_dialog_and_another_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    made = fakeprover.use(monkeypatch)

    def broken(*_: object) -> None:
        raise MeasureError("the child died [red]x[/]", "try again")

    monkeypatch.setattr(made, "prove", broken)
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)
        assert "the child died [red]x[/]" in said(app)
        await pilot.press("escape")
        await settled(pilot)
        assert "10 rounds are 20 runs" in said(app)


async def test_an_early_end_and_the_settings_left_alone_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    left = LeftAlone("thp", "/sys/kernel/mm/transparent_hugepage/enabled", "always", "never", "somebody changed it")
    fakeprover.use(monkeypatch, left_alone=(left,), fail_later=HostError("thp could not be given back"))
    async with at_compare((80, 40)) as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        text = said(app)
        assert "ended after 1 of 10 rounds:" in text
        assert "thp could not be given back" in text


@SIZES
async def test_the_keys_of_each_page_are_whole(monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]) -> None:
    fakeprover.use(monkeypatch)
    async with at_compare(size) as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        assert [k for k, _ in app.screen.query_one(KeyBar).shown][-1] == "proving.close"
        assert len(app.screen.query_one(KeyBar).shown) <= 7
        await pilot.press("enter")
        await settled(pilot)
        shown = dict(app.screen.query_one(KeyBar).shown)
        assert {"proving.again", "proving.copy", "app.glossary", "proving.close"} <= set(shown)
        await pilot.press("y")
        assert app.clipboard.startswith("Proven: stalls over 100 µs")
        await pilot.press("pagedown", "pageup", "down", "up")
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpPage)
        assert text_of(app).index(NOW) < text_of(app).index("PROVING A CHANGE")


@pytest.mark.parametrize("chapter", ["baseline", "migration"])
async def test_a_chapter_that_changes_nothing_offers_no_proof(chapter: str) -> None:
    app = WorkshopApp(open_workshop(), chapter)
    async with app.run_test(size=SMALL) as pilot:
        await settled(pilot)
        await to_compare(app, pilot)
        assert "p prove it" not in said(app)
        await pilot.press("p")
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        assert "nothing to prove: this chapter changes nothing" in said(app)


async def test_a_terminal_that_changes_its_size_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    made = fakeprover.use(monkeypatch, gate=gate, hold=5)
    async with at_compare() as (app, pilot, _):
        await pilot.press("p")
        await settled(pilot)
        await pilot.press("enter")
        await reached(made)
        for size in ((20, 5), (60, 16), (160, 48)):
            await pilot.resize_terminal(*size)
            await paused(pilot)
        assert "not judged yet" in said(app)
        gate.set()
        await settled(pilot)
        assert "Proven" in said(app)
