"""The board's entry: ``PYTHON -I -S -B PATH/jitter_workshop/classroom/__main__.py``, as the user jitterlab, on a pipe
or a socket; ``--listen`` serves the socket that was handed over (sd_listen_fds(3))."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """0 after a connection that ended, 2 where it never began (one sentence on standard error)."""
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent import surroundings
    from jitter_workshop.errors import UsageError, WorkshopError
    from jitter_workshop.model.text import clean

    listening = words == ["--listen"]
    surroundings.leave(4 if listening else 3)
    try:
        if words not in ([], ["--listen"]):
            raise UsageError("the board takes no words but --listen")
        if listening:
            _listen()
        else:
            _serve()
    except WorkshopError as error:
        sys.stderr.write(f"jitter-workshop board: {clean(error.sentence(), 1000)}\n")
        return 2
    return 0


def _listen() -> None:
    import socket

    from jitter_workshop.agent.listener import Listener, inherited
    from jitter_workshop.errors import HostError

    descriptor = inherited(os.environ)
    if descriptor is None:
        raise HostError("no socket was handed over", "start it by its systemd units")
    os.environ.clear()
    with socket.socket(fileno=descriptor) as listening:
        Listener(listening, _serve).run()


def _serve() -> None:
    import contextlib
    import stat

    from jitter_workshop import paths
    from jitter_workshop.agent import member, protocol
    from jitter_workshop.classroom.service import serve
    from jitter_workshop.errors import HostError, WorkshopError

    try:
        described = member.read_class()
        if described is None:
            raise HostError(f"{paths.CLASS_FILE} is not there: this is no class host", "ask the instructor")
        who = member.member(member.caller(0, os.environ), described)
        os.environ.clear()
        serve(Path(paths.BOARD_DIR), who)
    except WorkshopError as error:
        if stat.S_ISSOCK(os.fstat(0).st_mode):  # whoever calls does not see standard error
            with contextlib.suppress(OSError):
                os.write(1, protocol.failure(None, error))
        raise


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
