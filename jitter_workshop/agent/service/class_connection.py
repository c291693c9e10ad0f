"""What a class adds to a connection with the agent: its turn, what it may do in it, and what is written down of it.
Loaded on class hosts alone."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop.agent import protocol
from jitter_workshop.agent.audit import Audit
from jitter_workshop.agent.caller import Member, housekeeping
from jitter_workshop.agent.changes import Changes, Setup
from jitter_workshop.agent.journal import open_journals
from jitter_workshop.agent.tracing.instances import Watcher
from jitter_workshop.agent.turns.state_file import TurnFile
from jitter_workshop.agent.turns.turn_cgroup import TurnGroup
from jitter_workshop.agent.turns.turn_queue import TurnQueue
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.text import clean
from jitter_workshop.model.turn import TurnGranted
from jitter_workshop.tuning.journal import current_boot

LEASE_S = 20.0
"""Who waits for a turn or has it, and is silent for so long, has gone: a stopped program gives no end of its
connection."""


class Attending:
    """A class's side of one connection."""

    def __init__(
        self, setup: Setup, changes: Changes, end_trace: Callable[[], None], send: Callable[[bytes], None]
    ) -> None:
        """``end_trace``: ends the recording of the kernel's trace; ``send``: sends an answer that was put off. Raises
        HostError."""
        assert setup.described is not None
        assert setup.member is not None
        self._setup = setup
        self._who = setup.member
        self._changes = changes
        self._end_trace = end_trace
        self._send = send
        self._watcher: Watcher | None = None
        self._audit = Audit(changes.folder, setup.member.user, setup.member.uid)
        self._turns = TurnQueue(
            setup.root,
            setup.described,
            setup.member,
            TurnFile(setup.top, setup.owner),
            TurnGroup(setup.root, setup.writer),
            self._audit,
            self._give_back,
        )

    @property
    def lease_s(self) -> float | None:
        """After how many seconds of silence the caller has gone; None where they neither wait nor have the turn."""
        return LEASE_S if self._turns.waiting or self._turns.holds else None

    @property
    def own_journals(self) -> tuple[str, ...] | None:
        """What this caller may give back: a student what they applied, None = everything."""
        return None if self._who.instructor else tuple(self._changes.leased)

    def need_turn(self) -> None:
        """Raises HostError where the caller has not the turn."""
        if self._setup.needs_turn:
            self._turns.need()

    def need_instructor(self) -> None:
        """What a student applies ends with the turn at the latest. Raises HostError for what would stay."""
        if not self._who.instructor:
            words = "in this class what you apply is given back when your turn ends"
            raise HostError(words, "add --hold, or -- COMMAND")

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | TurnGranted | None:
        """Answer a request about turns; None where it is answered later."""
        try:
            return self._turns.answer(request)
        finally:
            self._mind()

    def applied(self, result: ApplyResult) -> None:
        for one in result.applied:
            self._audit.changed("applied", tunable=one.tunable, path=one.path, before=one.before, after=one.after)

    def restored(self, result: RestoreResult) -> None:
        for one in result.restored:
            self._audit.changed("given back", tunable=one.tunable, path=one.path)

    def refused(self, error: WorkshopError) -> None:
        self._audit.refused("refused", error.sentence())

    def close(self) -> None:
        """The connection has ended."""
        self._turns.close()
        self._mind()

    def _mind(self) -> None:
        """While the turn goes on a child minds it: were this process killed, it would give the machine back."""
        if self._turns.holds and self._watcher is None:
            setup = self._setup
            self._watcher = Watcher(lambda: sweep(setup))
        elif not self._turns.holds and self._watcher is not None:
            self._watcher.close(True)
            self._watcher = None

    # Attention ----------------------------------------------------------------------------------------------------

    def watched(self) -> list[int]:
        return self._turns.watched()

    def left_s(self) -> float:
        return self._turns.left_s()

    def ended(self) -> bool:
        return self._turns.ended()

    def look(self) -> None:
        """Somebody changed whose turn it is, or time did: the answer that was put off may be due now."""
        granted = self._turns.look()
        self._mind()
        if self._turns.later is None or (granted is None and self._turns.waiting):
            return
        request_id, self._turns.later = self._turns.later, None
        if granted is not None:
            self._send(protocol.answer(request_id, granted))
        else:
            self._send(protocol.failure(request_id, HostError(self._turns.over or "the turn did not come")))

    def clear_idle(self) -> None:
        """Where nobody has the turn, give back what students left all the same. Raises HostError."""
        if _of_students(self._setup, self._changes):
            self._turns.reclaim()

    def _give_back(self) -> str:
        """Give back everything that students applied; "" or what could not be given back. Raises Busy while somebody
        else changes the host; who changed nothing waits for nobody."""
        self._end_trace()
        leased, self._changes.leased, self._changes.lease_s = self._changes.leased, [], None
        journals = (*_of_students(self._setup, self._changes), *leased)
        if not journals:
            return ""
        result = self._changes.restore((), journals)
        self.restored(result)
        left = [f"{one.tunable}: {one.reason}" for one in result.left_alone]
        rest = f" (and {len(left) - 2} more)" if len(left) > 2 else ""
        return clean("; ".join(left[:2]) + rest, 400)


def sweep(setup: Setup) -> None:
    """Give the machine back for a turn whose agent has died, and let the next one begin; nothing where every turn has
    its agent, but what students left of an earlier life of the services is given back then, too. Raises HostError."""
    if setup.described is None:
        return
    # While it gives back, the turn is this process's, and others let it know of theirs: it has nothing to look at, and
    # is not to be ended by that. A connection's own process hears of it again.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # A host root of its own: the one at hand may stand on descriptors that a watching child has closed, and a host that
    # cannot be read looks like one whose devices have left, of which nothing is to be given back.
    root = HostRoot(Path(setup.top))
    who = Member(0, "root", True, ())
    changes = Changes(replace(setup, root=root, member=who, uid=0, who="whoever looks after the turns"))
    try:
        attending = Attending(changes.setup, changes, _nothing, _to_nobody)
        try:
            attending.look()
            attending.clear_idle()
        finally:
            attending.close()
    finally:
        changes.close()


def step_aside(setup: Setup) -> None:
    """Run where nobody measures, however this process was started: who floods it with requests disturbs nobody."""
    assert setup.described is not None
    with contextlib.suppress(WorkshopError, OSError):
        TurnGroup(setup.root, setup.writer).step_aside()
        os.sched_setaffinity(0, set(housekeeping(setup.root, setup.described)))


def _nothing() -> None:
    pass


def _to_nobody(_reply: bytes) -> None:
    pass


def _of_students(setup: Setup, changes: Changes) -> tuple[str, ...]:
    """The journals of all but root and the class's instructors, whose changes are the baseline that a machine returns
    to."""
    kept = {0}
    for name in setup.described.instructors if setup.described is not None else ():
        with contextlib.suppress(KeyError):
            kept.add(pwd.getpwnam(name).pw_uid)
    opened, _ = open_journals(changes.folder, current_boot(setup.root), setup.journals)
    for _, file in opened:
        file.close()
    return tuple(journal.id for journal, _ in opened if journal.uid not in kept)
