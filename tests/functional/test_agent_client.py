"""Starting the agent: with and without rights, and when it dies."""

from __future__ import annotations

import gc
import os
import signal
import sys
import textwrap
import weakref
from pathlib import Path

import pytest

from jitter_workshop.agent import client
from jitter_workshop.agent.client import AgentClient
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.tuning.planning import digest
from tests import tuned_tree

REPOSITORY = Path(__file__).parents[2]
WORDS = ("thp", "stat-interval")


def command(tree: Path, *options: str) -> tuple[str, ...]:
    code = (
        f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]; from tests import agent_on_tree as a; a.main(*sys.argv[1:])"
    )
    return (sys.executable, "-c", code, str(tree), *options)


def test_plan_apply_restore(tree: Path) -> None:
    before = tuned_tree.contents(tree)
    with AgentClient(command(tree)) as agent:
        plan = agent.plan(WORDS, "2-3")
        assert plan == tuned_tree.planned(tree, WORDS)
        result = agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes])
        assert len(result.applied) == len(plan.changes)
        assert len(agent.restore().restored) == len(plan.changes)
    assert tuned_tree.contents(tree) == before


def test_a_lease_is_given_back_at_the_end(tree: Path) -> None:
    before = tuned_tree.contents(tree)
    with AgentClient(command(tree)) as agent:
        plan = agent.plan(WORDS, "2-3")
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes], lease=True)
        assert tuned_tree.contents(tree) != before
    assert tuned_tree.contents(tree) == before


def test_a_pause_longer_than_the_lease_is_told(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped parent sends no heartbeat; when it goes on, the agent has given everything back and ended."""
    before = tuned_tree.contents(tree)
    monkeypatch.setattr(client, "LEASE_S", 1.0)
    monkeypatch.setattr(client, "_beat", lambda *_: None)
    with AgentClient(command(tree)) as agent:
        plan = agent.plan(WORDS, "2-3")
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes], lease=True)
        assert tuned_tree.contents(tree) != before
        with pytest.raises(HostError, match=r"changes have been restored.* was paused for longer than 1 s") as caught:
            agent.wait()
    assert "restore --list" in caught.value.advice
    assert tuned_tree.contents(tree) == before


def test_an_agent_that_was_killed_in_a_lease_is_no_lease_that_ended(tree: Path) -> None:
    with AgentClient(command(tree)) as agent:
        plan = agent.plan(WORDS, "2-3")
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes], lease=True)
        agent._link._process.kill()
        with pytest.raises(HostError, match=f"signal {int(signal.SIGKILL)}") as caught:
            agent.wait()
    assert "run 'jitter-workshop restore'" in caught.value.advice


def test_a_lease_has_no_thread_that_its_plan_could_not_list(tree: Path) -> None:
    with AgentClient(command(tree)) as agent:
        # The workshop draws its plan by itself, when the agent has traced a run.
        listed = set(Path("/proc/self/task").iterdir())
        plan = agent.plan(WORDS, "2-3")
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes], lease=True)
        assert agent._heart is not None
        assert set(Path("/proc/self/task").iterdir()) <= listed


def test_an_agent_that_ended_by_itself_is_asked_for_at_once(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Left as a zombie it would be one more task that no set can take."""
    monkeypatch.setattr(client, "LEASE_S", 5.0)
    with AgentClient(command(tree)) as agent:
        plan = agent.plan(WORDS, "2-3")
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes], lease=True)
        assert agent._heart is not None
        agent._link._process.kill()
        agent._heart.join(60)
        assert agent._link._process.returncode == -signal.SIGKILL


def test_errors_come_through_as_they_are(tree: Path) -> None:
    with AgentClient(command(tree)) as agent:
        with pytest.raises(UsageError, match="there is no tunable"):
            agent.plan(("nothing-like-it",), "2-3")
        with pytest.raises(HostError, match="not online"):
            agent.plan(WORDS, "7")


def test_a_death_in_the_middle_names_restore(tree: Path) -> None:
    agent = AgentClient(command(tree, "kill=4"))
    plan = agent.plan(WORDS, "2-3")
    with pytest.raises(HostError) as caught:
        agent.apply(WORDS, "2-3", [digest(change) for change in plan.changes])
    agent.close()
    assert f"signal {int(signal.SIGKILL)}" in caught.value.message
    assert "jitter-workshop restore" in caught.value.advice


def test_an_agent_that_cannot_start_is_one_sentence() -> None:
    with pytest.raises(HostError, match="cannot be started"):
        AgentClient(("/no/such/program",))
    with pytest.raises(HostError, match="ended with code 3 when it was started: no such luck"):
        AgentClient(("/bin/sh", "-c", "echo no such luck >&2; exit 3"))
    with pytest.raises(HostError, match="different versions"):
        AgentClient(("/bin/sh", "-c", """read x; echo '{"id":1,"ok":{"protocol":99}}'"""))
    with pytest.raises(HostError, match="ended with code 0 when it was started"):
        AgentClient(("/bin/sh", "-c", "echo no json"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("sudo: a password is required", "sudo asks for a password"),
        ("sudo: a terminal is required to read the password", "sudo asks for a password"),
        ("ada is not in the sudoers file.", "sudo does not let you change this host"),
        ("Sorry, user ada is not allowed to execute '/x' as root on lab.", "sudo does not let you change this host"),
        ("jitter-workshop agent: the tree can be written by others; install it", "the tree can be written by others"),
    ],
)
def test_sudo_that_refuses_or_asks_is_one_sentence(
    words: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "sudo"
    fake.write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: PTH123, SIM115
    with pytest.raises(HostError) as caught:
        client.connect_to_agent()
    assert expected in caught.value.message
    assert "\n" not in caught.value.sentence()


def test_a_refused_tracer_tells_about_tracing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr("jitter_workshop.flow.host_ops.agent_connection.connect_to_agent", client.connect_to_agent)
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: PTH123, SIM115

    def why_not() -> str:
        with pytest.raises(HostError) as caught:
            AgentConnection().tracer()
        return caught.value.sentence()

    assert why_not().startswith("recording the kernel's trace needs root's")
    assert why_not().endswith("not installed; run this command as root")
    fake = tmp_path / "sudo"
    for said, expected in (
        (
            "sudo: a password is required",
            "recording the kernel's trace needs root's rights, and sudo asks for a password; "
            "run this command on a terminal or as root",
        ),
        (
            "ada is not in the sudoers file.",
            "sudo does not let you record the kernel's trace (ada is not in the sudoers file.)",
        ),
    ):
        fake.write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 1\n')
        fake.chmod(0o755)
        assert why_not() == expected


def test_without_sudo_the_way_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="sudo is not installed") as caught:
        client.connect_to_agent()
    assert "plan --sh" in caught.value.advice


def test_sudo_is_asked_without_a_question_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tree: Path) -> None:
    """A sudo that needs no password: the agent runs behind it and is spoken to."""
    said = tmp_path / "said"
    fake = tmp_path / "sudo"
    program = command(tree)
    fake.write_text(
        textwrap.dedent(f"""\
            #!{sys.executable}
            import os, sys
            open({str(said)!r}, "w").write(" ".join(sys.argv[1:]))
            os.execv({program[0]!r}, {list(program)!r})
            """)
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with client.connect_to_agent() as agent:
        assert agent.plan(WORDS, "2-3").changes
    words = said.read_text().split()
    assert words[:2] == ["-n", "--"]
    assert words[3:6] == ["-I", "-S", "-B"]
    assert words[6].endswith("jitter_workshop/agent/__main__.py")


def test_by_which_way_rights_would_be_had_is_known_without_trying(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tpython3\nNoNewPrivs:\t0\nSeccomp:\t0\n")
    monkeypatch.setattr(client.os, "geteuid", lambda: 0)
    monkeypatch.setattr(client.shutil, "which", lambda name: None)
    assert client.rights(str(status)) == "root"
    monkeypatch.setattr(client.os, "geteuid", lambda: 1000)
    assert client.rights(str(status)) == "none"
    monkeypatch.setattr(client.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert client.rights(str(status)) == "sudo"
    assert client.rights(str(tmp_path / "hidden")) == "sudo"
    status.write_text("Name:\tpython3\nNoNewPrivs:\t1\n")
    assert client.rights(str(status)) == "none"


def test_the_heartbeat_keeps_no_client_open_that_nothing_refers_to(tree: Path) -> None:
    agent = AgentClient(command(tree))
    heart, left = agent._heart, weakref.ref(agent)
    assert heart is not None
    del agent
    heart.join(60)
    gc.collect()
    assert not heart.is_alive()
    assert left() is None
