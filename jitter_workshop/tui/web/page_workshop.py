"""Run the workshop of one page, in a process that ends with the page."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence

from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from jitter_workshop.bench.launch import command
from jitter_workshop.model.text import PATH, clean
from jitter_workshop.tui.terminal.terminal_restore import SERVED

PATIENCE_S = 30.0
"""Seconds that a workshop may take to stop a run, to restore its changes and to end. After that time it is killed, and
the agent restores the changes."""
_LAST_WORDS = 4096
CLEAR = "\x1b[?1049l\x1b[?1000l\x1b[?1003l\x1b[0m\x1b[2J\x1b[H"


class PageWorkshop(AppService):
    """Run the workshop of a page.

    - ``words``: the workshop's arguments, such as ``--session NAME``.
    - ``send``: a function that sends bytes to the page's terminal.
    - ``close``: a function that closes the page's connection, called when the workshop has ended.
    """

    def __init__(
        self,
        words: Sequence[str],
        send: Callable[[bytes], Awaitable[None]],
        close: Callable[[], Awaitable[object]],
    ) -> None:
        async def nothing(_: str) -> None:
            """Ignore a request to open another page or to save a file. Such requests come as text messages; the
            workshop sends none.
            """

        async def closed() -> None:
            await close()

        super().__init__("", write_bytes=send, write_str=nothing, close=closed, download_manager=DownloadManager())
        self._words = tuple(words)

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        # There is no shell between, and a session of its own: the server passes on Ctrl-C from its terminal.
        self._process = await asyncio.create_subprocess_exec(
            *command("jitter_workshop", *self._words),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self._build_environment(width, height) | {SERVED: "1"},
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def run(self) -> None:
        """Pass on the workshop's output until the workshop has ended. Then send the last lines of the workshop's
        standard error, and close the page.
        """
        process = self._process
        assert process is not None
        out = process.stdout
        assert out is not None
        assert process.stderr is not None
        said = asyncio.create_task(_tail(process.stderr))
        # A page that is gone accepts nothing more; ``stop`` tells its workshop.
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, RuntimeError):
            await self._draw(out)
        with contextlib.suppress(OSError):
            while await out.read(1 << 16):
                """Read and drop the rest of the output: the workshop could not end while its pipe is full."""
        await process.wait()
        with contextlib.suppress(ConnectionError, RuntimeError):
            words = last_words(await said)
            if words:
                await self.remote_write_bytes(words)
            await self.remote_close()

    async def _draw(self, out: asyncio.StreamReader) -> None:
        if await out.readline() != b"__GANGLION__\n":
            return
        while True:
            head = await out.readexactly(5)
            payload = await out.readexactly(int.from_bytes(head[1:], "big"))
            if head[:1] == b"D":
                await self.on_data(payload)

    async def stop(self) -> None:
        """End the workshop and wait for its end. Kill the workshop after PATIENCE_S seconds."""
        task, self._task = self._task, None
        if task is None:
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.send_meta({"type": "quit"})
                await asyncio.shield(task)
        except TimeoutError:
            self._kill()
            await task
        except asyncio.CancelledError:
            self._kill()
            raise

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def last_words(said: bytes) -> bytes:
    """Return the last lines of a workshop's standard error, as output for an empty screen. Return b"" if there are
    none."""
    lines = [clean(line, PATH) for line in said.decode("utf-8", "replace").splitlines()]
    text = "\r\n".join(line for line in lines if line)
    return f"{CLEAR}{text}\r\n".encode() if text else b""


async def _tail(stream: asyncio.StreamReader) -> bytes:
    said = b""
    while data := await stream.read(_LAST_WORDS):
        said = (said + data)[-_LAST_WORDS:]
    return said
