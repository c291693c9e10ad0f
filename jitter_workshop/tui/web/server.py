"""Serve the workshop in a browser, by textual-serve's terminal on the loopback interface.

Other users of this machine can reach a loopback port, and so can every page in a browser. Three checks keep out other
users and foreign pages:

* Each request must contain a random token. The first page's URL has the token in its query; all other URLs have it in
  their path. A cookie would be unsafe, because the browser sends a cookie to every port of this machine.
* Each request must name a loopback host in its Host header. A foreign name could resolve to this machine.
* A session must be started by a page of this server. The Origin header shows from which page a request comes.

The number of sessions is limited.
"""

from __future__ import annotations

import asyncio
import hmac
import html
import secrets
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from jitter_workshop.model.palette import PALETTES
from jitter_workshop.session import preferences
from jitter_workshop.tui.web.page_workshop import PATIENCE_S, PageWorkshop

HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})
ADDRESS = "127.0.0.1"
"""The address as a number. Browsers try [::1] first for ``localhost``, and another user may listen there."""
TITLE = "Jitter Workshop"
HEARTBEAT_S = 15.0
"""Seconds between two questions whether a page is still there. A page that does not answer, for example on a sleeping
machine, is closed."""
LARGEST_MESSAGE = 1 << 20
SLOT_WAIT_S = 2.0
"""Seconds that a page waits for a free session."""
_SIZES = range(1, 1001)
_SECURITY = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_FILES = (("normal", "RobotoMono-VariableFont_wght"), ("italic", "RobotoMono-Italic-VariableFont_wght"))
_FONT = (
    '  @font-face {{ font-family: "Roboto Mono"; font-style: {style}; font-weight: 100 700; '
    'src: url("{base}/static/fonts/{file}.ttf"); }}'
)
_FACES = '<p class="faces">x<em>x</em></p>'
"""Invisible text that uses the fonts, so that they are loaded before textual.js measures their characters."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def loopback(host: str | None) -> bool:
    """Return True if ``host`` is a loopback name of this machine. ``host``: a Host header, or the host in an Origin
    header."""
    try:
        parts = urlsplit(f"//{host or ''}")
        name, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    return (f"[{name}]" if ":" in name else name) in HOSTS and parts.username is None


def of_ours(origin: str | None, host: str | None) -> bool:
    """Return True if the Origin header says that a page of ours sent the request.

    ``host``: the Host header of the request. A script in a page cannot change the Origin header (RFC 6454).
    """
    if origin is None:
        return False
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme == "http" and parts.netloc == host and loopback(host)


def token_of_url(path: str, query: str) -> str:
    """Return the token in the URL of a request.

    In the request for the first page (path "/"), the token is the query. In all other requests, the token is the first
    part of the path.
    """
    return query if path == "/" else path.split("/")[1]


def open_loopback_socket(port: int) -> socket.socket:
    """Return a socket that listens on loopback. Port 0 means any free port. Raise OSError if the port cannot be
    used."""
    return socket.create_server((ADDRESS, port))


class WebServer:
    """Serve the workshop in a browser.

    - ``words``: the arguments for each page's workshop.
    - ``token``: the secret that each request must contain.
    - ``most``: the largest number of sessions at a time.
    - ``told``: a function that shows a sentence to the user who started the server.
    """

    def __init__(self, words: Sequence[str], token: str, most: int, told: Callable[[str], None]) -> None:
        self._words = tuple(words)
        self._token = token.encode()
        self._most = most
        self._told = told
        self._slots = asyncio.Semaphore(most)
        self._open: set[web.WebSocketResponse] = set()
        self._base = f"/{token}"

    async def serve(self, listening: socket.socket) -> int:
        """Serve until a signal comes, end all sessions, and return the signal's number."""
        runner = web.AppRunner(self._app(), access_log=None, handle_signals=False, shutdown_timeout=PATIENCE_S + 5)
        await runner.setup()
        try:
            await web.SockSite(runner, listening).start()
            return await _signal()
        finally:
            await runner.cleanup()

    def _app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/", self._page)
        app.router.add_get(f"{self._base}/ws", self._session)
        app.router.add_static(f"{self._base}/static", Path(textual_serve.__file__).with_name("static"))
        app.on_shutdown.append(self._close_pages)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not loopback(request.headers.get("Host")):
            return _refusal(403, "This page is served on loopback only.")
        named = token_of_url(request.path, request.query.get("token", ""))
        if not hmac.compare_digest(named.encode("utf-8", "replace"), self._token):
            return _refusal(403, "Open the address that 'jitter-workshop serve' printed, with its token.")
        try:
            answer = await handler(request)
        except web.HTTPException as refusal:
            return _refusal(refusal.status, refusal.reason)
        except Exception as error:
            self._told(f"a page was not served: {type(error).__name__}: {error}")
            return _refusal(500, "The page failed; the terminal of 'serve' shows why.")
        if not answer.prepared:
            answer.headers.update(_SECURITY)
        return answer

    async def _page(self, _: web.Request) -> web.StreamResponse:
        if not await self._slot():
            return _refusal(503, self._full())
        self._slots.release()  # The refusal is told here, because a page is not told why its session is refused.
        link = f'<link rel="stylesheet" href="{self._base}/static/css/xterm.css">'
        script = f'<script src="{self._base}/static/js/textual.js"></script>'
        body = f'{_FACES}\n<div id="terminal" class="textual-terminal" data-font-size="16"></div>'
        again = 'This session has ended; what was measured is kept. <a href="/">Start again</a>'
        return _answer(200, again, f"{link}\n{script}", body, self._base)

    async def _slot(self) -> bool:
        """Reserve one session, and return True. If all sessions are in use, wait for a free one. Return False if none
        becomes free within SLOT_WAIT_S seconds. A reloaded page has to wait, because its old workshop takes time to
        end.
        """
        try:
            async with asyncio.timeout(SLOT_WAIT_S):
                return await self._slots.acquire()
        except TimeoutError:
            return False

    def _full(self) -> str:
        sessions = "1 session is" if self._most == 1 else f"{self._most} sessions are"
        return f"{sessions} open, and this is the limit. 'serve --sessions N' allows more."

    async def _session(self, request: web.Request) -> web.StreamResponse:
        if not of_ours(request.headers.get("Origin"), request.headers.get("Host")):
            return _refusal(403, "Only a page of this server may open a session.")
        if not await self._slot():
            return _refusal(503, self._full())
        try:
            return await self._workshop(request)
        finally:
            self._slots.release()

    async def _workshop(self, request: web.Request) -> web.StreamResponse:
        page = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=LARGEST_MESSAGE)
        await page.prepare(request)
        workshop = PageWorkshop(self._words, page.send_bytes, page.close)
        self._open.add(page)
        try:
            await workshop.start(
                size_of_screen(request.query.get("width"), 80), size_of_screen(request.query.get("height"), 24)
            )
            async for message in page:
                if message.type is WSMsgType.TEXT:
                    await _pass_on(workshop, page, message.json())
        except ValueError:
            await page.close(code=WSCloseCode.UNSUPPORTED_DATA)
        except OSError as error:
            self._told(f"no session could be started: {error.strerror or error}")
        finally:
            self._open.discard(page)
            await workshop.stop()
            await page.close()
        return page

    async def _close_pages(self, _: web.Application) -> None:
        await asyncio.gather(*(page.close(code=WSCloseCode.GOING_AWAY) for page in set(self._open)))


async def _pass_on(workshop: PageWorkshop, page: web.WebSocketResponse, message: object) -> None:
    """Pass a browser's message on to the workshop, and answer a ping. A message is keys, a new size, or a change of
    focus."""
    kind, value = (*message, None)[:2] if isinstance(message, list) else (None, None)
    if kind == "stdin" and isinstance(value, str):
        await workshop.send_bytes(value.encode("utf-8", "replace"))
    elif kind == "resize" and isinstance(value, dict):
        await workshop.set_terminal_size(
            size_of_screen(value.get("width"), 80), size_of_screen(value.get("height"), 24)
        )
    elif kind == "ping":
        await page.send_json(["pong", value])
    elif kind == "blur":
        await workshop.blur()
    elif kind == "focus":
        await workshop.focus()


def size_of_screen(said: object, otherwise: int) -> int:
    """Return ``said`` as a number of columns or rows. If ``said`` is not valid, return ``otherwise``."""
    try:
        value = int(said) if isinstance(said, int | str) else otherwise
    except ValueError:
        return otherwise
    return value if value in _SIZES else otherwise


def _refusal(status: int, words: str) -> web.Response:
    """Return a web page that tells why a request was refused. ``status``: the HTTP status. ``words``: the reason."""
    return _answer(status, html.escape(words), "", "", "")


def _answer(status: int, note: str, head: str, body: str, base: str) -> web.Response:
    """Return one of the workshop's web pages. ``status``: the HTTP status. ``note``: the sentence that the page shows.

    ``head`` and ``body``: HTML that the page adds to its head and its body. ``base``: the path prefix of the files that
    the page loads; "" if the page loads none.
    """
    palette = PALETTES[preferences.load()[0].theme]
    nonce = secrets.token_urlsafe(16)
    text = Template(resources.files(__package__).joinpath("page.html").read_text("utf-8")).substitute(
        title=TITLE,
        head=head,
        base=base,
        fonts="\n".join(_FONT.format(base=base, style=style, file=file) for style, file in _FILES) if base else "",
        nonce=nonce,
        state="-open" if base else "-alone",
        right="false" if status == 403 else "true",
        body=body,
        note=note,
        background=palette.background,
        text=palette.text,
        panel=palette.panel,
        accent=palette.accent,
    )
    # textual.js adds its styles to the page by itself.
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; connect-src 'self'; "
        f"font-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self' 'nonce-{nonce}'"
    )
    headers = {**_SECURITY, "Content-Security-Policy": policy}
    return web.Response(status=status, text=text, content_type="text/html", headers=headers)


async def _signal() -> int:
    """Wait for a signal that ends the server, and return its number. A signal that this process was started to ignore
    (such as SIGHUP with nohup) does not end the server.
    """
    loop = asyncio.get_running_loop()
    came: asyncio.Future[int] = loop.create_future()
    wanted = [one for one in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]

    def heed(number: int) -> None:
        if not came.done():
            came.set_result(number)

    for number in wanted:
        loop.add_signal_handler(number, heed, number)
    try:
        return await came
    finally:
        for number in wanted:
            loop.remove_signal_handler(number)
