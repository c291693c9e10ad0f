"""Apply and restore settings through the agent. Verbs, screens and proofs all use this client.

The first request opens the connection. Leased settings are restored when this program ends, is killed or stops
answering. But settings that this program excluded from the lease (:meth:`AgentConnection.keep`) stay. If an agent has
ended, the next request starts a new agent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jitter_workshop.agent.client import (
    CHANGING,
    TRACING,
    AgentClient,
    NeedsPassword,
    Purpose,
    Rights,
    connect_class,
    connect_to_agent,
    rights,
)
from jitter_workshop.agent.tracing import instances
from jitter_workshop.errors import BusyError, HostError, WorkshopError
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ONCE, ApplyResult, Change, Plan, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.applying import accounted
from jitter_workshop.tuning.planning import digest

HERE = Path("/")
Ask = Callable[[Callable[[], AgentClient]], AgentClient]
"""The type of a function that runs another function in the plain terminal, without a screen, so that sudo can ask for a
password there.
"""

NOTHING = RestoreResult((), (), False)
RETURN_S = 5.0
"""Seconds to wait for the end of a turn whose agent died: another process needs a moment to restore the machine."""


class NoAgent(HostError):
    """Report that no agent can be used, because root's rights are not available."""


class AgentConnection:
    """Apply and restore settings through one agent. Only one thread at a time may use the object.

    - ``ask``: a function of a full-screen program. It shows the plain terminal, so that sudo can ask for a password
      there (:data:`Ask`). None if the program does not use the full screen.
    - ``class_only``: True in a browser. Only a class host's agent is used, and sudo never asks for a password.
    - ``trouble``: a sentence on why :meth:`close` could not restore the settings, or "".
    - ``change_log``: logs each write for a session.
    """

    def __init__(self, ask: Ask | None = None, change_log: ChangeLog | None = None) -> None:
        self.ask = ask
        self.change_log = change_log or ChangeLog(None)
        self.class_only = False
        self._agent: AgentClient | None = None
        self.trouble = ""
        self.made: set[str] = set()
        """The ids of the journals of changes that were made through this object."""
        self._leased: set[str] = set()
        self._adopted: set[tuple[str, int]] = set()
        self._announced: dict[str, set[str]] = {}
        self._turn = False
        self._turn_ended = False
        self.alone_with_turn = False
        """True if root could not put this process into the turn's control group. In this case no process is ended with
        the turn."""
        self._began = False
        self._lost = False

    def beside(self) -> AgentConnection:
        """Return a new connection with an agent of its own, for work on another thread. Both connections use the same
        ``ask``."""
        other = AgentConnection(self.ask)
        other.class_only = self.class_only
        return other

    @property
    def holding(self) -> bool:
        """Return True if the end of this connection would restore a setting."""
        return bool(self._leased)

    @property
    def leased(self) -> frozenset[str]:
        """Return the ids of the tunables that the end of this connection would restore."""
        return frozenset(self._leased)

    @property
    def rights(self) -> Rights:
        """Return the way in which this connection gets root's rights. ``root``: it has them already. ``sudo``: sudo may
        ask for a password, or refuse. ``none``: there is no way."""
        if self._agent is not None:
            return "root"
        return "none" if self.class_only and not _in_class() else rights()

    @property
    def notice(self) -> str:
        """Return a warning if other users can change the code that runs as root, or ""."""
        return self._agent.notice if self._agent is not None else ""

    def plan(self, words: Sequence[str], cpus: CpuSet) -> Plan:
        """Return the plan that the agent makes as root. Raise HostError if root's rights are not available."""
        return self._connected().plan(words, str(cpus))

    def apply(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change], *, lease: bool = True) -> ApplyResult:
        """Make exactly the changes in ``shown``. Without ``lease`` they last until ``restore``. Raise HostError if
        root's rights are not available, if another agent changes the host, or if the journal cannot be written."""
        agent = self._connected()
        self.change_log.begin()
        result = agent.apply(words, str(cpus), [digest(change) for change in shown], lease)
        self.made |= {result.journal_id} if result.journal_id is not None else set()
        if result.applied and lease:
            self._leased |= _ids(words)
        self.change_log.applied(result, kept=not lease)
        return accounted(HostRoot(HERE), shown, result)

    def announce(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change]) -> ApplyResult:
        """Journal the old values of the changes that the learner will make by hand. No setting is written. When this
        connection ends, the learner's writes are restored, even if they were not adopted. Raise NoAgent if no agent can
        be used, HostError on any other failure."""
        try:
            agent = self._connected()
        except HostError as error:
            raise NoAgent(error.message, error.advice) from error
        self.change_log.begin()
        result = agent.announce(words, str(cpus), [digest(change) for change in shown])
        if result.journal_id is not None:
            self.made.add(result.journal_id)
            # Until something is adopted, only the announced changes hold these tunables.
            self._announced[result.journal_id] = _ids(words) - self._leased
            self._leased |= _ids(words)
        return result

    def adopt(self, journal_id: str, *, end: bool = False, wrong: bool = False) -> ApplyResult:
        """Record changes that the learner has made by hand as changes of this tool. ``journal_id``: the journal of
        :meth:`announce`. ``end``: True if the learner will make no more of the announced changes. ``wrong``: True to
        record also values that differ from the announced values. Raise HostError if the agent has ended.
        """
        agent = self._living()
        if agent is None:
            raise HostError("the agent ended, so the changes made by hand have been restored", "begin again")
        result = agent.adopt(journal_id, end=end, wrong=wrong)
        anew = tuple(one for one in result.applied if (journal_id, one.n) not in self._adopted)
        self._adopted |= {(journal_id, one.n) for one in anew}
        if result.applied:
            self._announced.pop(journal_id, None)
        elif end:
            self._leased -= self._announced.pop(journal_id, set())
        self.change_log.applied(dataclasses.replace(result, applied=anew, refused=()))
        return result

    def restore(
        self, tunables: Sequence[str] = (), *, journals: Sequence[str] = (), forget: bool = False
    ) -> RestoreResult:
        """Restore the settings of these tunables (() for all), and remove left-over traces. ``journals``: the ids of
        the journals with the changes to restore (() for all; :class:`ApplyResult` has the id). ``forget``: also drop
        settings from the journal if another program or user has changed them after this tool. Raise HostError on
        failure."""
        self._living()
        if self._turn_ended or not anything_to_restore(HostRoot(HERE)):
            # The end of the turn restored all settings that were applied in it. Without a turn the agent restores none.
            return NOTHING
        result = self._connected().restore(tunables, journals=journals, forget=forget)
        self._leased -= _ids(tunables) if tunables else self._leased.copy()
        self.change_log.restored(result)
        return result

    def place(self, pid: int, tids: Sequence[int] = ()) -> CpuSet:
        """Move a process of this user to the isolated CPUs, and return these CPUs. ``tids``: move only these threads of
        the process. Raise HostError on failure, or if sudo would ask for a password. A run that is about to begin must
        not wait for a password."""
        agent = self._connected(may_ask=False)
        return CpuSet.parse_list(agent.place_threads(pid, tids) if tids else agent.place(pid))

    def tracer(self) -> AgentClient:
        """Return a connection to the agent that records the kernel's trace. Raise HostError if root's rights are not
        available, or if sudo would ask for a password. A run that is about to begin must not wait for a password."""
        return self._connected(TRACING, may_ask=not self._began)

    @property
    def has_turn(self) -> bool:
        """Return True if this connection has the turn of a class host."""
        return self._turn and self._living() is not None

    @property
    def took_turn(self) -> bool:
        """Return True if this connection took the turn and has not ended the turn itself.

        This method does not ask the agent. So the result is True even if the turn has ended otherwise, for example by
        its time limit.
        """
        return self._turn

    def turn_lost(self) -> str:
        """Return the reason why this connection's turn has ended; "" if it has not. Time, an instructor, or the end of
        the agent can end a turn. After such an end, wait a moment until the machine is restored. Never raise an
        error."""
        if not self._turn:
            return ""
        agent = self._living()
        why = "the class's service ended your turn: the service stopped, or this program sent nothing for too long"
        if agent is not None:
            try:
                agent.need_turn()
            except HostError as refusal:
                why = refusal.message
            else:
                return ""
        self._let_go_of_turn()
        self._turn_ended = True
        _until_returned()
        return why

    def take_turn(self, people: Sequence[str], wait_s: float, stop: int) -> None:
        """Wait for the turn of a class host, and take it. ``people``: the other members of the team. ``stop``: a
        descriptor that ends the wait when it becomes readable. Raise BusyError after ``wait_s`` seconds, WaitStopped
        after ``stop``, HostError on any other failure."""
        agent = self._connected_to_class()
        try:
            granted = agent.take_turn(people, wait_s, stop)
        except BusyError:  # also WaitStopped
            self._agent = None  # a wait that ends without the turn has ended the connection
            raise
        self._turn, self._turn_ended = True, False
        self.alone_with_turn = bool(granted.group)

    def give_turn(self) -> None:
        """End this connection's turn; the settings that were applied in the turn are restored. Never raise an error:
        the agent also ends a turn by itself."""
        agent = self._living()
        if agent is not None and self._turn:
            with contextlib.suppress(WorkshopError):
                agent.turn("give")
        self._let_go_of_turn()

    def _let_go_of_turn(self) -> None:
        self._turn, held = False, bool(self._leased)
        self._leased.clear()
        if held:
            self._write_down_lapsed()

    def instruct(self, do: str, user: str | None = None) -> None:
        """Send an instructor's command to the class. Raise HostError on failure.

        - ``end``: end the turn of ``user`` (None: the present turn).
        - ``freeze``: stop the queue.
        - ``thaw``: start the queue again.

        Users who are not instructors may only end their own turn.
        """
        self._connected_to_class().turn(do, user=user)

    def say_doing(self, doing: str) -> None:
        """Tell the users who wait for this host what this connection is doing with it now."""
        agent = self._living()
        if agent is not None and self._turn:
            with contextlib.suppress(WorkshopError):
                agent.turn("doing", doing=doing)

    def keep(self) -> None:
        """Keep the applied settings after the end of this connection, until ``restore``. Raise HostError on failure."""
        if self._agent is not None and self._leased:
            self._agent.keep()
            self._leased.clear()
            self.change_log.kept()

    def keep_for_the_boot(self, words: Sequence[str], journal_id: str) -> None:
        """Keep the settings of one journal after the connection's end, because they take effect at a boot. All other
        leased settings are still restored at the end. Raise HostError on failure."""
        if self._agent is not None:
            self._agent.keep((journal_id,))
        self._leased -= _ids(words)
        self.change_log.kept(_ids(words))

    def wait(self) -> None:
        """Wait until a signal arrives and its handler raises an exception. Raise HostError if the agent ends before a
        signal arrives.
        """
        try:
            if self._agent is not None:
                self._agent.wait()
        finally:
            self._living()

    def restore_and_close(self) -> RestoreResult:
        """Restore the leased settings, and close the connection. Raise HostError on failure."""
        agent, self._agent = self._agent, None
        self._turn = False
        leased, self._leased = self._leased, set()
        if agent is None:
            return NOTHING
        with agent:
            result = agent.bye() if leased else NOTHING
            self.change_log.restored(result)
            return result

    def close(self) -> RestoreResult:
        """Restore the leased settings, and close the connection. Never raise an error: ``trouble`` has the reason for a
        failure. After a failure, a later ``restore`` can still use the journal."""
        if self._lost:
            self._write_down_lapsed()
            self.trouble = (
                "the agent ended too early; 'jitter-workshop restore --list' shows the changes that are still in place"
            )
        try:
            return self.restore_and_close()
        except WorkshopError as error:
            self.trouble = error.sentence()
            return NOTHING

    def _connected_to_class(self) -> AgentClient:
        self._agent, self._began = self._living() or connect_class(), True
        return self._agent

    def _connected(self, purpose: Purpose = CHANGING, may_ask: bool = True) -> AgentClient:
        agent = self._living()
        if agent is None:
            if self.class_only and not _in_class():
                raise HostError(
                    f"{purpose.noun} is not possible from a browser", "open the workshop in a terminal instead"
                )
            may_ask = may_ask and not self.class_only
            try:
                agent = connect_to_agent(ask=may_ask and self.ask is None, purpose=purpose)
            except NeedsPassword:
                if not may_ask or self.ask is None:
                    raise
                agent = self.ask(lambda: connect_to_agent(purpose=purpose))
            self._agent, self._began = agent, True
        return agent

    def _living(self) -> AgentClient | None:
        """Return the agent if it is running, else None. If the agent has died, the process that watches it restores the
        leased settings."""
        if self._agent is not None and self._agent.ended:
            self._agent.close()
            self._agent = None
            self._lost = self._lost or bool(self._leased)
            self._leased.clear()
        if self._lost:
            self._write_down_lapsed()
        return self._agent

    def _write_down_lapsed(self) -> None:
        """Log the leased settings that were restored when the lease was lost. The host's journal does not list them as
        active any more."""
        self.change_log.lapsed({(entry.tunable, entry.path) for entry in standing_entries(HostRoot(HERE))})


def standing_entries(root: HostRoot) -> tuple[journal.Entry, ...]:
    """Return the settings that this tool has changed on a host and not restored. Settings that a reboot has undone do
    not count."""
    boot = journal.current_boot(root)
    return tuple(e for one in journal.read_journals(root) for e in one.active if not journal.void(e, boot))


def left_over_traces(root: HostRoot) -> tuple[str, ...]:
    """Return the names of the trace instances that killed measurements have left behind. Only root can see them; return
    () for other users."""
    return instances.stale(root)


def anything_to_restore(root: HostRoot) -> bool:
    """Return True if a restore has something to do. This is the case if there is a journal, readable or not, or a
    left-over trace. Only root can see left-over traces."""
    return bool(journal.read_journals(root) or left_over_traces(root))


def _in_class() -> bool:
    from jitter_workshop.flow.turns.classhost import class_host

    try:
        return class_host() is not None
    except WorkshopError:
        return False


def _ids(words: Sequence[str]) -> set[str]:
    return {word.partition("=")[0].removeprefix(ONCE) for word in words}


def _until_returned() -> None:
    """Wait until this user's turn has ended, for a few seconds at most. If the turn's agent has died, another process
    first restores the host and then ends the turn.
    """
    from jitter_workshop.flow.turns.classhost import read_turns

    ends = time.monotonic() + RETURN_S
    while time.monotonic() < ends:
        turn = read_turns().turn
        if turn is None or turn.uid != os.geteuid():
            return
        time.sleep(0.05)


def place_once(pid: int, tids: Sequence[int] = ()) -> CpuSet:
    """Move a process to the isolated CPUs through a separate agent, and return these CPUs. ``tids``: move only these
    threads of the process. The connection to the agent is closed before the run begins. Raise HostError on failure.
    """
    with contextlib.closing(AgentConnection()) as agent_connection:
        return agent_connection.place(pid, tids)
