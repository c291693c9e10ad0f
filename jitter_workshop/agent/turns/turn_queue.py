"""Manage one connection's place in the queue of a class, its turn, and the end of the turn.

A turn ends in three cases: its connection ends, its time limit is reached, or an instructor ends it. Then the agent
restores everything that students applied. It also kills the students' processes on the hot CPUs. The next turn begins
after the restore. If the turn's agent dies, a waiting agent or the turn service restores the machine.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from jitter_workshop.agent import protocol
from jitter_workshop.agent.audit import CHANGES, TURNS, AuditLog
from jitter_workshop.agent.caller import uids_of
from jitter_workshop.agent.caller_process import HeldProcess
from jitter_workshop.agent.policy import Member, housekeeping
from jitter_workshop.agent.turns import rules
from jitter_workshop.agent.turns.state_file import TurnFile, alive, now_s, process_identity
from jitter_workshop.agent.turns.turn_cgroup import TurnGroup
from jitter_workshop.errors import HeldError, HostError, UsageError, WorkshopError
from jitter_workshop.host.classfile import GROUP
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.text import ID, REASON, SENTENCE, USER, WORD, clean
from jitter_workshop.model.turn import MAX_PEOPLE, Process, Turn, TurnGranted, TurnState, Waiting

CONFINE_S = 5.0
"""Seconds between two checks for new logins. The processes of new logins are kept off the hot CPUs."""
AGAIN_S = 1.0
"""Seconds until a restore is tried again, if the restore had to wait for root's own changes."""
_DEATH_S = 10.0
"""Seconds to wait until a killed process has ended."""

RestoreAll = Callable[[], str]
"""The function that restores everything that students applied. It returns a text with the settings that could not be
restored, "" for none. It raises HeldError if it has to wait for another agent's changes.
"""


@dataclass(eq=False)
class TurnQueue:
    """Hold a connection's place in the queue, and its turn.

    ``later``: the id of the request to answer when the turn begins; None if no request waits.
    """

    _root: HostRoot
    _who: Member
    _file: TurnFile
    _group: TurnGroup
    _audit: AuditLog
    _restore: RestoreAll

    def __post_init__(self) -> None:
        me = process_identity(os.getpid())
        assert me is not None
        self._me = me
        self._watched: tuple[Process, int] | None = None
        self._mine: Turn | None = None
        self._due_s = float("inf")
        self._again_s: float | None = None  # when the restore is tried again
        self._confined_s = 0.0
        self.over = ""
        self.later: Any = None
        self.waiting = False

    # Questions of the server --------------------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Return True if this connection has the turn."""
        return self._mine is not None

    def need(self) -> None:
        """Raise HostError if this connection does not have the turn."""
        if not self.holds:
            raise HostError(
                self.over or "you need the turn for this", "'jitter-workshop class turn take' asks for the turn"
            )

    def watched(self) -> list[int]:
        """Return descriptors to wait on. If one becomes readable, call :meth:`look`."""
        return [self._watched[1]] if self._watched is not None else []

    def left_s(self) -> float:
        """Return the seconds until :meth:`look` must be called, even if no signal or request comes."""
        due_s = self._due_s if self.holds or self.waiting else float("inf")
        return max(min(due_s, self._again_s or float("inf")) - now_s(), 0.0)

    def ended(self) -> bool:
        """Return True if this connection's turn is over, even if :meth:`look` has not noticed the end yet.

        This method changes nothing.
        """
        if not (self.holds or self.waiting):
            return False
        turn = self._file.read().turn
        if turn is None or turn.agent != self._me:
            return self.holds
        return bool(rules.why_over(turn, now_s()))

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | TurnGranted | None:
        """Return the answer to a request about turns; None if the request is answered later. Raise UsageError or
        HostError on failure."""
        do = protocol.text(request, "do", WORD)
        if do == "take":
            return self._take(request)
        if do == "give":
            self.finish("given back")
        elif do == "need":
            self.need()
        elif do == "doing":
            self._change(lambda state: rules.describe_work(state, self._me, protocol.text(request, "doing", SENTENCE)))
        elif do in ("end", "freeze", "thaw"):
            own = do == "end" and request.get("user") == self._who.user
            if not self._who.instructor and not own:
                raise HostError(f"only an instructor may {do}", "ask an instructor of this class")
            self._instruct(do, request)
        else:
            raise UsageError(f"'turn' has no action '{clean(do, WORD)}'")
        return {}

    def look(self) -> TurnGranted | None:
        """Check the state of the turns, and act on a change.

        Return the turn if this connection gets the turn now, else None.
        """
        self._end_stuck()
        orphan = False
        with self._file.changing() as draft:
            state = rules.prune(draft.state, alive)
            orphan = rules.orphaned(state, alive)
            if orphan:
                state = rules.replace_agent(state, self._me)
            draft.state = rules.grant(state, now_s())
            turn = draft.state.turn
        if orphan and turn is not None:
            self._audit.note(TURNS, "turn adopted", number=turn.number, people=list(turn.people))
            self._return(turn)
            return self.look()
        self._watch(turn)
        self._due_s = max(rules.stuck_s(draft.state), now_s() + 1.0)
        if turn is not None and not alive(turn.agent):
            return self.look()  # it ended before the pidfd was opened, which may hold another process now
        if turn is None or turn.agent != self._me:
            self._again_s = None
            self.waiting = self.waiting and any(one.agent == self._me for one in draft.state.queue)
            if not self.waiting and self.later is not None:
                self.over = "an instructor took you out of the queue"
            if self.holds:
                self.finish("your turn was taken away")
            return None
        if turn.returning:
            if self._again_s is None or now_s() < self._again_s:
                return None  # not restored yet, or its end could not be written: it must not begin
            self._return(turn)
            return self.look()
        if self.holds and (why := rules.why_over(turn, now_s())):
            self.finish(why)
            return None
        granted = None if self.holds else self._begin(turn)
        if now_s() >= self._confined_s + CONFINE_S:
            self._confine()
        self._due_s = min(self._confined_s + CONFINE_S, float("inf") if turn.ends_s is None else turn.ends_s)
        return granted

    def finish(self, why: str) -> None:
        """End this connection's turn, or its wait for a turn. ``why``: the reason in words. Never raise an error.

        If the restore fails, no student's turn begins until an instructor allows it.
        """
        self.waiting, self.later = False, None
        held, self._mine = self._mine, None
        # If the state cannot be written, the machine is restored all the same.
        with contextlib.suppress(WorkshopError), self._file.changing() as draft:
            state = rules.leave_queue(draft.state, self._me)
            if state.turn is not None and state.turn.agent == self._me:
                held = state.turn
                draft.state = rules.returning(state)
            else:
                draft.state = _next(state)
        if held is not None:
            self.over = why
            self._audit.note(TURNS, "turn ended", number=held.number, why=why)
            self._return(held)

    def reclaim(self) -> None:
        """Restore the changes that students left, if no turn is running. No turn begins meanwhile."""
        with self._file.changing() as draft:
            if draft.state.turn is not None:
                return
            now = now_s()
            turn = Turn(draft.state.number, 0, ("root",), self._me, self._me, now, None, returning=True)
            draft.state = replace(draft.state, turn=turn)
        self._return(turn)

    def close(self) -> None:
        """End the turn or the wait when the connection has ended."""
        self.finish("left")
        self._watch(None)
        self._file.close()

    # Taking and giving --------------------------------------------------------------------------------------------

    def _take(self, request: dict[str, Any]) -> TurnGranted | None:
        people = self._people(protocol.words_field(request, "people", MAX_PEOPLE))
        pid = protocol.number_field(request, "client")
        with HeldProcess(self._root, pid, self._who.uid) as held:
            client = process_identity(pid)
            held.check()
        if client is None:
            raise HostError(f"process {pid} has ended")
        self._confine()
        waiting = Waiting(
            uid=self._who.uid,
            people=people,
            agent=self._me,
            client=client,
            since_s=now_s(),
            limit_s=None if self._who.instructor else float(self._who.described.longest_turn_s),
        )
        self.over = ""
        join = rules.join_first if self._who.instructor else rules.join_queue
        self._change(lambda state: join(rules.prune(state, alive), waiting))
        self.waiting, self.later = True, request.get("id")
        try:
            granted = self.look()
        except BaseException:
            self.finish("your turn could not begin")
            raise
        if granted is not None:
            self.later = None
        return granted

    def _begin(self, turn: Turn) -> TurnGranted:
        self._mine, self.waiting = turn, False
        missing = self._group.missing
        if not missing:
            try:
                if not alive(turn.client):
                    raise HostError("the process that asked for the turn has ended")
                origin = self._group.take_in(turn.client.pid, turn.uid)
                self._mine = replace(turn, origin=origin)
                self._change(lambda state: _with_origin(state, self._me, origin))
            except HostError as error:
                missing = error.message
        self._audit.note(TURNS, "turn began", number=turn.number, people=list(turn.people), group=missing)
        return TurnGranted(turn.number, None if turn.ends_s is None else max(turn.ends_s - now_s(), 0.0), missing)

    def _return(self, turn: Turn) -> None:
        """Restore the machine after a turn, and then let the next turn begin."""
        troubles = []
        self._again_s = None
        client = turn.client.pid if alive(turn.client) and turn.client != self._me else None
        # Kill the measuring processes first: they would measure a changing machine, and make rmdir(2) fail.
        steps: tuple[Callable[[], str], ...] = (
            lambda: self._group.close(client, turn.origin, turn.uid),
            self._restore,
        )
        for step in steps:
            try:
                troubles.append(step())
            except HeldError:  # root's changes are not trouble: the turn stays ``returning`` until they have ended
                self._again_s = now_s() + AGAIN_S
                return
            except WorkshopError as error:
                troubles.append(error.sentence())
            except Exception as error:
                # Catch our own errors, too: the other step must still run, and the next turn must not begin.
                troubles.append(f"{type(error).__name__}: {clean(error, REASON)}")
        trouble = "; ".join(one for one in troubles if one)
        if trouble:
            self._audit.note(CHANGES, "not as before", number=turn.number, trouble=trouble)
        with contextlib.suppress(WorkshopError):
            self._change(lambda state: _next(rules.returned(state, clean(trouble, SENTENCE))))

    def _instruct(self, do: str, request: dict[str, Any]) -> None:
        user = protocol.text(request, "user", USER) if request.get("user") is not None else ""
        try:
            uid = pwd.getpwnam(user).pw_uid if user else None
        except (KeyError, ValueError):
            raise HostError(f"there is no user {clean(user, ID)} here", rules.WHO) from None
        if do == "end":
            self._change(lambda state: rules.end_turn(state, uid, self._who.user, now_s()))
        elif do == "freeze":
            self._change(lambda state: rules.freeze(state, self._who.user))
        else:
            self._change(lambda state: _next(rules.thaw(state)))
        self._audit.note(CHANGES if self._who.instructor else TURNS, f"turn {do}", user_named=user)

    # Details ------------------------------------------------------------------------------------------------------

    def _confine(self) -> None:
        """Keep users without the turn off the hot CPUs.

        A failure is ignored, so that the caller can continue to wait or to measure.
        """
        self._confined_s = now_s()
        with contextlib.suppress(HostError):
            self._group.confine(self._students(), housekeeping(self._root, self._who.described))

    def _end_stuck(self) -> None:
        """Kill the turn's agent if it did not end the turn in time, so that no hanging agent keeps the machine."""
        state = self._file.read()
        if state.turn is None or state.turn.agent == self._me or now_s() < rules.stuck_s(state):
            return
        with contextlib.suppress(OSError), closed_after(os.pidfd_open(state.turn.agent.pid)) as held:
            if alive(state.turn.agent):
                self._audit.note(TURNS, "agent ended", number=state.turn.number, people=list(state.turn.people))
                signal.pidfd_send_signal(held, signal.SIGKILL)
                select.select([held], [], [], _DEATH_S)

    def _change(self, how: Callable[[TurnState], TurnState]) -> None:
        with self._file.changing() as draft:
            draft.state = how(draft.state)

    def _people(self, named: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names of the team: the caller first, then the members in ``named``. Raise HostError for a name
        that is not in the class."""
        uids = uids_of(GROUP)
        for name in named:
            try:
                known = pwd.getpwnam(name).pw_uid in uids or self._who.described.instructs(name)
            except (KeyError, ValueError):
                known = False
            if not known:
                raise HostError(
                    f"{clean(name, ID)} is not in this class",
                    f"the members of the class are the users in the group {GROUP}",
                )
        return tuple(dict.fromkeys((self._who.user, *named)))[:MAX_PEOPLE]

    def _students(self) -> frozenset[int]:
        found = set(uids_of(GROUP))
        for name in self._who.described.instructors:
            with contextlib.suppress(KeyError):
                found.discard(pwd.getpwnam(name).pw_uid)
        return frozenset(found - {0})

    def _watch(self, turn: Turn | None) -> None:
        """Open a pidfd of the turn's agent while this connection waits. The pidfd shows when the agent ends."""
        wanted = turn.agent if turn is not None and self.waiting and turn.agent != self._me else None
        if self._watched is not None and self._watched[0] == wanted:
            return
        if self._watched is not None:
            os.close(self._watched[1])
            self._watched = None
        if wanted is not None:
            with contextlib.suppress(OSError):
                self._watched = (wanted, os.pidfd_open(wanted.pid))


def _next(state: TurnState) -> TurnState:
    """Return the state with the turn given to the first in the queue whose agent is alive, if a turn may begin."""
    return rules.grant(rules.prune(state, alive), now_s())


def _with_origin(state: TurnState, agent: Process, origin: str) -> TurnState:
    if state.turn is None or state.turn.agent != agent:
        return state
    return replace(state, turn=replace(state.turn, origin=origin))
