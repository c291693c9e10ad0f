"""explain with a program: exit codes, outputs, what cannot be explained, and what is told without the trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.programs.targets import OF_KERNEL
from jitter_workshop.report.cause_words import COUNTERS_ONLY
from tests import reportschema

pytestmark = pytest.mark.host

SPIN = "import time\nends = time.monotonic() + {}\nwhile time.monotonic() < ends: pass"


@pytest.fixture
def no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without the rights to trace."""

    def refuse(self: AgentConnection) -> None:
        raise HostError("tracing needs root's rights", "ask for them")

    monkeypatch.setattr(AgentConnection, "tracer", refuse)


def told(capfd: pytest.CaptureFixture[str]) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(capfd.readouterr().out)
    whole = json.loads(reportschema.PROGRAM.read_text(encoding="utf-8"))
    assert reportschema.problems(said, whole, whole) == []
    return said


def test_a_command_keeps_its_output_and_its_exit_code(no_trace: None, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--", "sh", "-c", "echo mine; exit 7"]) == 7
    out, err = capfd.readouterr()
    assert out == "mine\n"
    assert COUNTERS_ONLY in err
    assert "exit code 7" in err


def test_with_json_the_commands_output_goes_aside(no_trace: None, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", "--", "sh", "-c", "echo mine; exit 3"]) == 3
    out, err = capfd.readouterr()
    said = json.loads(out)
    assert err == "mine\n"
    assert (said["evidence"], said["exit_code"], said["target"]["kind"]) == ("counters", 3, "command")
    assert said["notes"]["trace"] == "tracing needs root's rights"


@pytest.mark.parametrize(
    ("script", "code"), [("exec <&- >&- 2>&-; exit 4", 4), ("yes | head -n 1000000; exit 5", 5), ("kill -9 $$", 137)]
)
def test_a_command_may_close_its_terminal_or_fill_it(
    no_trace: None, capfd: pytest.CaptureFixture[str], script: str, code: int
) -> None:
    assert main(["explain", "--", "sh", "-c", script]) == code
    out, err = capfd.readouterr()
    assert out.count("y\n") == (1_000_000 if "yes" in script else 0)
    assert f"exit code {code}" in err


def test_a_step_of_the_wall_clock_changes_no_time(
    no_trace: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards, real = iter(range(0, 10_000_000, 3_600)), time.time
    monkeypatch.setattr(time, "time", lambda: real() - next(backwards))
    assert main(["explain", "--json", "--", "sleep", "0.1"]) == 0
    assert 0.1e9 <= json.loads(capfd.readouterr().out)["duration_ns"] < 60e9


def test_counters_tell_how_long_a_program_ran(no_trace: None, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", "--", sys.executable, "-c", SPIN.format(0.6)]) == 0
    said = told(capfd)
    (thread,) = said["threads"]
    assert 0 < thread["ran_ns"] + thread["waited_ns"] <= said["duration_ns"] * 1.01
    assert thread["ran_ns"] + thread["waited_ns"] > 0.4e9
    # A field that counters cannot fill is null, with its reason.
    assert (said["causes"], thread["blocked_ns"], thread["causes"]) == (None, None, None)
    assert {"causes", "worst", "threads.blocked_ns", "threads.causes"} <= said["notes"].keys()


def test_a_running_process_and_its_children_are_counted(no_trace: None, capfd: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen(["sh", "-c", "while :; do sleep 0.01; done"])
    try:
        assert main(["explain", "--json", "--pid", str(child.pid), "--duration", "0.6"]) == 0
    finally:
        child.kill()
        child.wait()
    said = told(capfd)
    assert said["target"] == {"kind": "process", "name": "sh", "pid": child.pid}
    assert child.pid in {thread["tid"] for thread in said["threads"]}
    assert 0.5e9 < said["duration_ns"] < 30e9


def test_a_process_that_ends_ends_the_observation(no_trace: None, capfd: pytest.CaptureFixture[str]) -> None:
    child = subprocess.Popen(["sleep", "0.3"])
    began = time.monotonic()
    try:
        assert main(["explain", "--json", "--pid", str(child.pid), "--duration", "600"]) == 0
    finally:
        child.wait()
    assert time.monotonic() - began < 60
    assert told(capfd)["duration_ns"] < 60e9


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "choose what is to be explained"),
        (["run", "--pid", "1"], "contradict each other"),
        (["--pid", "1", "--", "true"], "contradict each other"),
        (["--thread", "x", "--", "true"], "--thread needs --pid"),
        (["run", "--duration", "3"], "--duration is for a program"),
        (["--duration", "0", "--", "true"], "--duration must be a number"),
        (["--duration", "nan", "--", "true"], "not a finite number"),
        (["--pid", "4194304"], "there is no process 4194304"),
        (["--pid", "2"], OF_KERNEL),
        (["--cgroup", "/no/such"], "there is no control group /no/such"),
        (["--", "/no/such/command"], "No such file or directory (/no/such/command)"),
        (["--"], "a command must follow"),
    ],
)
def test_a_refusal_to_explain_is_one_sentence(
    no_trace: None, capfd: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    if words == ["--pid", "2"] and "kthreadd" not in Path("/proc/2/stat").read_text():
        pytest.skip("no thread of the kernel is seen from this container")
    assert main(["explain", "--json", *words]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert why in err
    assert len(err.splitlines()) == 1


def test_a_recorded_host_has_no_programs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "proc").mkdir()
    assert main(["explain", "--root", str(tmp_path), "--pid", "1"]) == 2
    assert "a recorded host can be read" in capfd.readouterr().err


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_verb_and_its_command(tmp_path: Path, signum: signal.Signals) -> None:
    ran = tmp_path / "ran"
    script = f"echo $$ > {ran}; exec sleep 600"
    words = [sys.executable, "-m", "jitter_workshop", "explain", "--", "sh", "-c", script]
    verb = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    until(lambda: ran.exists() and ran.read_text().strip() != "")
    verb.send_signal(signum)
    out, _ = verb.communicate(timeout=60)
    assert verb.returncode == 128 + signum
    assert out == b""
    until(lambda: not Path(f"/proc/{ran.read_text().strip()}").exists())


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.01)
