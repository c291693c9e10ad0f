"""Forty students on one machine: turns in order, no user starved, no two measure at a time, no result lost, the host as
it was. Some come in teams, some stand still, some leave; a teacher freezes, ends turns and holds the machine."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time

import pytest

from tests import classchecks, classsoak
from tests.classatwork import STUDENTS, TURN_S, School
from tests.classsoak import Class, Family

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="students are processes of other users: needs root")

MINUTES = float(os.environ.get("SOAK_CLASS_MINUTES", "10"))
STILL_S = 5.0


class Stopping:
    """Now and then a student stands still for a while, half of the time the one whose turn it is."""

    def __init__(self) -> None:
        self._chance = random.Random(40)
        self._still: dict[int, float] = {}
        self._next = time.monotonic() + 3.0
        self.stopped = {"with the turn": 0, "without": 0}

    def __call__(self, school: School, host: Class, family: Family) -> None:
        time.sleep(0.05)
        now = time.monotonic()
        for pid in [pid for pid, ends in self._still.items() if ends <= now]:
            del self._still[pid]
            _signal(pid, signal.SIGCONT)
        if now < self._next:
            return
        turn = host.state().turn
        holder = turn.client.pid if turn is not None else None
        if self._chance.random() < 0.5 and holder in family.students:
            pid = holder
        else:
            pid = self._chance.choice([pid for pid, number in family.students.items() if number >= 0])
        if pid is not None and pid not in self._still:
            _signal(pid, signal.SIGSTOP)
            self.stopped["with the turn" if pid == holder else "without"] += 1
            self._still[pid] = now + STILL_S
        self._next = now + self._chance.uniform(3.0, 10.0)


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def test_forty_students_for_ten_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    stopping = Stopping()
    with classsoak.at_work(monkeypatch, MINUTES, stopping) as (school, host, lines, family):
        classsoak.keep("students", lines)
        finished, lost = classchecks.results(school.homes, host.board_folder, lines)
        turns = {n: sum(line["what"] == "has" and line["who"] == n for line in lines) for n in range(-1, STUDENTS)}
        waited = classchecks.waits(lines)
        count = {what: sum(line["what"] == what for line in lines) for what in sorted({line["what"] for line in lines})}
        ended = sorted({line["why"][:60] for line in lines if line["what"] == "refused"})
        mine = [turns[n] for n in range(STUDENTS)]
        said = classchecks.mistakes(host.said)
        left = classsoak.leftovers(host, family)
        print(
            f"\n{STUDENTS} students, {MINUTES:g} minutes: {sum(turns.values())} turns, of a student {min(mine)} to "
            f"{max(mine)}; waits of at most {max(w[0] for w in waited)} turns, {max(w[1] for w in waited):.1f} s "
            f"(median {sorted(w[1] for w in waited)[len(waited) // 2]:.1f} s); {finished} finished results, "
            f"{len(lost)} lost; stood still: {stopping.stopped}\n{count}\n" + "\n".join(ended)
        )
        assert [line["words"] for line in lines if line["what"] == "wrong"] == []
        assert classchecks.still_measured(lines) == []
        assert classchecks.overlaps(lines) == []
        numbers = [line["number"] for line in lines if line["what"] == "has"]
        assert len(set(numbers)) == len(numbers)
        assert {line["group"] for line in lines if line["what"] == "has"} == ({""} if host.machine.groups else {})
        # First come, first served: no more turns go by than students stood ahead, but for the teacher's.
        teachers = turns[-1]
        assert all(turns_by <= ahead + 1 + teachers for turns_by, _, ahead in waited)
        assert min(mine) > 0, turns
        assert max(w[1] for w in waited) < (STUDENTS + 5) * (TURN_S + STILL_S)
        assert lost == []
        assert finished > 0
        assert [code for code in family.codes if code[1] != 0] == []
        assert said == []
        assert left == []
