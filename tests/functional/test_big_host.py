"""Read status and plan of a made host of 512 CPUs: what matters comes first, and no line is beyond the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from jitter_workshop.cli import main
from tests import hosttrees


def test_status_and_plan_say_first_what_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = hosttrees.big(tmp_path / "big", 512, 400)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert main(["status", "--root", str(tree)]) == 1
        status = capsys.readouterr().out.split("\n")
        assert max(map(len, status)) <= columns
        assert len(status) < 300
        head = " ".join(" ".join(status[:14]).split())
        assert "(16 CPUs)" in head
        assert "(480 CPUs)" in head
        assert main(["plan", "--root", str(tree)]) == 0
        plan = capsys.readouterr().out.split("\n")
        assert max(map(len, plan)) <= columns
        every = plan.index("EVERY WRITE, IN ITS ORDER")
        short, whole = plan[:every], plan[every:]
        assert len(short) < 300 < len(whole), len(short)
        assert any("more writes of this tunable" in line for line in short)
        numbers = [int(line.split()[0]) for line in whole if line[:4].strip().isdigit() and line[4:6] == "  "]
        assert numbers == list(range(1, int(plan[0].split()[0].replace(",", "")) + 1))
