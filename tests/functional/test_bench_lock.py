"""One run at a time on a host: who has the turn, queueing, and that it dies with its holder."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE, Holder, host_turn
from jitter_workshop.errors import BusyError, WaitStopped
from tests.holding import turn_held


@pytest.fixture(autouse=True)
def own_turn(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    monkeypatch.setenv(TURN_VARIABLE, f"jitter-workshop.test.{os.getpid()}.{request.node.name}")


@pytest.fixture
def holder() -> Iterator[subprocess.Popen[str]]:
    with turn_held() as process:
        yield process


def test_the_holder_is_named(holder: subprocess.Popen[str]) -> None:
    with pytest.raises(BusyError) as caught, host_turn():
        pass
    assert f"uid {os.getuid()}, pid {holder.pid}, python" in caught.value.message
    assert "--wait" not in caught.value.advice


def test_the_turn_comes_when_the_holder_is_killed(holder: subprocess.Popen[str]) -> None:
    behind: list[int] = []

    def queued(who: Holder) -> None:
        behind.append(who.pid)
        holder.kill()

    with host_turn(wait_s=20, queued=queued):
        assert behind[0] == holder.pid


def test_a_wait_ends_in_time(holder: subprocess.Popen[str]) -> None:
    with pytest.raises(BusyError, match="is measuring"), host_turn(wait_s=0.05):
        pass


def test_a_wait_can_be_stopped(holder: subprocess.Popen[str]) -> None:
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(WaitStopped, match="stopped while waiting"), host_turn(wait_s=20, cancel=token):
        pass


def test_two_threads_take_turns() -> None:
    inside = []
    together = []

    def work() -> None:
        with host_turn(wait_s=20):
            inside.append(1)
            together.append(len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [1] * 8
