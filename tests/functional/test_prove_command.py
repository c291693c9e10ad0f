"""prove with the user's own command: the verb, the prover and the agent on a made host; the commands are real."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.bench import lock
from jitter_workshop.cli import main
from jitter_workshop.commands import prove
from jitter_workshop.commands.common.base import NO_COMMAND
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.proving import proof_run
from jitter_workshop.report.sections import HOW_COMMANDS
from jitter_workshop.session.store import SessionStore
from tests import livehost, overflowing, tuned_tree

THP = "sys/kernel/mm/transparent_hugepage/enabled"
FAST = "grep -q '[[]always' {thp} && echo p99=40 || echo p99=2"
"""A command that is fast with the change."""
FIGURE = ["--match", "p99=([0-9]+)", "--unit", "us"]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = livehost.proving_tree(tmp_path, monkeypatch)
    command = livehost.agent_command(made)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda ask=True, purpose=None: AgentClient(command))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture
def asked(tree: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, Any, str]]:
    """Prove with ``script`` as the command; return the exit code, the JSON (None if there is none) and stderr."""

    def ask(script: str, *options: str, words: tuple[str, ...] = ("thp",), rounds: int = 1) -> tuple[int, Any, str]:
        line = ["prove", *words, "--yes", "--json", "--rounds", str(rounds), "--seed", "3", *options]
        code = main([*line, "--", "sh", "-c", script.format(thp=tree / THP)])
        told = capsys.readouterr()
        return code, json.loads(told.out) if told.out else None, told.err

    return ask


@pytest.fixture(autouse=True)
def _given_back(tree: Path) -> Iterator[None]:
    before = tuned_tree.contents(tree)
    yield
    assert tuned_tree.contents(tree) == before


Ask = Callable[..., tuple[int, Any, str]]


def test_ten_rounds_of_a_figure_in_its_output_prove_a_setting(asked: Ask) -> None:
    code, value, err = asked(FAST, *FIGURE, rounds=10)
    assert code == 0
    (row,) = value["rows"]
    assert (row["measure"], row["verdict"], row["unit"]) == ("match", "lower", "ns")
    assert (row["without"], row["with"]) == (pytest.approx(40_000), pytest.approx(2_000))
    assert row["ratio"] == pytest.approx(1 / 20)
    assert (value["metric"], value["unit"], value["workload"]) == ("match", "ns", "command")
    assert value["command"].startswith("sh -c ")
    assert value["options"] == FIGURE
    assert value["restored"] is True
    assert {tuple(one["figures"]) for one in value["rounds"]} == {(40_000.0, 2_000.0)}
    assert {one["order"] for one in value["rounds"]} == {"AB", "BA"}
    assert "10 rounds are 20 runs of the command" in err


PLACED: dict[str, Any] = {"words": ("placement",)}
"""Needs no agent, which takes most of a test's time."""


def test_its_proof_is_shown_and_judged_again_from_its_figures(
    asked: Ask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked("echo p99=40", *FIGURE, "--cpus", "0", rounds=2, **PLACED)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["prove", "--show", "@1"]) == 0
    told = capsys.readouterr().out
    assert "the figure" in told
    assert "97.5 % interval" in told
    assert "command   sh -c" in told
    assert "Worst seen" not in told
    with SessionStore().open("@1") as session:
        (file,) = (session.folder / "proofs").glob("*.json")
        file.write_text(file.read_text().replace("40000.0", "4000.0"))
        (proof,) = session.proofs()
        assert proof.judgement is not None
        assert proof.judgement.rows[0].without == pytest.approx(4_000)
        assert any("does not fit its runs" in notice for notice in session.notices)
        before = file.read_text()
        file.write_text(before.replace('"confidence": 0.975', '"confidence": 975'))
        assert file.read_text() != before
        assert session.proofs() == ()
        file.write_text(before.replace("4000.0", "-4000.0"))
        assert session.proofs() == ()
        assert any("damaged" in notice for notice in session.notices)


def test_a_report_of_its_proof_alone_shows_it_and_a_private_one_does_not(
    asked: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = asked("echo x >> secret; test $(wc -l < secret) -lt 5", "--cpus", "0", rounds=3, **PLACED)
    assert code == 1
    assert main(["report", "--format", "md", "-o", "-"]) == 0
    page = capsys.readouterr().out
    assert "secret" in page
    assert "wall time" in page
    assert HOW_COMMANDS in page
    # A line to paste would run a command that may be somebody else's.
    assert "prove placement" not in page
    assert main(["report", "--format", "json", "-o", "-", "--private"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert (value["proofs"][0]["command"], value["proofs"][0]["metric"]) == (["COMMAND"], "wall_time")
    assert "secret" not in json.dumps(value)


@pytest.mark.parametrize(("metric", "measure"), [("wall", "wall_time"), ("user", "user_time")])
def test_its_times_are_compared_in_ns(asked: Ask, metric: str, measure: str) -> None:
    code, value, _ = asked(
        "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done", "--metric", metric, "--cpus", "0", **PLACED
    )
    assert code == 0
    (row,) = value["rows"]
    assert (row["measure"], row["unit"], row["verdict"]) == (measure, "ns", "cannot_tell")
    assert 0 <= row["without"] < 60e9


def test_a_histogram_that_it_writes_is_read_and_removed(asked: Ask, tmp_path: Path) -> None:
    sample = Path(__file__).parents[1] / "imports" / "percentiles.hgrm"
    code, value, _ = asked(
        f"cp {sample} out.hgrm", "--hlog", "out.hgrm", "--metric", "p90", "--unit", "us", "--cpus", "0", **PLACED
    )
    assert code == 0
    assert (value["metric"], value["rows"][0]["ratio"]) == ("p90", pytest.approx(1))
    assert not (tmp_path / "out.hgrm").exists()


def test_pyperfs_json_that_it_writes_is_read(asked: Ask) -> None:
    written = '{{"benchmarks": [{{"runs": [{{"values": [0.25, 0.75]}}]}}]}}'
    code, value, _ = asked(f"echo '{written}' > out.json", "--pyperf", "out.json", "--cpus", "0", **PLACED)
    assert code == 0
    assert (value["metric"], value["rows"][0]["with"]) == ("mean", pytest.approx(0.5e9))


def test_placement_binds_it_and_writes_nothing(asked: Ask, tree: Path) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("on one CPU a command is where it is bound to")
    only = "echo p99=1$(sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status | tr -d -- '-,')"
    code, value, err = asked(only, *FIGURE, "--cpus", "1", words=("placement",))
    assert code == 0
    (one,) = value["rounds"]
    assert one["figures"][1] == 11_000.0
    assert one["figures"][0] != 11_000.0
    assert value["changes"][0]["path"] == "sched_setaffinity(command)"
    assert "The command is started on these CPUs" in err


def test_cpus_bind_it_on_both_sides_of_a_setting(asked: Ask) -> None:
    only = "sed -n 's/^Cpus_allowed_list:[^0-9]*/p99=/p' /proc/self/status"
    _, value, _ = asked(only, *FIGURE, "--cpus", "1")
    assert value["rounds"][0]["figures"] == [1_000.0, 1_000.0]


# -- what ends it ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "options", "says"),
    [
        ("exit 3", (), "ended with exit code 3"),
        ("kill -KILL $$", (), "killed by SIGKILL"),
        ("sleep 100", ("--timeout", "0.1"), "did not end within 0.1 s"),
        ("echo nothing", FIGURE, "--match finds nothing"),
        ("true", ("--hlog", "out.hlog"), "did not write out.hlog"),
        ("echo HIST > out.hlog", ("--hlog", "out.hlog"), "has an unknown format"),
        ("mkfifo out.hlog", ("--hlog", "out.hlog"), "not a regular file"),
        ("echo '{{' > out.json", ("--pyperf", "out.json"), "not JSON"),
    ],
)
def test_a_command_that_fails_at_its_trial_changes_nothing(
    asked: Ask, tmp_path: Path, script: str, options: tuple[str, ...], says: str
) -> None:
    code, value, err = asked(script, *options, "--cpus", "0", **PLACED)
    assert code == 2
    assert value is None
    assert says in err.splitlines()[-1]
    assert not list(tmp_path.glob("out.*"))
    assert SessionStore().open("@1").proofs() == ()


def test_a_command_that_fails_only_with_the_change_ends_the_proof(asked: Ask) -> None:
    code, value, err = asked("grep -q '[[]always' {thp}", rounds=3)
    assert code == 2
    assert value is None
    assert "ended with exit code 1" in err


def test_a_command_that_fails_in_a_later_round_is_a_finding(asked: Ask) -> None:
    # Its first run is the trial, and then there are two in each round.
    code, value, _ = asked("echo x >> count; test $(wc -l < count) -lt 5", rounds=3)
    assert code == 1
    assert (len(value["rounds"]), value["complete"], value["restored"]) == (1, False, True)
    assert "exit code 1" in value["stopped"]


def test_a_run_whose_trace_overflows_is_no_result(asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    overflowing.at_run(monkeypatch, 0)
    code, value, err = asked("true", "--metric", "held-up")
    assert (code, value) == (2, None)
    assert "more events than the trace" in err
    overflowing.at_run(monkeypatch, 3)
    code, value, _ = asked("true", "--metric", "held-up", rounds=3)
    assert (code, len(value["rounds"]), value["complete"], value["restored"]) == (1, 1, False, True)
    assert "more events than the trace" in value["stopped"]


def test_a_step_of_the_wall_clock_changes_no_figure(asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    backwards, real = iter(range(0, 100_000_000, 3_600)), time.time
    monkeypatch.setattr(time, "time", lambda: real() - next(backwards))
    code, value, _ = asked("true", rounds=2)
    assert (code, value["complete"], value["restored"]) == (0, True, True)
    assert all(0 < figure < 60e9 for one in value["rounds"] for figure in one["figures"])


def test_a_file_that_is_there_before_is_not_taken_for_a_result(asked: Ask, tmp_path: Path) -> None:
    (tmp_path / "out.hlog").write_text("mine")
    code, _, err = asked("true", "--hlog", "out.hlog", "--cpus", "0", **PLACED)
    assert code == 2
    assert "out.hlog exists already" in err
    assert (tmp_path / "out.hlog").read_text() == "mine"


def test_a_signal_ends_the_command_and_gives_back(asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    real = prove.ProofLine.side_begins

    def begins(self: prove.ProofLine, step: proof_run.ProofStep) -> Any:
        if step.number == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, step)

    monkeypatch.setattr(prove.ProofLine, "side_begins", begins)
    code, value, _ = asked("true", rounds=4)
    assert code == 130
    assert (len(value["rounds"]), value["stopped"]) == (1, "stopped by SIGINT")


def test_processes_that_it_leaves_running_are_ended_and_told(asked: Ask) -> None:
    _, value, _ = asked("setsid sleep 100 >/dev/null 2>&1 & true", "--cpus", "0", **PLACED)
    assert any("left up to 1 task running" in note for note in value["remarks"])


def test_a_command_is_not_run_while_another_run_is_measured(asked: Ask, tmp_path: Path) -> None:
    with lock.host_turn():
        code, _, err = asked("touch ran", "--cpus", "0", **PLACED)
    assert code == 2
    assert "--wait SECONDS" in err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["thp", "--"], NO_COMMAND),
        (["thp", "--metric", "wall"], "--metric is for a command"),
        (["thp", "--timeout", "3"], "--timeout is for a command"),
        (["thp", "--preset", "quick", "--", "true"], "--preset is for our own benchmark"),
        (["thp", "--duration", "3", "--", "true"], "--duration is for our own benchmark"),
        (["thp", "--workload", "spin", "--", "true"], "--workload is for our own benchmark"),
        (["thp", "--timeout", "0", "--", "true"], "--timeout must be more than 0"),
        (["thp", "--metric", "x", "--", "true"], "there is no metric 'x'"),
        (["--", "true"], "no change was given"),
        (["--list", "--", "true"], "leave the other words out"),
        (["thp", "placement", "--", "true"], "either placement or settings"),
        (["isolation", "--", "true"], "name these CPUs with --cpus"),
        (["thp", "--", "/no/such"], "cannot be started: No such file or directory (/no/such)"),
        (["placement", "--cpus", "0-3", "--", "true"], "the command may use only the hot CPUs"),
    ],
)
def test_prove_of_a_command_refuses_invalid_options_in_its_last_line(
    tree: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert main(["prove", "--yes", "--json", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err.splitlines()[-1]
