"""prove from the command line: what is asked, printed and returned. But for one, the measuring child is scripted."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.bench import launch
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.cli import main
from jitter_workshop.commands import prove
from jitter_workshop.commands.common.experiments import OTHERS_OUT
from jitter_workshop.commands.common.shared import NO_SESSION
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.proving import proof_run
from jitter_workshop.flow.proving.proof_plan import NEEDS_BOOT
from jitter_workshop.model.proof import Proof
from jitter_workshop.presenter.proofs.proof import STOPPED_EARLY
from jitter_workshop.report.proof_words import NO_ROUND
from jitter_workshop.session.store import SessionStore
from tests.madeproofs import make_proof
from tests.ownturn import turn_of

YES = ["prove", "placement", "--yes", "--duration", "0.5"]


@pytest.fixture(autouse=True)
def _own_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _own_world: None) -> None:
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child measures nothing."""
    real = launch.command
    monkeypatch.setattr(launch, "command", lambda module, *arguments: real("scripted_worker", "ok"))


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Have a signal come as a run begins (its number, from 0)."""

    def at(number: int, signum: int) -> None:
        real = prove.ProofLine.side_begins

        def begins(self: prove.ProofLine, step: proof_run.ProofStep) -> Any:
            if step.number == number:
                os.kill(os.getpid(), signum)
            return real(self, step)

        monkeypatch.setattr(prove.ProofLine, "side_begins", begins)

    return at


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="placement on one CPU is none")
def test_placement_is_proven_for_real(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*YES[:3], "--duration", "0.05", "--rounds", "1", "--json"]) == 0
    told = capsys.readouterr()
    value = json.loads(told.out)
    assert value["tunable"] == "placement"
    assert value["restored"] is True
    (one,) = value["rounds"]
    with SessionStore().open("@1") as session:
        without, with_it = session.find(one["without"]), session.find(one["with"])
    assert without.placement.mode == "none"
    assert with_it.placement.mode in ("auto", "chosen")
    assert {without.proof, with_it.proof} == {value["id"]}
    assert without.settle_s == with_it.settle_s == 1.0


@pytest.mark.usefixtures("scripted")
def test_the_json_of_prove_has_the_documented_fields(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*YES, "--rounds", "2", "--seed", "5", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["format_version"] == 1
    assert {"tunable", "rounds", "rows", "headline", "drift", "restored", "notes"} <= value.keys()
    assert {frozenset(one) for one in value["rounds"]} == {frozenset(("order", "without", "with", "figures"))}
    for row in value["rows"]:
        assert {"measure", "ratio", "low", "high", "verdict", "without", "with"} <= row.keys()
        assert row["verdict"] in ("lower", "higher", "no_change", "cannot_tell")
    assert {"measure", "verdict", "text"} == value["headline"].keys()
    assert (value["seed"], value["planned"], value["complete"], value["restored"]) == (5, 2, True, True)
    assert value["preset"] is None
    assert "preset" in value["notes"]


@pytest.mark.usefixtures("scripted")
def test_the_costs_go_to_stderr_and_the_verdict_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*YES, "--rounds", "2"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("Not proven: ")
    assert "needs 10 rounds. This proof has 2" in " ".join(told.out.split())
    assert "Prove placement: 2 rounds, about " in told.err
    assert "sched_setaffinity(accumulator)" in told.err
    assert "round 1 of 2 is done; about " in told.err
    assert "round 2 of 2 is done\n" in told.err
    assert "kept in session workshop" in told.err
    assert "\x1b" not in told.out + told.err


def test_without_a_terminal_and_without_yes_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "placement"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "--yes" in told.err
    assert SessionStore().list() == ((), ())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "no change was given"),
        (["nothing"], "there is no tunable 'nothing'"),
        (["plcement"], "did you mean 'placement'?"),
        (["placement", "thp"], "either placement or settings"),
        (["placement", "--rounds", "0"], "1 to 1,000 rounds"),
        (["placement", "--rounds", "many"], "invalid int value"),
        (["placement", "--duration", "nan"], "not a finite number"),
        (["placement", "--duration", "0"], "duration of a run"),
        (["placement", "--wait", "-1"], "time to wait"),
        (["placement", "--cpus", "4711,4712"], "this host has no CPU 4711"),
        (["placement", "--preset", "long"], "invalid choice"),
        (["nohz-full"], NEEDS_BOOT),
        (["user-tasks"], "does not change"),
        (["placement", "--list"], OTHERS_OUT),
        (["--show", "zzz"], NO_SESSION),
    ],
)
def test_prove_refuses_invalid_options_in_one_line(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prove", "--yes", *words]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert says in told.err
    assert told.err.count("\n") == 1


@pytest.mark.usefixtures("scripted")
@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_proof_and_its_finished_rounds_are_told(
    signum: int, code: int, stopping: Callable[[int, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    stopping(3, signum)
    assert main([*YES, "--rounds", "4"]) == code
    told = capsys.readouterr()
    assert "placement: 1 of 4 rounds of " in told.out
    assert f"stopped by {signal.Signals(signum).name}." in told.out
    with SessionStore().open("@1") as session:
        (proof,) = session.proofs()
    assert len(proof.rounds) == 1
    assert not proof.complete


@pytest.mark.usefixtures("scripted")
def test_a_second_signal_loses_nothing_that_the_first_one_left(
    stopping: Callable[[int, int], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stopping(3, signal.SIGINT)
    real = ChangeLog.end

    def end(self: ChangeLog) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        real(self)

    monkeypatch.setattr(ChangeLog, "end", end)
    assert main([*YES, "--rounds", "4", "--json"]) == 130
    value = json.loads(capsys.readouterr().out)
    assert (len(value["rounds"]), value["stopped"]) == (1, "stopped by SIGINT")


@pytest.mark.usefixtures("scripted")
def test_the_costs_are_told_beside_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*YES, "--rounds", "1", "--json"]) == 0
    told = capsys.readouterr()
    assert "Prove placement: 1 round, about " in told.err
    assert "sched_setaffinity(accumulator)" in told.err
    value = json.loads(told.out)
    empty = {f"drift.{name}" for name in ("later_ratio", "second_ratio") if value["drift"][name] is None}
    assert "drift.later_ratio" in empty
    assert empty <= value["notes"].keys()


@pytest.mark.usefixtures("scripted")
def test_a_signal_in_the_first_round_leaves_nothing_to_tell(
    stopping: Callable[[int, int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    stopping(1, signal.SIGINT)
    assert main([*YES, "--rounds", "4"]) == 130
    told = capsys.readouterr()
    assert told.out == ""
    assert STOPPED_EARLY in told.err


def test_a_change_that_could_not_be_restored_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = make_proof(restored=False)
    monkeypatch.setattr(prove, "_proven", lambda prover, plan, token, received: proof)
    assert main(YES) == 1
    assert "NOT EVERYTHING IS RESTORED" in capsys.readouterr().out


def test_old_proofs_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("proofs", "host") as session:
        session.add_proof(make_proof())
        session.add_proof(
            make_proof("20260103-000000-dddd", subject="placement", rounds=0, stopped="stopped by SIGINT")
        )
    assert main(["prove", "--list"]) == 0
    listed = capsys.readouterr().out
    assert "20260101-000000-aaaa  thp" in listed
    assert f"{NO_ROUND}." in listed
    assert main(["prove", "--show", "thp"]) == 0
    assert capsys.readouterr().out.startswith("Proven: stalls over 100 µs")
    assert main(["prove", "--list", "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["proofs"]
    assert first["rows"]
    assert (second["headline"], second["notes"]["headline"]) == (None, "no round was finished")


def test_a_proof_that_is_set_aside_when_it_is_asked_for_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with SessionStore().create("proofs", "host") as session:
        session.add_proof(make_proof())
        (file,) = (session.folder / "proofs").glob("*.json")
        file.write_text(file.read_text().replace('"rounds"', '"round"', 1))
    assert main(["prove", "--show", "@1"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "damaged" in said.err
    assert "there is no proof @1" in said.err


@pytest.mark.usefixtures("scripted")
def test_a_session_tells_its_proofs_and_not_their_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*YES, "--rounds", "2"]) == 0
    capsys.readouterr()
    assert main(["sessions", "show", "@1"]) == 0
    told = capsys.readouterr().out
    assert "No runs yet." in told
    assert "placement · Not proven: " in told
    assert main(["sessions", "show", "@1", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    (proof,) = value["proofs"]
    assert (proof["tunable"], proof["rounds"]) == ("placement", 2)
    assert {run["proof"] for run in value["run_list"]} == {proof["id"]}


def test_every_field_of_a_proof_is_in_its_json() -> None:
    proof: Proof = make_proof(rounds=3)
    value = prove.proof_fields(proof)
    json.dumps(value, allow_nan=False)
    known = {"format_version": "", "subject": "tunable", "judgement": "rows", "notes": "remarks"}
    for name in Proof.__dataclass_fields__:
        wanted = known.get(name, name)
        assert not wanted or wanted in value
