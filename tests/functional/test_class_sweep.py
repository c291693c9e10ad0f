"""Giving back for an agent that died: messages about turns cannot end the process that does it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from jitter_workshop.agent.policy import Member
from jitter_workshop.agent.server import Setup
from jitter_workshop.agent.service import class_connection
from jitter_workshop.agent.turns.state_file import TurnFile
from jitter_workshop.agent.turns.turn_queue import TurnQueue
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.turn import Process, Turn, TurnState
from jitter_workshop.tuning.writer import HostWriter
from tests import tuned_tree

pytestmark = pytest.mark.host


def orphaned(tree: Path) -> None:
    """Write down a turn whose agent has ended."""
    gone = os.fork()
    if gone == 0:
        os._exit(0)
    os.waitpid(gone, 0)
    process = Process(gone, 1)
    file = TurnFile(str(tree), os.geteuid())
    with file.changing() as draft:
        turn = Turn(1, 61_000, ("s00",), process, process, 0.0, 1.0)
        draft.state = TurnState(draft.state.boot_id, 1, turn)
    file.close()


def state(tree: Path) -> TurnState:
    file = TurnFile(str(tree), os.geteuid())
    try:
        return file.read()
    finally:
        file.close()


def test_a_sweep_survives_the_signal_of_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tuned_tree.make(tmp_path)
    orphaned(tree)
    setup = Setup(
        root=HostRoot(tree),
        writer=HostWriter(tree),
        top=str(tree),
        owner=os.geteuid(),
        uid=0,
        who="root",
        tree="tests",
        member=Member(0, "root", True, (), ClassFile("a class", CpuSet.parse_list("2-3"))),
    )
    give_back = TurnQueue._return

    def told_meanwhile(self: TurnQueue, turn: Turn) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        give_back(self, turn)

    monkeypatch.setattr(TurnQueue, "_return", told_meanwhile)
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        class_connection.end_dead_turn(setup)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert state(tree).turn is None
