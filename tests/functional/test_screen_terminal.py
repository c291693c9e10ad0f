"""The screen on a real (pseudo) terminal: how it ends, what it leaves behind, and that it sleeps during a block."""

from __future__ import annotations

import os
import signal
import termios
import time
from collections.abc import Iterator

import pytest

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
