"""Explaining tells how far it is, can be stopped between two blocks, and is not done twice for one run."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import signal
import threading

import pytest

from jitter_workshop.cli import main
from jitter_workshop.flow.attribution import Stopped
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.run import Stall
from jitter_workshop.plain.run import tell_causes
from jitter_workshop.plain.talk import Talk
from jitter_workshop.presenter.runs.progress import PATIENCE_S, LateLine
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.runs.evidence import EvidenceScreen
from jitter_workshop.tui.screens.runs.runs import RunsScreen
from tests import madeup
from tests.fakes import FakeWorkshop, open_workshop
from tests.madetrace import OTHER, TIDS, switch, trace_of
from tests.screens import settled, text_of

EVENTS = [
    switch(10_000, TIDS["sampler"], OTHER, stays=True, names=("", "thief")),
    switch(30_000, OTHER, TIDS["sampler"], names=("thief", "")),
]
STALLS = (Stall(0, "sampler", 1, 9_000, 31_000, 1),)


def with_three_blocks() -> FakeWorkshop:
    workshop = open_workshop()
    run, blocks = madeup.make_run(label="baseline, traced", name="spin_gap", workload="spin")
    trace = trace_of(EVENTS, STALLS)
    trace = dataclasses.replace(trace, blocks=trace.blocks * 3)
    workshop.context.handle.add_run(run, blocks, trace=trace)
    return workshop


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_tells_how_far_it_is_and_does_it_once() -> None:
    workshop = with_three_blocks()
    told: list[tuple[int, int]] = []
    report = workshop.context.runs.causes(workshop.context.runs.every()[-1], lambda *went: told.append(went))
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert isinstance(report, EvidenceReport)
    assert report.stalls == 3
    assert workshop.context.runs.causes(workshop.context.runs.every()[-1], lambda *went: told.append(went)) is report
    assert len(told) == 4


def test_it_stops_between_two_blocks_and_nothing_of_it_is_kept() -> None:
    workshop = with_three_blocks()
    told: list[int] = []

    def stop_at_two(done: int, total: int) -> None:
        told.append(done)
        if done == 2:
            raise Stopped("enough")

    with pytest.raises(Stopped):
        workshop.context.runs.causes(workshop.context.runs.every()[-1], stop_at_two)
    assert told == [0, 1, 2]
    workshop.context.runs.causes(workshop.context.runs.every()[-1], lambda done, total: told.append(done))
    assert told == [0, 1, 2, 0, 1, 2, 3]


@pytest.mark.parametrize("left", ["escape", "leaving"])
async def test_the_screen_shows_a_bar_and_can_be_left_during_the_work(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop = with_three_blocks()
    real, threads = workshop.context.runs.causes, []
    at_two, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def held(run: object, progress: object) -> object:
        """The real one, which stands still behind its second block until it is let go on."""
        threads.append(threading.current_thread())

        def hold(done: int, total: int) -> None:
            progress(done, total)  # type: ignore[operator]
            if done == 2 and not at_two.is_set():
                at_two.set()
                go_on.wait(20)
                progress(done, total)  # type: ignore[operator]

        try:
            return real(run, hold)  # type: ignore[arg-type]
        except Stopped:
            ended.set()
            raise

    monkeypatch.setattr(workshop.context.runs, "causes", held)
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("c", "v")
        assert isinstance(app.screen, EvidenceScreen)
        assert await asyncio.to_thread(at_two.wait, 20)
        await pilot.pause()
        assert "Explaining: block 3 of 3. Esc" in text_of(app)
        assert "█" * 40 + "░" * 20 in text_of(app)
        if left == "escape":
            await pilot.press("escape")
            await settled(pilot)
            assert isinstance(app.screen, RunsScreen)
    # The workshop has been left, and the thread still stands where it was.
    assert not ended.is_set()
    assert threads[0].daemon
    go_on.set()
    assert ended.wait(20)


def test_ctrl_c_in_the_conversation_stops_the_explaining_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = with_three_blocks()
    said: list[str] = []
    monkeypatch.setattr(LateLine, "__call__", lambda self, done, total: signal.raise_signal(signal.SIGINT))
    before = signal.getsignal(signal.SIGINT)
    tell_causes(workshop, workshop.walk("baseline"), Talk(read=lambda prompt: "", write=said.append, width=80))
    assert "Stopped: v begins again." in "".join(said)
    assert "thief" not in "".join(said)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_ends_the_verb_with_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    workshop = with_three_blocks()
    run = workshop.context.runs.every()[-1]
    monkeypatch.setattr(LateLine, "__call__", lambda self, done, total: signal.raise_signal(signal.SIGINT))
    assert main(["explain", run.id]) == 130
    assert capsys.readouterr().out == ""


def test_quick_work_says_nothing_and_slow_work_removes_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    now, terminal = [0.0], Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    line = LateLine("explaining", clock=lambda: now[0])
    line(1, 20)
    line.close()
    assert terminal.getvalue() == ""
    now[0] = PATIENCE_S
    line(9, 20)
    line(10, 20)
    said = "  explaining: block 9 of 20 is done"
    assert terminal.getvalue().startswith(f"\r{said}\r{said.replace('9 of', '10 of')}")
    line.close()
    assert terminal.getvalue().endswith("\r" + " " * (len(said) + 1) + "\r")


def test_where_stderr_is_no_terminal_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    line = LateLine("explaining", clock=iter((0.0, 100.0)).__next__)
    line(1, 2)
    line.close()
    assert capsys.readouterr().err == ""
