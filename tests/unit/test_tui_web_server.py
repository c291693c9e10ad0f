"""Test the access to a served workshop: the right token on a loopback name, and a page of the same address."""

from __future__ import annotations

import asyncio
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("textual_serve", reason="the extra 'serve' is not installed")

from jitter_workshop.tui.terminal.terminal_restore import SERVED
from jitter_workshop.tui.web import page_workshop, server


@pytest.mark.parametrize("host", ["localhost:8022", "127.0.0.1:8022", "[::1]:8022", "localhost", "LOCALHOST:1"])
def test_loopback_names(host: str) -> None:
    assert server.loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example:8022",
        "127.0.0.1.evil.example",
        "x@localhost",
        "localhost:x",
        "0.0.0.0",
        "[::1",
    ],
)
def test_other_names(host: str | None) -> None:
    assert not server.loopback(host)


@pytest.mark.parametrize(
    ("origin", "host", "ours"),
    [
        ("http://localhost:8022", "localhost:8022", True),
        ("http://127.0.0.1:8022", "127.0.0.1:8022", True),
        ("http://127.0.0.1:8022", "localhost:8022", False),
        ("http://localhost:8023", "localhost:8022", False),
        ("https://localhost:8022", "localhost:8022", False),
        ("http://evil.example", "localhost:8022", False),
        ("http://evil.example", "evil.example", False),
        ("null", "localhost:8022", False),
        (None, "localhost:8022", False),
    ],
)
def test_the_origin_of_a_session(origin: str | None, host: str, ours: bool) -> None:
    assert server.of_ours(origin, host) is ours


@given(st.text())
def test_any_header_is_an_answer(header: str) -> None:
    server.loopback(header)
    server.of_ours(header, "localhost:8022")


@given(st.text(), st.text())
def test_the_query_names_the_token_of_the_first_page_alone(rest: str, query: str) -> None:
    named = server.token_of_url(f"/{rest}", query)
    assert named == (query if rest == "" else rest.partition("/")[0])


@given(st.one_of(st.none(), st.integers(), st.text(), st.booleans(), st.lists(st.integers()), st.floats()))
def test_a_size_is_one_of_a_screen(said: object) -> None:
    assert 1 <= server.size_of_screen(said, 80) <= 1000


@given(st.binary())
def test_last_words_carry_no_escapes_of_theirs(said: bytes) -> None:
    words = page_workshop.last_words(said)
    assert words == b"" or words.startswith(page_workshop.CLEAR.encode())
    shown = words.removeprefix(page_workshop.CLEAR.encode()).decode()
    assert not set(shown.replace("\r\n", "")) & {chr(code) for code in (*range(32), *range(127, 160))}


class Page:
    """Takes what a session sends."""

    def __init__(self) -> None:
        self.seen = b""
        self.closed = asyncio.Event()

    async def send(self, data: bytes) -> None:
        self.seen += data

    async def close(self) -> None:
        self.closed.set()


def workshop(page: Page, code: str, monkeypatch: pytest.MonkeyPatch) -> page_workshop.PageWorkshop:
    monkeypatch.setattr(page_workshop, "command", lambda *_: [sys.executable, "-I", "-S", "-c", code])
    return page_workshop.PageWorkshop((), page.send, page.close)


GREET = "import os, signal, sys, time; os.write(1, b'__GANGLION__\\n'); "


async def test_a_workshop_knows_that_it_is_served_and_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page()
    told = f"os.write(2, ' '.join(os.environ[n] for n in ('{SERVED}', 'COLUMNS', 'ROWS')).encode())"
    started = workshop(page, GREET + told, monkeypatch)
    await started.start(100, 30)
    await asyncio.wait_for(page.closed.wait(), 60)
    assert page.seen == page_workshop.last_words(b"1 100 30")
    await started.stop()


async def test_whole_packets_of_the_workshop_reach_the_page_and_a_cut_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = Page()
    packets = "os.write(1, b'D\\0\\0\\0\\2hiM\\0\\0\\0\\2{}D\\0\\0\\0\\1!D\\0\\0\\0\\x09cut')"
    started = workshop(page, GREET + packets, monkeypatch)
    await started.start(80, 24)
    await asyncio.wait_for(page.closed.wait(), 60)
    assert page.seen == b"hi!"


async def test_a_workshop_that_does_not_leave_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_workshop, "PATIENCE_S", 0.2)
    page = Page()
    started = workshop(page, GREET + "os.write(1, b'D\\0\\0\\0\\2hi'); os.kill(0, signal.SIGSTOP)", monkeypatch)
    await started.start(80, 24)
    process = started._process
    assert process is not None
    await started.stop()
    assert process.returncode == -9
    await started.stop()  # a second time there is nothing to do
