"""``serve`` as a user starts it, and who asks it for what."""

from __future__ import annotations

import contextlib
import http.client
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

WAIT_S = 60


class Serving:
    """``address``: what it printed; ``token`` and ``port``: of it. ``log``: what it says to who serves."""

    def __init__(self, log: Path, *words: str) -> None:
        self.log = log
        homes = {f"XDG_{name}_HOME": str(log.parent / f"xdg-{name.lower()}") for name in ("STATE", "CONFIG", "CACHE")}
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jitter_workshop", "serve", "--port", "0", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=os.environ | homes,
            )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], WAIT_S)
        assert ready, "nothing was printed"
        self.address = self.process.stdout.readline().decode().strip()
        parts = urlsplit(self.address)
        assert parts.port, log.read_text()
        self.port = parts.port
        self.token = parse_qs(parts.query)["token"][0]
        self.origin = f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of one request; ``Host_``: another host than the right one."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            asked.putrequest("GET", path, skip_host="Host_" in headers)
            for name, value in headers.items():
                asked.putheader(name.rstrip("_").replace("_", "-"), value)
            asked.endheaders()
            answer = asked.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read().decode()
        finally:
            asked.close()

    def workshops(self) -> list[int]:
        """Process ids of the sessions' workshops."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(pid) for pid in found]

    def comes_to(self, count: int) -> bool:
        """Wait until so many workshops run: one that begins may stand beside one that ends."""
        ends = time.monotonic() + WAIT_S
        while len(self.workshops()) != count and time.monotonic() < ends:
            time.sleep(0.02)
        return len(self.workshops()) == count

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(WAIT_S)


def gone(pids: list[int]) -> bool:
    """Wait for the end of these processes."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            watched = os.pidfd_open(pid)
            try:
                if not select.select([watched], [], [], WAIT_S)[0]:
                    return False
            finally:
                os.close(watched)
    return True


@contextlib.contextmanager
def serving(log: Path, *words: str) -> Iterator[Serving]:
    """Started, and ended whatever a test did to it."""
    server = Serving(log, *words)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(WAIT_S)
        assert server.process.stdout is not None
        server.process.stdout.close()
