"""``serve`` in a real browser: the workshop is drawn and takes keys, the address does not keep the token, and pages of
others get nowhere."""

from __future__ import annotations

import base64
import functools
import http.server
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("textual_serve", reason="the extra 'serve' is not installed")

from PIL import Image

from tests import browser
from tests.browser import Browser
from tests.serving import Serving, gone, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.installed() is None, reason=f"none of {', '.join(browser.NAMES)} is installed"),
]

NAME = "lab.example"
"""A foreign name that points to this machine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served") / "log") as one:
        yield one


@pytest.fixture
def page() -> Iterator[Browser]:
    with Browser(f"--host-resolver-rules=MAP {NAME} 127.0.0.1") as one:
        yield one


class BackgroundGate(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[str]:
    """Another server on another port of this machine, with an empty page."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<!DOCTYPE html><title>another</title>")
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(BackgroundGate, directory=tmp_path / "site")
    ) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}/"
        other.shutdown()


def frames(wanted: bytes) -> Callable[[dict[str, Any]], bool]:
    """Fits a message to the page's terminal once this was drawn in it and those before."""
    seen = bytearray()

    def fits(event: dict[str, Any]) -> bool:
        if event["response"]["opcode"] == 2:
            seen.extend(base64.b64decode(event["response"]["payloadData"]))
        return wanted in seen

    return fits


def shown(page: Browser, wanted: bytes) -> None:
    page.until("Network.webSocketFrameReceived", frames(wanted))


def test_the_home_screen_is_drawn_and_takes_a_key(page: Browser, server: Serving) -> None:
    page.size(1280, 800)
    page.open(server.address)
    shown(page, b"PATH FOR THIS HOST")
    assert page.ask("document.fonts.check('16px \"Roboto Mono\"')")
    picture = Image.open(io.BytesIO(page.painted()))
    ground = picture.getpixel((picture.width // 2, picture.height // 2))
    colours = picture.convert("RGB").getcolors(1 << 20) or []
    assert len(colours) > 20
    assert sum(count for count, colour in colours if colour != ground) > 10_000
    page.press("?")
    shown(page, b"ON THIS PAGE, NOW")
    assert page.ask("location.href") == f"{server.origin}/"
    assert all(address.startswith(f"{server.origin}/") for address in page.requests())
    assert not [line for line in page.complaints() if '"ping=' not in line and "WebGL" not in line]
    assert page.ask("document.cookie") == ""


def test_loading_the_page_again_begins_again_without_the_token_in_the_address(page: Browser, server: Serving) -> None:
    page.open(server.address)
    shown(page, b"PATH FOR THIS HOST")
    before = server.workshops()
    page.events.clear()
    page.call("Page.reload")
    shown(page, b"PATH FOR THIS HOST")
    assert gone(before)
    assert server.comes_to(1)
    assert page.ask("location.href") == f"{server.origin}/"


def test_a_page_that_is_left_takes_its_workshop_with_it_and_a_workshop_its_page(page: Browser, server: Serving) -> None:
    page.open(server.address)
    shown(page, b"PATH FOR THIS HOST")
    workshops = server.workshops()
    page.press("q")
    page.until("Network.webSocketClosed")
    assert page.ask("getComputedStyle(document.getElementById('note')).display") == "block"
    assert "Start again" in page.ask("document.getElementById('note').textContent")
    assert gone(workshops)
    page.open(server.address)
    shown(page, b"PATH FOR THIS HOST")
    workshops = server.workshops()
    assert len(workshops) == 1
    page.call("Page.navigate", url="about:blank")
    assert gone(workshops)


def test_another_size_is_another_screen(page: Browser, server: Serving) -> None:
    page.size(1280, 800)
    page.open(server.address)
    shown(page, b"PATH FOR THIS HOST")
    page.events.clear()
    page.size(700, 480)
    page.until("Network.webSocketFrameSent", lambda event: '"resize"' in event["response"]["payloadData"])
    shown(page, b"PATH FOR THIS HOST")


@pytest.mark.parametrize("query", ["", "?token=wrong"])
def test_without_the_token_there_is_a_sentence_and_no_terminal(page: Browser, server: Serving, query: str) -> None:
    page.open(f"{server.origin}/{query}")
    assert "with its token" in page.ask("document.body.innerText")
    assert page.ask("document.querySelectorAll('#terminal, .xterm').length") == 0
    assert not [address for address in page.requests() if "static" in address]


def test_a_page_on_another_port_opens_no_session_and_reads_nothing(
    page: Browser, server: Serving, elsewhere: str
) -> None:
    page.open(elsewhere)
    attempt = f"""new Promise(done => {{
      const one = new WebSocket("ws://127.0.0.1:{server.port}/{server.token}/ws?width=80&height=24");
      one.onopen = () => done("open"); one.onerror = () => done("refused");
    }})"""
    assert page.ask(attempt) == "refused"
    assert page.ask(f"fetch('{server.address}').then(() => 'read', () => 'refused')") == "refused"
    # Nor does it get into a frame, where a reader could be led to press keys.
    page.ask(f"document.body.append(Object.assign(document.createElement('iframe'), {{src: '{server.address}'}}))")
    page.until("Log.entryAdded", lambda event: "frame" in event["entry"]["text"].lower())
    assert server.workshops() == []


def test_a_foreign_name_that_points_here_shows_nothing(page: Browser, server: Serving) -> None:
    page.open(f"http://{NAME}:{server.port}/?token={server.token}")
    assert page.ask("document.body.innerText").strip() == "This page is served on loopback only."
    attempt = f"""new Promise(done => {{
      const one = new WebSocket("ws://{NAME}:{server.port}/{server.token}/ws");
      one.onopen = () => done("open"); one.onerror = () => done("refused");
    }})"""
    assert page.ask(attempt) == "refused"
    assert server.workshops() == []


def test_where_all_sessions_are_taken_a_page_says_so(page: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--sessions", "1") as server, Browser() as first:
        first.open(server.address)
        shown(first, b"PATH FOR THIS HOST")
        page.open(server.address)
        assert "1 session is open, and" in page.ask("document.body.innerText")
        assert len(server.workshops()) == 1
