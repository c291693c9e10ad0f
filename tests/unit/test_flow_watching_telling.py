"""Test the command for each freeze and the file for Prometheus: names of tasks are data, never words of a shell."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path

import pytest

from jitter_workshop.errors import UsageError
from jitter_workshop.flow.watching import telling
from jitter_workshop.flow.watching.tally import Tally, WatchSubject, report_of_watch
from jitter_workshop.flow.watching.telling import FreezeCommand, Textfile
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.program import TimeTaken
from jitter_workshop.model.watch import BETWEEN, KeptStall, WatchReport

EVIL = '$(touch x)"\\\n;\x1b[2J'
STALL = KeptStall(5, "2026-01-01T00:00:00.000Z", 50_000, 1, "sampler", (Part("task", EVIL, 50_000),))


def report() -> WatchReport:
    tally = Tally(20_000, 3, watched_ns=2_000_000_000)
    tally.count_lengths([50_000])
    tally.not_watched[BETWEEN] = 500_000_000
    tally.named = 1
    tally.add_causes([TimeTaken("task", EVIL, 1, 50_000, 50_000)])
    tally.add_kept([STALL])
    return report_of_watch(WatchSubject("id", EVIL, cpu=1, started_s=1e9, duration_ns=2_500_000_000), tally)


def test_a_command_gets_the_stall_on_its_input(tmp_path: Path) -> None:
    told = tmp_path / "told"
    script = f"import sys; open({str(told)!r}, 'a').write(sys.stdin.read())"
    command = FreezeCommand(shlex.join([sys.executable, "-c", script]))
    for _ in range(2):
        command.stall(report(), STALL, 1)
        command.close()
    one, other = (json.loads(line) for line in told.read_text().splitlines())
    assert one == other
    assert one["worst"]["duration_ns"] == 50_000
    assert "\x1b" not in one["worst"]["parts"][0]["name"]
    assert list(tmp_path.iterdir()) == [told]


def test_one_command_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    monkeypatch.setattr(telling, "LONGEST_S", 0.3)
    command = FreezeCommand("sleep 60", lambda about, sentence: notes.append(sentence))
    began = time.monotonic()
    for _ in range(3):
        command.stall(report(), STALL, 1)
    command.close()
    assert time.monotonic() - began < 30
    assert any("2 later freezes" in note for note in notes)
    assert any("killed" in note for note in notes)


def test_a_command_that_fails_is_noted() -> None:
    notes: list[str] = []
    command = FreezeCommand("false", lambda about, sentence: notes.append(sentence))
    command.stall(report(), STALL, 1)
    command.close()
    assert notes == ["the command ended with code 1"]


@pytest.mark.parametrize("line", ["", "   ", "'", "/no/such/program x", "no-such-program-at-all"])
def test_a_line_that_is_no_command_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="--exec"):
        FreezeCommand(line)


def test_the_textfile_is_whole_and_its_labels_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "watch.prom"
    Textfile(path).state(report())
    lines = path.read_text().splitlines()
    assert list(tmp_path.iterdir()) == [path]
    samples = [line for line in lines if not line.startswith("#")]
    assert all(line.startswith("jitter_workshop_watch_") and line.count(" ") >= 1 for line in samples)
    assert any('at_least_ns="20000"} 1' in line for line in samples)
    assert any('reason="between blocks"} 0.5' in line for line in samples)
    assert "\x1b" not in path.read_text()
    # Each sample is one line: a name, labels in braces, and a number.
    assert all(float(line.rpartition(" ")[2]) >= 0 for line in samples)


def test_a_textfile_that_cannot_be_written_is_noted(tmp_path: Path) -> None:
    notes: list[str] = []
    folder = tmp_path / "gone"
    folder.mkdir()
    textfile = Textfile(folder / "x.prom", lambda about, sentence: notes.append(sentence))
    folder.rmdir()
    textfile.stall(report(), STALL, 1)
    assert len(notes) == 1
    for wrong in (tmp_path / "x.txt", tmp_path / "none" / "x.prom"):
        with pytest.raises(UsageError, match=r"\.prom"):
            Textfile(wrong)
