"""The screen on a real (pseudo) terminal: how it ends, what it leaves behind, and that it sleeps during a block."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = """
import sys, threading
from jitter_workshop import cli
from jitter_workshop.flow.workshop import Workshop
from tests.fakes import open_workshop
workshop = open_workshop(gate=threading.Event(), look_every_s=3600)
Workshop.open = lambda *_, **__: workshop
sys.exit(cli.main([]))
"""
DEADLINE_S = 20.0
QUIET_S = 0.35
"""Longer than three rounds of an input thread that looks around every 0.1 s."""
ESCAPE = re.compile(r"\x1b\[[0-9;?<>$=]*[A-Za-z]")
ALT_SCREEN_OFF, CURSOR_ON, MOUSE_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l"


class Terminal:
    """The workshop in a pseudo-terminal of its own."""

    def __init__(self, tmp_path: Path, **environment: str) -> None:
        self.seen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        environ = {**os.environ, "TERM": "xterm-256color", **environment}
        root = Path(__file__).parents[2]
        self.child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], stdin=slave, stdout=slave, stderr=slave, cwd=root, env=environ,
            start_new_session=True,
        )  # fmt: skip
        self.slave = slave

    def read(self, timeout_s: float = 0.1) -> bool:
        """Take what is there; False when nothing came in time."""
        if not select.select([self.master], [], [], timeout_s)[0]:
            return False
        with contextlib.suppress(OSError):
            self.seen += os.read(self.master, 65_536)
        return True

    def wait_for(self, text: str) -> None:
        limit = time.monotonic() + DEADLINE_S
        while text not in ESCAPE.sub("", self.seen.decode(errors="replace")):
            assert time.monotonic() < limit, f"{text!r} never came: {self.seen[-2000:]!r}"
            self.read()

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def ended(self) -> int:
        """The exit code; keeps reading, so that the end is not held up by a full terminal."""
        limit = time.monotonic() + DEADLINE_S
        while self.child.poll() is None:
            assert time.monotonic() < limit, "it does not end"
            self.read()
        while self.read(0):
            pass
        return self.child.returncode

    def switches(self) -> dict[str, str]:
        """Context switches of every thread."""
        found = {}
        for task in Path(f"/proc/{self.child.pid}/task").iterdir():
            status = (task / "status").read_text().splitlines()
            found[task.name] = " ".join(line for line in status if "ctxt_switches" in line)
        return found


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    if made.child.poll() is None:
        made.child.kill()
    made.child.wait(DEADLINE_S)
    for descriptor in (made.master, made.slave):
        with contextlib.suppress(OSError):
            os.close(descriptor)


def start_a_run(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.type("m")
    terminal.wait_for("block 2 of 4")


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
