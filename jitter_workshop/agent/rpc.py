"""Send one request to a service, and read its one answer (``protocol``): the caller's side."""

from __future__ import annotations

import json
import os
import select
import threading
import time
from typing import Any

from jitter_workshop.agent.transport import Link
from jitter_workshop.errors import HostError, UsageError, WaitStopped
from jitter_workshop.model.text import clean


class Broken(Exception):
    """Report that the other side has ended, is silent, or sends what is not understood."""


class Late(Broken):
    """Report that the other side has not answered in time."""


class Conversation:
    """Send requests, from one thread at a time; other threads may call :meth:`write` meanwhile."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self._id = 0
        self._buffer = b""
        self._talking = threading.Lock()
        self._closed = False

    def ask(self, verb: str, limit_s: float, stop: int | None = None, **fields: Any) -> dict[str, Any]:
        """Send a request, and return the answer.

        Raises HostError or UsageError as the other side says, Broken if it does not answer, Late if it does not answer
        within ``limit_s``, WaitStopped when the descriptor ``stop`` becomes readable.
        """
        self._id += 1
        ends = time.monotonic() + limit_s
        try:
            self.write(json.dumps({"id": self._id, "verb": verb, **fields}).encode() + b"\n")
            while True:
                reply = json.loads(self._line(ends, stop))
                if reply.get("id") in (self._id, None):
                    break
        except TimeoutError as error:
            raise Late from error
        except (OSError, EOFError, ValueError, AttributeError) as error:
            raise Broken from error
        if "error" in reply:
            said = reply["error"]
            kind = UsageError if said.get("kind") == "UsageError" else HostError
            raise kind(clean(said.get("message"), 1000), clean(said.get("advice"), 500))
        answer = reply.get("ok")
        return answer if isinstance(answer, dict) else {}

    def write(self, data: bytes) -> None:
        """Write all bytes. Raises OSError, also after :meth:`close`."""
        with self._talking:
            if self._closed:
                raise BrokenPipeError("this conversation is over")
            view = memoryview(data)
            while view:
                view = view[os.write(self.link.sink, view) :]

    def close(self, wait_s: float) -> None:
        """Close the link, and wait up to ``wait_s`` for the end of the other side.

        No thread writes from now on: the number of the descriptor may already belong to another file, which a heartbeat
        would damage.
        """
        with self._talking:
            self._closed = True
        self.link.close(wait_s)

    def _line(self, ends: float, stop: int | None) -> bytes:
        """Return the next line. Raises EOFError at the end, TimeoutError (an OSError) after ``ends``, WaitStopped."""
        also = [stop] if stop is not None else []
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self.link.source, *also], [], [], max(ends - time.monotonic(), 0.0))
            if self.link.source not in ready:
                raise WaitStopped("stopped while waiting for an answer") if ready else TimeoutError("no answer")
            more = os.read(self.link.source, 65_536)
            if not more:
                raise EOFError
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line
