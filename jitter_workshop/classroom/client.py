"""A member's side of the board: short connections with its service."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from jitter_workshop import paths
from jitter_workshop.agent.rpc import Broken, Conversation
from jitter_workshop.agent.transport import Link, ProcessLink, SocketLink, need_group
from jitter_workshop.errors import HostError
from jitter_workshop.model.board import Banner, Board, Posted
from jitter_workshop.model.classfile import GROUP
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.paths import RUN_DIR

SOCKET = f"{RUN_DIR}/board.sock"
LIMIT_S = 30.0
"""So long the service may take; it waits for other writers itself."""


def board_command() -> tuple[str, ...]:
    """The service's command line, as a rule in sudoers has to name it."""
    interpreter = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    return (interpreter, "-I", "-S", "-B", str(Path(__file__).resolve().with_name("__main__.py")))


def connect(stop: int | None = None) -> BoardClient:
    """The board of this class host. ``stop``: a descriptor that ends the waiting for an answer. Raises HostError."""
    if Path(SOCKET).is_socket():
        return BoardClient(SocketLink(SOCKET, "board"), stop)
    if not Path(paths.CLASS_FILE).exists():
        raise HostError("this is no class host", "'sudo jitter-workshop class init' makes it one")
    need_group()
    sudo = shutil.which("sudo")
    if sudo is None:
        raise HostError("the board's service does not run, and sudo is not here", "'jitter-workshop class check'")
    return started((sudo, "-n", "-u", GROUP, "--", *board_command()), stop)


def started(command: Sequence[str], stop: int | None = None) -> BoardClient:
    """The board's service, started for this connection. Raises HostError."""
    try:
        return BoardClient(ProcessLink(command, own_session=True), stop)
    except OSError as error:
        raise HostError(f"the board's service cannot be started: {error.strerror}") from error


class BoardClient:
    """One connection. What is asked raises HostError or UsageError, as the service says, and WaitStopped."""

    def __init__(self, link: Link, stop: int | None = None) -> None:
        self._talk = Conversation(link)
        self._stop = stop

    def __enter__(self) -> BoardClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def post(self, posted: Posted) -> None:
        """Keep what this member did, instead of what they posted before."""
        self._ask("post", posted=to_plain(posted))

    def mine(self) -> Board:
        """The board with this member's own row."""
        return self._board("mine")

    def board(self) -> Board:
        """The board with all rows, for instructors."""
        return self._board("board")

    def forget(self, user: str | None) -> int:
        """Forget a member, None: everybody. How many were forgotten."""
        return int(self._ask("forget", user=user).get("forgotten", 0))

    def say(self, banner: Banner | None) -> None:
        """Show this to everybody, None: nothing; for instructors."""
        self._ask("say", banner=to_plain(banner) if banner is not None else None)

    @property
    def instructs(self) -> bool:
        """Whether the service takes this caller for an instructor."""
        return self._ask("hello").get("instructor") is True

    def close(self) -> None:
        self._talk.link.close(1.0)

    def _board(self, verb: str) -> Board:
        try:
            return from_plain(Board, self._ask(verb))
        except CodecError as error:
            raise HostError(f"the board answers in a form that is not understood: {error}") from error

    def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        try:
            return self._talk.ask(verb, LIMIT_S, self._stop, **fields)
        except Broken as error:
            said = self._talk.link.last_words()
            raise HostError(f"the board does not answer{f' ({said})' if said else ''}", "try again later") from error
