"""Start the agent: ``PYTHON -I -S -B PATH/jitter_workshop/agent/__main__.py``, as root, on a pipe or a socket.

``--listen`` serves the socket that systemd passed on (sd_listen_fds(3)) until the agent gets a signal to stop.
``--sweep`` restores the changes of a turn whose agent has died. The agent's own source tree comes last in the module
path, so that no file in the tree can replace a module of the standard library.
"""

from __future__ import annotations

import os
import sys

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """Run the agent. Return the exit code: 0 after a connection that ended, 2 if the connection never began.

    With exit code 2, standard error has one sentence with the reason.
    """
    sys.dont_write_bytecode = True
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent.service import daemon

    daemon.leave(4 if words == ["--listen"] else 3)
    from jitter_workshop.agent import start

    return daemon.run("agent", words, {"": start.serve, "--listen": start.listen, "--sweep": start.sweep})


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
