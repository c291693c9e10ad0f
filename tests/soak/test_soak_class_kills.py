"""A class whose students, agents and services are killed at random: no finished result is lost, no change is left.
With the power cuts of the lab machine (tests/lab/test_lab_class_cuts.py) these are two hundred."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Sequence

import pytest

from tests import classchecks, classsoak
from tests.classatwork import STUDENTS, School
from tests.classonatree import log
from tests.classsoak import Class, Family, children, descendants

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="students are processes of other users: needs root")

KILLS = int(os.environ.get("SOAK_CLASS_KILLS", "190"))
EVERY_S = 4.0
"""About one kill in so many seconds: turns have to come in between."""
KINDS = (
    "a student", "the holder", "what measures", "a connection", "the holder's agent", "the agent and who watches it",
    "the agents' listener", "the agents' service", "the board's listener", "the board's service",
)  # fmt: skip
"""A service is its listener and every process of its connections, as systemd ends it; of a listener that is killed
alone the connections go on."""


class Killing:
    """Kills until there were enough, and starts again whatever was killed, as systemd or a student would."""

    def __init__(self) -> None:
        self._chance = random.Random(int(os.environ.get("SOAK_SEED", "7")))
        self._next = time.monotonic() + 5.0
        self.killed = dict.fromkeys(KINDS, 0)

    @property
    def count(self) -> int:
        return sum(self.killed.values())

    def __call__(self, school: School, host: Class, family: Family) -> None:
        time.sleep(0.02)
        now = time.monotonic()
        for number in {*range(-1, STUDENTS)} - set(family.students.values()):
            if now < school.ends:
                classsoak.begin(number, f"{number} {self.count}", school, host, family)
        if self.count < KILLS and now >= self._next and now < school.ends - 1.0:
            kind = self._chance.choice(KINDS)
            if self._kill(kind, host, family):
                self.killed[kind] += 1
                log(school.file, what="killed", kind=kind)
                self._next = now + self._chance.uniform(0.3, 2 * EVERY_S - 0.3)

    def _kill(self, kind: str, host: Class, family: Family) -> bool:
        turn = host.state().turn
        holder = turn.client.pid if turn is not None and turn.client.pid in family.students else None
        agent = turn.agent.pid if turn is not None and turn.agent.pid in descendants(os.getpid()) else None
        match kind:
            case "a student":
                return kill([self._chance.choice([pid for pid, n in family.students.items() if n >= 0])])
            case "the holder":
                return kill([holder])
            case "what measures":
                return kill(classchecks.working())
            case "a connection":
                return kill(self._chance.sample(children(host.agent) or [None], 1))
            case "the holder's agent":
                return kill([agent])
            case "the agent and who watches it":
                return agent is not None and kill([*children(agent), agent])
            case "the agents' listener" | "the board's listener":
                which = "agent" if "agents" in kind else "board"
                done = kill([getattr(host, which)])
            case _:
                which = "agent" if "agents" in kind else "board"
                listener = getattr(host, which)
                connections = connected(family, host, which)
                done = kill([listener, *connections])
        family.reap()
        host.restart(which)
        return done


def connected(family: Family, host: Class, which: str) -> list[int]:
    """Every process of a service's connections, also of those whose listener was killed before."""
    listener = getattr(host, which)
    found = descendants(listener)
    if which == "agent":
        state = host.state()
        agents = [one.agent.pid for one in state.queue] + ([state.turn.agent.pid] if state.turn else [])
        ours = set(descendants(os.getpid())) - set(family.students)
        for pid in agents:
            found += [pid, *descendants(pid)] if pid in ours and pid not in found else []
    return found


def kill(pids: Sequence[int | None]) -> bool:
    """SIGKILL; whether any of them was there."""
    there = False
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                there = True
    return there


def test_random_kills_lose_no_finished_result_and_leave_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    killing = Killing()
    with classsoak.at_work(monkeypatch, (KILLS + 5) * EVERY_S / 60, killing) as (school, host, lines, family):
        classsoak.keep("kills", lines)
        finished, lost = classchecks.results(school.homes, host.board_folder, lines)
        said = classchecks.mistakes(host.said)
        count = {what: sum(line["what"] == what for line in lines) for what in sorted({line["what"] for line in lines})}
        left = classsoak.leftovers(host, family)
        print(f"\n{killing.count} kills: {killing.killed}; {finished} finished results, {len(lost)} lost\n{count}")
        assert killing.count >= KILLS * 0.9
        assert [line["words"] for line in lines if line["what"] == "wrong"] == []
        assert classchecks.still_measured(lines) == []
        assert classchecks.overlaps(lines) == []
        assert lost == []
        assert finished > 0
        assert [code for code in family.codes if code[1] not in (0, -signal.SIGKILL)] == []
        assert said == []
        assert left == []
