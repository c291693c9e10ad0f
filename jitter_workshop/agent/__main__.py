"""The agent's entry: ``PYTHON -I -S -B PATH/jitter_workshop/agent/__main__.py``, as root, on a pipe or a socket.

Before anything is imported it leaves its caller's surroundings: no compiled files are written, no descriptor but the
three is open, the folder is ``/``, new files are 0644. Its own tree comes last in the module path, so that nothing in
it can stand in for a module of the standard library.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def _leave_surroundings() -> None:
    sys.dont_write_bytecode = True
    os.umask(0o022)
    os.chdir("/")
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
    os.closerange(3, max(int(name) for name in os.listdir("/proc/self/fd")) + 1)  # noqa: PTH208
    with contextlib.suppress(PermissionError):  # a process group's leader already, as under sudo
        os.setsid()  # a terminal's signals are not for us
    for name in ("SIGINT", "SIGHUP", "SIGPIPE", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)


def main() -> int:
    """0 after a connection that ended, 2 where it never began (one sentence on standard error)."""
    _leave_surroundings()
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    import stat

    from jitter_workshop.agent import ownership
    from jitter_workshop.agent.server import Server, Setup
    from jitter_workshop.errors import HostError, WorkshopError
    from jitter_workshop.host.root import HostRoot
    from jitter_workshop.model.text import clean
    from jitter_workshop.tuning.writer import HostWriter

    try:
        if os.geteuid() != 0:
            raise HostError("the agent changes the host and has to run as root", "use sudo")
        from_socket = stat.S_ISSOCK(os.fstat(0).st_mode)
        notice = ownership.check(os.environ, from_socket)
        given = os.environ.get("SUDO_UID", "")
        uid = int(given) if given.isascii() and given.isdigit() and len(given) < 11 else 0
        who = f"user {uid}" if uid else "root"
        os.environ.clear()
        server = Server(Setup(HostRoot(), HostWriter(), "/", 0, uid, who, ownership.tree(), notice), 0, 1)
    except WorkshopError as error:
        sys.stderr.write(f"jitter-workshop agent: {clean(error.sentence(), 1000)}\n")
        return 2

    def interrupt(_signum: int, _frame: FrameType | None) -> None:
        server.interrupt()

    signal.signal(signal.SIGTERM, interrupt)
    server.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
