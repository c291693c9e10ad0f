"""Add what a class needs to a connection with the agent: the caller's turn, the limits of a student, and the audit log.

This module is loaded only on class hosts.
"""

from __future__ import annotations

import contextlib
import pwd
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from jitter_workshop.agent import protocol
from jitter_workshop.agent.audit import CHANGES, REFUSALS, AuditLog
from jitter_workshop.agent.changes import Changes, Setup
from jitter_workshop.agent.journal import open_journals
from jitter_workshop.agent.policy import Member, keep_to_housekeeping
from jitter_workshop.agent.tracing.instances import Watcher
from jitter_workshop.agent.turns.state_file import TurnFile
from jitter_workshop.agent.turns.turn_cgroup import TurnGroup
from jitter_workshop.agent.turns.turn_queue import TurnQueue
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.host.classfile import ClassFile
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ApplyResult, RestoreResult
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.model.turn import TurnGranted
from jitter_workshop.tuning.journal import current_boot

LEASE_S = 20.0
"""Idle timeout in seconds of a caller that waits for a turn or has it. A stopped program does not close its connection,
so only its silence shows that it is gone."""


class Attending:
    """Serve one connection on a class host. ``who``: the caller. ``turns``: the caller's queue position and turn."""

    def __init__(
        self,
        setup: Setup,
        who: Member,
        changes: Changes,
        end_trace: Callable[[], None],
        send: Callable[[bytes], None],
    ) -> None:
        """Prepare the connection. Raise HostError on failure.

        ``end_trace``: a function that ends the recording of the kernel's trace. ``send``: a function that sends a
        delayed answer.
        """
        self._setup = setup
        self.who = who
        self._changes = changes
        self._end_trace = end_trace
        self._send = send
        self._watcher: Watcher | None = None
        self._audit = AuditLog(changes.folder, who.user, who.uid)
        self.turns = TurnQueue(
            setup.root,
            who,
            TurnFile(setup.top, setup.owner),
            TurnGroup(setup.root, setup.writer),
            self._audit,
            self._restore,
        )

    @property
    def lease_s(self) -> float | None:
        """Return the idle timeout in seconds; None if the caller neither waits for the turn nor has it."""
        return LEASE_S if self.turns.waiting or self.turns.holds else None

    @property
    def own_journals(self) -> tuple[str, ...] | None:
        """Return the ids of the journals that this student may restore. Return None for an instructor, who may restore
        all."""
        return None if self.who.instructor else tuple(self._changes.leased)

    def need_turn(self) -> None:
        """Raise HostError if the caller does not have the turn."""
        if self._setup.needs_turn:
            self.turns.need()

    def need_instructor(self) -> None:
        """Raise HostError if the caller is a student.

        This guards changes that outlast the connection. A student's changes must end with the student's turn.
        """
        if not self.who.instructor:
            words = "in this class you may make only changes that end with your turn"
            raise HostError(words, "keep this program running: add --hold, or -- COMMAND")

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | TurnGranted | None:
        """Return the answer to a request about turns; None if the request is answered later."""
        try:
            return self.turns.answer(request)
        finally:
            self._mind()

    def applied(self, result: ApplyResult) -> None:
        for one in result.applied:
            self._audit.note(CHANGES, "applied", tunable=one.tunable, path=one.path, before=one.before, after=one.after)

    def restored(self, result: RestoreResult) -> None:
        for one in result.restored:
            self._audit.note(CHANGES, "given back", tunable=one.tunable, path=one.path)

    def refused(self, error: WorkshopError) -> None:
        self._audit.note(REFUSALS, "refused", why=error.sentence())

    def close(self) -> None:
        """End the caller's turn, and then stop the child process that watches the turn. Call this when the connection
        has ended.
        """
        self.turns.close()
        self._mind()

    def _mind(self) -> None:
        """Start a child process to watch the caller's turn; stop the child after the turn.

        The child starts when the turn begins. If this process is killed, the child restores the machine.
        """
        if self.turns.holds and self._watcher is None:
            setup = self._setup
            self._watcher = Watcher(lambda: end_dead_turn(setup))
        elif not self.turns.holds and self._watcher is not None:
            self._watcher.close(True)
            self._watcher = None

    # Attention ----------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Check if the caller's turn has begun or ended.

        Another process can begin or end the turn, and the turn's time limit can end it. If the caller no longer waits
        for the turn, send the delayed answer: the turn, or an error.
        """
        granted = self.turns.look()
        self._mind()
        if self.turns.later is None or (granted is None and self.turns.waiting):
            return
        request_id, self.turns.later = self.turns.later, None
        if granted is not None:
            self._send(protocol.encode_answer(request_id, granted))
        else:
            self._send(protocol.failure(request_id, HostError(self.turns.over or "you did not get the turn")))

    def clear_idle(self) -> None:
        """If no turn is running, restore the changes that students left. Raise HostError on failure."""
        if self._of_students():
            self.turns.reclaim()

    def _restore(self) -> str:
        """Restore everything that students applied. Return a text with the settings that could not be restored, "" for
        none.

        Raise HeldError while another agent changes the host. The lock is taken only if there is something to restore.
        """
        self._end_trace()
        leased, self._changes.leased, self._changes.lease_s = self._changes.leased, [], None
        journals = (*self._of_students(), *leased)
        if not journals:
            return ""
        result = self._changes.restore((), journals)
        self.restored(result)
        left = [f"{one.tunable}: {one.reason}" for one in result.left_alone]
        rest = f" (and {len(left) - 2} more)" if len(left) > 2 else ""
        return clean("; ".join(left[:2]) + rest, SENTENCE)

    def _of_students(self) -> tuple[str, ...]:
        """Return the ids of the open journals of students. Journals of root and of the class's instructors are left
        out."""
        kept = {0}
        for name in self.who.described.instructors:
            with contextlib.suppress(KeyError):
                kept.add(pwd.getpwnam(name).pw_uid)
        opened, _ = open_journals(self._changes.folder, current_boot(self._setup.root), self._setup.journals)
        for _, file in opened:
            file.close()
        return tuple(journal.id for journal, _ in opened if journal.uid not in kept)


def end_dead_turn(setup: Setup) -> None:
    """Restore the machine if the turn's agent has died, and let the next turn begin.

    A turn with a live agent is not touched. If no turn is running, restore the changes that students left. Raise
    HostError on failure.
    """
    if setup.member is None:
        return
    # While this process restores, the turn is its own, and other agents wake it with SIGUSR1. It has nothing to check
    # then, and the signal must not end it. A process that serves a connection sets its own handler again.
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # A new HostRoot: a watching child has closed the descriptors of the old one. A host that cannot be read looks like
    # one whose devices are gone, and then nothing would be restored.
    root = HostRoot(Path(setup.top))
    who = Member(0, "root", True, (), setup.member.described)
    setup = replace(setup, root=root, member=who, uid=0, who="the turn service")
    with contextlib.closing(Changes(setup)) as changes:
        attending = Attending(changes.setup, who, changes, end_trace=lambda: None, send=lambda reply: None)
        with contextlib.closing(attending):
            attending.look()
            attending.clear_idle()


def move_to_housekeeping(setup: Setup, described: ClassFile) -> None:
    """Move this process to the housekeeping CPUs of the class, so that it disturbs no measurement."""
    with contextlib.suppress(WorkshopError, OSError):
        TurnGroup(setup.root, setup.writer).step_aside()
    keep_to_housekeeping(setup.root, described)
