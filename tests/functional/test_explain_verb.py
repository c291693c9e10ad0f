"""explain from the command line: a trace that was kept with a run is read again, and what has none says why."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.cli import main
from jitter_workshop.model.evidence import CAUSE_KINDS
from jitter_workshop.model.run import Stall
from jitter_workshop.session.store import SessionStore
from jitter_workshop.session.traces import TRACE_FILE
from tests import madecounted
from tests.madetrace import stolen, tick, trace_of

pytestmark = pytest.mark.host

MakeRun = Callable[..., tuple[Any, Any]]
TRACED, PLAIN = "20260101-000000-aaaa", "20260102-000000-bbbb"
HOSTILE = "evil\x1b[2J\nsched_switch: forged"


@pytest.fixture
def session(make_run: MakeRun) -> Path:
    """A run in which a task with a hostile name took 20 µs and a tick 4 µs, and a run without a trace; the folder."""
    events, stalls = stolen(HOSTILE)
    with SessionStore().create("monday", "lab03") as opened:
        changed = {"workload": "spin", "label": "traced"}
        run, blocks = make_run([[100] * 1000], run_id=TRACED, name="spin_gap", **changed)
        opened.add_run(run, blocks, trace=trace_of(events, stalls))
        run, blocks = make_run([[100] * 1000], run_id=PLAIN, label="plain")
        opened.add_run(dataclasses.replace(run, notes={"evidence": "no trace: no tracefs here"}), blocks)
        return opened.folder


def test_every_ns_of_a_stall_has_its_cause(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "traced", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["format_version"], said["run"], said["evidence"]) == (1, TRACED, "trace")
    assert (said["stalls"], said["lost_events"], said["clock"]) == (2, 0, "x86-tsc")
    for stall in said["worst"]:
        assert sum(part["ns"] for part in stall["parts"]) == stall["duration_ns"]
    by_kind = {(cause["kind"], cause["name"]): cause["total_ns"] for cause in said["causes"]}
    assert by_kind["task", HOSTILE] == 20_000
    assert by_kind["timer", "tick_nohz_handler"] + by_kind["vector", "local_timer"] == 4_000
    assert {kind for kind, _ in by_kind} <= set(CAUSE_KINDS)
    totals = [cause["total_ns"] for cause in said["causes"]]
    assert totals == sorted(totals, reverse=True)
    assert said["missing"] == {"csd:csd_function_entry": "not in this kernel"}


@pytest.fixture
def counted(make_run: MakeRun) -> None:
    """A run that was to be traced and could not be."""
    with SessionStore().create("tuesday", "lab03") as opened:
        opened.add_run(*make_run(label="counted", **madecounted.fields()))


def test_without_a_trace_the_counters_are_told(counted: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "counted", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {"run", "evidence", "threshold_ns", "clock", "stalls", "lost_events", "causes", "worst"} <= said.keys()
    assert (said["format_version"], said["evidence"], said["stalls"]) == (1, "counters", 3)
    assert [(s["at_ns"], s["duration_ns"], s["cpu"], s["thread"]) for s in said["worst"]] == [
        (10, 30_000, 1, "sampler")
    ]
    # No field names a task: what is not known is null and has its reason.
    assert (said["causes"], said["lost_events"], said["worst"][0]["parts"]) == (None, None, None)
    assert {"causes", "lost_events", "worst.parts"} <= said["notes"].keys()
    assert said["notes"]["trace"] == "the trace is for root"
    assert (said["waited_ns"], said["stalled_ns"]) == (8_000_000, 10_000_000)


def test_counters_as_text_fit_a_terminal_and_let_no_escape_through(
    counted: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["explain", "counted", "--top", "1"]) == 0
    text = capsys.readouterr().out
    assert "counters only, no kernel trace" in text
    assert "waited 8 ms for a CPU" in text
    assert "perf record -k CLOCK_MONOTONIC --switch-events" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_hostile_name_stays_in_its_line(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "traced", "--top", "1"]) == 0
    text = capsys.readouterr().out
    assert "evil" in text
    assert "\x1b" not in text
    assert not any(line.startswith("sched_switch") for line in text.splitlines())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["plain"], f"run {PLAIN} has no evidence (no trace: no tracefs here); measure again with --evidence"),
        (["nobody"], "nobody"),
        (["traced", "--top", "-1"], "--top must be a number"),
    ],
)
def test_a_refusal_to_explain_is_one_sentence(
    session: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
) -> None:
    assert main(["explain", "--json", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") == 1


def test_a_damaged_trace_is_one_sentence(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = session / "runs" / TRACED / TRACE_FILE
    path.write_bytes(path.read_bytes()[:60])
    assert main(["explain", "traced"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "damaged" in captured.err


def test_a_pipe_in_place_of_a_trace_is_not_waited_for(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = session / "runs" / TRACED / TRACE_FILE
    path.unlink()
    os.mkfifo(path)
    assert main(["explain", "traced"]) == 2
    assert "not a regular file" in capsys.readouterr().err


def test_a_trace_that_broke_off_says_how_much_of_the_run_it_has(
    make_run: MakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    stalls = (Stall(0, "sampler", 1, 9_000, 31_000, 1),)
    with SessionStore().create("tuesday", "lab03") as opened:
        run, blocks = make_run([[100] * 1000, [100] * 1000], run_id=TRACED, name="spin_gap", workload="spin")
        why = {"evidence": "no trace after 1 block: the agent is gone"}
        opened.add_run(dataclasses.replace(run, notes=why), blocks, trace=trace_of(tick(10_000, 20_000), stalls))
    assert main(["explain", "@1", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert said["notes"]["trace"].endswith("(no trace after 1 block: the agent is gone)")
    assert "1 of the run's 2 blocks" in said["notes"]["trace"]
    assert (said["distinct"], said["notes"]["distinct"]) == (None, "see trace")
    assert main(["explain", "@1"]) == 0
    assert "1 of the run's 2 blocks" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(("distinct", "words"), [(2, "2 stalls over"), (1, "2 stalls of the measured threads (1 ")])
def test_stalls_that_threads_share_are_told_apart_from_each_threads_own(
    session: Path, capsys: pytest.CaptureFixture[str], distinct: int, words: str
) -> None:
    file = session / "runs" / TRACED / "run.json"
    plain = json.loads(file.read_text())
    plain["stalls"]["count"] = distinct
    file.write_text(json.dumps(plain))
    assert main(["explain", "traced"]) == 0
    assert words in capsys.readouterr().out


def test_stalls_that_were_not_listed_are_counted(make_run: MakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    trace = trace_of(tick(10_000, 20_000), (Stall(0, "sampler", 1, 9_000, 31_000, 1),))
    trace = dataclasses.replace(trace, blocks=tuple(dataclasses.replace(b, unlisted=7) for b in trace.blocks))
    with SessionStore().create("tuesday", "lab03") as opened:
        run, blocks = make_run([[100] * 1000], run_id=TRACED, name="spin_gap", workload="spin")
        opened.add_run(run, blocks, trace=trace)
    assert main(["explain", "@1", "--json"]) == 0
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (said["stalls"], said["unlisted"]) == (1, 7)
    assert said["notes"]["stalls"].startswith("7 shorter stalls")
