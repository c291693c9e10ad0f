"""Serve the board on a connection, in an unprivileged process of the user jitterlab.

The service stores members' posts, shows instructors all posts, and shows each member their own. Each message is a line
with one JSON object, as for the agent (``agent/protocol.py``). The caller's user id comes from the kernel. Verbs:

``hello``   → protocol, instructor (whether the caller is one)
``post``    ``posted`` (a Posted) → {}
``mine``    → a Board with the caller's own row
``board``   → a Board with all rows; instructors only
``forget``  ``user`` (a name, null: all) → ``forgotten``; only an instructor may delete others' data
``say``     ``banner`` (chapter, step, text; null: nothing) → {}; instructors only
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop import paths
from jitter_workshop.agent import caller, protocol
from jitter_workshop.agent.line_connection import Gone, LineConnection
from jitter_workshop.agent.policy import Member, keep_to_housekeeping
from jitter_workshop.agent.service import daemon
from jitter_workshop.agent.service.listener import inherited, listen_on, take_place
from jitter_workshop.agent.turns.state_file import published
from jitter_workshop.classroom.store import BoardStore, publish_banner, utc_text
from jitter_workshop.errors import HostError, UsageError, reason
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.board import MAX_SAID, Banner, Board, Posted
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.text import REASON, USER, clean

PATIENCE_S = 30.0
"""Idle timeout in seconds. Callers send a request and leave, so the service ends a silent connection."""
LONGEST_S = 120.0
"""Longest duration of a connection in seconds, even if the caller never stops sending."""


class Service:
    """Serve one connection. ``folder``: the board's folder."""

    def __init__(self, who: Member, folder: Path, source: int, sink: int) -> None:
        self._who = who
        self._folder = folder
        self._lines = LineConnection(source, sink)
        self._ends = time.monotonic() + LONGEST_S
        self._verbs: dict[str, protocol.RequestHandler] = {
            "hello": self._hello,
            "post": self._post,
            "mine": self._mine,
            "board": self._board,
            "forget": self._forget,
            "say": self._say,
        }

    def serve(self) -> None:
        """Answer requests until the caller leaves, is silent for too long, or has used up the time of a connection."""
        try:
            while time.monotonic() < self._ends:
                line = self._lines.next(lambda: PATIENCE_S, None)
                if line is None:
                    break
                self._lines.send(protocol.answer_request(line, self._verbs, "board") or b"", PATIENCE_S)
        except Gone:
            pass
        finally:
            self._lines.close()

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
        self._instructs("see the board", "'jitter-workshop class results' shows your own results")
        with BoardStore(self._folder) as store:
            return store.board(socket.gethostname(), time.time(), turns=published())

    def _forget(self, request: dict[str, Any]) -> dict[str, Any]:
        user = protocol.text(request, "user", USER) if request.get("user") is not None else None
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
            banner = _as(Banner, {**asked, "by": self._who.user, "at": utc_text(time.time())})
            words = {name: clean(getattr(banner, name), MAX_SAID) for name in ("chapter", "step", "text")}
            banner = replace(banner, **words)
        with BoardStore(self._folder) as store:
            store.say(banner)
        publish_banner(self._folder, banner)
        return {}

    def _instructs(self, what: str, advice: str = "") -> None:
        if not self._who.instructor:
            raise HostError(f"only an instructor may {what}", advice)


def serve_board_socket() -> None:
    """Serve the socket that systemd passed, until SIGTERM. Raise HostError if systemd did not pass exactly
    one socket.
    """
    descriptor = inherited(os.environ)
    os.environ.clear()
    listen_on(descriptor, lambda: serve_caller(counted=True))


def serve_caller(counted: bool = False) -> None:
    """Serve the caller on descriptors 0 and 1, with the user id that the kernel reports. Raise WorkshopError if the
    connection cannot begin.

    ``counted``: True if the listener has already applied the limit on this user's connections.
    """
    with daemon.refusing():
        described = caller.read_class()
        if described is None:
            raise HostError(f"{paths.CLASS_FILE} is missing: this is not a class host", "ask the instructor")
        uid = caller.caller(0, os.environ)
        who = caller.member(uid, described)
        os.environ.clear()
        keep_to_housekeeping(HostRoot(), described)
        if uid and not counted:
            _like_any_other()
            take_place(_board_folder(), uid)
    serve_board_connection(Path(paths.BOARD_DIR), who)


def _like_any_other() -> None:
    """Raise HostError if this process has a low priority or a real-time policy.

    Low means below the priority of an ordinary process. This process inherits its caller's priority, and has no right
    to raise it (sched(7)). With a low priority, this process could hold the database's lock and get no CPU time. All
    other callers would then wait.
    """
    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    if policy != os.SCHED_OTHER or os.getpriority(os.PRIO_PROCESS, 0) > 0:
        raise HostError("the board must not run at a low priority", "start it without nice or chrt")


def _board_folder() -> int:
    try:
        return os.open(paths.BOARD_DIR, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"{paths.BOARD_DIR} cannot be used: {reason(error)}", "tell the instructor") from error


def serve_board_connection(folder: Path, who: Member) -> None:
    """Serve one connection on descriptors 0 and 1. ``folder``: the board's folder."""
    os.umask(0o077)
    Service(who, folder, 0, 1).serve()


def _as(cls: type[Any], value: Any) -> Any:
    try:
        return from_plain(cls, value)
    except (CodecError, RecursionError) as error:
        raise UsageError(f"not a valid {cls.__name__}: {clean(error, REASON)}") from error
