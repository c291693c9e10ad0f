"""Start the board: ``PYTHON -I -S -B PATH/jitter_workshop/classroom/__main__.py``, as the user jitterlab, on a pipe or
a socket.

``--listen`` serves the socket that systemd passed on (sd_listen_fds(3)).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jitter_workshop.model.classfile import ClassFile

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """Return 0 after a connection that ended, 2 if it never began (one sentence on standard error)."""
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent.service import daemon_env
    from jitter_workshop.errors import UsageError, WorkshopError
    from jitter_workshop.model.text import clean

    listening = words == ["--listen"]
    daemon_env.leave(4 if listening else 3)
    try:
        if words not in ([], ["--listen"]):
            raise UsageError("the board takes no arguments except --listen")
        if listening:
            _listen()
        else:
            _serve()
    except WorkshopError as error:
        daemon_env.set_exit_deadline()
        sys.stderr.write(f"jitter-workshop board: {clean(error.sentence(), 1000)}\n")
        return 2
    return 0


def _listen() -> None:
    import socket

    from jitter_workshop.agent.service.listener import Listener, inherited
    from jitter_workshop.errors import HostError

    descriptor = inherited(os.environ)
    if descriptor is None:
        raise HostError("no socket was passed on", "start it by its systemd units")
    os.environ.clear()
    with socket.socket(fileno=descriptor) as listening:
        Listener(listening, lambda: _serve(counted=True)).run()


def _serve(counted: bool = False) -> None:
    """Serve one connection on descriptors 0 and 1. Raises WorkshopError if it cannot begin.

    ``counted``: the listener has already counted this connection for its user.
    """
    import contextlib
    import stat

    from jitter_workshop import paths
    from jitter_workshop.agent import caller as member
    from jitter_workshop.agent import protocol
    from jitter_workshop.agent.service import daemon_env
    from jitter_workshop.classroom.service import serve
    from jitter_workshop.errors import HostError, WorkshopError

    try:
        described = member.read_class()
        if described is None:
            raise HostError(f"{paths.CLASS_FILE} is not there: this is not a class host", "ask the instructor")
        uid = member.caller(0, os.environ)
        who = member.member(uid, described)
        os.environ.clear()
        _step_aside(described)
        if uid and not counted:
            _like_any_other()
            _take_place(uid)
        serve(Path(paths.BOARD_DIR), who)
    except WorkshopError as error:
        daemon_env.set_exit_deadline()
        if stat.S_ISSOCK(os.fstat(0).st_mode):  # the caller does not see standard error
            with contextlib.suppress(OSError):
                os.write(1, protocol.failure(None, error))
        raise


def _step_aside(described: ClassFile) -> None:
    """Move this process to the housekeeping CPUs, on whatever CPU the caller started it."""
    import contextlib

    from jitter_workshop.agent.caller import housekeeping
    from jitter_workshop.errors import WorkshopError
    from jitter_workshop.host.root import HostRoot

    with contextlib.suppress(WorkshopError, OSError):
        os.sched_setaffinity(0, set(housekeeping(HostRoot(), described)))


def _like_any_other() -> None:
    """Raise HostError if this process has a low priority.

    It has its caller's priority, which only root could raise (sched(7)). A process that holds the database and gets no
    CPU would block the others.
    """
    from jitter_workshop.errors import HostError

    policy = os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK
    if policy != os.SCHED_OTHER or os.getpriority(os.PRIO_PROCESS, 0) > 0:
        raise HostError("the board does not run at a low priority", "start it without nice, chrt and the like")


def _take_place(uid: int) -> None:
    from jitter_workshop import paths
    from jitter_workshop.agent.service import connection_limit
    from jitter_workshop.errors import HostError
    from jitter_workshop.tuning.reasons import reason

    try:
        folder = os.open(paths.BOARD_DIR, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise HostError(f"{paths.BOARD_DIR} cannot be used: {reason(error)}", "tell the instructor") from error
    try:
        connection_limit.take(folder, uid)
    finally:
        os.close(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
