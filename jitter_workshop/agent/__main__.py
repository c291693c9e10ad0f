"""Start the agent as root: ``PYTHON -I -S -B PATH/jitter_workshop/agent/__main__.py``.

- Without an option, serve one connection on descriptors 0 and 1, each a pipe or a socket.
- ``--listen``: serve the socket that systemd passed on (sd_listen_fds(3)), until SIGTERM.
- ``--sweep``: restore the changes that a dead agent left on a class host.

The agent's source tree is the last entry of ``sys.path``. So no file in the tree can replace a standard module.
"""

from __future__ import annotations

import os
import sys

_TREE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120


def main(words: list[str]) -> int:
    """Run the agent with the command-line arguments ``words``, and return the exit code.

    The exit code is 0 when the agent has done its work. It is 2 if the agent could not begin. Standard error then has
    one sentence with the reason.
    """
    sys.dont_write_bytecode = True
    if _TREE not in sys.path:
        sys.path.append(_TREE)
    from jitter_workshop.agent.service import daemon

    daemon.reset_inherited_settings(4 if words == ["--listen"] else 3)
    from jitter_workshop.agent import start

    return daemon.run_service(
        "agent",
        words,
        {"": start.serve_agent_connection, "--listen": start.serve_agent_socket, "--sweep": start.restore_dead_turn},
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
