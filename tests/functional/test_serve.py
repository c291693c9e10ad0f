"""``serve``: only the address leads to the workshop, and nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("textual_serve", reason="the extra 'serve' is not installed")

import aiohttp

from jitter_workshop.cli import main
from tests.serving import Serving, gone, serving

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path / "log") as one:
        yield one


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """For those who are not let in: no session ever begins there."""
    with serving(tmp_path_factory.mktemp("closed") / "log") as one:
        yield one
        assert one.workshops() == []


async def opened(
    client: aiohttp.ClientSession, server: Serving, token: str | None = None, **headers: str
) -> aiohttp.ClientWebSocketResponse:
    """A session, as textual.js opens one."""
    address = f"{server.origin}/{server.token if token is None else token}/ws?width=100&height=30"
    return await client.ws_connect(address, headers={"Origin": server.origin, **headers})


async def drawn(page: aiohttp.ClientWebSocketResponse, wanted: bytes) -> bool:
    """Return True if the workshop draws this before its page is closed."""
    seen = b""
    async with asyncio.timeout(60):
        async for message in page:
            if message.type is aiohttp.WSMsgType.BINARY:
                seen += message.data
            if wanted in seen:
                return True
    return False


async def test_the_token_opens_the_workshop_and_keys_reach_it(server: Serving) -> None:
    async with aiohttp.ClientSession() as client:
        page = await opened(client, server)
        assert await drawn(page, b"PATH FOR THIS HOST")
        await page.send_json(["stdin", "?"])
        assert await drawn(page, b"ON THIS PAGE, NOW")
        (workshop,) = server.workshops()
        await page.close()
        assert gone([workshop])


async def test_a_page_that_just_vanishes_takes_its_workshop_with_it(server: Serving) -> None:
    async with aiohttp.ClientSession() as client:
        page = await opened(client, server)
        assert await drawn(page, b"PATH FOR THIS HOST")
        (workshop,) = server.workshops()
        transport = page.get_extra_info("socket")
        transport.shutdown(socket.SHUT_RDWR)
        assert gone([workshop])


async def test_a_workshop_that_is_left_closes_its_page(server: Serving) -> None:
    async with aiohttp.ClientSession() as client:
        page = await opened(client, server)
        assert await drawn(page, b"PATH FOR THIS HOST")
        (workshop,) = server.workshops()
        await page.send_json(["stdin", "q"])
        assert not await drawn(page, b"what is never drawn")
        assert gone([workshop])


async def test_why_a_workshop_does_not_begin_stands_in_its_page(tmp_path: Path) -> None:
    Path(os.environ["XDG_STATE_HOME"]).write_text("a file in the folder's place")
    with serving(tmp_path / "log") as server:
        async with aiohttp.ClientSession() as client:
            assert await drawn(await opened(client, server), b"jitter-workshop: cannot read the sessions in ")


@pytest.mark.parametrize("said", ["no JSON", "[]", "{}", '["stdin"]', '["resize", 1]', '["resize", {"width": "x"}]'])
async def test_an_invalid_message_of_one_page_does_not_disturb_another_page(server: Serving, said: str) -> None:
    async with aiohttp.ClientSession() as client:
        first, second = await opened(client, server), await opened(client, server)
        await first.send_str(said)
        assert await drawn(second, b"PATH FOR THIS HOST")
    assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("path", ["/", "/?token=", "/?token=wrong", "/wrong/static/js/textual.js", "/static/", "/x"])
def test_without_the_token_nothing_is_seen(closed: Serving, path: str) -> None:
    status, _, text = closed.get(path)
    assert status == 403
    assert "with its token" in text
    assert closed.token not in text
    assert "terminal" not in text.partition("<body")[2]


@pytest.mark.parametrize("token", ["wrong", "", "%00", "ä"])
async def test_without_the_token_no_session_begins(closed: Serving, token: str) -> None:
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await opened(client, closed, token)
        assert refused.value.status == 403


@pytest.mark.parametrize("origin", ["http://evil.example", "http://127.0.0.1:1", "http://localhost:{port}", "null", ""])
async def test_a_page_of_another_address_opens_no_session_even_with_the_token(closed: Serving, origin: str) -> None:
    async with aiohttp.ClientSession() as client:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await opened(client, closed, Origin=origin.format(port=closed.port))
        assert refused.value.status == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "0.0.0.0:{port}", "127.0.0.1.evil.example"])
def test_a_foreign_name_that_points_here_is_refused(closed: Serving, host: str) -> None:
    status, _, text = closed.get(f"/?token={closed.token}", Host_=host.format(port=closed.port))
    assert status == 403
    assert closed.token not in text


async def test_no_more_sessions_than_allowed(tmp_path: Path) -> None:
    with serving(tmp_path / "log", "--sessions", "1") as server:
        async with aiohttp.ClientSession() as client:
            page = await opened(client, server)
            assert await drawn(page, b"PATH FOR THIS HOST")
            status, _, text = await asyncio.to_thread(server.get, f"/?token={server.token}")
            assert status == 503
            assert "1 session is open" in text
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await opened(client, server)
            assert refused.value.status == 503
            assert len(server.workshops()) == 1
            await page.close()
            # The one that waits gets the place as soon as it is free.
            assert await drawn(await opened(client, server), b"PATH FOR THIS HOST")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_ends_all_of_it(server: Serving, number: signal.Signals) -> None:
    async with aiohttp.ClientSession() as client:
        pages = [await opened(client, server) for _ in range(2)]
        for page in pages:
            assert await drawn(page, b"PATH FOR THIS HOST")
        workshops = server.workshops()
        assert len(workshops) == 2
        ended = asyncio.create_task(asyncio.to_thread(server.end, number))
        for page in pages:
            assert not await drawn(page, b"what is never drawn")
        assert await ended == 128 + number
    assert not any(Path(f"/proc/{pid}").exists() for pid in workshops)


async def test_a_server_that_is_killed_leaves_no_workshop(server: Serving) -> None:
    async with aiohttp.ClientSession() as client:
        assert await drawn(await opened(client, server), b"PATH FOR THIS HOST")
        workshops = server.workshops()
        server.end(signal.SIGKILL)
        assert gone(workshops)


async def test_the_token_is_in_no_log_and_in_no_list_of_processes(server: Serving) -> None:
    async with aiohttp.ClientSession() as client:
        server.get(f"/?token={server.token}")
        server.get("/?token=wrong")
        assert await drawn(await opened(client, server), b"PATH FOR THIS HOST")
        for pid in (server.process.pid, *server.workshops()):
            for file in ("cmdline", "environ"):
                assert server.token not in Path(f"/proc/{pid}/{file}").read_text()
    assert server.token not in server.log.read_text()


def test_a_page_sends_no_referrer_and_loads_nothing_from_elsewhere(closed: Serving) -> None:
    status, headers, text = closed.get(f"/?token={closed.token}")
    assert status == 200
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "set-cookie" not in headers
    assert "https:" not in text


def test_it_listens_on_loopback_and_nowhere_else(closed: Serving) -> None:
    listening = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{closed.process.pid}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *_ = line.split()
            if state == "0A" and int(local.rpartition(":")[2], 16) == closed.port:
                listening.append(local.rpartition(":")[0])
    assert listening == [f"{int.from_bytes(socket.inet_aton('127.0.0.1'), sys.byteorder):08X}"]


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--port", str(port)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"jitter-workshop: port {port} cannot be used: Address already in use; --port N")
    assert said.err.endswith("--port 0 any free one\n")
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ["--port", "80"],
        ["--port", "-1"],
        ["--port", "70000"],
        ["--sessions", "0"],
        ["--root", "/proc"],
        ["x"],
        ["--session", "@9"],
        ["--session=-x"],
    ],
)
def test_bad_options_of_serve_are_refused_in_one_line(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["serve", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1


def test_serve_without_the_extra_names_the_missing_package(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['textual_serve'] = None\n"
        "from jitter_workshop.cli import main\nsys.exit(main(['serve', '--port', '0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=os.environ, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "textual-serve is not installed" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "pip install 'jitter-workshop[serve]'" in done.stderr
