"""The workshop in a browser: textual-serve on loopback, behind a random token, an Origin check and a limit on sessions.

textual-serve itself asks nobody who they are. Everybody on this machine can reach a loopback port, and every page that a
browser shows can try to: so a request needs the token (once in the address, then in a cookie that scripts and other sites
do not get), has to name a loopback host (else a foreign name could be pointed here), and a session has to come from a page
of ours.
"""

from __future__ import annotations

import hmac
import shlex
import sys
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from aiohttp import web
from textual_serve.server import Server

from jitter_workshop.tui.served import SERVED

COOKIE = "jitter-workshop"
HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
MOST_SESSIONS = 4
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def loopback(host: str | None) -> bool:
    """Whether a Host header, or an origin's, names this machine by a loopback name."""
    try:
        parts = urlsplit(f"//{host or ''}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return (f"[{name}]" if ":" in name else name) in HOSTS and parts.username is None


def of_ours(origin: str | None, host: str | None) -> bool:
    """Whether a page of this very address asks: what a browser says in Origin, which scripts cannot forge (RFC 6454)."""
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.netloc == host and loopback(host)


def known(header: str | None, token: str) -> bool:
    """Whether a Cookie header holds the token."""
    try:
        morsel = SimpleCookie(header or "").get(COOKIE)
    except CookieError:
        return False
    return morsel is not None and hmac.compare_digest(morsel.value.encode(), token.encode())


class GuardedServer(Server):
    """``token``: what a visitor has to know. ``most``: sessions at a time."""

    def __init__(self, command: str, port: int, token: str, most: int = MOST_SESSIONS) -> None:
        super().__init__(
            command, host="127.0.0.1", port=port, title="Jitter Workshop", public_url=f"http://localhost:{port}"
        )
        self._token = token
        self._most = most
        self._sessions = 0

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(web.middleware(self._guard))
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Nothing of textual-serve's own: what there is to say has been said."""

    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        host = request.headers.get("Host")
        if not loopback(host):
            raise web.HTTPForbidden(text="This is served on loopback only.\n")
        given = request.query.get("token")
        if request.path == "/" and given is not None and hmac.compare_digest(given.encode(), self._token.encode()):
            answer = web.HTTPSeeOther("/")  # the token does not stay in the address
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="Strict", path="/")
            answer.headers["Referrer-Policy"] = "no-referrer"
            raise answer
        if not known(request.headers.get("Cookie"), self._token):
            raise web.HTTPForbidden(text="Open the address that 'jitter-workshop serve' printed, with its token.\n")
        if request.path == "/ws":
            return await self._session(request, handler)
        answered = await handler(request)
        answered.headers["X-Frame-Options"] = "DENY"
        answered.headers["Cache-Control"] = "no-store"
        return answered

    async def _session(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not of_ours(request.headers.get("Origin"), request.headers.get("Host")):
            raise web.HTTPForbidden(text="A page of another address may not open a session.\n")
        if self._sessions >= self._most:
            raise web.HTTPServiceUnavailable(text=f"{self._most} sessions are open already.\n")
        self._sessions += 1
        try:
            return await handler(request)
        finally:
            self._sessions -= 1


def command_line(words: list[str]) -> str:
    """What each session runs: this very tool, told that it is served. textual-serve hands it to a shell."""
    return shlex.join(["env", f"{SERVED}=1", sys.executable, "-m", "jitter_workshop.cli", *words])
