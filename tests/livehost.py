"""A workshop on a made tree that passes for the host it runs on: measurements are made up, settings are files of the
tree."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jitter_workshop.agent.client import AgentClient
from jitter_workshop.bench.lock import TURN_VARIABLE
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops import apply as verbs
from jitter_workshop.flow.proving import proof_plan
from jitter_workshop.host.root import HostRoot
from tests import tuned_tree
from tests.fake_agent_connection import FakeAgentConnection, LiveTree
from tests.fakes import FakeWorkshop, open_workshop
from tests.ownturn import turn_of

REPOSITORY = Path(__file__).parents[1]
SESSION = "live"


def open_live(tree: Path, course: Path, monkeypatch: pytest.MonkeyPatch) -> FakeWorkshop:
    """The workshop on ``tree``, whose four CPUs this process may use; its agent session writes into the tree."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1, 2, 3})
    made = open_workshop(tree, session=SESSION, course=course)
    made.context.root = LiveTree(tree)
    made.context.agent_connection = FakeAgentConnection(tree)
    return made


def give_agent(workshop: FakeWorkshop, tree: Path, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """The real agent session and a real agent. The agent works on the tree and not on this host (see
    ``tests.agent_on_tree``)."""
    command = agent_command(tree, *options)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda ask=True, purpose=None: AgentClient(command))
    monkeypatch.setattr(connection_module, "HostRoot", lambda *_: LiveTree(tree))
    workshop.context.agent_connection = connection_module.AgentConnection()


def proving_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a tree that passes for the host on which a proof applies its change, with a turn of its own."""
    made = tuned_tree.make(tmp_path / "tree")
    monkeypatch.setattr(proof_plan, "HERE", made)
    monkeypatch.setattr(connection_module, "HostRoot", lambda *_: LiveTree(made))
    monkeypatch.setenv(TURN_VARIABLE, turn_of(tmp_path))
    return made


def give_verbs(tree: Path, monkeypatch: pytest.MonkeyPatch, connect: Callable[..., AgentClient]) -> None:
    """Let the verbs apply and restore work on the tree, with an agent that ``connect`` starts."""
    monkeypatch.setattr(connection_module, "connect_to_agent", connect)
    for module in (connection_module, verbs):
        monkeypatch.setattr(module, "HERE", tree)


def agent_command(tree: Path, *options: str) -> tuple[str, ...]:
    """Return what starts an agent that works on a tree."""
    code = (
        f"import sys; sys.path[:0] = [{str(REPOSITORY)!r}]; from tests import agent_on_tree as a; a.main(*sys.argv[1:])"
    )
    return (sys.executable, "-c", code, str(tree), *options)


def shut(monkeypatch: pytest.MonkeyPatch, *paths: str) -> None:
    """In this process only root may read these; the agent is another one."""
    reads = HostRoot._bytes

    def barred(self: HostRoot, path: str, limit: int, *, whole: bool) -> tuple[bytes | None, str]:
        return (None, "not permitted") if path in paths else reads(self, path, limit, whole=whole)

    monkeypatch.setattr(HostRoot, "_bytes", barred)
