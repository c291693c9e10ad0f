"""``class turn`` in processes of its own, with a real agent on a made class host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent.turns.rules import WHO
from jitter_workshop.commands.classes.turn import run_command
from jitter_workshop.commands.common.base import Interrupted
from jitter_workshop.flow.turns import classhost
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.turn import Process, TurnState, Waiting
from jitter_workshop.paths import RUN_DIR
from tests import tuned_tree
from tests.fake_agent_connection import FakeAgentConnection

REPOSITORY = Path(__file__).parents[2]
LIMIT_S = 30.0
UID = os.geteuid()
PROGRAM = """
import os, sys
from pathlib import Path
tree, file, options, words = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(), sys.argv[4:]
me = tree / "proc" / str(os.getpid())
me.mkdir(parents=True, exist_ok=True)
uid = os.geteuid()
(me / "status").write_text(f"Name:\\tpython\\nUid:\\t{uid}\\t{uid}\\t{uid}\\t{uid}\\n")
from jitter_workshop import cli, paths
from jitter_workshop.agent.client import AgentClient
from jitter_workshop.flow.host_ops import agent_connection as connection_module
paths.CLASS_FILE, paths.RUN_DIR = file, str(tree / paths.RUN_DIR.lstrip("/"))
code = f"import sys; sys.path[:0] = [{os.getcwd()!r}]; from tests import agent_on_tree as a; a.main(*sys.argv[1:])"
connection_module.connect_class = lambda: AgentClient((sys.executable, "-c", code, str(tree), f"uid={uid}", *options))
sys.exit(cli.main(words))
"""


class Machine:
    """A made class host."""

    def __init__(self, folder: Path) -> None:
        self.tree = tuned_tree.make(folder / "tree")
        self.file = folder / "class.toml"
        self.file.write_text('name = "a class"\nhot_cpus = "2-3"\n')
        self.run_dir = str(self.tree / RUN_DIR.lstrip("/"))

    def start(self, *words: str, options: str = "user=grace") -> subprocess.Popen[str]:
        command = (sys.executable, "-c", PROGRAM, str(self.tree), str(self.file), options, "class", "turn", *words)
        return subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def say(self, *words: str, options: str = "user=grace") -> tuple[int, str, str]:
        child = self.start(*words, options=options)
        out, err = child.communicate(timeout=LIMIT_S)
        return child.returncode, out, err

    def state(self) -> TurnState:
        return classhost.read_turns(self.run_dir)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.02)


def test_take_holds_until_ctrl_c_and_others_see_it(machine: Machine) -> None:
    holder = machine.start("take")
    until(lambda: machine.state().turn)
    assert machine.say()[:2] == (0, "You have the turn, 4 min left.\n")
    told = json.loads(machine.say("--json")[1])
    assert (told["holder"], told["frozen"], told["queue"]) == ("grace", False, [])
    holder.send_signal(signal.SIGINT)
    out, err = holder.communicate(timeout=LIMIT_S)
    assert holder.returncode == 0
    assert out == "You have the turn, 4 min left.\n"
    assert "Ctrl-C ends your turn" in err
    until(lambda: machine.state().turn is None)


def test_the_queue_is_told_as_in_the_workshop(machine: Machine) -> None:
    holder = machine.start("take")
    until(lambda: machine.state().turn)
    others = machine.state()
    waits = Waiting(4_000_000_001, ("edsger", "barbara"), Process(3, 1), Process(4, 1), classhost.now_s(), 240.0)
    file = Path(machine.run_dir) / "turns.json"
    file.write_text(json.dumps(to_plain(replace(others, queue=(waits,)))))
    assert machine.say()[1].splitlines()[1] == "  1. edsger and barbara  at most 4 min"
    holder.send_signal(signal.SIGINT)
    holder.communicate(timeout=LIMIT_S)


def test_an_instructor_ends_it_and_it_is_told_why(machine: Machine) -> None:
    holder = machine.start("take")
    until(lambda: machine.state().turn)
    assert machine.say("end", options="user=ada instructor=1")[0] == 0
    _, err = holder.communicate(timeout=LIMIT_S)
    assert holder.returncode == 2
    assert err.splitlines()[-1].startswith("jitter-workshop: ada ended your turn; ")
    assert "the machine is restored" in err.splitlines()[-1]


def test_a_command_has_the_turn_while_it_runs(machine: Machine) -> None:
    file = Path(machine.run_dir) / "turns.json"
    code, out, _ = machine.say("take", "--", "grep", "-c", "grace", str(file))
    assert (code, out.splitlines()[1:]) == (0, ["1"])
    assert "have the turn, 4 min left" in out
    assert machine.state().turn is None
    assert machine.say("take", "--", "grep", "-o", "running grep", str(file))[1].endswith("\nrunning grep\n")
    assert machine.say("take", "--", "false")[0] == 1
    code, _, err = machine.say("take", "--", "sh", "-c", "exit 7")
    assert (code, err.splitlines()[-1]) == (2, "jitter-workshop: sh ended with 7")
    code, _, err = machine.say("take", "--", "/no/such/program")
    assert code == 2
    assert "/no/such/program cannot be started" in err
    until(lambda: machine.state().turn is None)


def test_a_command_is_told_of_a_signal_and_ends_with_it(machine: Machine, tmp_path: Path) -> None:
    began, told = tmp_path / "began", tmp_path / "told"
    script = f"trap 'echo > {told}; kill $!; exit' TERM; sleep 600 & echo > {began}; wait"
    holder = machine.start("take", "--", "sh", "-c", script)
    until(began.exists)
    holder.send_signal(signal.SIGTERM)
    holder.communicate(timeout=LIMIT_S)
    assert told.exists()
    assert holder.returncode == 143
    until(lambda: machine.state().turn is None)


def test_a_signal_that_came_while_the_command_was_started_ends_it_too(tmp_path: Path) -> None:
    ended = tmp_path / "ended by itself"
    with pytest.raises(Interrupted):
        run_command(["sh", "-c", 'sleep 2 && : > "$0"', str(ended)], FakeAgentConnection(), [signal.SIGTERM])
    assert not ended.exists()


def test_a_signal_is_sent_to_the_command_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when its new handler is there, and before the signals of the command's start are passed on."""
    sent = list[int]()

    class Heard(subprocess.Popen[bytes]):
        def send_signal(self, sig: int) -> None:
            sent.append(sig)
            super().send_signal(sig)

    install = signal.signal

    def installed(signum: int, handler: Any) -> Any:
        before = install(signum, handler)
        if signum == signal.SIGTERM and not sent:
            os.kill(os.getpid(), signal.SIGTERM)
        return before

    monkeypatch.setattr(subprocess, "Popen", Heard)
    monkeypatch.setattr(signal, "signal", installed)
    with pytest.raises(Interrupted):
        run_command(["sleep", "60"], FakeAgentConnection(), [])
    assert sent == [signal.SIGTERM]


def test_an_instructor_may_freeze_turns_and_a_student_may_not(machine: Machine) -> None:
    code, _, err = machine.say("freeze")
    assert code == 2
    assert "only an instructor may freeze" in err
    ada = "user=ada instructor=1"
    assert machine.say("freeze", options=ada)[0] == 0
    code, _, err = machine.say("take", "--wait", "0.2")
    assert code == 2
    assert "ada does not let new turns begin" in err
    assert "ask an instructor" in err
    assert machine.say("thaw", options=ada)[0] == 0
    assert machine.say("take", "--", "true")[0] == 0


def test_give_without_a_turn_and_end_of_an_unknown_user_give_advice(machine: Machine) -> None:
    code, _, err = machine.say("give")
    assert code == 2
    assert "you do not wait for it" in err
    assert "'jitter-workshop class turn take'" in err
    for name, why in (("root", "this user neither has the turn nor waits for it"), ("nosuch", "there is no user")):
        code, _, err = machine.say("end", name, options="user=ada instructor=1")
        assert code == 2
        assert why in err
        assert err.endswith(f"; {WHO}\n")
