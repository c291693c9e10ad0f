"""A real browser without a window, driven through the pipe that Chromium has for it; no other program is needed."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_WAIT_S = 60.0
_READ_END, _WRITE_END = 3, 4
"""The numbers of the descriptors from which Chromium reads and to which it writes."""


def installed() -> str | None:
    """The browser's program, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. ``switches``: more of Chromium's own. ``events``: all that the browser told meanwhile, by method."""

    def __init__(self, *switches: str) -> None:
        program = installed()
        assert program is not None
        self._home = tempfile.mkdtemp(prefix="browser-")
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # Out of the way of the numbers that they are to have in the browser.
        high = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_read, to_write)]

        def arrange() -> None:
            os.dup2(high[0], _READ_END)
            os.dup2(high[1], _WRITE_END)

        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--remote-debugging-pipe",
                f"--user-data-dir={self._home}",
                *switches,
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=arrange,
            pass_fds=(_READ_END, _WRITE_END),
            start_new_session=True,
        )
        for end in (to_read, to_write, *high):
            os.close(end)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(one for one in target if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self._session = None
            self.call("Browser.close")
        for end in (self._read, self._write):
            os.close(end)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
        shutil.rmtree(self._home, ignore_errors=True)

    def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """A command of the DevTools protocol, and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda one: one.get("id") == self._number)
        assert "error" not in answer, answer
        return dict(answer["result"])

    def open(self, address: str) -> None:
        """Load a page, to its end."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        if not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._until(lambda one: one.get("method") == "Page.loadEventFired")

    def until(self, method: str, fits: Callable[[dict[str, Any]], bool] = lambda _: True) -> dict[str, Any]:
        """The first event of this name that fits, told already or still to come."""
        for name, params in self.events:
            if name == method and fits(params):
                return params
        return self._until(lambda one: one.get("method") == method and fits(one["params"]))["params"]

    def press(self, key: str) -> None:
        """A key that writes a character."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def ask(self, expression: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def emulate(self, media: str = "screen", scheme: str = "light") -> None:
        """The page as on paper, or for a reader who likes it dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def size(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def painted(self) -> bytes:
        """Return what is seen now, as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def picture(self, path: Path) -> None:
        path.write_bytes(self.painted())

    def pdf(self) -> bytes:
        """The page as it would be printed."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def requests(self) -> list[str]:
        """The addresses that the page has asked for since it was opened, itself included."""
        return [e["request"]["url"] for method, e in self.events if method == "Network.requestWillBeSent"]

    def complaints(self) -> list[str]:
        """Return what a console would show."""
        wanted = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        return [json.dumps(event) for method, event in self.events if method in wanted]

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + _WAIT_S
        while True:
            while b"\0" in self._buffer:
                raw, _, self._buffer = self._buffer.partition(b"\0")
                message: dict[str, Any] = json.loads(raw)
                if "method" in message:
                    self.events.append((message["method"], message.get("params", {})))
                if wanted(message):
                    return message
            ready, _, _ = select.select([self._read], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            part = os.read(self._read, 1 << 20)
            assert part, "the browser ended"
            self._buffer += part
