"""Drive a page of ``serve`` like Textual's web driver, but without periodic wake-ups.

Textual's driver wakes up ten times a second, even while a block is measured. Textual's driver also continues after the
server has ended. This driver ends the app when the server ends. A run is then stopped, and temporary changes are
restored, as when a terminal is closed.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
from codecs import getincrementaldecoder
from functools import partial

from textual import constants
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers._byte_stream import ByteStream
from textual.drivers.web_driver import WebDriver

_ESCAPE_TIMEOUT_MS = 1000 * constants.ESCAPE_DELAY + 10
"""Milliseconds that an unfinished escape sequence may wait for its rest. After that time the Escape key alone is
reported."""


class PageDriver(WebDriver):
    """Draw a page in a browser: send the output to the server through one pipe, and read the user's input from
    another."""

    def __init__(
        self, app: App[object], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        self._write = partial(self._write_all)
        # The thread may sleep in a read when the workshop has ended, so nothing waits for it.
        self._key_thread = threading.Thread(target=self.run_input_thread, name="textual-input", daemon=True)

    def run_input_thread(self) -> None:
        """Read input from the server until the server ends."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")(errors="replace").decode
        packets = ByteStream()
        source = self._input_reader._fileno
        look = select.poll()
        look.register(source, select.POLLIN)
        timeout_ms: float | None = None
        try:
            while True:
                if look.poll(timeout_ms):
                    data = os.read(source, 4096)
                    if not data:
                        break
                    for kind, payload in packets.feed(data):
                        if kind == "D":
                            for message in parser.feed(decode(payload)):
                                self.process_message(message)
                        else:
                            self._on_meta(kind, payload)
                    # Look once more after the escape delay, then sleep: a timeout can only follow input.
                    timeout_ms = _ESCAPE_TIMEOUT_MS
                else:
                    timeout_ms = None
                for message in parser.tick():
                    self.process_message(message)
        finally:
            self._page_gone()

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        if packet_type == "quit":
            self._page_gone()
        else:
            super().on_meta(packet_type, payload)

    def _page_gone(self) -> None:
        app = self._app
        app.call_later(getattr(app, "terminal_gone", app.exit))

    def _write_all(self, data: bytes) -> int:
        """Write all of ``data``, even if a signal interrupts the write, and return its length. If the server has ended,
        the data is lost without an error."""
        left = memoryview(data)
        with contextlib.suppress(OSError):
            while left:
                left = left[os.write(self.fileno, left) :]
        return len(data)
