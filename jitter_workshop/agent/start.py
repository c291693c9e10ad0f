"""Begin the agent's work: serve one connection, listen on a socket, or restore the changes that a turn has left."""

from __future__ import annotations

import os
import signal
import stat
from dataclasses import replace
from types import FrameType

from jitter_workshop.agent import caller, ownership
from jitter_workshop.agent.server import Server, Setup
from jitter_workshop.agent.service import daemon
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.paths import CLASS_FILE, RUN_DIR
from jitter_workshop.tuning.writer import HostWriter


def serve_agent_socket() -> None:
    """Serve the socket that systemd passed on, until SIGTERM. Raise HostError on failure."""
    from jitter_workshop.agent.service.class_connection import end_dead_turn
    from jitter_workshop.agent.service.listener import inherited, listen_on

    _only_root()
    descriptor = inherited(os.environ)
    ownership.check_ownership(os.environ, from_socket=True)
    os.environ.clear()
    end_dead_turn(_setup(0, "root"))
    listen_on(descriptor, lambda: serve_agent_connection(counted=True))


def restore_dead_turn() -> None:
    """Restore the changes of a turn whose agent has died. Raise HostError on failure."""
    from jitter_workshop.agent.service import class_connection

    _only_root()
    os.environ.clear()
    class_connection.end_dead_turn(_setup(0, "root"))


def serve_agent_connection(counted: bool = False) -> None:
    """Serve one connection on descriptors 0 and 1. Raise WorkshopError if the connection cannot begin.

    ``counted``: True if the listener has already counted this connection for its user.
    """
    _only_root()
    from_socket = stat.S_ISSOCK(os.fstat(0).st_mode)
    notice = ownership.check_ownership(os.environ, from_socket)
    uid = caller.caller(0, os.environ)
    os.environ.clear()
    if uid and not (caller.is_supported_fd(0) and caller.is_supported_fd(1)):
        raise HostError(
            "the agent speaks through a pipe or a socket, not on a terminal",
            "run 'jitter-workshop', which starts the agent itself",
        )
    server: Server | None = None
    stopped = False

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = True
        if server is not None:
            server.interrupt()

    def nudge(_signum: int, _frame: FrameType | None) -> None:
        if server is not None:
            server.nudge()

    # Before other processes know of this one: a signal without a handler would end it.
    signal.signal(signal.SIGUSR1, nudge)
    signal.signal(signal.SIGTERM, interrupt)
    with daemon.refusing():
        who = f"user {uid}" if uid else "root"
        setup = replace(_setup(uid, who, notice, free=uid == 0 and not from_socket), pid=caller.caller_pid(0))
        if from_socket and setup.member is None:
            raise HostError(f"{CLASS_FILE} is missing: this host is no longer a class host", "ask the instructor")
        if setup.member is not None:
            from jitter_workshop.agent import statedir
            from jitter_workshop.agent.service.class_connection import move_to_housekeeping
            from jitter_workshop.agent.service.listener import take_place

            move_to_housekeeping(setup, setup.member.described)
            if uid and not counted:
                take_place(statedir.open_below("/", RUN_DIR, 0), uid)
        server = Server(setup, 0, 1)
    if stopped:
        server.interrupt()
    server.serve()


def _only_root() -> None:
    if os.geteuid() != 0:
        raise HostError("the agent changes the host and has to run as root", "use sudo")


def _setup(uid: int, who: str, notice: str = "", free: bool = False) -> Setup:
    """Return the setup of an agent for one caller. Raise WorkshopError on failure.

    ``free``: True if the caller is root and did not use the class's socket. Such a caller needs no turn. If the class
    file is invalid, such a caller only gets a notice: root must be able to act.
    """
    try:
        described = caller.read_class()
    except WorkshopError as error:
        if not free:
            raise
        described, notice = None, f"{notice}; {error.sentence()}".removeprefix("; ")
    return Setup(
        HostRoot(),
        HostWriter(),
        "/",
        0,
        uid,
        who,
        ownership.tree(),
        notice,
        member=caller.member(uid, described) if described is not None else None,
        needs_turn=not free,
    )
