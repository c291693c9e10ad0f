"""The workshop's connection to the agent, where the agent ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient, asks_password
from jitter_workshop.errors import HostError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.model.cpuset import CpuSet
from tests import tuned_tree

REPOSITORY = Path(__file__).parents[2]
HOT = CpuSet((2, 3))
WORDS = ("thp",)


class Connecting:
    """Starts agents on a made tree; from ``asks_from`` on sudo would have to ask for a password."""

    def __init__(self, tree: Path, asks_from: int = 99) -> None:
        path = f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]"
        code = f"{path}; from tests import agent_on_tree as a; a.main(*sys.argv[1:])"
        self._command = (sys.executable, "-c", code, str(tree))
        self._asks_from = asks_from
        self.made: list[AgentClient] = []

    def __call__(self, ask: bool = True, purpose: object = None) -> AgentClient:
        if not ask and len(self.made) >= self._asks_from:
            raise asks_password()
        self.made.append(AgentClient(self._command))
        return self.made[-1]

    def kill(self) -> None:
        process = self.made[-1]._link._process
        process.kill()
        process.wait()


def connecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asks_from: int = 99) -> Connecting:
    made = Connecting(tuned_tree.make(tmp_path / "tree"), asks_from)
    monkeypatch.setattr(connection_module, "connect_to_agent", made)
    return made


def test_an_agent_that_was_killed_is_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = connecting(tmp_path, monkeypatch)
    used = AgentConnection()
    first = used.tracer()
    assert used.tracer() is first
    agents.kill()
    assert used.tracer() is not first
    assert used.plan(WORDS, HOT).changes
    assert len(agents.made) == 2
    used.close()
    assert used.trouble == ""


def test_no_run_begins_with_a_question_for_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = connecting(tmp_path, monkeypatch, asks_from=1)
    used = AgentConnection()
    used.tracer()
    agents.kill()
    for _ in range(2):
        with pytest.raises(HostError, match="password"):
            used.tracer()
    # An action that its user asks for by hand may ask for the password.
    assert used.plan(WORDS, HOT).changes
    assert len(agents.made) == 2
    used.close()


def test_changes_of_a_dead_agent_are_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = connecting(tmp_path, monkeypatch)
    used = AgentConnection()
    used.apply(WORDS, HOT, used.plan(WORDS, HOT).changes)
    assert used.holding
    agents.kill()
    used.tracer()
    assert not used.holding
    used.close()
    assert "restore --list" in used.trouble
