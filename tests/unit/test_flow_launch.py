"""Test the start of a command: nothing of it runs before its release, and it ends whatever happens."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jitter_workshop.errors import HostError
from jitter_workshop.flow.programs import launch
from jitter_workshop.flow.programs.launch import StartedCommand


@contextmanager
def started(*words: str, quiet: bool = False) -> Iterator[StartedCommand]:
    command = StartedCommand(words, quiet=quiet)
    try:
        yield command
    finally:
        command.end()


def until_asleep(pid: int) -> None:
    """Wait until a process can go no further by itself: it sleeps, or it has ended."""
    ends = time.monotonic() + 30.0
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "SZ":
        assert time.monotonic() < ends, "it neither sleeps nor ends"
        time.sleep(0.001)


def test_nothing_of_a_command_runs_before_its_release(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with started("touch", str(made)) as command:
        until_asleep(command.pid)
        assert not made.exists()
        assert command.wait(0) is None
        command.release()
        assert command.wait(30) == 0
        assert made.exists()


def test_a_command_that_is_never_released_never_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with started("touch", str(made)) as command:
        pass
    assert command.wait(0) is not None
    assert not made.exists()


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)])
def test_the_exit_code_is_the_commands(script: str, code: int) -> None:
    with started("sh", "-c", script) as command:
        command.release()
        assert command.wait(30) == code


def test_a_missing_command_is_said(tmp_path: Path) -> None:
    with started(str(tmp_path / "no\x1bthing")) as command, pytest.raises(HostError, match="No such file"):
        command.release()
    with started(str(tmp_path)) as command, pytest.raises(HostError, match="cannot be started: Permission denied"):
        command.release()


def test_a_command_ends_by_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with started("sleep", "60") as command:
        command.release()
    assert command.wait(0) == 128 + signal.SIGTERM
    monkeypatch.setattr(launch, "PATIENCE_S", 0.2)
    os.mkfifo(ready := tmp_path / "ready")
    with started("sh", "-c", f"trap '' TERM; echo > '{ready}'; while :; do sleep 1; done") as command:
        command.release()
        assert ready.read_text() == "\n"
    assert command.wait(0) == 128 + signal.SIGKILL


def test_a_signal_right_after_the_release_ends_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.close

    def close(file: int) -> None:
        real(file)
        raise KeyboardInterrupt

    with started("sleep", "60") as command:
        monkeypatch.setattr(launch.os, "close", close)
        with pytest.raises(KeyboardInterrupt):
            command.release()
        monkeypatch.setattr(launch.os, "close", real)
    assert command.wait(0) == 128 + signal.SIGTERM


def test_output_goes_to_the_same_place_or_aside(capfd: pytest.CaptureFixture[str]) -> None:
    for quiet in (False, True):
        with started("echo", f"aside {quiet}", quiet=quiet) as command:
            command.release()
            assert command.wait(30) == 0
    assert capfd.readouterr() == ("aside False\n", "aside True\n")


def test_a_command_finds_the_signals_as_a_shell_gives_them() -> None:
    """Python ignores SIGPIPE; a command of the user's may rely on it."""
    # SIGPIPE and SIGXFSZ; others may be ignored already where the tests were started.
    look = "ignored=$(sed -n 's/SigIgn:.//p' /proc/self/status); [ $((0x$ignored & 0x1001000)) -eq 0 ]"
    with started("sh", "-c", look) as command:
        command.release()
        assert command.wait(30) == 0
