"""The workshop on a pseudo-terminal of its own, with made-up measurements."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PROGRAM = """
import sys, threading
from jitter_workshop import cli
from jitter_workshop.flow.chapters.workshop import Workshop
from tests.fakes import open_workshop
workshop = open_workshop(gate=threading.Event(), look_every_s=3600)
Workshop.open = lambda *_, **__: workshop
sys.exit(cli.main([]))
"""
DEADLINE_S = 20.0
ESCAPE = re.compile(r"\x1b\[[0-9;?<>$=]*[A-Za-z]")
ALT_SCREEN_OFF, CURSOR_ON, MOUSE_OFF = b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l"


class Terminal:
    """The workshop in a pseudo-terminal of its own. ``program``: Python that shows it, with its ``arguments``."""

    def __init__(self, program: str = PROGRAM, arguments: Sequence[str] = (), **environment: str) -> None:
        self.seen = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        environ = {**os.environ, "TERM": "xterm-256color", **environment}
        root = Path(__file__).parents[1]
        self.child = subprocess.Popen(
            [sys.executable, "-c", program, *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=root, env=environ,
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

    def close(self) -> None:
        """End what is left."""
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(DEADLINE_S)
        for descriptor in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def switches(self) -> dict[str, str]:
        """Context switches of every thread."""
        found = {}
        for task in Path(f"/proc/{self.child.pid}/task").iterdir():
            status = (task / "status").read_text().splitlines()
            found[task.name] = " ".join(line for line in status if "ctxt_switches" in line)
        return found


def start_a_run(terminal: Terminal) -> None:
    terminal.wait_for("PATH FOR THIS HOST")
    terminal.type("m")
    terminal.wait_for("block 2 of 4")


@contextlib.contextmanager
def workshop_terminal(program: str = PROGRAM, *arguments: str) -> Iterator[Terminal]:
    """A terminal with the workshop's screen in it, which is ended if it does not end by itself."""
    made = Terminal(program, arguments)
    try:
        yield made
    finally:
        made.close()
