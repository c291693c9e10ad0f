"""Show the workshop in a browser of this machine, or of your own by way of ssh.

It listens on loopback only and prints an address with a random token; who does not have it sees nothing. From another
machine, beside your login:

  ssh -L 8022:127.0.0.1:8022 lab01      then open the printed address there

Each page is a workshop of its own process, of the user who serves, and ends with the page. It changes settings through
the agent of a class host only; nobody is asked for a password. Ctrl-C ends all of them.

Needs the package textual-serve: pip install 'jitter-workshop[serve]'.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket

from jitter_workshop.commands.common.base import Interrupted, require_live_host, say
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.text import clean

PORT = 8022
SESSIONS = 4
MOST_SESSIONS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=PORT, metavar="N", help=f"default {PORT}; 0: any that is free")
    parser.add_argument(
        "--sessions", type=int, default=SESSIONS, metavar="N", help=f"at most so many pages at a time ({SESSIONS})"
    )


def run(args: argparse.Namespace) -> int:
    """Ends by a signal."""
    require_live_host(args)
    if args.port and not 1024 <= args.port <= 65_535:
        raise UsageError("--port is a number from 1024 to 65535", "or 0, for any that is free")
    if not 1 <= args.sessions <= MOST_SESSIONS:
        raise UsageError(f"--sessions is a number from 1 to {MOST_SESSIONS}")
    if args.session is not None:
        from jitter_workshop.session.store import SessionStore

        SessionStore().has(args.session)  # else each page would say that it cannot begin
    try:
        from jitter_workshop.tui.web.server import ADDRESS, WebServer, listen
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("aiohttp", "textual_serve"):
            raise
        raise HostError("textual-serve is not installed", "pip install 'jitter-workshop[serve]'") from error
    try:
        listening = listen(args.port)
    except OSError as error:
        why = f"port {args.port} cannot be used: {os.strerror(error.errno or 0)}"
        raise HostError(why, "--port N names another, --port 0 takes any that is free") from error
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    words = [f"--session={args.session}"] if args.session is not None else []
    if os.geteuid() == 0:
        say("Serving as root: who has the address acts as root. Rather serve as a user.")
    print(f"http://{ADDRESS}:{port}/?token={token}", flush=True)
    here = clean(socket.gethostname(), 60)
    say(f"From another machine: ssh -L {port}:{ADDRESS}:{port} {here}, then open that address there. Ctrl-C ends it.")
    raise Interrupted(asyncio.run(WebServer(words, token, args.sessions, say).serve(listening)))
