"""A proof on a class host is made in one turn; where the turn ends, what is finished is judged, and it says so. Real
agents on a made host; only the measuring is not real."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jitter_workshop import paths
from jitter_workshop.agent.client import AgentClient
from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError, MeasureError
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.proving.proof_run import ProofStep, Prover
from jitter_workshop.flow.turns.classhost import NEEDS_TURN, TurnOver, read_turns, take_turn
from jitter_workshop.paths import RUN_DIR
from jitter_workshop.session.store import OpenSession
from tests import livehost
from tests.functional.test_flow_proving import THP, Measured, Watcher, measured, prove, session, tree, words

pytestmark = pytest.mark.host

__all__ = ["measured", "session", "tree"]

UID = 6000
LIMIT_S = 30.0


class Class:
    """Agents on the tree, for a student and for their instructor."""

    def __init__(self, tree: Path) -> None:
        self._command = [*livehost.agent_command(tree), f"uid={UID}"]
        self.turn_s = 240.0
        self.agents: list[AgentClient] = []

    def student(self) -> AgentClient:
        self.agents.append(AgentClient((*self._command, "user=grace", f"turn_s={self.turn_s}")))
        return self.agents[-1]

    def end_turn(self) -> None:
        with AgentClient((*self._command, "user=ada", "instructor=1")) as ada:
            ada.turn("end", user=None)
        until(lambda: read_turns().turn is None)


@pytest.fixture
def made(tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Class:
    file = tmp_path / "class.toml"
    file.write_text('name = "a class"\nhot_cpus = "2-3"\n')
    monkeypatch.setattr(paths, "CLASS_FILE", str(file))
    monkeypatch.setattr(paths, "RUN_DIR", str(tree / RUN_DIR.lstrip("/")))
    me = tree / "proc" / str(os.getpid())
    me.mkdir(parents=True)
    (me / "status").write_text(f"Name:\tpython\nUid:\t{UID}\t{UID}\t{UID}\t{UID}\n")
    # A student: what root leaves is the baseline of a class.
    monkeypatch.setattr(os, "geteuid", lambda: UID)
    of_class = Class(tree)
    monkeypatch.setattr(connection_module, "connect_to_agent", lambda ask=True, purpose=None: of_class.student())
    monkeypatch.setattr(connection_module, "connect_class", of_class.student)
    return of_class


@pytest.fixture
def used(made: Class) -> Iterator[AgentConnection]:
    found = AgentConnection()
    yield found
    found.close()


def until(what: Callable[[], object]) -> None:
    ends = time.monotonic() + LIMIT_S
    while not what():
        assert time.monotonic() < ends, "it did not come to be"
        time.sleep(0.01)


def take(agent_connection: AgentConnection) -> None:
    token = CancelToken()
    try:
        take_turn(agent_connection, 5.0, token)
    finally:
        token.close()


def test_without_the_turn_nothing_is_planned(session: OpenSession, used: AgentConnection, measured: Measured) -> None:
    with pytest.raises(HostError, match=NEEDS_TURN):
        prove(words("thp"), session, used)
    assert measured.requests == []


def test_in_its_turn_a_proof_is_like_any_other(session: OpenSession, used: AgentConnection, measured: Measured) -> None:
    take(used)
    turns = set()

    def note(_: ProofStep) -> None:
        turn = read_turns().turn
        turns.add(turn.number if turn is not None else None)

    proof = prove(words("thp"), session, used, Watcher(note))
    assert proof.complete
    assert proof.restored
    assert proof.stopped == ""
    assert turns == {1}, "all of its runs were in one turn"
    assert used.has_turn


@pytest.mark.parametrize("at", [0, 3, 9])
def test_where_an_instructor_ends_the_turn_the_finished_rounds_are_judged(
    session: OpenSession, made: Class, used: AgentConnection, tree: Path, measured: Measured, at: int
) -> None:
    """``at``: the run during which the turn ends; its child is killed then, as the agent does."""
    before = (tree / THP).read_text()
    take(used)

    def end(step: ProofStep) -> None:
        if step.number == at:
            made.end_turn()
            measured.fail[at] = MeasureError("the measuring process was killed")

    if at == 0:
        with pytest.raises(TurnOver, match="ada ended your turn"):
            prove(words("thp"), session, used, Watcher(end))
        assert session.proofs() == ()
    else:
        proof = prove(words("thp"), session, used, Watcher(end))
        assert len(proof.rounds) == at // 2
        assert proof.stopped == "the turn ended: ada ended your turn"
        assert proof.restored
        assert not proof.complete
        assert session.proofs() == (proof,)
    assert (tree / THP).read_text() == before
    assert not used.took_turn


def test_a_turn_that_ended_between_two_runs_is_noticed_before_the_next(
    session: OpenSession, made: Class, used: AgentConnection, tree: Path, measured: Measured
) -> None:
    take(used)
    watcher = Watcher()
    done = watcher.round_done

    def end(rounds: tuple[object, ...], planned: int, left_s: float) -> None:
        done(rounds, planned, left_s)  # type: ignore[arg-type]
        if len(rounds) == 2:
            made.end_turn()

    watcher.round_done = end  # type: ignore[assignment]
    proof = prove(words("thp"), session, used, watcher)
    assert len(measured.requests) == 4
    assert proof.stopped == "the turn ended: ada ended your turn"


def test_an_agent_that_dies_ends_the_proof_with_the_host_as_it_was(
    session: OpenSession, made: Class, used: AgentConnection, tree: Path, measured: Measured
) -> None:
    before = (tree / THP).read_text()
    take(used)

    def kill(step: ProofStep) -> None:
        if step.number == 4:
            process = made.agents[-1]._link._process  # type: ignore[attr-defined]
            process.kill()
            process.wait()
            until(lambda: read_turns().turn is None)

    proof = prove(words("thp"), session, used, Watcher(kill))
    assert len(proof.rounds) == 2
    assert proof.stopped.startswith("the turn ended: the class's service")
    assert "service ended your turn" in proof.stopped
    assert proof.restored
    assert (tree / THP).read_text() == before


def test_a_proof_that_is_longer_than_the_rest_of_the_turn_says_so_before(
    session: OpenSession, made: Class, used: AgentConnection, measured: Measured
) -> None:
    made.turn_s = 60.0
    take(used)
    plan = Prover(words("thp"), session, used).plan()
    assert any("but your turn ends in" in notice for notice in plan.notices)
    short = Prover(words("thp", rounds=1, duration_s=1.0), session, used).plan()
    assert not any("your turn ends" in notice for notice in short.notices)
