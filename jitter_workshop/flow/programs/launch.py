"""Start the user's command in two steps, so that a trace can begin before its first instruction. The command is ended
in any case."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from jitter_workshop.errors import HostError
from jitter_workshop.model.text import NAME, clean

NOT_STARTED = "the command cannot be started"
PATIENCE_S = 5.0
"""Seconds that a command gets to end after a signal, before it is killed."""
_STANDARD = (signal.SIGPIPE, signal.SIGXFSZ)
"""Signals that Python ignores; a command expects their default action."""


class StartedCommand:
    """Hold a started process, which becomes the command when :meth:`release` is called. No instruction of the command
    runs before this call.

    The command has the input, environment, folder and terminal of this program. ``quiet``: its standard output goes to
    standard error.
    """

    def __init__(self, words: Sequence[str], *, quiet: bool = False) -> None:
        """Start the process. Raise HostError if that fails."""
        self._words = tuple(words)
        self._code: int | None = None
        told, self._go = os.pipe()
        self._failed, failing = os.pipe()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        try:
            self.pid = os.fork()
        except OSError as error:
            for file in (told, self._go, self._failed, failing):
                os.close(file)
            raise HostError(f"no process can be started: {error.strerror}") from error
        if self.pid == 0:
            os.close(self._go)
            _become(self._words, told, failing, quiet=quiet)
        os.close(told)
        os.close(failing)
        self._file = os.pidfd_open(self.pid)

    def release(self) -> None:
        """Let the command begin. Raise HostError if it cannot be started."""
        # A signal may raise after any step here: a file closed twice would keep end() from ending the command.
        go, self._go = self._go, -1
        with contextlib.suppress(BrokenPipeError):
            os.write(go, b"!")
        os.close(go)
        number = os.read(self._failed, 16)
        if number:
            self.wait(PATIENCE_S)
            why = os.strerror(int(number))
            raise HostError(f"{NOT_STARTED}: {why} ({clean(self._words[0], NAME)})")

    def wait(self, seconds: float) -> int | None:
        """Wait until the command has ended, for at most ``seconds``. Return its exit code, 128 + N after signal N, or
        None if the command still runs."""
        if self._code is None and select.select([self._file], [], [], max(seconds, 0.0))[0]:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            self._code = 128 - code if code < 0 else code
        return self._code

    def end(self, signum: int = signal.SIGTERM) -> None:
        """End the command if it still runs. Its children are not ended. Send the signal ``signum`` first, and SIGKILL
        if the command still runs after some seconds."""
        if self._go >= 0:
            go, self._go = self._go, -1
            os.close(go)  # a process that was never released ends by itself
            self.wait(PATIENCE_S)
        for number in (signum, signal.SIGKILL):
            if self.wait(0) is None:
                os.kill(self.pid, number)
                self.wait(PATIENCE_S)
        for file in (self._file, self._failed):
            os.close(file)


def _become(words: tuple[str, ...], told: int, failing: int, *, quiet: bool) -> NoReturn:
    """Turn this forked process into the command once a byte comes on the descriptor ``told``. Exit if ``told`` is
    closed without a byte. If the command cannot be started, write the errno to the descriptor ``failing``. Never return
    to the caller."""
    try:
        for signum in _STANDARD:
            signal.signal(signum, signal.SIG_DFL)
        for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(signum) is not signal.SIG_IGN:
                signal.signal(signum, signal.SIG_DFL)
        if quiet:
            os.dup2(2, 1)
        if os.read(told, 1):
            os.execvp(words[0], words)
    except OSError as error:
        os.write(failing, str(error.errno).encode())
    finally:
        os._exit(127)
