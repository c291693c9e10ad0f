"""Who may see a served workshop: the right token on a loopback name, and for a session a page of its own address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("textual_serve", reason="the extra 'serve' is not installed")

from jitter_workshop.tui import webserver
from jitter_workshop.tui.served import SERVED


@pytest.mark.parametrize("host", ["localhost:8022", "127.0.0.1:8022", "[::1]:8022", "localhost", "LOCALHOST:1"])
def test_loopback_names(host: str) -> None:
    assert webserver.loopback(host)


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
    assert not webserver.loopback(host)


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
    assert webserver.of_ours(origin, host) is ours


def test_a_cookie_with_the_token_and_no_other() -> None:
    assert webserver.known("a=b; jitter-workshop=secret", "secret")
    for header in (None, "", "jitter-workshop=", "jitter-workshop=secre", "jitter-workshop=secret2", "other=secret"):
        assert not webserver.known(header, "secret")


@given(st.text())
def test_any_header_is_an_answer(header: str) -> None:
    assert not webserver.known(header, "a long secret that no text holds")
    webserver.loopback(header)
    webserver.of_ours(header, "localhost:8022")


def test_what_a_session_runs_cannot_be_bent_by_a_name() -> None:
    line = webserver.command_line(["--session", "x; touch /tmp/y"])
    assert "'x; touch /tmp/y'" in line
    assert f"{SERVED}=1" in line
