"""Start the agent: ``PYTHON -I -S -B PATH/jitter_workshop/agent/__main__.py``, as root, on a pipe or a socket.

``--listen`` serves the socket that systemd passed on (sd_listen_fds(3)) until it is told to stop. ``--sweep`` restores
what a turn left whose agent has died. The agent's own tree comes last in the module path, so that no file in it can
replace a module of the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitter_workshop.agent.server import Setup

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """Return 0 after a connection that ended, 2 if it never began (one sentence on standard error)."""
    sys.dont_write_bytecode = True
    listening = words == ["--listen"]
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent.service import class_connection, daemon_env

    daemon_env.leave(4 if listening else 3)
    from jitter_workshop.errors import HostError, UsageError, WorkshopError
    from jitter_workshop.model.text import clean

    try:
        if os.geteuid() != 0:
            raise HostError("the agent changes the host and has to run as root", "use sudo")
        if listening:
            _listen()
        elif words == ["--sweep"]:
            os.environ.clear()
            class_connection.sweep(_setup(0, "root"))
        elif words:
            raise UsageError("the agent takes no arguments except --listen and --sweep")
        else:
            _serve()
    except WorkshopError as error:
        daemon_env.set_exit_deadline()
        sys.stderr.write(f"jitter-workshop agent: {clean(error.sentence(), 1000)}\n")
        return 2
    return 0


def _listen() -> None:
    import socket

    from jitter_workshop.agent import ownership
    from jitter_workshop.agent.service import class_connection
    from jitter_workshop.agent.service.listener import Listener, inherited
    from jitter_workshop.errors import HostError

    descriptor = inherited(os.environ)
    if descriptor is None:
        raise HostError("no socket was passed on", "start it by its systemd units")
    ownership.check(os.environ, from_socket=True)
    os.environ.clear()
    class_connection.sweep(_setup(0, "root"))
    with socket.socket(fileno=descriptor) as listening:
        Listener(listening, lambda: _serve(counted=True)).run()


def _serve(counted: bool = False) -> None:
    """Serve one connection on descriptors 0 and 1. Raises WorkshopError if it cannot begin.

    ``counted``: the listener has already counted this connection for its user.
    """
    import stat

    from jitter_workshop.agent import caller as member
    from jitter_workshop.agent import ownership, protocol
    from jitter_workshop.agent.server import Server
    from jitter_workshop.agent.service import class_connection, daemon_env
    from jitter_workshop.errors import HostError, WorkshopError
    from jitter_workshop.paths import CLASS_FILE

    from_socket = stat.S_ISSOCK(os.fstat(0).st_mode)
    notice = ownership.check(os.environ, from_socket)
    uid = member.caller(0, os.environ)
    os.environ.clear()
    if uid and not (member.is_supported_fd(0) and member.is_supported_fd(1)):
        raise HostError("the agent needs a pipe or a socket", "let 'jitter-workshop' start it")
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
    try:
        who = f"user {uid}" if uid else "root"
        setup = _setup(uid, who, notice, free=uid == 0 and not from_socket)
        if from_socket and setup.described is None:
            raise HostError(f"{CLASS_FILE} is missing: this is no longer a class host", "ask the instructor")
        if setup.described is not None:
            class_connection.step_aside(setup)
            if uid and not counted:
                _take_place(uid)
        server = Server(setup, 0, 1)
    except WorkshopError as error:
        daemon_env.set_exit_deadline()
        if from_socket:  # the caller does not see standard error
            with contextlib.suppress(OSError):
                os.write(1, protocol.failure(None, error))
        raise
    if stopped:
        server.interrupt()
    server.serve()


def _take_place(uid: int) -> None:
    from jitter_workshop.agent import statedir
    from jitter_workshop.agent.service import connection_limit
    from jitter_workshop.paths import RUN_DIR

    folder = statedir.walk("/", RUN_DIR, 0)
    try:
        connection_limit.take(folder, uid)
    finally:
        os.close(folder)


def _setup(uid: int, who: str, notice: str = "", free: bool = False) -> Setup:
    """Return the setup for one caller. Raises WorkshopError.

    ``free``: the caller is root and did not come by the socket. It needs no turn, and works without a readable class
    file: root must be able to act when the class's own way does not work.
    """
    from jitter_workshop.agent import caller as member
    from jitter_workshop.agent import ownership
    from jitter_workshop.agent.server import Setup
    from jitter_workshop.errors import WorkshopError
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.tuning.writer import HostWriter

    try:
        described = member.read_class()
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
        described=described,
        member=member.member(uid, described) if described is not None else None,
        needs_turn=not free,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
