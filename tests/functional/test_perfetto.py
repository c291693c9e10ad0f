"""explain --perfetto and report --format perfetto: the files say what the reports say, and what cannot be written is
one sentence."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("perfetto", reason="the extra 'perfetto' is not installed")

from jitter_workshop.cli import main
from jitter_workshop.errors import HostError
from jitter_workshop.flow.attribution import explain_or_load
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.reporting.perfetto import perfetto_of_run
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.model.host import EMULATED, mark_in
from jitter_workshop.model.text import clean
from jitter_workshop.session.store import SessionStore
from jitter_workshop.session.traces import TRACE_FILE
from tests import livetrace, madecounted
from tests.madetrace import stolen, trace_of
from tests.perfettoread import ROOT, Read, read

pytestmark = pytest.mark.host

MakeRun = Callable[..., tuple[Any, Any]]
TRACED, AGAIN, PLAIN, COUNTED = (f"2026010{day}-000000-{letter * 4}" for day, letter in enumerate("abcd", 1))
HOSTILE = "evil\x1b[2J\u202esched_switch: forged"
STARTED = 1_767_225_600_000_000_000
"""The 1st of January 2026, by CLOCK_REALTIME."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: an empty folder."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def session(make_run: MakeRun) -> Path:
    """Two runs in which a task with a hostile name took 20 µs, one without a trace, and one with counters only."""
    events, stalls = stolen(HOSTILE)
    with SessionStore().create("monday", "lab03") as opened:
        for ident, label in ((TRACED, "traced"), (AGAIN, "again")):
            run, blocks = make_run([[100] * 1000], run_id=ident, name="spin_gap", workload="spin", label=label)
            run = dataclasses.replace(run, started_at="2026-01-01T00:00:00.000Z")
            opened.add_run(run, blocks, trace=trace_of(events, stalls))
        opened.add_run(*make_run([[100] * 1000], run_id=PLAIN, label="plain"))
        opened.add_run(*make_run(run_id=COUNTED, label="counted", **madecounted.fields()))
        return opened.folder


def agree(found: Read, said: dict[str, Any], zero: int) -> None:
    """The file of a run has the sums, the stalls and the worst ones of ``explain --json``."""
    causes = {(one["kind"], clean(one["name"])): one["total_ns"] for one in said["causes"]}
    assert found.sums("Stalls", "part") == causes
    assert sum(one.args["state"] == "stall" for one in found.slices("Stalls")) == said["stalls"]
    marks = [(one.start - zero, one.args["ns"], one.args["thread"]) for one in found.marks("Worst stalls")]
    assert marks == [(one["at_ns"], one["duration_ns"], one["thread"]) for one in said["worst"]]


def test_the_file_of_a_run_agrees_with_explain(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "traced", "--json", "--perfetto", "x.pftrace"]) == 0
    out, err = capsys.readouterr()
    found = read(Path("x.pftrace").read_bytes())
    agree(found, json.loads(out), STARTED)
    assert err.startswith("tracks written to x.pftrace: ")
    assert err.endswith(" https://ui.perfetto.dev\n")
    assert err.count("\n") == 1
    assert found.tracks[1].name == "jitter-workshop: run traced"
    assert found.clocks == {1: STARTED}
    assert any("evil" in text for text in found.texts())
    assert all(text.isprintable() for text in found.texts())


@pytest.mark.parametrize("mark", [EMULATED, ""])
def test_the_mark_of_a_runs_host_is_in_its_title_and_at_each_worst_stall(session: Path, mark: str) -> None:
    with SessionStore().open("monday") as opened:
        (run,) = (one for one in opened.runs() if one.id == TRACED)
        run = dataclasses.replace(run, host={**run.host, "emulated": mark == EMULATED, "accelerator": None})
        report = explain_or_load(opened, run, 3, keep=False)
        assert isinstance(report, EvidenceReport)
        found = read(perfetto_of_run(opened, run, report.worst))
    assert (mark_in(report.notes), mark_in({})) == (mark, "")
    assert found.tracks[ROOT].name.endswith(f"({mark})") == bool(mark)
    worst = list(found.marks("Worst stalls"))
    assert worst
    assert {one.args.get("mark", "") for one in worst} == {mark}
    assert {EMULATED in one.name for one in worst} == {bool(mark)}


def test_the_marks_are_as_many_as_are_asked_for(session: Path) -> None:
    assert main(["explain", "traced", "--top", "1", "--perfetto", "x.pftrace"]) == 0
    assert len(read(Path("x.pftrace").read_bytes()).marks("Worst stalls")) == 1


def test_an_existing_file_is_replaced_only_with_force(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine").write_text("mine")
    Path("link").symlink_to("mine")
    assert main(["explain", "traced", "--perfetto", "mine"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "name another file with --perfetto\n" in err
    assert main(["explain", "traced", "--force", "--perfetto", "link"]) == 2
    assert "links are not followed" in capsys.readouterr().err
    assert Path("mine").read_text() == "mine"
    assert main(["explain", "traced", "--force", "--perfetto", "mine"]) == 0
    assert read(Path("mine").read_bytes()).marks("Worst stalls")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["plain", "--perfetto", "x"], f"run {PLAIN} has no evidence"),
        (["counted", "--perfetto", "x"], f"run {COUNTED} has counters and no trace (the trace is for root), but a"),
        (["traced", "--perfetto", "no/such/x"], "name a file in another folder with --perfetto"),
        (["traced", "--perfetto", "/dev/null"], "/dev/null is not a regular file"),
        (["traced", "--perfetto", "-"], "--perfetto needs the name of a file"),
        (["traced", "--perfetto", ""], "--perfetto needs the name of a file"),
        (["traced", "--force"], "--force needs --perfetto"),
    ],
)
def test_a_refusal_to_write_a_file_is_one_sentence(
    session: Path, capsys: pytest.CaptureFixture[str], folder: Path, words: list[str], why: str
) -> None:
    assert main(["explain", *words]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err
    assert list(folder.iterdir()) == []


def test_a_damaged_trace_is_one_sentence(session: Path, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    path = session / "runs" / TRACED / TRACE_FILE
    path.write_bytes(path.read_bytes()[:60])
    assert main(["explain", "traced", "--perfetto", "x"]) == 2
    assert "damaged" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_without_the_package_nothing_is_explained(
    session: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "perfetto"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "perfetto", None)
    for words in (
        ["explain", "traced", "--perfetto", "x"],
        ["explain", "--perfetto", "x", "--", "touch", "ran"],
        ["report", "--format", "perfetto", "--run", "traced"],
    ):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.endswith("pip install 'jitter-workshop[perfetto]'\n")
        assert list(folder.iterdir()) == []


def test_a_report_has_a_file_for_each_traced_run(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "-o", "x.pftrace"]) == 0
    out, err = capsys.readouterr()
    assert out == "x-traced.pftrace\n"
    assert "beside it: x-again.pftrace" in err
    assert main(["explain", "again", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    for name in ("x-traced.pftrace", "x-again.pftrace"):
        agree(read(Path(name).read_bytes()), said, STARTED)
    assert main(["report", "--format", "perfetto", "--run", "traced", "-o", "one.pftrace"]) == 0
    assert Path("one.pftrace").read_bytes() == Path("x-traced.pftrace").read_bytes()


def test_a_refusal_of_a_report_is_one_sentence(session: Path, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    for words, why in (
        (["--run", "plain", "counted"], "none of these runs has a trace"),
        (
            ["-o", "-"],
            "a Perfetto file can show only one run; choose a run with --run, or write one file for each run with -o",
        ),
    ):
        assert main(["report", "--format", "perfetto", *words]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert why in err
    assert list(folder.iterdir()) == []


def test_a_report_for_others_hides_the_names_of_tasks(session: Path) -> None:
    assert main(["report", "--private", "--run", "traced", "-o", "x.pftrace"]) == 0
    texts = read(Path("x.pftrace").read_bytes()).texts()
    assert not any("evil" in text or "traced" in text or "lab03" in text for text in texts)
    assert {"private task 1", "around private task 1", "sampler", "tick_nohz_handler"} <= set(texts)


def test_without_rights_a_command_is_not_started(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(self: AgentConnection) -> None:
        raise HostError("tracing needs root's rights", "ask for them")

    monkeypatch.setattr(AgentConnection, "tracer", refuse)
    assert main(["explain", "--perfetto", "x", "--", "touch", "ran"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "there can be none: tracing needs root's rights\n" in err
    assert main(["explain", "--perfetto", "x", "--pid", str(os.getppid())]) == 2
    assert not Path("x").exists()
    assert not Path("ran").exists()


PING = """\
import os
there, back = os.pipe(), os.pipe()
if os.fork() == 0:
    os.close(there[1])
    while os.read(there[0], 1):
        os.write(back[1], b"!")
    os._exit(0)
os.close(there[0])
for _ in range(50):
    os.write(there[1], b"!")
    os.read(back[0], 1)
os.close(there[1])
os.wait()
raise SystemExit(7)
"""


@pytest.mark.skipif(bool(WHY := livetrace.why_not()), reason=WHY or "it can be had")
def test_the_file_of_a_command_agrees_with_explain() -> None:
    words = ["explain", "--json", "--perfetto", "x.pftrace", "--", sys.executable, "-c", PING]
    verb = subprocess.run([sys.executable, "-m", "jitter_workshop", *words], stdout=subprocess.PIPE, timeout=300)
    assert verb.returncode == 7
    said = json.loads(verb.stdout)
    found = read(Path("x.pftrace").read_bytes())
    causes: Counter[tuple[str, str]] = Counter()
    for one in said["causes"]:
        causes[one["kind"], clean(one["name"])] += one["total_ns"]
    assert found.sums("Threads", "waiting", "interrupted") == causes
    for states, name in (
        (("running",), "ran_ns"),
        (("waiting", "interrupted"), "waited_ns"),
        (("sleeping",), "slept_ns"),
        (("blocked",), "blocked_ns"),
        (("unknown",), "unknown_ns"),
    ):
        slices = [one for one in found.slices("Threads") if one.args["state"] in states]
        assert sum(one.ns for one in slices) == said["all_threads"][name]
    assert sum(one.args["state"] == "held up" for one in found.slices("Threads")) == said["stalls"]
    marks = [(one.args["ns"], one.args["thread"]) for one in found.marks("Worst stalls")]
    assert marks == [(one["duration_ns"], clean(one["thread"])) for one in said["worst"]]
    # Both processes wake each other: the arrows go from thread to thread.
    _, ended = found.flows()
    assert len(ended) > 50
    assert sum(len(track.marks) for track in found.group("Threads")) > 50
    assert found.primary == 3
