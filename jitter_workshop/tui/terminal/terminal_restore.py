"""Restore the terminal if the workshop is killed (SIGKILL, out of memory).

A small process, the guard, reads from a pipe; only the workshop can write to this pipe. When the workshop ends
normally, it writes one byte, and the guard ends. If the pipe closes without that byte, the workshop was killed. The
guard then restores the terminal's screen, modes and attributes, and says what happened. The guard has its own terminal
session (setsid), so that signals from the terminal do not reach it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import termios
from collections.abc import Iterator

SERVED = "JITTER_WORKSHOP_SERVED"
"""The name of an environment variable that ``serve`` sets for a workshop in a browser."""
LEAVE = (
    "\x1b[?2026l"  # a frame that was cut in two is shown
    "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # the mouse
    "\x1b[?2004l\x1b[?1004l\x1b[?2048l"  # bracketed paste, focus events, size reports
    "\x1b[<u"  # the kitty keyboard
    "\x1b[?7h\x1b[?1049l\x1b[?25h\x1b[0m"  # line wrap, alternate screen, cursor, colours
)
SENTENCE = (
    "jitter-workshop was killed. The terminal works again, and finished runs are kept. Start the workshop to go on."
)

# Standard input is the pipe, 1 the terminal to write to, 2 the one whose attributes were saved. A shell may be back at
# its prompt and have set its own attributes: it edits with keyboard signals on, while the screen has them off. A
# terminal that takes no output (Ctrl-S, no reader) must not hold the guard for ever, hence the alarm.
_SOURCE = """\
# jitter-workshop: puts the terminal right if the workshop is killed
import os, signal, sys, termios
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
if not os.read(0, 1):
    signal.alarm(5)
    try:
        numbers = [int(n) for n in sys.argv[1].split(",")]
        if not termios.tcgetattr(2)[3] & termios.ISIG:
            termios.tcsetattr(2, termios.TCSANOW, [*numbers[:6], numbers[6:]])
        os.write(1, sys.argv[2].encode())
    except (OSError, termios.error):
        pass
"""
_FAREWELL_S = 2.0


def served() -> bool:
    """Return True if this workshop is shown in a browser. In a browser, sudo cannot ask for a password."""
    return os.environ.get(SERVED) == "1"


@contextlib.contextmanager
def guarded_terminal() -> Iterator[None]:
    """Run a guard for the terminal during the ``with`` block. There is no guard in a browser, without a terminal, or if
    no process can be started."""
    guard = None if served() else _start()
    try:
        yield
    finally:
        if guard is not None:
            _farewell(guard)


def _start() -> subprocess.Popen[bytes] | None:
    """Start the guard process without waiting for it. Return None if it cannot be started."""
    stdin, stderr = sys.__stdin__, sys.__stderr__
    if stdin is None or stderr is None or not sys.executable:
        return None
    try:
        attributes = termios.tcgetattr(stdin.fileno())
        numbers = [*attributes[:6], *(c if isinstance(c, int) else ord(c) for c in attributes[6])]
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SOURCE, ",".join(map(str, numbers)), f"{LEAVE}\r\n{SENTENCE}\r\n"],
            stdin=subprocess.PIPE,
            stdout=stderr.fileno(),
            stderr=stdin.fileno(),
            cwd="/",
            start_new_session=True,
        )
    except (OSError, ValueError, termios.error):
        return None


def _farewell(guard: subprocess.Popen[bytes]) -> None:
    """Tell the guard that the workshop ends normally, and wait for the guard's end. Kill the guard after _FAREWELL_S
    seconds."""
    try:
        guard.communicate(b".", _FAREWELL_S)
    except subprocess.TimeoutExpired:
        guard.kill()
        guard.wait()
