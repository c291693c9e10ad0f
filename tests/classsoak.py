"""A class of forty on a machine of its own (``ownmachine``): its services and students begun, started again, waited
for, and what is left of them in the end."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from jitter_workshop.agent import client as agent_client
from jitter_workshop.agent.turns.state_file import parse_turn_state
from jitter_workshop.agent.turns.turn_cgroup import LOGINS, TURN, TurnGroup
from jitter_workshop.classroom import client as board_client
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.turn import TurnState
from jitter_workshop.tuning.journal import current_boot
from jitter_workshop.tuning.planning import digest
from tests import classatwork, classchecks, classonatree
from tests.agent_on_tree import FakeKernel, Steps
from tests.classatwork import HEART_S, SILENCE_S, STUDENTS, TURN_S, School
from tests.classonatree import TEACHER, ClassOnATree, logged, uid_of, who
from tests.ownmachine import CHECKOUT, OwnMachine
from tests.tuned_tree import journals, planned

WORDS = ("governor=performance", "thp", "stat-interval")
IDS = tuple(word.partition("=")[0] for word in WORDS)
SETTLE_S = 360.0
"""The time after the end in which learners that still wait have their turn."""
KEPT = CHECKOUT / "bench-results" / "class"
_SUBREAPER = 36


class Class(ClassOnATree):
    """The same, and what its processes say on standard error, a mistake of theirs among it, is kept in ``said``."""

    def __init__(self, machine: OwnMachine, run: Path, may: tuple[str, ...] = IDS, **options: Any) -> None:
        self.machine, self._may = machine, may
        self.said = machine.top / "said"
        self.said.touch()
        super().__init__(machine.tree, run, **options)

    def setup(self, uid: int) -> Any:
        one = super().setup(uid)
        member = dataclasses.replace(who(uid, self.described), may_apply=self._may)
        return dataclasses.replace(one, member=member, writer=FakeKernel(self.tree, Steps({}), {}))

    def _start(self, name: str, serve: Callable[[], None]) -> int:
        def told() -> None:
            self.speak_to_said()
            try:
                serve()
            except BaseException:
                traceback.print_exc()
                raise

        return super()._start(name, told)

    def speak_to_said(self) -> None:
        file = os.open(self.said, os.O_WRONLY | os.O_APPEND)
        os.dup2(file, 2)
        os.close(file)
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)

    def state(self) -> TurnState:
        file = self.tree / "run/jitter-workshop/turns.json"
        boot = current_boot(HostRoot()) or ""
        return parse_turn_state(file.read_bytes(), boot) if file.exists() else TurnState(boot)


class Family:
    """Processes of ours, by what they are, and their ends; orphans come to this process."""

    def __init__(self) -> None:
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        self.students: dict[int, int] = {}
        self.codes: list[tuple[int, int]] = []
        """Students that ended, and how."""

    def begin(self, number: int, body: Callable[[], None], host: Class) -> None:
        """A process of student ``number`` (-1: the teacher)."""
        pid = os.fork()
        if pid == 0:
            code = 70
            try:
                host.speak_to_said()
                uid = uid_of(number) if number >= 0 else TEACHER
                os.setsid()
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                body()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        self.students[pid] = number

    def reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                number = self.students.pop(ended[0], None)
                if number is not None:
                    self.codes.append((number, os.waitstatus_to_exitcode(ended[1])))

    def of(self, number: int) -> int | None:
        return next((pid for pid, one in self.students.items() if one == number), None)

    def end(self) -> None:
        """Kill what is left."""
        for pid in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        self.reap()
        ctypes.CDLL(None).prctl(_SUBREAPER, 0, 0, 0, 0)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def own_users(patch: pytest.MonkeyPatch) -> None:
    """Numbers of users that no other soak has: agents put every process of their students where it belongs."""
    patch.setattr(classonatree, "FIRST_UID", 100_000 + os.getpid() % 4_000 * 100)


def begin(number: int, seed: str, school: School, host: Class, family: Family) -> None:
    """A process of student ``number``, or of the teacher (-1)."""
    if number < 0:
        family.begin(number, lambda: classatwork.teacher(school, seed), host)
    else:
        family.begin(number, lambda: classatwork.student(school, number, seed), host)


Beside = Callable[[School, Class, Family], None]
"""Called again and again while the class works; sleeps a little itself."""


@contextlib.contextmanager
def at_work(
    patch: pytest.MonkeyPatch, minutes: float, beside: Beside
) -> Iterator[tuple[School, Class, list[Mapping[str, Any]], Family]]:
    """Let the class work for so long, then wait until the machine is given back and all students have ended; gives what
    was logged. The services still run."""
    with contextlib.ExitStack() as stack:
        own_users(patch)
        machine = stack.enter_context(OwnMachine())
        file = machine.top / "log"
        file.touch()
        file.chmod(0o666)
        classchecks.watch_turns(file, patch)
        classatwork.known_names(patch)
        patch.setattr(agent_client, "LEASE_S", HEART_S)
        before = machine.contents()
        family = Family()
        stack.callback(family.end)
        host = Class(machine, machine.top / "run", turn_s=TURN_S, silence=SILENCE_S)
        host.said.chmod(0o666)
        stack.callback(host.close)
        patch.setattr(board_client, "SOCKET", host.board_socket)
        shown = tuple(digest(change) for change in planned(host.tree, WORDS).changes)
        ends = time.monotonic() + minutes * 60
        school = School(machine.top / "homes", host.agent_socket, file, ends, WORDS, shown)
        for number in range(STUDENTS):
            school.furnish(number)
        for number in range(-1, STUDENTS):
            begin(number, f"{number}", school, host, family)
        while time.monotonic() < ends:
            beside(school, host, family)
            family.reap()
        for pid in family.students:
            os.kill(pid, signal.SIGCONT)
        settled = time.monotonic() + SETTLE_S
        while family.students or (left := standing(host, before)):
            if time.monotonic() >= settled:
                keep("unsettled", logged(file))
                raise AssertionError(f"{len(family.students)} students, {standing(host, before)}")
            family.reap()
            time.sleep(0.1)
        assert not left
        yield school, host, logged(file), family


def standing(host: Class, before: dict[str, bytes]) -> str:
    """Return what of the machine is not as it was, or goes on; "" for nothing."""
    state = host.state()
    if state.turn is not None or state.queue or state.trouble:
        return f"turns: {state}"
    if found := journals(host.tree):
        return f"journals: {[one.name for one in found]}"
    if host.machine.group(TURN).exists():
        return "the turn's control group"
    now = host.machine.contents()
    return ", ".join(sorted(k for k in before.keys() | now.keys() if before.get(k) != now.get(k))[:5])


def leftovers(host: Class, family: Family) -> list[str]:
    """Return what is left once both services are told to end: processes, control groups."""
    host.close()
    group = TurnGroup(HostRoot(host.tree), host.setup(0).writer)
    found = [why] if (why := group.release()) else []
    ends = time.monotonic() + 10.0
    while (left := descendants(os.getpid())) and time.monotonic() < ends:
        family.reap()
        time.sleep(0.1)
    names = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:60] for pid in left}
    found += [f"process {pid}: {name}" for pid, name in names.items()]
    return found + [name for name in (TURN, LOGINS) if host.machine.group(name).exists()]


def keep(name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Raw data for later: one line each."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.jsonl").open("w") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
