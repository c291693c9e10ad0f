"""The matrix of this host, measured, kept, drawn, and used."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.bench import launch, pairs
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.cli import main
from jitter_workshop.presenter.runs.progress import Line

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a matrix needs two CPUs"),
]


def test_a_matrix_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("JITTER_WORKSHOP_TURN", f"test-matrix-{os.getpid()}")
    assert main(["measure", "--matrix", "--json"]) == 0
    said = capsys.readouterr()
    assert "at most 60 s" in said.err
    plain = json.loads(said.out)
    size = len(plain["cpus"])
    assert plain["format_version"] == 1
    assert plain["cpus"] == sorted(os.sched_getaffinity(0))[:size]
    rows = plain["one_way_ns"]
    assert [len(row) for row in rows] == [size] * size
    for a, row in enumerate(rows):
        for b, ns in enumerate(row):
            assert ns == rows[b][a]
            assert (ns is None) == (a == b)
            assert ns is None or 1 < ns < 1e8
    assert sum(one["pairs"] for one in plain["clusters"]) == size * (size - 1) // 2
    assert plain["complete"]
    assert main(["chart", "--kind", "matrix"]) == 0
    drawn = capsys.readouterr().out
    assert plain["clusters"][0]["name"] in drawn
    assert max(map(len, drawn.split("\n"))) <= 80
    picture = tmp_path / "m.svg"
    assert main(["chart", "--kind", "matrix", "-o", str(picture), plain["id"][:15]]) == 0
    assert picture.read_text().startswith("<svg")
    capsys.readouterr()
    assert main(["sessions", "show", "--json"]) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["matrices"]] == [plain["id"]]


def test_options_of_a_run_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--matrix", "--noise", "greedy"]) == 2
    assert "--noise is for a run" in capsys.readouterr().err


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """A matrix that would take a minute, in a state of its own; the ids of its measuring processes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("JITTER_WORKSHOP_TURN", f"test-matrix-stop-{os.getpid()}")
    monkeypatch.setattr(pairs, "pairs_of", lambda cpus: tuple(cpus[:2] for _ in range(20_000)))
    started: list[int] = []
    begin = launch.Child.__init__

    def recorded(self: launch.Child, *args: Any, **named: Any) -> None:
        begin(self, *args, **named)
        started.append(self.pid)

    monkeypatch.setattr(launch.Child, "__init__", recorded)
    return started


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def kept(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["sessions", "show", "--json"]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["matrices"]
    return found


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_keeps_the_pairs_that_are_done_and_leaves_nothing_behind(
    children: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    monkeypatch.setattr(Line, "write", lambda self, text: os.kill(os.getpid(), number))
    assert main(["measure", "--matrix", "--label", "cut"]) == 128 + number
    said = capsys.readouterr()
    [one] = kept(capsys)
    assert f"kept as matrix {one['id']}" in said.err.splitlines()[-1]
    assert not said.out
    assert (one["label"], one["complete"], sum(c["pairs"] for c in one["clusters"])) == ("cut", False, 1)
    [child] = children
    assert gone(child)
    with host_turn(0.0, CancelToken(), pytest.fail):
        pass


def test_ctrl_c_before_the_first_pairs_keeps_nothing(
    children: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    send = launch.Child.send

    def interrupted(self: launch.Child, line: bytes) -> None:
        send(self, line)
        press_ctrl_c()

    monkeypatch.setattr(launch.Child, "send", interrupted)
    assert main(["measure", "--matrix"]) == 130
    assert "nothing was kept" in capsys.readouterr().err.splitlines()[-1]
    assert kept(capsys) == []
    [child] = children
    assert gone(child)
