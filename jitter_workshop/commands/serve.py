"""Show the workshop in a browser on this machine, or on another one through ssh.

The server listens on loopback only and prints an address with a random token; without the token a browser sees nothing.
To open the page on another machine, run this ssh command there. In the command, lab01 is the machine on which 'serve'
runs:

  ssh -L 8022:127.0.0.1:8022 lab01      then open the printed address there

Each page runs a workshop in a process of its own, as the user who serves; the process ends when the page is closed. The
workshop changes settings only through the agent of a class host, and never asks for a password. Ctrl-C ends all pages.

Needs the package textual-serve: pip install 'jitter-workshop[serve]'.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket

from jitter_workshop.commands.common.base import Interrupted, print_notice, require_live_host
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.model.text import LABEL, clean

PORT = 8022
SESSIONS = 4
MOST_SESSIONS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=int,
        default=PORT,
        metavar="N",
        help=f"the port to listen on (default: {PORT}); 0 means any free port",
    )
    parser.add_argument(
        "--sessions",
        type=int,
        default=SESSIONS,
        metavar="N",
        help=f"how many pages can be open at the same time (default: {SESSIONS})",
    )


def run(args: argparse.Namespace) -> int:
    """Serve the workshop to browsers until a signal comes; then raise Interrupted. Raise WorkshopError if the server
    cannot start."""
    require_live_host(args)
    if args.port and not 1024 <= args.port <= 65_535:
        raise UsageError("--port must be a number from 1024 to 65535", "or 0 for any free port")
    if not 1 <= args.sessions <= MOST_SESSIONS:
        raise UsageError(f"--sessions must be a number from 1 to {MOST_SESSIONS}")
    if args.session is not None:
        from jitter_workshop.session.store import SessionStore

        SessionStore().has(args.session)  # fail here, not on each page
    try:
        from jitter_workshop.tui.web.server import ADDRESS, WebServer, open_loopback_socket
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("aiohttp", "textual_serve"):
            raise
        raise HostError("textual-serve is not installed", "pip install 'jitter-workshop[serve]'") from error
    try:
        listening = open_loopback_socket(args.port)
    except OSError as error:
        why = f"port {args.port} cannot be used: {os.strerror(error.errno or 0)}"
        raise HostError(why, "--port N chooses another port, --port 0 any free one") from error
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(24)
    words = [f"--session={args.session}"] if args.session is not None else []
    if os.geteuid() == 0:
        print_notice(
            "The server runs as root: everyone who has the address can act as root. It is safer to run it as a normal "
            "user."
        )
    print(f"http://{ADDRESS}:{port}/?token={token}", flush=True)
    here = clean(socket.gethostname(), LABEL)
    print_notice(
        f"From another machine: run ssh -L {port}:{ADDRESS}:{port} {here} there, then open this address there. Ctrl-C "
        "ends the server."
    )
    raise Interrupted(asyncio.run(WebServer(words, token, args.sessions, print_notice).serve(listening)))
