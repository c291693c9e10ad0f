"""A made class host: its class file, whose turn it is and where the instructor is, in a folder of a test's own. The
turn's agent is made up; who asks it for the turn, and what becomes of that, is the real thing."""

from __future__ import annotations

import json
import os
import select
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop import paths
from jitter_workshop.classroom import store
from jitter_workshop.errors import HostError, WaitStopped
from jitter_workshop.flow.classes import classview
from jitter_workshop.flow.classes.classview import ClassView, open_view
from jitter_workshop.flow.host_ops import agent_connection as connection_module
from jitter_workshop.flow.turns import classhost
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.board import Banner
from jitter_workshop.model.change import RestoreResult
from jitter_workshop.model.codec import to_plain
from jitter_workshop.model.turn import Process, Turn, TurnGranted, TurnState, Waiting
from jitter_workshop.tuning.journal import current_boot
from tests.fakes import FakeWorkshop, open_workshop

OTHER = 4_000_000_000
"""A user other than this one."""
LIMIT_S = 20.0
"""Only ends a test that has failed."""


class MadeClass:
    """``people``: who asked for the turn, the last time. ``over``: why a turn that was had is over."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, described: str = "") -> None:
        self.run = folder / "run"
        self.board = folder / "board"
        for place in (self.run, self.board):
            place.mkdir(parents=True)
        self.file = folder / "class.toml"
        self.file.write_text(f'name = "Latency, autumn 2026"\nhot_cpus = "2-3"\ninstructors = ["ada"]\n{described}')
        monkeypatch.setattr(paths, "CLASS_FILE", str(self.file))
        monkeypatch.setattr(paths, "RUN_DIR", str(self.run))
        monkeypatch.setattr(paths, "BOARD_DIR", str(self.board))
        monkeypatch.setattr(classview, "_owners", lambda: frozenset({os.geteuid()}))
        monkeypatch.setattr(connection_module, "connect_class", self._connect)
        monkeypatch.setattr(connection_module, "RETURN_S", 0.0)
        self.state = TurnState(current_boot(HostRoot()) or "")
        self.people: tuple[str, ...] = ()
        self.doing: list[str] = []
        self.over = ""
        self.trouble_back = ""
        self.agents: list[MadeAgent] = []

    def open(self, course: Path | None = None) -> FakeWorkshop:
        """A workshop on it, whose measurements are made up."""
        workshop = open_workshop(course=course)
        workshop.context.class_view = open_view(workshop.context.agent_connection)
        return workshop

    def publish(self, **changes: Any) -> None:
        """Another state of the turns, as root's agent would write it down."""
        self.state = replace(self.state, **changes)
        new = self.run / ".turns.json"
        new.write_text(json.dumps(to_plain(self.state)))
        new.replace(self.run / "turns.json")

    def busy(self, user: str = "alan", left_s: float | None = 170.0, doing: str = "Pinning · pinned") -> None:
        """Another member has the turn."""
        self.publish(turn=turn(OTHER, user, left_s, doing))

    def free(self) -> None:
        """The turn is free: the first who waits gets it."""
        self.publish(turn=None)
        for agent in self.agents:
            agent.nudge()

    def grant(self, waiting: Waiting) -> None:
        ends = None if waiting.limit_s is None else classhost.now_s() + waiting.limit_s
        mine = Turn(
            self.state.number + 1, waiting.uid, waiting.people, waiting.agent, waiting.client, classhost.now_s(), ends
        )
        rest = tuple(one for one in self.state.queue if one.uid != waiting.uid)
        self.publish(number=mine.number, turn=mine, queue=rest)

    def end_turn(self, why: str = "ada ended your turn") -> None:
        """The turn of this user's workshop ends."""
        self.over = why
        self.publish(turn=None, trouble=self.trouble_back)

    def left(self, seconds: float) -> None:
        """So much is left of the turn that goes on."""
        assert self.state.turn is not None
        self.publish(turn=replace(self.state.turn, ends_s=classhost.now_s() + seconds))

    def at(self, chapter: str, step: str = "", text: str = "") -> None:
        """Publish the page where the instructor is."""
        store.publish_banner(self.board, Banner("ada", "2026-11-22T09:00:00Z", chapter, step, text))

    def _connect(self) -> MadeAgent:
        self.agents.append(MadeAgent(self))
        return self.agents[-1]


class MadeAgent:
    """Hold what of ``AgentClient`` a turn needs."""

    notice = ""

    def __init__(self, made: MadeClass) -> None:
        self._class = made
        self._reader, self._writer = os.pipe()
        self.ended = False

    def nudge(self) -> None:
        os.write(self._writer, b"!")

    def take_turn(self, people: tuple[str, ...], wait_s: float, stop: int) -> TurnGranted:
        made = self._class
        made.people = tuple(people)
        waiting = waits(os.geteuid(), "grace", *people)
        if any(one.uid == waiting.uid for one in made.state.queue):
            raise HostError("another connection of yours already waits for the turn")
        made.publish(queue=(*made.state.queue, waiting))
        while made.state.turn is not None or made.state.queue[0].uid != waiting.uid:
            ready, _, _ = select.select([self._reader, stop], [], [], LIMIT_S)
            assert ready, "the turn never came"
            if stop in ready:
                made.publish(queue=tuple(one for one in made.state.queue if one.uid != waiting.uid))
                self.ended = True
                raise WaitStopped("stopped")
            os.read(self._reader, 1)
        made.over = ""
        made.grant(waiting)
        return TurnGranted(made.state.number, waiting.limit_s, "")

    def need_turn(self) -> None:
        if self._class.over:
            raise HostError(self._class.over)

    def turn(self, do: str, **fields: Any) -> None:
        if do == "doing":
            self._class.doing.append(fields["doing"])
        elif do == "give":
            self._class.publish(turn=None)

    def bye(self) -> RestoreResult:
        return connection_module.NOTHING

    def close(self) -> None:
        self.ended = True


def turn(uid: int, user: str, left_s: float | None, doing: str = "") -> Turn:
    now = classhost.now_s()
    agent, client = Process(1, 1), Process(2, 1)
    return Turn(7, uid, (user,), agent, client, now, None if left_s is None else now + left_s, doing)


def waits(uid: int, *people: str, limit_s: float | None = 240.0) -> Waiting:
    return Waiting(uid, people, Process(3, 1), Process(4, 1), classhost.now_s(), limit_s)


def view_of(workshop: FakeWorkshop) -> ClassView:
    view = workshop.context.class_view
    assert view is not None
    return view
