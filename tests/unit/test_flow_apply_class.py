"""Test 'apply' on a class host: it changes settings in a turn, and root needs no turn."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from jitter_workshop.errors import BusyError
from jitter_workshop.flow.host_ops import apply as changing
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.apply import _take_turn
from jitter_workshop.flow.host_ops.host_status import HostPlan
from jitter_workshop.flow.turns import classhost
from jitter_workshop.flow.turns.classhost import ClassHost
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.model.change import Plan, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.turn import Process, Turn, TurnState


class Agent(AgentConnection):
    """A session that says whether it was asked for the turn."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[float] = []
        self.doing: list[str] = []

    def take_turn(self, people: Sequence[str], wait_s: float, stop: int) -> None:
        os.fstat(stop)
        self.asked.append(wait_s)

    def say_doing(self, doing: str) -> None:
        self.doing.append(doing)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Agent:
    described = ClassFile("C", CpuSet.of([1]))
    monkeypatch.setattr(classhost, "class_host", lambda: ClassHost(described, "grace", False))
    monkeypatch.setattr(classhost, "read_turns", lambda: TurnState("boot"))
    monkeypatch.setattr(changing.os, "geteuid", lambda: 1001)
    return Agent()


DRAWN = HostPlan(Plan(None, (1,), (), ()), (Wanted("governor"), Wanted("boost", "0")), None, None)  # type: ignore[arg-type]


def test_a_member_takes_the_turn(agent: Agent) -> None:
    _take_turn(agent, DRAWN, 0.0, lambda sentence: None)
    assert agent.asked == [classhost.SOON_S]
    assert agent.doing == ["applying governor boost=0"], "those who wait read what it is used for"


def test_an_apply_during_a_turn_of_another_member_is_refused_or_waits(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = Process(1, 1)
    turn = Turn(1, 1002, ("ada",), me, me, 0.0, None)
    monkeypatch.setattr(classhost, "read_turns", lambda: TurnState("boot", turn=turn))
    with pytest.raises(BusyError, match="ada has the turn") as busy:
        _take_turn(agent, DRAWN, 0.0, lambda sentence: None)
    assert "--wait" in busy.value.advice
    assert agent.asked == []
    said: list[str] = []
    _take_turn(agent, DRAWN, 30.0, said.append)
    assert agent.asked == [30.0]
    assert said[0].startswith("ada has the turn")
    assert said[-1] == ""


def test_root_and_hosts_without_a_class_need_none(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing.os, "geteuid", lambda: 0)
    _take_turn(agent, DRAWN, 0.0, lambda sentence: None)
    monkeypatch.setattr(changing.os, "geteuid", lambda: 1001)
    monkeypatch.setattr(classhost, "class_host", lambda: None)
    _take_turn(agent, DRAWN, 0.0, lambda sentence: None)
    assert agent.asked == []
