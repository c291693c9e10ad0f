"""Drive a terminal like Textual's Linux driver, but without periodic wake-ups of the input thread.

Textual's driver wakes up ten times a second, even while a block is measured. Each wake-up is a context switch that
could happen on a measured CPU. The input thread of this driver sleeps until there is input; when the app ends, a pipe
wakes the thread.

When the terminal is closed, this driver ends the app. Textual's driver would read end-of-file in an endless loop.
Before Ctrl-Z (SIGTSTP) stops this process, this driver tells a run that is being made to stop its child processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import selectors
import signal
import sys
import threading
import weakref
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable
from typing import TextIO

from textual import constants
from textual._parser import ParseError
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver

_ESCAPE_TIMEOUT_S = constants.ESCAPE_DELAY + 0.01
"""Seconds that an unfinished escape sequence may wait for its rest. After that time the Escape key alone is
reported."""


class _Output(io.TextIOBase):
    """Wrap the terminal's stream, and call functions after all queued output has been written.

    Textual's output thread flushes the stream only when its queue is empty. So after a flush, all earlier output has
    been written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.callbacks: deque[Callable[[], object]] = deque()

    def write(self, text: str) -> int:
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()
        while self.callbacks:
            self.callbacks.popleft()()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


class QuietDriver(LinuxDriver):
    """Drive the terminal without periodic wake-ups."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        # The pipe lives as long as the driver: a stopped program closes its terminal, goes on, and needs the pipe
        # again.
        weakref.finalize(self, os.close, self._wake_read)
        weakref.finalize(self, os.close, self._wake_write)
        self._leaving = threading.Event()
        self._output = _Output(self._file or sys.stderr)
        self._file = self._output  # type: ignore[assignment]  # it is used as a stream only

    def when_written(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` on the output thread, once everything written so far has been sent to the terminal."""
        self._output.callbacks.append(callback)
        self.write("")

    def disable_input(self) -> None:
        """Stop the input thread (at exit, and before the terminal is given to a shell)."""
        self._leaving.set()
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"x")
        super().disable_input()
        self._leaving.clear()
        with contextlib.suppress(OSError):
            while os.read(self._wake_read, 64):
                pass

    def write(self, data: str) -> None:
        """Write ``data`` to the terminal, or drop it if the terminal is closed. Otherwise the output queue would
        become full and block the app.
        """
        if self._is_on:
            super().write(data)

    def close(self) -> None:
        if self._is_on:
            super().close()

    # -- stopping and going on -------------------------------------------------------------------------------------

    @property
    def _is_on(self) -> bool:
        writer = self._writer_thread
        return writer is not None and writer.is_alive()

    def start_application_mode(self) -> None:
        super().start_application_mode()  # type: ignore[no-untyped-call]
        # The handlers run on the loop, between two callbacks: a plain handler might interrupt a write and wait for its
        # lock for ever.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._sigtstp_application)
        loop.add_signal_handler(signal.SIGCONT, self._sigcont_application)

    def _sigtstp_application(self, *_: object) -> None:
        """Restore the plain terminal, then stop this process. During a run, the runner first stops its child
        processes."""
        suspend_run: Callable[[], None] | None = getattr(self._app, "suspend_run", None)
        if suspend_run is None or not self._auto_restart:
            super()._sigtstp_application()
            return
        if self._is_on:
            self.suspend_application_mode()
            self._must_signal_resume = True
        suspend_run()

    def _sigcont_application(self, *_: object) -> None:
        """Enter the full screen again after SIGCONT. Do nothing if the app is leaving.

        After SIGSTOP the full screen is still on, although a shell has used the terminal. In this case, leave the full
        screen first.
        """
        if getattr(self._app, "leaving", False):
            return
        if self._auto_restart and self._is_on:
            self.suspend_application_mode()
        super()._sigcont_application()
        going_on: Callable[[], None] | None = getattr(self._app, "going_on", None)
        if going_on is not None:
            going_on()

    def run_input_thread(self) -> None:
        """Wait for input and dispatch its events. Return after ``disable_input``, or when the terminal is closed."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        with selectors.PollSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._wake_read, selectors.EVENT_READ)
            timeout: float | None = None
            while not self._leaving.is_set():
                ready = {key.fd for key, _ in selector.select(timeout)}
                timeout = None
                if self.fileno in ready:
                    data = b""
                    with contextlib.suppress(OSError):
                        data = os.read(self.fileno, 4096)
                    if not data:
                        self._terminal_gone()
                        break
                    for message in parser.feed(decode(data)):
                        self.process_message(message)
                    # Look once more after the escape delay, then sleep: a timeout can only follow input.
                    timeout = _ESCAPE_TIMEOUT_S
                for message in parser.tick():
                    self.process_message(message)
        with contextlib.suppress(EOFError, ParseError):
            for _ in parser.feed(""):
                pass

    def _terminal_gone(self) -> None:
        """End the app because the terminal was closed. SIGHUP is not enough: it may not reach a process in another
        session."""
        app = self._app
        app.call_later(getattr(app, "terminal_gone", app.exit))
