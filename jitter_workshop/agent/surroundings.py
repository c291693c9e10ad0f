"""Leaving the surroundings of whoever started a service."""

from __future__ import annotations

import contextlib
import os
import signal
import sys


def leave(first_to_close: int) -> None:
    """No compiled files are written, no descriptor from ``first_to_close`` on is open, the folder is ``/``, new files
    are 0644, a terminal's signals are ignored."""
    sys.dont_write_bytecode = True
    os.umask(0o022)
    os.chdir("/")
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208
    os.closerange(first_to_close, highest + 1)
    with contextlib.suppress(PermissionError):  # a process group's leader already, as under sudo
        os.setsid()  # a terminal's signals are not for us
    for name in ("SIGINT", "SIGHUP", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
