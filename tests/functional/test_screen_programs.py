"""Explaining a program on the screen and line by line: the list of processes, and what is told of the chosen one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.programs import observing, targets
from jitter_workshop.model.program import ProcessSeen, ProgramReport
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.screens.programs import ProcessesScreen, ProgramScreen
from tests.fakes import open_workshop
from tests.screens import settled, text_of
from tests.talking import talk
from tests.unit.test_presenter_program import COUNTED, TRACED

EVIL = "evil[red]\x1b[2J"
LISTED = (
    ProcessSeen(4_001, 11, EVIL, "root", 88.0, "2026-03-01T09:30:00+00:00"),
    ProcessSeen(4_002, 12, "server", "web", 3.0, "2026-03-01T09:30:00+00:00"),
)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "list_processes", lambda root, stop=None: LISTED)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, listed: None) -> list[tuple[int, int | None]]:
    """The processes that were observed, each with its start; what is found is made up."""
    calls: list[tuple[int, int | None]] = []

    def explain_running(pid: int, *args: object, start_ticks: int | None, **more: object) -> ProgramReport:
        calls.append((pid, start_ticks))
        return TRACED if pid == 4_001 else COUNTED

    monkeypatch.setattr(observing, "explain_running", explain_running)
    return calls


async def press(pilot: Pilot[None], *keys: str) -> str:
    """Press keys, wait for what they begin, and return what is seen as one line."""
    await pilot.press(*keys)
    await pilot.app.workers.wait_for_complete()
    await settled(pilot)
    return " ".join(text_of(pilot.app).split())


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (160, 48)])
async def test_a_process_is_chosen_and_shown_with_the_pages_of_a_run(
    size: tuple[int, int], asked: list[tuple[int, int | None]]
) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        said = await press(pilot, "x")
        assert isinstance(app.screen, ProcessesScreen)
        assert "▸ evil[red] [2J 4001 root 88 %" in said
        said = await press(pilot, "enter")
        assert asked == [(4_001, 11)]
        assert "10 s observed · kernel trace" in said
        assert "WHERE THE TIME OF THE PROGRAM'S THREADS WENT" in said
        assert "WHO HAD THE CPU WHILE THREADS WAITED" in " ".join(app.screen.query_one("#causes-sheet").plain().split())  # type: ignore[attr-defined]
        said = await press(pilot, "tab", "down")
        assert "2 ms at 5 ns · evil [2J forged (7) on CPU 1" in said
        said = await press(pilot, "tab")
        assert "WHAT THREADS WAITED FOR" in said
        assert "in the clipboard" in await press(pilot, "y")
        assert "perf sched timehist -p 7" in app.clipboard
        await press(pilot, "escape", "escape")
        assert isinstance(app.screen, HomeScreen)


async def test_without_rights_counters_are_shown_and_the_needed_rights_are_named(
    asked: list[tuple[int, int | None]],
) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "x", "down")
        said = await press(pilot, "enter")
        assert "no kernel trace: it needs root's rights." in said
        assert "run this tool as root" in said
        assert "run has no trace" in await press(pilot, "p")
        # Counters tell of no single hold-up, so that page is left out.
        assert "THE SAME BY HAND" in await press(pilot, "tab")
        assert "preempted" in await press(pilot, "tab")


async def test_a_name_or_a_number_can_be_typed(asked: list[tuple[int, int | None]]) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "x")
        said = await press(pilot, "slash", *"SERV", "enter")
        assert "server" in said
        assert "4001" not in said
        assert "No process has 'nobody'" in await press(pilot, "slash", *"nobody", "enter")
        assert "4001" in await press(pilot, "escape")
        await press(pilot, "slash", "escape", "slash", *"4002", "enter")
        await press(pilot, "escape", "slash", *"77", "enter")
        assert asked == [(4_002, 12), (77, None)]


@pytest.mark.parametrize(
    "why",
    [
        "process 4001 has ended",
        "process 4001 has ended, and its number belongs to another process now (sh)",
        "2 (kthreadd) is a thread of the kernel, not a program",
    ],
)
async def test_an_observation_that_cannot_be_made_is_refused_in_a_sentence(
    why: str, listed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object, **more: object) -> ProgramReport:
        raise HostError(why)

    monkeypatch.setattr(observing, "explain_running", refuse)
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "x")
        said = await press(pilot, "enter")
        assert f"▸ {why}" in said
        assert "Nothing is known about this program's time." in said
        await press(pilot, "tab", "tab", "y", "p", "escape")
        assert isinstance(app.screen, ProcessesScreen)


@pytest.fixture
def strange() -> Iterator[int]:
    """A process that no process of these tests has started: its parent has ended."""
    code = "import os, time\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nos.close(1)\ntime.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)


async def test_a_real_process_is_listed_observed_and_left_running(
    strange: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: AgentConnection) -> None:
        raise HostError("tracing needs root's rights", "ask for them")

    monkeypatch.setattr(AgentConnection, "tracer", refuse)
    monkeypatch.setattr("jitter_workshop.tui.screens.programs.OBSERVED_S", 1)
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await press(pilot, "x")
        said = await press(pilot, "slash", *str(strange), "enter")
        assert isinstance(app.screen, ProgramScreen)
        assert f"(pid {strange})" in said
        assert "no kernel trace: tracing needs root's rights." in said
        # Closing the screen stops the next observation long before its end.
        monkeypatch.setattr("jitter_workshop.tui.screens.programs.OBSERVED_S", 600)
        await pilot.press("escape", "slash", *str(strange), "enter")
        while "Observing: " not in text_of(app):
            await pilot.pause(0.01)
        await press(pilot, "escape")
        assert isinstance(app.screen, ProcessesScreen)
        os.kill(strange, 0)


async def test_a_recorded_host_has_no_programs(host_tree: Callable[[str], Path]) -> None:
    app = WorkshopApp(open_workshop(host_tree("guest")))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "no program runs on it" in await press(pilot, "x", "enter", "r")


def test_line_by_line_a_process_is_chosen_by_its_place_or_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, int | None]] = []

    def explain_running(pid: int, *args: object, start_ticks: int | None = None, **more: object) -> ProgramReport:
        calls.append((pid, start_ticks))
        if pid == 9:
            raise HostError("there is no process 9", "'ps -e' lists the processes")
        return TRACED

    monkeypatch.setattr("jitter_workshop.plain.programs.list_processes", lambda root: LISTED)
    monkeypatch.setattr("jitter_workshop.plain.programs.explain_running", explain_running)
    said = talk(open_workshop(), "explain|2|explain|pid 4001|explain 9|explain|x|explain||q")
    assert calls == [(4_002, 12), (4_001, None), (9, None)]
    assert "1  evil[red] [2J  4001  root  88 %" in said
    assert "WHO HAD THE CPU WHILE THREADS WAITED" in said
    assert "! there is no process 9" in said
    assert "'x' is not the number of a process" in said
