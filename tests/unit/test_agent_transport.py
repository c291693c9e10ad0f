"""Test the end of a link: a later write reaches no other file, and the end waits for a line under way."""

from __future__ import annotations

import contextlib
import json
import os
import threading

import pytest

from jitter_workshop.agent.transport import Broken, Link
from jitter_workshop.errors import HeldError, HostError, UsageError, WorkshopError


class PipeLink(Link):
    """A link without a peer, over two pipes."""

    def __init__(self) -> None:
        source, self._back = os.pipe()
        self.there, sink = os.pipe()
        super().__init__(source, sink)

    def _close(self, wait_s: float) -> None:
        for number in (self.source, self._back, self.there, self.sink):
            os.close(number)


@pytest.mark.parametrize(
    ("kind", "raised"),
    [("HeldError", HeldError), ("UsageError", UsageError), ("HostError", HostError), ("Other", HostError)],
)
def test_an_error_of_the_service_keeps_its_kind(kind: str, raised: type[WorkshopError]) -> None:
    link = PipeLink()
    body = {"id": 1, "error": {"message": "no", "advice": "wait", "kind": kind}}
    os.write(link._back, json.dumps(body).encode() + b"\n")
    with pytest.raises(WorkshopError) as found:
        link.ask("apply", 5.0)
    assert type(found.value) is raised
    assert found.value.sentence() == "no; wait"


def test_a_write_after_the_end_does_not_reach_a_new_file_with_the_same_descriptor() -> None:
    link = PipeLink()
    link.write(b"heard\n")
    assert os.read(link.there, 100) == b"heard\n"
    link.close(0.0)
    source, sink = os.pipe()
    try:
        os.set_blocking(source, False)
        # The kernel gives the lowest number that is free; if it is another one, it is made this one.
        if sink != link.sink:
            os.dup2(sink, link.sink)
        with pytest.raises(OSError, match="has ended"):
            link.write(b'{"verb":"heartbeat"}\n')
        with pytest.raises(Broken):
            link.ask("hello", 1.0)
        with pytest.raises(BlockingIOError):
            os.read(source, 100)
    finally:
        for number in {source, sink, link.sink}:
            os.close(number)


def test_the_end_waits_for_a_line_that_is_being_written() -> None:
    link = PipeLink()
    os.set_blocking(link.sink, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(link.sink, b"x" * 4096)
    os.set_blocking(link.sink, True)
    whole = b"y" * 4096
    writer = threading.Thread(target=link.write, args=(whole,))
    writer.start()
    while not link._talking.locked():
        pass
    ended = threading.Event()
    link._close = lambda wait_s: ended.set()  # type: ignore[method-assign]
    closer = threading.Thread(target=link.close, args=(0.0,))
    closer.start()
    assert not ended.is_set()
    read = b""
    while not read.endswith(whole):
        read += os.read(link.there, 65_536)
    writer.join(10.0)
    closer.join(10.0)
    assert ended.is_set()
    PipeLink._close(link, 0.0)
