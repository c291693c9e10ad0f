"""Show the workshop in a browser of this machine, or through ssh of your own.

It listens on loopback only and prints an address with a random token; who does not have it sees nothing. From another
machine:

  ssh -L 8022:localhost:8022 lab01      then open the printed address there

Each visitor has a workshop of their own process, of the user who serves. Settings are changed only through the agent of a
class host: nobody is asked for a password. Needs the package textual-serve: pip install 'jitter-workshop[serve]'.
"""

from __future__ import annotations

import argparse
import secrets

from jitter_workshop.commands.base import require_live_host
from jitter_workshop.errors import HostError, UsageError

PORT = 8022


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}")
    parser.add_argument("--sessions", type=int, default=4, metavar="N", help="at most so many at a time (default 4)")


def run(args: argparse.Namespace) -> int:
    """0 once it was ended."""
    require_live_host(args)
    if not 1024 <= args.port <= 65_535:
        raise UsageError("--port is a number from 1024 to 65535")
    if not 1 <= args.sessions <= 40:
        raise UsageError("--sessions is a number from 1 to 40")
    try:
        from jitter_workshop.tui.webserver import GuardedServer, command_line
    except ModuleNotFoundError as error:
        raise HostError("textual-serve is not installed", "pip install 'jitter-workshop[serve]'") from error
    token = secrets.token_urlsafe(24)
    words = ["--session", args.session] if args.session is not None else []
    print(f"http://localhost:{args.port}/?token={token}", flush=True)
    print(f"from another machine: ssh -L {args.port}:localhost:{args.port} {_here()}   Ctrl-C ends it", flush=True)
    try:
        GuardedServer(command_line(words), args.port, token, args.sessions).serve()
    except OSError as error:
        raise HostError(f"port {args.port} cannot be used: {error.strerror}", "--port N names another") from error
    return 0


def _here() -> str:
    import socket

    from jitter_workshop.model.text import clean

    return clean(socket.gethostname(), 60)
