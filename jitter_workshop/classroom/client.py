"""Send a member's requests to the board's service, each in a short connection."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jitter_workshop import paths
from jitter_workshop.agent.transport import Broken, Link, ProcessLink, SocketLink, need_group, service_command
from jitter_workshop.errors import HostError
from jitter_workshop.host.classfile import GROUP
from jitter_workshop.model.board import Banner, Board, Posted
from jitter_workshop.model.codec import CodecError, from_plain, to_plain
from jitter_workshop.paths import RUN_DIR

SILENT = "the board does not answer"
SOCKET = f"{RUN_DIR}/board.sock"
LIMIT_S = 30.0
"""Time limit in seconds for an answer. It is long because the service may wait for other writers."""


def connect_to_board(stop: int | None = None) -> BoardClient:
    """Return a connection to the board of this class host. Raise HostError if there is no board, or it cannot be
    reached.

    ``stop``: a descriptor that ends the wait for an answer when it becomes readable.
    """
    if Path(SOCKET).is_socket():
        return BoardClient(SocketLink(SOCKET, "board"), stop)
    if not Path(paths.CLASS_FILE).exists():
        raise HostError("this is not a class host", "'sudo jitter-workshop class init' makes it a class host")
    need_group()
    sudo = shutil.which("sudo")
    if sudo is None:
        raise HostError(
            "the board's service can be started only with sudo, but sudo is not installed",
            "'jitter-workshop class check' shows what is wrong",
        )
    command = service_command(Path(__file__).resolve().with_name("__main__.py"))
    return started((sudo, "-n", "-u", GROUP, "--", *command), stop)


def started(command: Sequence[str], stop: int | None = None) -> BoardClient:
    """Start a board service with ``command``, and return a connection to it. Raise HostError if the service cannot be
    started."""
    try:
        return BoardClient(ProcessLink(command, own_session=True), stop)
    except OSError as error:
        raise HostError(f"the board's service cannot be started: {error.strerror}") from error


class BoardClient(contextlib.AbstractContextManager["BoardClient"]):
    """Hold one connection to the board's service. A request raises the HostError or UsageError that the service
    reports. A request raises HostError if the service does not answer. It raises WaitStopped if the descriptor ``stop``
    becomes readable before the answer arrives.
    """

    def __init__(self, link: Link, stop: int | None = None) -> None:
        self._link = link
        self._stop = stop

    def __exit__(self, *_: object) -> None:
        self.close()

    def post(self, posted: Posted) -> None:
        """Send a post of this member. It replaces the member's previous post."""
        self._ask("post", posted=to_plain(posted))

    def mine(self) -> Board:
        """Return the board with only this member's row."""
        return self._board("mine")

    def board(self) -> Board:
        """Return the board with all rows; for instructors."""
        return self._board("board")

    def forget(self, user: str | None) -> int:
        """Delete the data of one member; None means all members. Return the number of members whose data was
        deleted.
        """
        return int(self._ask("forget", user=user).get("forgotten", 0))

    def say(self, banner: Banner | None) -> None:
        """Show a banner to all members, or remove the present banner if ``banner`` is None. Only an instructor may do
        this."""
        self._ask("say", banner=to_plain(banner) if banner is not None else None)

    @property
    def instructs(self) -> bool:
        """Return True if the service treats this caller as an instructor."""
        return self._ask("hello").get("instructor") is True

    def close(self) -> None:
        self._link.close(1.0)

    def _board(self, verb: str) -> Board:
        try:
            return from_plain(Board, self._ask(verb))
        except CodecError as error:
            raise HostError(f"the board sent an answer that cannot be read: {error}") from error

    def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        try:
            return self._link.ask(verb, LIMIT_S, self._stop, **fields)
        except Broken as error:
            said = self._link.last_words()
            raise HostError(f"{SILENT}{f' ({said})' if said else ''}", "try again later") from error
