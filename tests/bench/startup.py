"""How long a person waits: ``--help``, ``sessions``, and the first frame of the screen."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import sys
import termios
import time
from pathlib import Path

from tests.bench.figures import Figure, keep, pyperf_command, spread

PROGRAM = str(Path(sys.executable).with_name("jitter-workshop"))
FIRST_FRAME = b"PATH FOR THIS HOST"


def first_frame_s(state: Path) -> float:
    """Seconds from fork to the home screen's list in a fresh 80×24 terminal."""
    started = time.monotonic()
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(
            TERM="xterm-256color", XDG_STATE_HOME=str(state), XDG_CONFIG_HOME=str(state), TEXTUAL_ANIMATIONS="none"
        )
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execv(PROGRAM, [PROGRAM])
    seen = b""
    try:
        while FIRST_FRAME not in seen:
            if not select.select([master], [], [], 20)[0]:
                raise RuntimeError(f"no first frame within 20 s; seen: {seen[-300:]!r}")
            seen += os.read(master, 65536)
        return time.monotonic() - started
    finally:
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + 5
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if select.select([master], [], [], 0.05)[0]:
                try:
                    os.read(master, 65536)
                except OSError:
                    time.sleep(0.01)
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
        os.close(master)


def run(folder: Path) -> list[Figure]:
    figures = []
    for verb in ("--help", "sessions"):
        values = pyperf_command(folder, verb.strip("-"), [PROGRAM, verb])
        figures.append(Figure(f"jitter-workshop {verb}", statistics.median(values), "s", 0.1, spread(values)))
    state = folder / "state"
    frames = [first_frame_s(state) for _ in range(11)][1:]
    keep(folder, "first_frame", frames)
    figures.append(Figure("first frame, 80×24", statistics.median(frames), "s", 0.5, spread(frames)))
    return figures
