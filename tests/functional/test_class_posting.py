"""Posting from a student's own process: ``measure`` and the workshop, to a board that listens, hangs, or is away."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop import cli
from jitter_workshop.bench import launch
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.classroom.client import SILENT, started
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.flow.classes import posting
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring.measure import measure_run
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.turns import classhost
from jitter_workshop.flow.turns.classhost import ClassHost
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.run import Progress, RunObserver, RunStarted
from tests.ownturn import turn_of

CHECKOUT = Path(posting.__file__).resolve().parents[2]

SPIN = MeasureRequest(workload="spin", duration_s=0.5)


@pytest.fixture(autouse=True)
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure with the scripted child, in a turn of one's own."""
    real = launch.command
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    monkeypatch.setattr(launch, "command", lambda module, *arguments: real("scripted_worker", "ok"))


class Watching(RunObserver):
    def __init__(self) -> None:
        self.measured: list[bool] = []

    def started(self, event: RunStarted) -> None:
        self.measured.append(background_gate.HERE.measured)

    def block_done(self, progress: Progress) -> None:
        self.measured.append(background_gate.HERE.measured)


def test_every_run_keeps_this_process_still() -> None:
    watching = Watching()
    measure_run(SPIN, None, watching, CancelToken())
    assert watching.measured == [True, True, True]
    assert not background_gate.HERE.measured


# The verb ------------------------------------------------------------------------------------------------------------

SERVE = """
import sys
from pathlib import Path
sys.path.insert(0, {tree!r})
from jitter_workshop.agent.policy import Member
from jitter_workshop.classroom.service import serve_board_connection
serve_board_connection(Path({folder!r}), Member(1001, "grace", False, (), None))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "board"
    made.mkdir()
    return made


@pytest.fixture
def class_host(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """This host as a class host whose turn is free; gives how to say which program is the board's service."""

    @contextlib.contextmanager
    def free(*_: object, **__: object) -> Iterator[None]:
        yield None

    described = ClassFile("a class", CpuSet.of([0]))
    monkeypatch.setattr(classhost, "class_host", lambda: ClassHost(described, "grace", False))
    monkeypatch.setattr(classhost, "turn_for", free)

    def use(program: str) -> None:
        command = (sys.executable, "-c", program)
        monkeypatch.setattr(posting, "connect_to_board", lambda stop: started(command, stop))

    return use


MEASURE = ["measure", "--workload", "spin", "--duration", "0.5", "--label", "mine"]


def test_a_measured_run_is_on_the_board(
    folder: Path,
    class_host: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a busy machine the board's service can take longer to start than a learner would wait.
    monkeypatch.setattr(posting.Poster.close, "__defaults__", (60.0,))
    class_host(SERVE.format(tree=str(CHECKOUT), folder=str(folder)))
    assert cli.main([*MEASURE, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    with BoardStore(folder) as store:
        (row,) = store.board("here", time.time()).rows
    assert row.user == "grace"
    assert [(run.id, run.label, run.workload) for run in row.posted.runs] == [(told["id"], "mine", "spin")]


@pytest.mark.parametrize(
    ("program", "why"),
    [("raise SystemExit('it is away')", "it is away"), ("import time; time.sleep(600)", SILENT)],
)
def test_a_board_that_is_away_or_hangs_costs_a_line_and_no_run(
    class_host: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    why: str,
) -> None:
    class_host(program)
    monkeypatch.setattr(posting.Poster.close, "__defaults__", (1.0,))
    began = time.monotonic()
    assert cli.main([*MEASURE, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["label"] == "mine"
    assert "the board does not show this run yet" in said.err
    assert why in said.err
    assert time.monotonic() - began < 30.0
