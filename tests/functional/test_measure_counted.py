"""measure --evidence where no trace is to be had: the run is made, counted and kept, and explain says what it can."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.client import no_sudo
from jitter_workshop.bench import launch
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.cli import main
from jitter_workshop.errors import HostError
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.measuring.trace_recorder import Tracer
from jitter_workshop.model.run import Run, SilentObserver
from jitter_workshop.model.trace import TraceInfo, TraceRead
from jitter_workshop.session.store import SessionStore
from tests.ownturn import turn_of

pytestmark = pytest.mark.host

REPOSITORY = Path(__file__).parents[2]


class Refusing:
    """An agent whose kernel has no tracefs."""

    def evidence_begin(self, pid: int, tids: Sequence[int], cpus: str, clock: str, stacks: bool) -> TraceInfo:
        raise HostError("this kernel has no tracefs", "mount it")

    def evidence_start(self) -> None:
        raise AssertionError("nothing was begun")

    def evidence_read(self) -> TraceRead:
        raise AssertionError("nothing was begun")

    def evidence_end(self) -> None:
        raise AssertionError("nothing was begun")


def no_rights() -> Tracer:
    raise no_sudo()


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child measures nothing."""
    real = launch.command
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    monkeypatch.setattr(launch, "command", lambda module, *arguments: real("scripted_worker", "ok"))


def made(evidence: bool, tracer: Callable[[], Tracer]) -> Run:
    """A run of the scripted child, kept in a session."""
    request = MeasureRequest(workload="spin", duration_s=0.5, label="wanted", evidence=evidence)
    with SessionStore().create("monday", "lab03") as session:
        return measure_run(request, session, SilentObserver(), CancelToken(), tracer=tracer)


@pytest.mark.parametrize(
    ("tracer", "why"),
    [(no_rights, no_sudo().message), (Refusing, "this kernel has no tracefs; mount it")],
)
def test_where_no_trace_is_to_be_had_the_run_carries_counters(
    scripted: None, capsys: pytest.CaptureFixture[str], tracer: Callable[[], Tracer], why: str
) -> None:
    run = made(True, tracer)
    assert run.complete
    assert run.counters is not None
    assert run.counters.why_no_trace == why
    assert "no trace" in run.notes["evidence"]
    assert "counters" not in run.notes
    assert main(["explain", "wanted", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["run"], said["evidence"], said["causes"]) == (run.id, "counters", None)
    assert said["notes"]["trace"] == why
    assert said["perf_event_paranoid"] == run.counters.perf_event_paranoid


def test_a_run_that_was_not_to_be_traced_has_no_evidence(scripted: None, capsys: pytest.CaptureFixture[str]) -> None:
    run = made(False, no_rights)
    assert run.counters is None
    assert "counters" in run.notes
    assert main(["explain", "wanted", "--json"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "has no evidence; measure again with --evidence" in captured.err


def python_of_others() -> str:
    """An interpreter that every user may run, and that has what this one has; skipped where there is none."""
    for python in (sys.executable, shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""):
        check = "import sys, psutil, hdrh, cffi; sys.exit(sys.version_info < (3, 11))"
        try:
            done = subprocess.run(
                [python, "-B", "-c", check],
                env={"PYTHONPATH": path_of_others()},
                user=65534,
                group=65534,
                extra_groups=[],
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python
    pytest.skip("no interpreter here that other users may run")


def path_of_others() -> str:
    return os.pathsep.join([str(REPOSITORY), *(entry for entry in sys.path if entry.endswith("site-packages"))])


@pytest.mark.native
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_user_without_the_right_to_trace_sees_counters(tmp_path: Path) -> None:
    python = python_of_others()
    # Not below tmp_path, which is for this user alone.
    home = Path(tempfile.mkdtemp(prefix="jitter-workshop-test-"))
    os.chown(home, 65534, 65534)

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [python, "-B", "-m", "jitter_workshop", *words],
            env={
                "PYTHONPATH": path_of_others(),
                "HOME": str(home),
                "PATH": "/nowhere",
                TURN_VARIABLE: turn_of(tmp_path),
            },
            user=65534,
            group=65534,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    try:
        measured = call("measure", "--workload", "spin", "--duration", "0.5", "--label", "mine", "--evidence")
        assert measured.returncode == 0, measured.stderr
        assert "no trace" in measured.stdout
        explained = call("explain", "mine", "--json")
        assert (explained.returncode, explained.stderr) == (0, "")
        said = json.loads(explained.stdout)
        assert (said["evidence"], said["causes"]) == ("counters", None)
        assert said["notes"]["trace"].startswith("recording the kernel's trace needs root's rights")
        (thread,) = said["threads"]
        assert thread["ran_ns"] > 0
        if said["waited_ns"] is not None:
            # By its own clock and by the scheduler's: a sampler that never sleeps runs or waits.
            assert thread["ran_ns"] + thread["waited_ns"] <= said["counted_s"] * 1e9
        assert call("explain", "mine").returncode == 0
    finally:
        shutil.rmtree(home)
