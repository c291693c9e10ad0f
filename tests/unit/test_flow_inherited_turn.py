"""Test runs below a process that has the turn: they use that turn, one at a time. A turn of any other process is not
ours."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import BusyError
from jitter_workshop.flow.turns import classhost
from jitter_workshop.flow.turns.classhost import ClassHost, only_one, turn_above, turn_for
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.listing import read_task
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.turn import Process, Turn, TurnState

LIVE = HostRoot()


def held_by(pid: int) -> Turn:
    task = read_task(LIVE, pid)
    assert task is not None
    holder = Process(pid, task.start_ticks)
    return Turn(1, os.geteuid(), ("grace",), holder, holder, 0.0, None)


def state(turn: Turn | None) -> TurnState:
    return TurnState("boot", turn=turn)


def test_a_turn_of_a_parent_of_this_process_is_ours() -> None:
    above = held_by(os.getppid())
    assert turn_above(state(above), LIVE)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, b"y" if turn_above(state(above), LIVE) else b"n")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 1) == b"y"
    os.close(reader)
    os.close(writer)


def test_any_other_turn_is_not() -> None:
    above = held_by(os.getppid())
    for turn in (
        None,
        replace(above, uid=above.uid + 1),
        replace(above, returning=True),
        replace(above, client=Process(above.client.pid, above.client.start + 1)),
        held_by(os.getpid()),
        replace(above, client=Process(4_194_305, 1)),
    ):
        assert not turn_above(state(turn), LIVE)
    assert not turn_above(state(above), LIVE, pid=1)


def test_a_made_chain_of_parents_ends(tmp_path: Path) -> None:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/status").write_text("Name:\tx\nPPid:\t7\n")
    assert not turn_above(state(held_by(os.getppid())), HostRoot(tmp_path), pid=7)


def test_one_measurement_at_a_time() -> None:
    with only_one(), pytest.raises(BusyError, match="another measurement of yours"), only_one():
        raise AssertionError("two at once")
    with only_one():
        pass


class NoConnection:
    """A connection that must not be used: the turn belongs to another one."""

    has_turn = False


def test_measure_takes_no_second_turn_below_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        classhost, "class_host", lambda: ClassHost(ClassFile("a class", CpuSet.of([0])), "grace", False)
    )
    monkeypatch.setattr(classhost, "read_turns", lambda: state(held_by(os.getppid())))
    with turn_for(NoConnection(), 0.0, CancelToken()) as held:  # type: ignore[arg-type]
        assert held
        with pytest.raises(BusyError, match="another measurement of yours"), only_one():
            pass
