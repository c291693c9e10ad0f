"""One run at a time on a host: who has the turn, queueing, and that it dies with its holder."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator

import pytest

from jitter_workshop.bench import lock
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import LONGEST_NAME, TURN_VARIABLE, host_turn
from jitter_workshop.errors import BusyError, UsageError, WaitStopped
from tests.holding import turn_held

pytestmark = pytest.mark.host


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


def test_a_name_that_no_socket_can_have_is_told_with_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, bytes_ in (("é" * 60, 120), ("x" * (LONGEST_NAME + 1), 108)):
        monkeypatch.setenv(TURN_VARIABLE, name)
        with pytest.raises(UsageError, match=f"has {bytes_} bytes") as caught, host_turn():
            pass
        assert TURN_VARIABLE in caught.value.advice
    monkeypatch.setenv(TURN_VARIABLE, f"{os.getpid()}".ljust(LONGEST_NAME, "x"))
    with host_turn():
        assert lock.run_in_progress()


def test_the_turn_comes_when_the_holder_is_killed(holder: subprocess.Popen[str]) -> None:
    said: list[str] = []

    def queued(sentence: str) -> None:
        said.append(sentence)
        holder.kill()

    with host_turn(wait_s=20, queued=queued):
        assert f"pid {holder.pid}," in said[0]
        assert said[-1] == ""


def test_a_wait_ends_in_time(holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens meanwhile: it waits once, for no longer than it was told, and then says who has the turn."""
    waited: list[float] = []

    class Poller:
        def register(self, *_: int) -> None:
            pass

        def poll(self, milliseconds: float) -> list[tuple[int, int]]:
            waited.append(milliseconds)
            return []

    monkeypatch.setattr(lock.select, "poll", Poller)
    with pytest.raises(BusyError, match="is measuring"), host_turn(wait_s=0.5):
        pass
    assert len(waited) == 1
    assert 0 < waited[0] <= 500


def test_a_wait_can_be_stopped(holder: subprocess.Popen[str]) -> None:
    token = CancelToken()
    threading.Timer(0.05, token.cancel).start()
    with pytest.raises(WaitStopped, match="stopped while waiting"), host_turn(wait_s=20, cancel=token):
        pass


def test_a_second_measurement_waits_until_the_first_releases_the_lock() -> None:
    queued, inside = threading.Event(), threading.Event()

    def second() -> None:
        with host_turn(wait_s=20, queued=lambda _: queued.set()):
            inside.set()

    thread = threading.Thread(target=second)
    with host_turn():
        thread.start()
        assert queued.wait(20)
        assert not inside.is_set()
    thread.join(20)
    assert inside.is_set()
