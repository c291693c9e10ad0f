"""compare, chart and sessions from the command line: exit codes, JSON, sentences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jitter_workshop import paths
from jitter_workshop.cli import main
from jitter_workshop.commands.common.shared import NO_SESSION
from jitter_workshop.session.store import SessionStore

MakeRun = Callable[..., tuple[Any, Any]]
A, B = "20260101-000000-aaaa", "20260102-000000-bbbb"


@pytest.fixture
def two_runs(make_run: MakeRun) -> Path:
    """The current session with a slow and a fast run; its folder."""
    with SessionStore().create("monday", "lab03") as opened:
        opened.add_run(*make_run([[100] * 1000 + [3_000_000] * 100], run_id=A, label="baseline"))
        opened.add_run(*make_run([[100] * 1000 + [4_000] * 100], run_id=B, label="pinned"))
        return opened.folder


def out(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    captured = capsys.readouterr()
    value: dict[str, Any] = json.loads(captured.out)
    assert value["format_version"] == 1
    return value


def test_comparing_describes(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "baseline", "pinned"]) == 0
    text = capsys.readouterr().out
    assert "baseline → pinned" in text
    assert "p99" in text
    assert "cannot prove" in " ".join(text.split())
    assert "improve" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "\x1b" not in text


def test_comparing_as_json(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--json", "@2", "@1", "2026", "--metric", "accumulator_transit"]) == 2
    assert capsys.readouterr().out == ""
    assert main(["compare", "--json", "@2", "@1"]) == 0
    value = out(capsys)
    assert (value["metric"], value["baseline"]) == ("accumulator_transit", A)
    (found,) = value["comparisons"]
    assert (found["run"], found["comparable"], found["differences"]) == (B, True, [])
    assert found["rows"][0]["measure"].startswith("stalls_per_second_over_")
    assert {"measure", "a", "b", "ratio"} <= found["rows"][0].keys()
    assert [r["measure"] for r in found["rows"]][-2:] == ["p99.9", "max"]


def test_runs_of_different_workloads_are_told_apart(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("monday", "lab03") as opened:
        opened.add_run(*make_run(run_id=A, label=""))
        opened.add_run(*make_run(run_id=B, label="", name="spin_gap", workload="spin"))
    assert main(["compare", A, B, "--json"]) == 0
    (found,) = out(capsys)["comparisons"]
    assert (found["comparable"], found["rows"]) == (False, [])
    assert found["differences"][0] == "workload: ring against spin"
    assert main(["compare", A, B]) == 0
    text = capsys.readouterr().out
    assert "cannot be compared: workload: ring against spin" in " ".join(text.split())
    assert text.count(f"{A} → {B}") == 1
    assert main(["compare", A, B, "--gate", "99"]) == 2
    assert main(["compare", A, B, "--metric", "spin_gap"]) == 2


@pytest.mark.parametrize(
    ("runs", "gate", "code"),
    [(["@2", "@1"], "99", 0), (["@1", "@2"], "99", 1), (["@1", "@2"], "p99.9", 1), (["@1", "@2"], "50", 0)],
)
def test_the_gate(two_runs: Path, runs: list[str], gate: str, code: int) -> None:
    assert main(["compare", *runs, "--gate", gate]) == code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compare", "@1"], "B"),
        (["compare", "@1", "nope"], "there is no run nope"),
        (["compare", "@1", "@2", "--gate", "95"], "choose one of 50, 90"),
        (["compare", "@1", "@2", "--gate", "max"], "choose one of"),
        (["compare", "@1", "@2", "--gate", "99.9999"], "too few samples"),
        (["compare", "@1", "@2", "--metric", "x"], "it has: accumulator_transit"),
        (["chart", "-o", "x.svg", "--format", "png"], "x.svg contradicts --format png"),
        (["chart", "-o", "x"], "cannot write a chart as x"),
        (["chart", "-o", "."], "cannot write a chart as"),
        (["chart", "--theme", "dark"], "only for a picture"),
        (["chart", "-o", "x.png", "--theme", "sepia"], "invalid choice"),
        (["chart", "-o", "/nonexistent/x.png"], "make the folder first"),
        (["chart", "-o", "x.gif"], "use -o FILE.svg"),
        (["chart", "nope"], "there is no run nope"),
        (["chart", "--session", "nope"], "there is no session nope"),
        (["chart", "--metric", "x"], "has no histogram x"),
        (["chart", "-o", "/nonexistent/x.svg"], "cannot write"),
        (["sessions", "import"], "takes files"),
        (["sessions", "import", "/nonexistent"], "no such file"),
        (["sessions", "list", "--unit", "us"], "they are only for 'sessions import'"),
        (["sessions", "use"], "takes one ID"),
        (["sessions", "show", "nope"], "there is no session nope"),
        (["sessions", "remove", "monday"], "--yes"),
        (["sessions", "list", "x"], "takes no ID"),
    ],
)
def test_a_refusal_is_one_line(two_runs: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_unlike_runs_pass_no_gate(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("s", "h") as opened:
        opened.add_run(*make_run(run_id="a"))
        opened.add_run(*make_run(run_id="b", interval_ns=50_000))
    assert main(["compare", "a", "b", "--json"]) == 0
    assert out(capsys)["comparisons"][0]["comparable"] is False
    assert main(["compare", "a", "b", "--gate", "50"]) == 2
    assert "interval: 10 µs against 50 µs" in capsys.readouterr().err


def test_drawing_without_a_terminal_is_plain(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chart"]) == 0
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "● baseline" in text
    assert "■ pinned" in text
    assert "99.9%" in text


def test_drawing_a_picture_and_the_published_curves(
    two_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.svg"
    assert main(["chart", "pinned", "--published", "-o", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    ElementTree.fromstring(text)
    assert 'laptop 2015, baseline <tspan class="dim">published</tspan>' in text
    assert "pinned" in text
    assert "baseline</text>" not in text


def test_drawing_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chart"]) == 2
    assert NO_SESSION in capsys.readouterr().err
    assert main(["chart", "--published"]) == 0
    assert "laptop 2015, baseline  published" in capsys.readouterr().out
    SessionStore().create("s", "h").close()
    assert main(["chart"]) == 2
    assert "no runs to draw" in capsys.readouterr().err


def test_listing_sessions(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    SessionStore().create("tuesday", "lab04").close()
    assert main(["sessions", "--json"]) == 0
    value = out(capsys)
    assert [s["name"] for s in value["sessions"]] == ["monday", "tuesday"]
    assert [s["current"] for s in value["sessions"]] == [False, True]
    assert value["sessions"][0]["runs"] == [A, B]
    assert value["damaged"] == []
    assert main(["sessions", "use", "monday"]) == 0
    capsys.readouterr()
    assert main(["sessions"]) == 0
    assert "* " + two_runs.name in capsys.readouterr().out


def test_no_sessions_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions"]) == 0
    assert "No sessions yet" in capsys.readouterr().out
    assert not paths.state_dir().exists()


def test_damage_is_a_finding(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (two_runs / "runs" / A / "run.json").write_bytes(b"")
    (two_runs / "session.json").write_bytes(b"{")
    assert main(["sessions", "--json"]) == 1
    value = out(capsys)
    assert [Path(d["file"]).name for d in value["damaged"]] == [A, "session.json"]
    assert [Path(d["set_aside_as"]).name for d in value["damaged"]] == [f"{A}.damaged-1", "session.json.damaged-1"]
    assert value["sessions"][0]["runs"] == [B]
    assert main(["sessions"]) == 0


def test_showing_a_session(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "show", "monday"]) == 0
    text = capsys.readouterr().out
    assert "monday" in text
    assert "pinned" in text
    assert main(["sessions", "show", "monday", "--json"]) == 0
    value = out(capsys)
    assert [r["label"] for r in value["run_list"]] == ["baseline", "pinned"]
    # A course's recorded runs are made of these fields (docs/writing-lessons.md).
    for run in value["run_list"]:
        assert run["applied"] == []
        assert 0 < run["min"] <= run["percentiles"]["50"] <= run["mean"] <= run["max"]
        assert run["count"] > 0


def test_removing_a_session(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sessions", "remove", "monday", "--yes", "--json"]) == 0
    assert out(capsys)["sessions"] == []
    assert not two_runs.exists()


def test_a_session_that_is_open_elsewhere_is_read(two_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().open("monday"):
        assert main(["compare", "@2", "@1", "--json"]) == 0
        assert main(["sessions", "remove", "monday", "--yes"]) == 2
    assert "close it first" in capsys.readouterr().err
