"""The screen on a real (pseudo) terminal: how it ends, what it leaves behind, and that it sleeps during a block."""

from __future__ import annotations

import os
import signal
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jitter_workshop.tui.terminal.terminal_restore import SENTENCE
from tests.terminal import ALT_SCREEN_OFF, CURSOR_ON, DEADLINE_S, MOUSE_OFF, Terminal, start_a_run, workshop_terminal

QUIET_S = 0.35
"""Longer than three rounds of an input thread that looks around every 0.1 s."""


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with workshop_terminal() as made:
        yield made


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)], ids=["TERM", "HUP", "INT"]
)
def test_a_signal_in_a_run_restores_the_terminal(terminal: Terminal, number: signal.Signals, code: int) -> None:
    start_a_run(terminal)
    terminal.child.send_signal(number)
    assert terminal.ended() == code
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]
    tail = terminal.seen[-400:]
    assert ALT_SCREEN_OFF in tail
    assert CURSOR_ON in tail
    assert MOUSE_OFF in terminal.seen
    assert b"Traceback" not in terminal.seen


def test_a_lone_escape_stops_the_run_and_q_leaves(terminal: Terminal) -> None:
    start_a_run(terminal)
    terminal.type("\x1b")
    terminal.wait_for("Stopped after 2 blocks")
    terminal.type("\x11")
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]


def test_a_terminal_that_goes_away_ends_it(terminal: Terminal) -> None:
    start_a_run(terminal)
    os.close(terminal.slave)
    os.close(terminal.master)
    assert terminal.child.wait(DEADLINE_S) == 129


def test_the_screen_sleeps_while_a_block_is_measured(terminal: Terminal) -> None:
    start_a_run(terminal)
    limit = time.monotonic() + DEADLINE_S
    while True:
        while terminal.read(0.05):
            pass
        before = terminal.switches()
        time.sleep(QUIET_S)
        if terminal.switches() == before:
            break
        assert time.monotonic() < limit, f"it never sleeps: {before} {terminal.switches()}"
    terminal.type("\x1b")
    terminal.wait_for("Stopped after 2 blocks")


def test_keys_and_escape_sequences_arrive_whole(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.type("\x1b[B")
    terminal.type("\x1b")
    terminal.type("[B")
    terminal.type("\r")
    terminal.wait_for("Pinning")
    terminal.wait_for("▸LOOK")
    terminal.seen = b""
    terminal.type("q")
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.type("q")
    assert terminal.ended() == 0


def children(process: int) -> list[int]:
    """The processes that a process started and that have not ended."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == process and state != "Z":
            found.append(int(status.parent.name))
    return found


def await_end_of(process: int) -> None:
    limit = time.monotonic() + DEADLINE_S
    status = Path(f"/proc/{process}/stat")
    while status.exists():
        try:
            if status.read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except OSError:
            return
        assert time.monotonic() < limit, "the guard does not end"
        time.sleep(0.01)


def test_a_kill_in_a_run_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    start_a_run(terminal)
    (guard,) = children(terminal.child.pid)
    assert termios.tcgetattr(terminal.slave)[:4] != terminal.before[:4]
    assert os.getsid(guard) == guard, "the terminal's signals would reach it"
    terminal.seen = b""
    terminal.child.kill()
    terminal.wait_for(SENTENCE)
    await_end_of(guard)
    assert terminal.ended() == -signal.SIGKILL
    tail = terminal.seen[-400:]
    for sequence in (ALT_SCREEN_OFF, CURSOR_ON, MOUSE_OFF, b"\x1b[?1000l", b"\x1b[?1006l", b"\x1b[?2004l", b"\x1b[<u"):
        assert sequence in tail
    assert tail.index(ALT_SCREEN_OFF) < tail.index(SENTENCE.encode())
    assert termios.tcgetattr(terminal.slave) == terminal.before


def test_a_kill_leaves_a_shell_alone_that_edits_its_line_already(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    (guard,) = children(terminal.child.pid)
    os.kill(guard, signal.SIGSTOP)
    terminal.child.kill()
    terminal.ended()
    shell = [*terminal.before]
    shell[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(terminal.slave, termios.TCSANOW, shell)
    os.kill(guard, signal.SIGCONT)
    terminal.wait_for(SENTENCE)
    await_end_of(guard)
    assert termios.tcgetattr(terminal.slave)[:4] == shell[:4]


def test_leaving_takes_the_guard_along(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    (guard,) = children(terminal.child.pid)
    terminal.type("q")
    assert terminal.ended() == 0
    assert not Path(f"/proc/{guard}").exists()
    assert SENTENCE.encode() not in terminal.seen
