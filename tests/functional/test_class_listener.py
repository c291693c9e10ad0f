"""The listening process: a process for each connection, a limit for each user, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop.agent import transport
from jitter_workshop.agent.service import listener
from jitter_workshop.agent.service.listener import Listener, inherited
from jitter_workshop.agent.transport import SocketLink
from jitter_workshop.errors import HostError

LIMIT_S = 20.0
"""Only ends a test that has failed."""


def echo() -> None:
    """Serves by sending back what comes, with the number of the process."""
    while data := os.read(0, 4096):
        os.write(1, f"{os.getpid()}:".encode() + data)


def crash() -> None:
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGKILL)


class Running:
    def __init__(self, folder: Path, serve: Callable[[], None], each: int = 4, most: int = 512) -> None:
        self.path = str(folder / "s")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(self.path)
        listening.listen(8)
        self.pid = os.fork()
        if self.pid == 0:
            try:
                Listener(listening, serve, each, most).run()
                os._exit(0)
            finally:
                os._exit(70)
        listening.close()

    def connect(self) -> socket.socket:
        one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        one.settimeout(LIMIT_S)
        one.connect(self.path)
        return one

    def children(self) -> list[str]:
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def end(self) -> int:
        os.kill(self.pid, signal.SIGTERM)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def echoing(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path, echo)
    try:
        yield running
    finally:
        assert running.end() == 0


def until(what: Callable[[], bool]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_each_connection_has_a_process_of_its_own(echoing: Running) -> None:
    two = [echoing.connect() for _ in range(2)]
    answers = set()
    for one in two:
        one.send(b"x")
        answers.add(one.recv(100).split(b":")[0])
    assert len(answers) == 2
    for one in two:
        one.close()
    until(lambda: echoing.children() == [])


def test_a_user_has_so_many_and_no_more(echoing: Running) -> None:
    four = [echoing.connect() for _ in range(4)]
    for one in four:
        one.send(b"x")
        assert one.recv(100)
    with echoing.connect() as fifth:
        reply = json.loads(fifth.recv(4096))
        assert "you already have 4 connections" in reply["error"]["message"]
        assert fifth.recv(100) == b""
    four.pop().close()
    until(lambda: len(echoing.children()) == 3)
    with echoing.connect() as again:
        again.send(b"x")
        assert again.recv(100)
    for one in four:
        one.close()


def test_a_child_that_dies_does_not_end_others(tmp_path: Path) -> None:
    running = Running(tmp_path, crash)
    for _ in range(5):
        with running.connect() as one:
            one.send(b"x")
            assert one.recv(100) == b""
    until(lambda: running.children() == [])
    assert running.end() == 0


def test_stopping_asks_every_child_to_stop_and_waits(tmp_path: Path) -> None:
    running = Running(tmp_path, echo)
    one = running.connect()
    one.send(b"x")
    assert one.recv(100)
    assert running.end() == 0
    assert one.recv(100) == b""
    one.close()


def test_only_one_socket_is_taken_over() -> None:
    me = str(os.getpid())
    assert inherited({"LISTEN_PID": me, "LISTEN_FDS": "1"}) == 3
    for other in ({}, {"LISTEN_PID": "1", "LISTEN_FDS": "1"}, {"LISTEN_PID": me, "LISTEN_FDS": "2"}):
        with pytest.raises(HostError):
            inherited(other)


def test_a_caller_waits_for_a_place_if_the_queue_is_full(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(path)
        listening.listen(0)
        fillers = []
        while True:
            fillers.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            fillers[-1].setblocking(False)
            try:
                fillers[-1].connect(path)
            except BlockingIOError:
                break
        accepting = threading.Timer(0.2, listening.accept)
        accepting.start()
        SocketLink(path).close(0.0)
        accepting.join()
        for one in fillers:
            one.close()


@pytest.mark.soak
def test_while_one_floods_others_are_let_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """50 threads connect and close without end, more than the queue holds; who asks meanwhile is connected."""
    monkeypatch.setattr(listener, "_BACKLOG", 8)
    monkeypatch.setattr(transport, "CONNECT_LIMIT_S", 60.0)
    running = Running(tmp_path, echo)

    def flood() -> None:
        while True:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as one:
                one.connect(running.path)

    crowd = os.fork()
    if crowd == 0:
        for _ in range(49):
            threading.Thread(target=flood, daemon=True).start()
        flood()
    try:
        until(lambda: len(os.listdir(f"/proc/{crowd}/task")) == 50)  # noqa: PTH208
        for _ in range(5):
            SocketLink(running.path).close(0.0)
        assert os.waitpid(crowd, os.WNOHANG) == (0, 0)
    finally:
        os.kill(crowd, signal.SIGKILL)
        os.waitpid(crowd, 0)
        assert running.end() == 0
