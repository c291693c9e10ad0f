"""Start the board's service, as the user jitterlab, for one connection on a pipe or a socket.

The command is ``PYTHON -I -S -B PATH/jitter_workshop/classroom/__main__.py``. With ``--listen`` it serves the socket
that systemd passes (sd_listen_fds(3)).
"""

from __future__ import annotations

import os
import sys

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """Serve one connection, or a socket with ``--listen``. Return 0 at the end. If the service cannot begin, write one
    sentence to standard error and return 2."""
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent.service import daemon

    daemon.reset_inherited_settings(4 if words == ["--listen"] else 3)
    from jitter_workshop.classroom import service

    return daemon.run_service("board", words, {"": service.serve_caller, "--listen": service.serve_board_socket})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
