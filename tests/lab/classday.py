"""Runs in the guest: a class at work on the real kernel and its real settings, until the power goes, and afterwards
what is left of it on the disk."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent import client as agent_client
from jitter_workshop.agent.service import class_connection
from jitter_workshop.classroom import client as board_client
from jitter_workshop.classroom.store import BoardStore
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import digest, plan_changes
from jitter_workshop.tuning.tunables.registry import parse_wanted
from jitter_workshop.tuning.writer import HostWriter
from tests import classatwork
from tests.classatwork import School
from tests.classonatree import ClassOnATree, log, uid_of, who
from tests.tuned_tree import HOT, journals

FOLDER = Path("/var/lib/class-soak")
LOG = Path("/run/class-soak.log")
STUDENTS = 4
WORDS = ("governor=performance", "stat-interval", "irq-affinity", "workqueue-mask")
TURN_S, SILENCE_S = 60.0, 40.0
"""An emulated machine is slow."""


class RealClass(ClassOnATree):
    """The services on this machine's own root."""

    def setup(self, uid: int) -> Any:
        one = super().setup(uid)
        ids = tuple(word.partition("=")[0] for word in WORDS)
        member = dataclasses.replace(who(uid, self.described), may_apply=ids)
        return dataclasses.replace(one, root=HostRoot(), writer=HostWriter(), top="/", member=member)


def work() -> None:
    """Print what is left of the day before, then work until the power goes; each line of the log is printed."""
    patch = pytest.MonkeyPatch()
    classatwork.known_names(patch)
    patch.setattr(agent_client, "LEASE_S", SILENCE_S)
    FOLDER.mkdir(exist_ok=True)
    LOG.touch()
    LOG.chmod(0o666)
    host = RealClass(Path("/"), FOLDER / "run", turn_s=TURN_S, silence=SILENCE_S)
    class_connection.end_dead_turn(host.setup(0))
    log(LOG, what="left", **left(host))
    patch.setattr(board_client, "SOCKET", host.board_socket)
    drawn = plan_changes(Host(HostRoot(), CpuSet.parse_list(HOT)), parse_wanted(WORDS))
    shown = tuple(digest(change) for change in drawn.changes)
    school = School(FOLDER / "homes", host.agent_socket, LOG, float("inf"), WORDS, shown)
    for number in range(STUDENTS):
        school.furnish(number)
        if os.fork() == 0:
            with contextlib.suppress(BaseException):
                _student(school, number)
            os._exit(70)
    with LOG.open() as lines:
        while True:
            line = lines.readline()
            sys.stdout.write(line)
            sys.stdout.flush()
            if not line:
                time.sleep(0.01)


def _student(school: School, number: int) -> None:
    uid = uid_of(number)
    os.setsid()
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    try:
        classatwork.student(school, number, f"{number} {time.time()}")
    except BaseException:
        log(school.file, who=number, what="mistake", words=traceback.format_exc())
        raise


def left(host: RealClass) -> dict[str, Any]:
    """Return what there is once the service has begun, which gives back what the day before left."""
    told: dict[str, Any] = {"sessions": {}, "damaged": [], "journals": [one.name for one in journals(Path("/"))]}
    for number in range(STUDENTS):
        store = SessionStore(FOLDER / "homes" / f"s{number:02d}" / "jitter-workshop" / "sessions")
        sessions, damaged = store.list(check_runs=True)
        told["sessions"][number] = [run for session in sessions for run in session.runs]
        told["damaged"] += [str(one) for one in damaged]
    with BoardStore(host.board_folder) as board:
        rows = board.board("lab", time.time()).rows
    told["board"] = {row.uid - uid_of(0): [run.id for run in row.posted.runs] for row in rows}
    return told


if __name__ == "__main__":
    work()
