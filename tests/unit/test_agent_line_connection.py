"""Test a connection of which the caller holds both ends: the agent never waits for the caller."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent import line_connection
from jitter_workshop.agent.line_connection import Gone, LineConnection
from jitter_workshop.errors import HostError

SILENCE_S = 0.3
WAYS = ("pipe", "socket")


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Return what is read from and what is written to: both ends of it are the caller's, too."""
    if request.param == "pipe":
        ends = os.pipe()
        yield ends
        for end in ends:
            os.close(end)
    else:
        one, other = socket.socketpair()
        with one, other:
            yield one.fileno(), other.fileno()


@pytest.mark.parametrize("wire", WAYS, indirect=True)
def test_a_byte_that_the_caller_takes_back_is_not_waited_for(
    wire: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, sink = wire
    quiet = os.open(os.devnull, os.O_WRONLY)
    one = LineConnection(source, quiet)
    real, taken = select.select, []

    def thief(*given: Any) -> Any:
        found = real(*given)
        if source in found[0]:
            taken.append(os.read(source, 100))
        return found

    os.write(sink, b"x")
    monkeypatch.setattr(line_connection.select, "select", thief)
    try:
        with pytest.raises(Gone):
            one.next(lambda: SILENCE_S, None)
    finally:
        one.close()
        os.close(quiet)
    assert taken == [b"x"]


@pytest.mark.parametrize("wire", WAYS, indirect=True)
def test_a_way_that_the_caller_fills_is_not_waited_for(wire: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    _, sink = wire
    quiet = os.open(os.devnull, os.O_RDONLY)
    one = LineConnection(quiet, sink)
    real, filled = select.select, []

    def filler(*given: Any) -> Any:
        found = real(*given)
        if sink in found[1]:
            os.set_blocking(sink, False)
            try:
                while True:
                    filled.append(os.write(sink, b"x" * 4096))
            except BlockingIOError:
                os.set_blocking(sink, True)
        return found

    monkeypatch.setattr(line_connection.select, "select", filler)
    try:
        with pytest.raises(Gone):
            one.send(b"an answer\n", SILENCE_S)
    finally:
        one.close()
        os.close(quiet)
    assert filled


def test_the_end_of_the_input_is_seen_also_where_it_came_first() -> None:
    source, sink = os.pipe()
    answers, answer = os.pipe()
    os.write(sink, b"last\n")
    os.close(sink)
    one = LineConnection(source, answer)
    try:
        assert one.next(lambda: 20.0, None) == b"last"
        assert one.next(lambda: 20.0, None) is None
        assert one.gone()
    finally:
        one.close()
        for end in (source, answers, answer):
            os.close(end)


def test_a_caller_that_reads_no_answer_is_not_served(tmp_path: Path) -> None:
    source, sink = os.pipe()
    named = tmp_path / "named"
    os.mkfifo(named)
    answers = os.open(named, os.O_RDONLY | os.O_NONBLOCK)
    answer = os.open(named, os.O_WRONLY)
    os.close(answers)
    try:
        with pytest.raises(HostError, match="no process reads"):
            LineConnection(source, answer)
    finally:
        for end in (source, sink, answer):
            os.close(end)
