"""Serve the board on a connection, as an unprivileged process of the user jitterlab.

It takes what members post, shows instructors all posts, and each member their own. Messages are one JSON object a line,
as with the agent (``agent/protocol.py``). The caller's user id comes from the kernel. Verbs:

``hello``   → protocol, instructor (whether the caller is one)
``post``    ``posted`` (a Posted) → {}
``mine``    → a Board with the caller's own row
``board``   → a Board with all rows; instructors only
``forget``  ``user`` (a name, null: all) → ``forgotten``; a member may forget themselves, instructors any member
``say``     ``banner`` (chapter, step, text; null: nothing) → {}; instructors only
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop.agent import protocol
from jitter_workshop.agent.caller import Member
from jitter_workshop.agent.line_connection import Gone, Lines
from jitter_workshop.agent.turns.state_file import published
from jitter_workshop.classroom.banner import publish
from jitter_workshop.classroom.store import BoardStore, stamp
from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.model.board import MAX_SAID, Banner, Board, Posted
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.text import clean

PATIENCE_S = 30.0
"""Idle timeout in seconds. Callers send a request and leave, so a silent connection is ended."""
LONGEST_S = 120.0
"""Longest time in seconds of a connection, also if the caller never stops sending."""


class Service:
    """Serve one connection. ``folder``: the board's own."""

    def __init__(self, who: Member, folder: Path, source: int, sink: int) -> None:
        self._who = who
        self._folder = folder
        self._lines = Lines(source, sink)
        self._ends = time.monotonic() + LONGEST_S
        self._verbs: dict[str, Callable[[dict[str, Any]], Any]] = {
            "hello": self._hello,
            "post": self._post,
            "mine": self._mine,
            "board": self._board,
            "forget": self._forget,
            "say": self._say,
        }

    def serve(self) -> None:
        """Answer until the caller leaves, falls silent, or has used up the time."""
        try:
            while time.monotonic() < self._ends:
                line = self._lines.next(lambda: PATIENCE_S, None)
                if line is None:
                    break
                self._lines.send(self._answer(line), PATIENCE_S)
        except Gone:
            pass
        finally:
            self._lines.close()

    def _answer(self, line: bytes) -> bytes:
        request_id: Any = None
        try:
            request = protocol.parse_request(line)
            request_id = request.get("id")
            known = self._verbs.get(request["verb"])
            if known is None:
                raise UsageError(f"there is no verb '{clean(request['verb'], 40)}'")
            return protocol.answer(request_id, known(request))
        except WorkshopError as error:
            return protocol.failure(request_id, error)
        except Exception as error:
            words = f"a mistake in the board: {type(error).__name__}: {clean(error, 200)}"
            return protocol.failure(request_id, HostError(words, "please report it"))

    def _hello(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"protocol": protocol.PROTOCOL, "instructor": self._who.instructor}

    def _post(self, request: dict[str, Any]) -> dict[str, Any]:
        posted = _as(Posted, request.get("posted"))
        with BoardStore(self._folder) as store:
            store.post(self._who.uid, self._who.user, posted, time.time())
        return {}

    def _mine(self, request: dict[str, Any]) -> Board:
        with BoardStore(self._folder) as store:
            return store.board(socket.gethostname(), time.time(), only=self._who.uid, turns=published())

    def _board(self, request: dict[str, Any]) -> Board:
        self._instructs("see the board", "'jitter-workshop class results' shows what you posted yourself")
        with BoardStore(self._folder) as store:
            return store.board(socket.gethostname(), time.time(), turns=published())

    def _forget(self, request: dict[str, Any]) -> dict[str, Any]:
        user = protocol.text(request, "user", 64) if request.get("user") is not None else None
        if user != self._who.user:
            self._instructs("forget others")
        with BoardStore(self._folder) as store:
            return {"forgotten": store.forget(user)}

    def _say(self, request: dict[str, Any]) -> dict[str, Any]:
        self._instructs("set the banner")
        banner = None
        if request.get("banner") is not None:
            asked = request["banner"]
            if not isinstance(asked, dict):
                raise UsageError("'banner' must be an object, or null")
            banner = _as(Banner, {**asked, "by": self._who.user, "at": stamp(time.time())})
            words = {name: clean(getattr(banner, name), MAX_SAID) for name in ("chapter", "step", "text")}
            banner = replace(banner, **words)
        with BoardStore(self._folder) as store:
            store.say(banner)
        publish(self._folder, banner)
        return {}

    def _instructs(self, what: str, advice: str = "") -> None:
        if not self._who.instructor:
            raise HostError(f"only an instructor may {what}", advice)


def serve(folder: Path, who: Member) -> None:
    """Serve one connection on descriptors 0 and 1. ``folder``: the board's own."""
    os.umask(0o077)
    Service(who, folder, 0, 1).serve()


def _as(cls: type[Any], value: Any) -> Any:
    try:
        return from_plain(cls, value)
    except (CodecError, RecursionError) as error:
        raise UsageError(f"not a valid {cls.__name__}: {clean(error, 160)}") from error
