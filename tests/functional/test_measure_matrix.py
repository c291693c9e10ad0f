"""The matrix of this host, measured, kept, drawn, and used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from jitter_workshop.cli import main

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
