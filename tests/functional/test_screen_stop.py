"""Ctrl-Z and SIGTSTP on the screen, as a shell sees them: the terminal is given back, and taken again at SIGCONT."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from tests.terminal import ALT_SCREEN_OFF, CURSOR_ON, DEADLINE_S, Terminal, start_a_run, workshop_terminal

ALT_SCREEN_ON = b"\x1b[?1049h"


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    with workshop_terminal() as made:
        yield made


def wait_until_stopped(terminal: Terminal) -> None:
    """As a shell waits for its job."""
    limit = time.monotonic() + DEADLINE_S
    while True:
        pid, status = os.waitpid(terminal.child.pid, os.WNOHANG | os.WUNTRACED)
        if pid:
            assert os.WIFSTOPPED(status), status
            return
        assert time.monotonic() < limit, f"it does not stop: {terminal.seen[-1000:]!r}"
        terminal.read(0.02)


def given_back(terminal: Terminal) -> None:
    while terminal.read(0):
        pass
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]
    assert ALT_SCREEN_OFF in terminal.seen[-400:]
    assert CURSOR_ON in terminal.seen[-400:]


def go_on(terminal: Terminal) -> None:
    terminal.seen = b""
    terminal.child.send_signal(signal.SIGCONT)


def stop(terminal: Terminal, how: str) -> None:
    if how == "Ctrl-Z":
        terminal.type("\x1a")
    else:
        terminal.child.send_signal(signal.SIGTSTP)


@pytest.mark.parametrize("how", ["Ctrl-Z", "SIGTSTP"])
def test_a_stop_gives_the_terminal_back_and_the_screen_returns(terminal: Terminal, how: str) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    for _ in range(2):
        stop(terminal, how)
        wait_until_stopped(terminal)
        given_back(terminal)
        go_on(terminal)
        terminal.wait_for("PATH FOR THIS HOST")
        assert ALT_SCREEN_ON in terminal.seen
    terminal.type("q")
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]
    assert b"Traceback" not in terminal.seen


@pytest.mark.parametrize("how", ["Ctrl-Z", "SIGTSTP"])
def test_a_run_stops_with_the_screen_and_goes_on_with_it(terminal: Terminal, how: str) -> None:
    start_a_run(terminal)
    stop(terminal, how)
    wait_until_stopped(terminal)
    given_back(terminal)
    go_on(terminal)
    terminal.wait_for("was suspended and goes on")
    terminal.type("\x1b")
    terminal.wait_for("Stopped after 2 blocks")
    terminal.type("\x11")
    assert terminal.ended() == 0
    assert b"Traceback" not in terminal.seen


def test_a_stop_that_cannot_be_prepared_for_leaves_a_screen_that_works(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.child.send_signal(signal.SIGSTOP)
    wait_until_stopped(terminal)
    # A shell sets its own modes for its prompt.
    termios.tcsetattr(terminal.slave, termios.TCSANOW, terminal.before)
    go_on(terminal)
    terminal.wait_for("PATH FOR THIS HOST")
    # A key that arrives in the moment in which the modes are set again is flushed with them; a person presses it again.
    limit = time.monotonic() + DEADLINE_S
    while terminal.child.poll() is None and time.monotonic() < limit:
        terminal.type("q")
        terminal.read(0.3)
    assert terminal.ended() == 0
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]


def test_a_program_told_to_end_while_it_is_stopped_ends_when_it_goes_on(terminal: Terminal) -> None:
    start_a_run(terminal)
    stop(terminal, "Ctrl-Z")
    wait_until_stopped(terminal)
    terminal.child.send_signal(signal.SIGTERM)
    go_on(terminal)
    assert terminal.ended() == 143
    assert termios.tcgetattr(terminal.slave)[:4] == terminal.before[:4]


def test_a_thread_that_stops_the_process_stops_with_it() -> None:
    program = (
        "import os, threading\n"
        "from jitter_workshop.bench.cancel import stop_this_process\n"
        "def work():\n    stop_this_process()\n    os.write(1, b'on')\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert os.WIFSTOPPED(os.waitpid(child.pid, os.WUNTRACED)[1])
        assert not select.select([child.stdout], [], [], 0)[0]
        child.send_signal(signal.SIGCONT)
        assert child.communicate(timeout=DEADLINE_S)[0] == b"on"
