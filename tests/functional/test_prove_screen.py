"""prove --screen: the verb, the screener and the agent on a made host; the commands are real."""

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
from jitter_workshop.commands.common import screening as verb
from jitter_workshop.commands.common.experiments import OTHERS_OUT
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.measuring import measure as measuring
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.flow.proving import screening_run
from jitter_workshop.flow.proving import series as series_module
from jitter_workshop.flow.proving.command_meter import OVERFLOWED
from jitter_workshop.flow.proving.proof_plan import NEEDS_BOOT
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.run import Run
from jitter_workshop.report.screening_words import NOT_YET
from jitter_workshop.session.store import OpenSession, SessionStore
from jitter_workshop.stats.screening import draw_pairs, draw_proofs
from jitter_workshop.tuning.applying import NOT_SHOWN
from jitter_workshop.tuning.journal import applied_tunables
from tests import hosttrees, livehost, overflowing, tuned_tree
from tests.madeup import make_run

THP = "sys/kernel/mm/transparent_hugepage/enabled"
STAT = "proc/sys/vm/stat_interval"
MORE = {"proc/sys/kernel/timer_migration": "1\n", "sys/kernel/mm/ksm/run": "1\n"}
TEN = (
    "governor=performance", "min-frequency", "idle-states", "irq-affinity", "workqueue-mask", "thp", "stat-interval",
    "numa-balancing", "timer-migration=0", "ksm",
)  # fmt: skip
CURE = (
    "n=4000; grep -q '[[]always' {tree}/" + THP + " || n=$((n / 4)); test $(cat {tree}/" + STAT + ") = 1 || "
    "n=$((n / 2)); echo p99=$n"
)
"""A command that two settings make faster."""
FIGURE = ["--match", "p99=([0-9]+)", "--unit", "us"]
Ask = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = hosttrees.write(livehost.proving_tree(tmp_path, monkeypatch), MORE)
    command = livehost.agent_command(made)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda ask=True, purpose=None: AgentClient(command))
    monkeypatch.chdir(tmp_path)
    return made


@pytest.fixture(autouse=True)
def _given_back(tree: Path) -> Iterator[None]:
    before = tuned_tree.contents(tree)
    yield
    assert tuned_tree.contents(tree) == before


@pytest.fixture
def asked(tree: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Screen with ``script`` as the command; return the exit code, the JSON (None if there is none) and stderr."""

    def ask(script: str, *options: str, words: tuple[str, ...] = ("thp", "stat-interval", "numa-balancing")) -> Any:
        line = ["prove", "--screen", *words, "--yes", "--json", "--seed", "3", *options]
        code = main([*line, "--", "sh", "-c", script.format(tree=tree)])
        told = capsys.readouterr()
        return code, json.loads(told.out) if told.out else None, told.err

    return ask


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have SIGINT come as a run begins (its number, from 0; -1: never)."""
    real, wanted = verb.ScreeningLine.run_begins, [-1]

    def begins(self: verb.ScreeningLine, step: screening_run.ScreeningStep) -> Any:
        if step.number == wanted[0]:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, step)

    def at(number: int) -> None:
        wanted[0] = number

    monkeypatch.setattr(verb.ScreeningLine, "run_begins", begins)
    return at


def test_the_two_that_matter_are_found_among_ten(asked: Ask) -> None:
    code, value, err = asked(CURE, *FIGURE, "--rounds", "12", words=TEN)
    assert code == 0, err
    first, second, *others = value["ranked"]
    assert (first["tunable"], first["verdict"], first["ratio"]) == ("thp", "lower", pytest.approx(1 / 4, rel=0.01))
    assert (second["tunable"], second["verdict"]) == ("stat-interval", "lower")
    assert second["ratio"] == pytest.approx(1 / 2, rel=0.01)
    assert len(others) == 8
    assert {row["verdict"] for row in others} <= {"no_change", "cannot_tell"}
    assert all({"tunable", "ratio", "low", "high", "verdict"} <= row.keys() for row in value["ranked"])
    assert (value["runs"], value["budget_runs"], value["one_by_one_runs"]) == (48, 48, 200)
    assert {"thp", "stat-interval"} < set(value["chosen"])
    assert (value["complete"], value["restored"], value["measure"]) == (True, True, "match")
    assert "Together 48 runs of the command" in err
    assert "would take 200 runs; this screening takes 48" in err


def test_each_run_of_a_screening_has_the_settings_of_its_design(asked: Ask, tree: Path, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = f"cat {{tree}}/{THP} {{tree}}/{STAT} | tr '\\n' ' ' >> {seen}; echo >> {seen}; echo p99=5"
    code, value, err = asked(script, *FIGURE, "--rounds", "3", words=("thp", "stat-interval"))
    assert code == 0, err
    assert value["planned_pairs"] == 0
    assert draw_pairs(2, 3) == ()
    said = [
        (0 if "[always]" in line else 1, 0 if line.split()[-1] == "1" else 1) for line in seen.read_text().splitlines()
    ]
    wanted = [((0 in on) * 1, (1 in on) * 1) for pair in draw_proofs((0, 1), 3, 3) for on in pair]
    assert said == [(0, 0), *wanted]  # the first one is the trial
    assert [run["on"] for pair in value["proofs"] for run in pair] == [
        list(on) for pair in draw_proofs((0, 1), 3, 3) for on in pair
    ]


def test_it_is_stopped_and_resumed_and_comes_to_the_same(asked: Ask, stopping: Callable[[int], None]) -> None:
    words = TEN
    _, whole, _ = asked(CURE, *FIGURE, "--rounds", "10", words=words)
    stopping(9)
    code, part, err = asked(CURE, *FIGURE, "--rounds", "10", words=words)
    assert code == 130
    assert (part["runs"], part["complete"], part["stopped"], part["restored"]) == (8, False, "stopped by SIGINT", True)
    assert (part["ranked"], part["measure"]) == ([], None)
    assert NOT_YET in part["text"]
    stopping(31)
    code, later, _ = asked(CURE, *FIGURE, "--rounds", "10", "--resume", words=words)
    assert (code, later["runs"], later["id"]) == (130, 30, part["id"])
    assert {row["verdict"] for row in later["ranked"]} == {"cannot_tell"}
    stopping(-1)
    code, value, err = asked(CURE, *FIGURE, "--rounds", "10", "--resume", words=words)
    assert code == 0
    assert "Done already: 30 runs." in err
    assert len(value["sittings"]) == 3
    assert [row["verdict"] for row in value["ranked"]] == [row["verdict"] for row in whole["ranked"]]
    assert value["ranked"] == whole["ranked"]
    assert value["stopped"] == ""


def test_only_the_same_screening_is_resumed(asked: Ask, stopping: Callable[[int], None]) -> None:
    code, _, err = asked("echo p99=5", *FIGURE, "--resume")
    assert code == 2
    assert "none to resume" in err
    stopping(3)
    assert asked("echo p99=5", *FIGURE, "--rounds", "4")[0] == 130
    stopping(-1)
    code, _, err = asked("echo p99=6", *FIGURE, "--rounds", "4", "--resume")
    assert (code, err.count("\n")) == (2, err.count("\n"))
    assert "had another command" in err
    assert "prove --screen --resume thp" in err
    assert "had another set of settings" in asked("echo p99=5", *FIGURE, "--resume", words=("thp", "numa-balancing"))[2]
    code, _, err = asked("echo p99=5", *FIGURE, "--rounds", "4")
    assert code == 0
    assert "--resume goes on with it" in " ".join(err.split())


def test_a_kill_loses_one_pair_and_the_next_start_knows_that_all_is_back(
    asked: Ask, stopping: Callable[[int], None], capsys: pytest.CaptureFixture[str]
) -> None:
    stopping(5)
    _, part, _ = asked("echo p99=5", *FIGURE, "--rounds", "10")
    with SessionStore().open("@1") as session:
        (kept,) = session.screenings()
        import dataclasses

        # As a kill leaves it: the end is not stored.
        session.add_screening(dataclasses.replace(kept, ended_at="", stopped="", restored=False))
    assert main(["prove", "--screen", "--show", "@1"]) == 0
    assert "Everything was restored" in capsys.readouterr().out
    stopping(-1)
    code, value, _ = asked("echo p99=5", *FIGURE, "--rounds", "10", "--resume")
    assert (code, value["runs"], value["id"], value["restored"]) == (0, 20, part["id"], True)


def test_settings_that_write_the_same_file_are_one(asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    from jitter_workshop.flow.proving import screening_plan

    real = screening_plan._alone

    def alike(*given: Any) -> Any:
        import dataclasses

        plans, out = real(*given)
        shared = dataclasses.replace(plans["thp"].changes[0], tunable="numa-balancing")
        plans["numa-balancing"] = dataclasses.replace(
            plans["numa-balancing"], changes=(*plans["numa-balancing"].changes, shared)
        )
        return plans, out

    monkeypatch.setattr(screening_plan, "_alone", alike)
    code, value, err = asked("echo p99=5", *FIGURE, "--rounds", "2")
    assert code == 0, err
    assert value["settings"] == ["thp numa-balancing", "stat-interval"]
    assert "on and off together" in " ".join(err.split())


def test_a_setting_that_the_host_refuses_is_left_out_and_told(
    asked: Ask, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = series_module.RunSeries.apply

    def refuses(self: Any, sides: Any) -> None:
        if "numa-balancing" in sides.ids:
            self._applied = sides
            raise HostError("numa-balancing was applied only in part: invalid argument")
        real(self, sides)

    monkeypatch.setattr(series_module.RunSeries, "apply", refuses)
    code, value, err = asked(
        CURE, *FIGURE, "--rounds", "12", words=("thp", "stat-interval", "numa-balancing", "governor")
    )
    assert code == 0, err
    assert [one["tunable"] for one in value["left_out"]] == ["numa-balancing"]
    assert {row["tunable"] for row in value["ranked"]} == {"thp", "stat-interval", "governor"}
    assert [row["tunable"] for row in value["ranked"] if row["verdict"] == "lower"] == ["thp", "stat-interval"]


def test_without_words_all_that_status_would_improve_is_screened(asked: Ask, capsys: Any, tree: Path) -> None:
    code, value, err = asked("echo p99=5", *FIGURE, "--rounds", "1", words=())
    assert code == 0, err
    assert len(value["settings"]) == 9
    assert value["planned_pairs"] >= 12
    assert "isolation" not in value["settings"]
    assert main(["prove", "--screen", "--show", "@1"]) == 0
    told = capsys.readouterr().out
    assert "Nothing is claimed yet" in told
    assert "thp" in told
    assert "├" in told or "●" in told
    assert main(["prove", "--screen", "--list"]) == 0
    assert value["id"] in capsys.readouterr().out
    assert main(["sessions", "show", "@1"]) == 0
    assert f"{value['id']} 9 settings · Nothing is claimed" in " ".join(capsys.readouterr().out.split())
    assert main(["sessions", "show", "@1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["screenings"][0]["runs"] == value["runs"]
    assert main(["prove", "--screen", "--list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["screenings"]
    assert listed["id"] == value["id"]


@pytest.mark.parametrize(
    ("options", "words", "says"),
    [
        ([], ("thp",), "only one setting was named"),
        ([], ("thp", "placement"), "placement is not a setting"),
        ([], ("thp", "nohz-full"), NEEDS_BOOT),
        ([], ("thp", "nothing"), "there is no tunable 'nothing'"),
        (["--rounds", "0"], ("thp", "stat-interval"), "1 to 1,000 pairs"),
        (["--preset", "quick"], ("thp", "stat-interval"), "not for a command"),
        (["--list"], ("thp", "stat-interval"), OTHERS_OUT),
    ],
)
def test_a_screening_with_invalid_options_is_refused_in_one_line(
    asked: Ask, options: list[str], words: tuple[str, ...], says: str
) -> None:
    code, value, err = asked("echo p99=5", *FIGURE, *options, words=words)
    assert (code, value, err.count("\n")) == (2, None, 1)
    assert says in err


def test_a_command_that_is_missing_changes_nothing(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--screen", "thp", "stat-interval", "--yes", "--", "/no/such/command"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "/no/such/command" in told.err
    with SessionStore().open("@1") as session:
        assert session.screenings() == ()


def test_a_command_that_fails_later_ends_a_screening_that_can_be_resumed(asked: Ask, tmp_path: Path) -> None:
    count = tmp_path / "count"
    script = f"echo x >> {count}; test $(wc -l < {count}) -ne 6 && echo p99=5"
    code, value, _ = asked(script, *FIGURE, "--rounds", "4")
    assert (code, value["runs"], value["complete"], value["restored"]) == (1, 4, False, True)
    assert "measurement failed" in value["stopped"]
    code, value, _ = asked(script, *FIGURE, "--rounds", "4", "--resume")
    assert (code, value["runs"], value["complete"]) == (0, 8, True)


@pytest.mark.parametrize(
    ("script", "options", "says"),
    [
        ("echo HIST > out.hlog", ["--hlog", "out.hlog"], "has an unknown format"),
        ("trap '' TERM; exec <&- >&- 2>&-; sleep 100", ["--timeout", "0.1"], "did not end within 0.1 s"),
        ("yes | head -n 1000000; printf 'a\\033[31mb\\n'; exit 3", FIGURE, "exit code 3 (a [31mb)"),
    ],
)
def test_a_command_that_cannot_be_measured_changes_nothing(
    asked: Ask, tmp_path: Path, script: str, options: list[str], says: str
) -> None:
    code, value, err = asked(script, *options)
    assert (code, value) == (2, None)
    assert says in err.splitlines()[-1]
    assert not list(tmp_path.glob("out.*"))


def test_a_run_whose_trace_overflows_ends_a_screening_that_can_be_resumed(
    asked: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    overflowing.at_run(monkeypatch, 5)
    code, value, _ = asked("true", "--metric", "held-up", "--rounds", "3")
    assert (code, value["runs"], value["complete"], value["restored"]) == (1, 4, False, True)
    assert OVERFLOWED in value["stopped"]
    code, value, _ = asked("true", "--metric", "held-up", "--rounds", "3", "--resume")
    assert (code, value["runs"], value["complete"]) == (0, 6, True)


def test_a_step_of_the_wall_clock_changes_neither_figures_nor_the_order(
    asked: Ask, stopping: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards, real = iter(range(0, 100_000_000, 3_600)), time.time
    monkeypatch.setattr(time, "time", lambda: real() - next(backwards))
    stopping(3)
    assert asked("true", "--rounds", "2")[0] != 0
    stopping(-1)
    code, value, err = asked("true", "--rounds", "2", "--resume")
    assert (code, value["runs"], value["complete"], value["restored"]) == (0, 4, True, True), err


def test_two_at_once_is_said_and_leaves_nothing(asked: Ask) -> None:
    with lock.host_turn(0.0):
        code, value, err = asked("echo p99=5", *FIGURE)
    assert (code, value) == (2, None)
    assert "--wait" in err
    code, _, err = asked("echo p99=5", *FIGURE, "--rounds", "1")
    assert code == 0, err


def test_without_a_terminal_and_without_yes_nothing_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "--screen"]) == 2
    assert "--yes" in capsys.readouterr().err
    assert SessionStore().list() == ((), ())


def test_resume_is_for_a_screening(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", "thp", "--yes", "--resume"]) == 2
    assert "--resume is for a screening" in capsys.readouterr().err


def test_a_report_tells_the_result_of_a_screening_and_hides_its_command_from_others(
    asked: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    assert asked(CURE, *FIGURE, "--rounds", "12")[0] == 0
    assert main(["report", "--format", "json", "-o", "-"]) == 0
    value = json.loads(capsys.readouterr().out)
    (one,) = value["screenings"]
    assert one["command"][:2] == ["sh", "-c"]
    assert [row["setting"] for row in one["ranked"] if row["verdict"] == "lower"] == ["thp", "stat-interval"]
    assert any(line.startswith("Screening of 3 settings: These 2 settings move") for line in value["summary"])
    assert main(["report", "--format", "json", "--private", "-o", "-"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["screenings"]
    assert (one["command"], one["options"]) == (["COMMAND"], [])


def test_an_apply_that_fails_once_has_its_pair_made_again(asked: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failed = series_module.RunSeries.apply, list[int]()

    def once(self: Any, sides: Any) -> None:
        done = sum(len(one.pairs) + len(one.proofs) for one in self.session.screenings())
        if done == 2 and not failed:
            failed.append(1)
            self._applied = sides
            raise HostError(NOT_SHOWN)
        real(self, sides)

    monkeypatch.setattr(series_module.RunSeries, "apply", once)
    code, value, err = asked("echo p99=5", *FIGURE, "--rounds", "4")
    assert code == 0, err
    assert (failed, value["runs"], value["complete"]) == ([1], 8, True)
    assert any("pair 3 of the proofs was measured again" in note for note in value["remarks"])


def test_our_own_runs_are_screened_by_their_primary_line_and_kept_apart(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Run] = []

    def measure(request: MeasureRequest, session: OpenSession, *_: Any, **__: Any) -> Run:
        """A run that has a tenth of the stalls with thp."""
        few = "[always]" not in (tree / THP).read_text()
        values = [100 + len(made) % 7] * 200 + [150_000 + 1_000 * len(made)] * (4 if few else 40)
        run, blocks = make_run(
            [values, values],
            run_id=f"20260101-000000-{len(made):04x}",
            label=request.label,
            workload=request.workload,
            proof=request.proof,
            settle_s=request.settle_s or None,
            applied=applied_tunables(HostRoot(tree), in_effect=True),
        )
        session.add_run(run, blocks)
        made.append(run)
        return run

    monkeypatch.setattr(measuring, "measure_run", measure)
    line = ["prove", "--screen", "thp", "stat-interval", "numa-balancing", "--yes", "--cpus", "2-3", "--seed", "5"]
    assert main([*line, "--rounds", "12", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert len(made) == value["runs"] == 24
    first, *others = value["ranked"]
    assert (value["measure"], first["tunable"]) == ("stalls_per_second_over_100000_ns", "thp")
    assert (first["verdict"], first["ratio"]) == ("lower", pytest.approx(0.1, rel=0.2))
    assert {row["verdict"] for row in others} <= {"no_change", "cannot_tell"}
    assert {run.proof for run in made} == {value["id"]}
    assert [run["run"] for pair in value["proofs"] for run in pair] == [run.id for run in made]
    for pair in value["proofs"]:
        for one in pair:
            run = next(run for run in made if run.id == one["run"])
            assert {item["id"] for item in run.applied} == {value["settings"][n] for n in one["on"]}
