"""The real program on a pseudo-terminal, driven by keys."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("jitter-workshop"))
_ESCAPE = re.compile(rb"\x1b\[[0-9;?<>$=]*[A-Za-z]")


class Terminal:
    """``jitter-workshop ARGUMENTS`` (or another ``command``) in a terminal of its own; state, settings and cache below
    ``state``."""

    def __init__(
        self, state: Path, *arguments: str, columns: int = 80, rows: int = 24, command: tuple[str, ...] = (PROGRAM,)
    ) -> None:
        self.started = time.monotonic()
        self.seen = b""
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            here = dict.fromkeys(("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(state))
            os.environ.update(TERM="xterm-256color", **here)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execv(command[0], [*command, *arguments])

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self.master], [], [], timeout_s)[0]:
            return False
        self.seen += os.read(self.master, 65536)
        return True

    def wait_for(self, text: str, timeout_s: float = 60.0) -> float:
        """Seconds since the start when ``text`` came; what came up to it is forgotten. Raise RuntimeError after
        ``timeout_s``."""
        limit = time.monotonic() + timeout_s
        while True:
            _, found, rest = _ESCAPE.sub(b"", self.seen).partition(text.encode())
            if found:
                self.seen = rest
                return time.monotonic() - self.started
            if not self._read(max(0.0, limit - time.monotonic())):
                raise RuntimeError(f"{text!r} did not come within {timeout_s} s: {self.seen[-300:]!r}")

    def type(self, keys: str) -> None:
        self.seen = b""
        os.write(self.master, keys.encode())

    def end(self) -> None:
        """End it with SIGTERM, and by force after 5 s."""
        os.kill(self.pid, signal.SIGTERM)
        limit = time.monotonic() + 5
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            with contextlib.suppress(OSError):
                self._read(0.05)
            if time.monotonic() > limit:
                os.kill(self.pid, signal.SIGKILL)
        os.close(self.master)
