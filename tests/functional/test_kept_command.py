"""A command under its keeper, for real: what is told of its end, and that nothing of it is left, whatever it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.bench import launch
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.flow.programs import kept
from jitter_workshop.flow.programs.keeper import processes_below
from jitter_workshop.flow.programs.kept import Ended, KeptCommand
from jitter_workshop.flow.programs.launch import NOT_STARTED


def ran(*words: str, timeout_s: float = 60.0, capture: int = 4096) -> Ended:
    with KeptCommand(words, timeout_s, capture) as command:
        command.release()
        return command.result()


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    before = processes_below(os.getpid())
    yield  # type: ignore[misc]
    assert processes_below(os.getpid()).keys() <= before.keys()


def test_its_times_and_its_output_are_told() -> None:
    spin = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo p99=7; echo done >&2"
    began = time.monotonic_ns()
    ended = ran("sh", "-c", spin)
    assert (ended.code, ended.why, ended.left, ended.stuck) == (0, "", 0, ())
    assert ended.output == "p99=7\ndone\n"
    assert ended.user_ns + ended.system_ns > 0
    assert 0 < ended.wall_ns < time.monotonic_ns() - began


def test_the_time_of_a_child_that_was_waited_for_counts() -> None:
    spin = "import time\nwhile time.process_time() < 0.1: pass"
    ended = ran("sh", "-c", f"'{sys.executable}' -c '{spin}'; true")
    assert ended.user_ns + ended.system_ns > 90_000_000


def test_nothing_runs_before_it_is_released(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with KeptCommand(("touch", str(made)), 60.0) as command:
        assert command.wait(0.05) is None
        assert not made.exists()
        os.sched_setaffinity(command.pid, os.sched_getaffinity(0))
    assert not made.exists()


def test_its_input_is_empty_and_it_has_no_terminal() -> None:
    assert (
        ran("sh", "-c", "cat; test -t 0 || true; (: </dev/tty) 2>/dev/null && echo tty || echo none").output == "none\n"
    )


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'it broke' >&2; exit 3", "the command ended with exit code 3 (it broke); both commands of a round have"),
        ("kill -SEGV $$", "the command was killed by SIGSEGV"),
        (r"printf 'a\033[31mb\n'; exit 1", "exit code 1 (a [31mb)"),
        ("exec <&- >&- 2>&-; exit 4", "exit code 4;"),
    ],
)
def test_a_command_that_fails_is_told_with_its_last_words(script: str, says: str) -> None:
    with pytest.raises(MeasureError) as told:
        ran("sh", "-c", script)
    assert says in told.value.sentence()
    assert "\x1b" not in told.value.sentence()


@pytest.mark.parametrize("words", [("/no/such",), ("/",), ("a\0b",)])
def test_a_command_that_cannot_be_started_is_told(words: tuple[str, ...]) -> None:
    with pytest.raises(HostError, match=NOT_STARTED):
        ran(*words)


def test_a_long_output_is_read_to_its_end_and_the_end_of_it_is_kept() -> None:
    ended = ran("sh", "-c", "yes | head -n 1000000; echo p99=1", capture=1000)
    assert ended.code == 0
    assert len(ended.output) == 1000
    assert ended.output.endswith("y\np99=1\n")


def test_processes_that_a_command_leaves_behind_are_ended_also_outside_of_its_group() -> None:
    ended = ran("sh", "-c", "sleep 100 & setsid sleep 100 & true")
    assert (ended.code, ended.left) == (0, 2)


def test_a_time_limit_ends_processes_that_ignore_signals_and_write_without_end() -> None:
    stubborn = "trap '' TERM HUP INT; setsid sh -c \"trap '' TERM; sleep 100\" & yes"
    with pytest.raises(MeasureError) as told:
        ran("sh", "-c", stubborn, timeout_s=0.2)
    assert "did not end within 0.2 s" in told.value.message
    assert "--timeout" in told.value.advice


def test_a_command_that_forks_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_PROCESSES", 20)
    # Half of them leave the group. The limit of 200 is this test's own, should the keeper fail.
    bomb = "i=0; while [ $i -lt 100 ]; do i=$((i+1)); setsid sleep 100 & sleep 100 & done; wait"
    with pytest.raises(MeasureError, match="started more than 20 processes and was ended"):
        ran("sh", "-c", bomb)


def test_a_cancelled_wait_ends_the_command() -> None:
    token = CancelToken()
    with KeptCommand(("sleep", "100"), 600.0) as command:
        command.release()
        token.cancel("SIGINT")
        with pytest.raises(Cancelled):
            command.result(token)
    token.close()


def gone(pid: int) -> bool:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):  # the latter if it ends between open and read
            return True
        if b") Z " in state:
            return True
        time.sleep(0.02)
    return False


PARENT = """
import sys
from jitter_workshop.flow.programs.kept import KeptCommand
with KeptCommand(("sleep", "100"), 600.0) as command:
    command.release()
    print(command.pid, command._child.pid, flush=True)
    command.result()
"""


@pytest.mark.parametrize("which", ["parent", "keeper"])
def test_a_kill_of_the_program_or_of_the_keeper_ends_the_command(which: str) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stderr is not None
    command, keeper = map(int, parent.stdout.readline().split())
    os.kill(parent.pid if which == "parent" else keeper, signal.SIGKILL)
    assert gone(command)
    assert gone(keeper)
    told = parent.communicate()[1]
    assert (which == "parent") != ("was killed by SIGKILL" in told)


def test_a_keeper_that_breaks_is_an_error_and_not_a_result(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Callable[..., list[str]] = launch.command
    monkeypatch.setattr(launch, "command", lambda module, *words: [*real(module, *words)[:3], "raise SystemExit(9)"])
    with pytest.raises(MeasureError, match="ended with exit code 9"):
        KeptCommand(("true",), 1.0)
