"""Test the key P: it explains a practice machine, gives it the terminal, and takes the terminal back.

A program of three lines stands for the machine."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import practising
from jitter_workshop.plain.walkthrough import PlainWalk
from jitter_workshop.practice.kernels import NotHere
from jitter_workshop.presenter.host import practice
from jitter_workshop.tui.app import WorkshopApp
from jitter_workshop.tui.core.actions import BY_ID
from jitter_workshop.tui.screens.chapter.chapter import ChapterScreen
from jitter_workshop.tui.screens.common.dialogs import ErrorDialog, Question
from jitter_workshop.tui.screens.home.home import HomeScreen
from jitter_workshop.tui.widgets.keybar import KeyBar
from tests import terminal as terminals
from tests.fakes import FakeWorkshop, open_workshop
from tests.screens import settled, text_of

SIZES = pytest.mark.parametrize("size", [(80, 24), (160, 48)])
PROGRAM = """
import sys, threading
from jitter_workshop import cli
from jitter_workshop.flow.chapters.workshop import Workshop
from jitter_workshop.flow.host_ops import practising
from tests.fakes import open_workshop
workshop = open_workshop(gate=threading.Event(), look_every_s=3600)
Workshop.open = lambda *_, **__: workshop
practising.refuse_if_no_practice = lambda host, served=False: None
practising.practice_command = lambda *_, **__: [sys.executable, "-c", sys.argv[1]]
sys.exit(cli.main([]))
"""
INSIDE = "print('INSIDE'); print('said', input()); raise SystemExit(int(input()))"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that were run in the place of a machine; this host can run one, and the screen can be suspended."""
    run: list[list[str]] = []
    monkeypatch.setattr(practising, "refuse_if_no_practice", lambda host, served=False: None)
    monkeypatch.setattr(practising, "practise", lambda command: run.append(command) or 0)
    monkeypatch.setattr(WorkshopApp, "suspend", lambda self: contextlib.nullcontext())
    return run


@SIZES
async def test_the_key_explains_the_machine_and_opens_it(machine: list[list[str]], size: tuple[int, int]) -> None:
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("P")
        await settled(pilot)
        assert isinstance(app.screen, Question)
        # Beside the box stands the page behind it.
        inside = [line.split("│")[1] for line in text_of(app).splitlines() if line.count("│") == 2]
        shown = " ".join(" ".join(inside).split())
        for words in (
            "Open a practice machine?",
            "nothing that is done in the machine changes this host",
            "768 MiB",
            "emulated",
        ):
            assert words in shown
        assert practice.KEYS in shown
        await pilot.press("escape")
        await settled(pilot)
        assert machine == []
        await pilot.press("P")
        await settled(pilot)
        await pilot.press("enter")
        await settled(pilot)
        assert machine == [practising.practice_command()]
        assert isinstance(app.screen, HomeScreen)
        assert "You are back on this host." in text_of(app)


async def test_a_chapter_opens_the_machine_at_this_chapter(machine: list[list[str]]) -> None:
    app = WorkshopApp(open_workshop(), "baseline")
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert isinstance(app.screen, ChapterScreen)
        await pilot.press("P")
        await settled(pilot)
        assert "Why so slow?" in text_of(app)
        await pilot.press("enter")
        await settled(pilot)
        assert machine == [practising.practice_command("baseline")]
        assert machine[0][-2:] == ["--chapter", "baseline"]
        assert isinstance(app.screen, ChapterScreen)


@pytest.mark.parametrize(
    "error", [NotHere("qemu-system-x86_64 is not installed (Debian: apt install qemu-system-x86)"), HostError("x", "y")]
)
async def test_a_refusal_of_a_practice_machine_is_told_with_its_advice(
    monkeypatch: pytest.MonkeyPatch, error: HostError
) -> None:
    def check(host: object, served: bool = False) -> None:
        raise error

    monkeypatch.setattr(practising, "refuse_if_no_practice", check)
    app = WorkshopApp(open_workshop())
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("P")
        await settled(pilot)
        assert isinstance(app.screen, ErrorDialog)
        shown = " ".join(text_of(app).split())
        assert error.message.split(" (")[0] in shown


def test_it_does_not_open_in_itself_or_in_a_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    host = open_workshop().context.host
    inside = dataclasses.replace(host, accelerator="tcg")
    with pytest.raises(HostError, match=practising.HERE):
        practising.refuse_if_no_practice(inside)
    with pytest.raises(HostError, match="browser"):
        practising.refuse_if_no_practice(dataclasses.replace(host, accelerator=None), served=True)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(NotHere, match=r"not installed|shares this host"):
        practising.refuse_if_no_practice(dataclasses.replace(host, accelerator=None))


async def test_the_footer_offers_it_for_a_chapter_that_this_host_cannot_show(monkeypatch: pytest.MonkeyPatch) -> None:
    workshop = open_workshop()
    app = WorkshopApp(workshop)
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "app.practice" not in {ident for ident, _ in app.screen.query_one(KeyBar).shown}
        path = tuple(dataclasses.replace(entry, here=False, chance="not_here") for entry in workshop.path())
        monkeypatch.setattr(FakeWorkshop, "path", lambda self: path)
        app.screen.query_one("#path").show_entries(path, None)  # type: ignore[attr-defined]
        app.screen.refresh_keys()  # type: ignore[attr-defined]
        await settled(pilot)
        assert app.screen.query_one(KeyBar).shown[1][0] == "app.practice"
        assert "P practice" in text_of(app).splitlines()[-1]


def test_the_palette_knows_it() -> None:
    assert BY_ID["app.practice"].palette


@pytest.fixture
def terminal() -> Iterator[terminals.Terminal]:
    made = terminals.Terminal(PROGRAM, [INSIDE])
    yield made
    made.close()


def test_the_machine_has_the_terminal_and_the_workshop_takes_it_back(terminal: terminals.Terminal) -> None:
    terminal.wait_for("NEXT")
    terminal.type("P")
    terminal.wait_for(practice.QUESTION)
    terminal.type("\r")
    terminal.wait_for("INSIDE")
    assert terminals.ALT_SCREEN_OFF in terminal.seen
    terminal.type("a word\n")
    terminal.wait_for("said a word")
    terminal.type("3\n")
    terminal.wait_for("its exit code is 3")
    terminal.type("q")
    assert terminal.ended() == 0


def test_a_signal_ends_the_machine_first_and_then_the_workshop(terminal: terminals.Terminal) -> None:
    terminal.wait_for("NEXT")
    terminal.type("P")
    terminal.wait_for(practice.QUESTION)
    terminal.type("\r")
    terminal.wait_for("INSIDE")
    terminal.child.send_signal(signal.SIGTERM)
    assert terminal.ended() == 128 + signal.SIGTERM


def test_ctrl_c_belongs_to_the_machine(tmp_path: Path) -> None:
    """The keys of a real machine are read raw; this one dies of the signal, and the workshop goes on."""
    code = practising.practise([sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT)"])
    assert code in (-signal.SIGINT, 130)
    mine = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGINT); time.sleep(0.2)"
    assert practising.practise([sys.executable, "-c", mine]) == 0
    began = time.monotonic()
    mine = f"import os, signal, time; os.kill({os.getpid()}, signal.SIGHUP); time.sleep(60)"
    assert practising.practise([sys.executable, "-c", mine]) == -signal.SIGTERM
    assert time.monotonic() - began < 30
    with pytest.raises(HostError, match="cannot be started"):
        practising.practise([str(tmp_path / "none")])


def test_line_by_line_it_is_a_word(
    machine: list[list[str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter(["practice", "b", "practice", "", "q"])
    monkeypatch.setattr("builtins.input", lambda *_: next(answers))
    assert PlainWalk(open_workshop()).run(None) == 0
    told = capsys.readouterr().out
    assert "done in the machine changes this" in " ".join(told.split())
    assert machine == [practising.practice_command(plain=True)]
    assert machine[0][-1] == "--plain"
