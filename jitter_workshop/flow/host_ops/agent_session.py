"""Apply and give back through the agent: the one client of verbs, screens and proofs.

The connection is opened when something is applied for the first time. Settings that are applied under a lease are given
back when the program ends, dies or stops answering, unless they are kept. After an agent has ended, the next request
starts a new one.
"""

from __future__ import annotations

import contextlib
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
    connect,
    connect_class,
    rights,
)
from jitter_workshop.agent.tracing import instances
from jitter_workshop.errors import BusyError, HostError, WorkshopError
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ONCE, ApplyResult, Change, Plan, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.applying import count_ended
from jitter_workshop.tuning.planning import digest

HERE = Path("/")
Ask = Callable[[Callable[[], AgentClient]], AgentClient]
"""The type of a function that runs another function where sudo can ask for a password: in the plain terminal, with no
screen over it.
"""

NOTHING = RestoreResult((), (), False)
RETURN_S = 5.0
"""Seconds to wait for the end of a turn whose agent died: another process needs a moment to give the machine back."""


class AgentSession:
    """Apply and give back through one agent. ``ask``: see :data:`Ask`; None where no screen covers sudo's question.
    ``class_only`` (in a browser): only a class host's agent is used, and sudo never asks for a password. ``trouble``:
    the reason why :meth:`close` could not give back, a sentence, or "". ``change_log``: records each write of a
    session. Not for several threads at once."""

    def __init__(self, ask: Ask | None = None, change_log: ChangeLog | None = None) -> None:
        self.ask = ask
        self.change_log = change_log or ChangeLog(None)
        self.class_only = False
        self._agent: AgentClient | None = None
        self.trouble = ""
        self._leased: set[str] = set()
        self._turn = False
        self._turn_ended = False
        self.alone_with_turn = False
        """True if root could not put the turn's holder into a control group, so that the turn's end ends no process."""
        self._began = False
        self._lost = False

    @property
    def holding(self) -> bool:
        """Return True if something would be given back on leaving."""
        return bool(self._leased)

    @property
    def leased(self) -> frozenset[str]:
        """Return the ids of the tunables of which something would be given back on leaving."""
        return frozenset(self._leased)

    @property
    def rights(self) -> Rights:
        """Return the way to root's rights: root already, by way of sudo, or none."""
        if self._agent is not None:
            return "root"
        return "none" if self.class_only and not _in_class() else rights()

    @property
    def notice(self) -> str:
        """Return a notice for the user about whose code runs as root, "" for nothing."""
        return self._agent.notice if self._agent is not None else ""

    def plan(self, words: Sequence[str], cpus: CpuSet) -> Plan:
        """Return the plan as root sees it. Raises HostError if root's rights are not available."""
        return self._connected().plan(words, str(cpus))

    def apply(self, words: Sequence[str], cpus: CpuSet, shown: Sequence[Change], *, lease: bool = True) -> ApplyResult:
        """Make the changes that were shown, and no others; without ``lease`` they stay until ``restore``. Raises
        HostError if root's rights are not available, another agent has the host, or the journal cannot be written.
        """
        agent = self._connected()
        self.change_log.begin()
        result = agent.apply(words, str(cpus), [digest(change) for change in shown], lease)
        if result.applied and lease:
            self._leased |= _ids(words)
        self.change_log.applied(result, kept=not lease)
        return count_ended(HostRoot(HERE), shown, result)

    def restore(self, tunables: Sequence[str] = (), *, forget: bool = False) -> RestoreResult:
        """Give back these tunables, or all, and remove left-over traces. ``forget``: also drop the settings that
        another program or user has changed since. Raises HostError.
        """
        self._living()
        if self._turn_ended or not anything_to_restore(HostRoot(HERE)):
            # The end of the turn gave back all that was applied in it; without a turn the agent restores nothing.
            return NOTHING
        result = self._connected().restore(tunables, forget=forget)
        self._leased -= _ids(tunables) if tunables else self._leased.copy()
        self.change_log.restored(result)
        return result

    def place(self, pid: int) -> CpuSet:
        """Put a process of this user's on the isolated CPUs; return these CPUs. Raises HostError, also where sudo would
        have to ask: a run that is about to begin must not wait for a password."""
        return CpuSet.parse_list(self._connected(may_ask=False).place(pid))

    def tracer(self) -> AgentClient:
        """Connect to the agent to record the kernel's trace.

        Raises HostError if root's rights are not available, or if sudo would ask for a password to start a new agent: a
        run that is about to begin must not wait for a password.
        """
        return self._connected(TRACING, may_ask=not self._began)

    @property
    def has_turn(self) -> bool:
        """Return True if this session has the turn of a class host."""
        return self._turn and self._living() is not None

    @property
    def took_turn(self) -> bool:
        """Return True if this session took the turn and has not given it back. The turn may have ended meanwhile; no
        agent is asked.
        """
        return self._turn

    def turn_lost(self) -> str:
        """Check if the turn that this session took has ended: by time, by an instructor, or with its agent. If so, the
        session marks the turn as over, and its settings as given back. Return why it ended, in words; "" where it goes
        on or was never taken. May wait for the machine to be given back. Never raises.
        """
        if not self._turn:
            return ""
        agent = self._living()
        why = "the class's service ended your turn: the service stopped, or did not hear from this program for a while"
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
        """Wait for the turn of a class host, and take it. ``stop``: a descriptor that ends the wait. Raises HostError,
        BusyError after ``wait_s`` seconds, WaitStopped."""
        agent = self._connected_to_class()
        try:
            granted = agent.take_turn(people, wait_s, stop)
        except BusyError:  # also WaitStopped
            self._agent = None  # a wait that ends without the turn has ended the connection
            raise
        self._turn, self._turn_ended = True, False
        self.alone_with_turn = bool(granted.group)

    def give_turn(self) -> None:
        """Give the turn back, with all that was applied in it. Never raises: the agent does it by itself, too."""
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
        """Instruct the class: ``end`` a user's turn (None: the present one; every user may end their own), ``freeze``
        and ``thaw``. Raises HostError."""
        self._connected_to_class().turn(do, user=user)

    def say_doing(self, doing: str) -> None:
        """Publish what the turn is used for, for the users who wait."""
        agent = self._living()
        if agent is not None and self._turn:
            with contextlib.suppress(WorkshopError):
                agent.turn("doing", doing=doing)

    def keep(self) -> None:
        """Keep the applied settings until ``restore``, also when the workshop is left. Raises HostError."""
        if self._agent is not None and self._leased:
            self._agent.keep()
            self._leased.clear()
            self.change_log.kept()

    def keep_for_the_boot(self, words: Sequence[str], journal_id: str) -> None:
        """Keep the settings of this journal, because they wait for a boot; the rest is still given back. Raises
        HostError.
        """
        if self._agent is not None:
            self._agent.keep((journal_id,))
        self._leased -= _ids(words)
        self.change_log.kept(_ids(words))

    def wait(self) -> None:
        """Wait until a signal raises an exception here. Raises HostError where the agent ends by itself."""
        try:
            if self._agent is not None:
                self._agent.wait()
        finally:
            self._living()

    def give_back(self) -> RestoreResult:
        """Close the connection, and give back the leased settings. Raises HostError."""
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
        """Give back as :meth:`give_back` does. Never raises: an error is kept in ``trouble``, and a later ``restore``
        uses the journal and the host's current values.
        """
        if self._lost:
            self._write_down_lapsed()
            self.trouble = (
                "the agent ended too early; 'jitter-workshop restore --list' shows the changes that are still in place"
            )
        try:
            return self.give_back()
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
                    f"{purpose.noun} is not possible from a browser", "open the workshop in a terminal for that"
                )
            may_ask = may_ask and not self.class_only
            try:
                agent = connect(ask=may_ask and self.ask is None, purpose=purpose)
            except NeedsPassword:
                if not may_ask or self.ask is None:
                    raise
                agent = self.ask(lambda: connect(purpose=purpose))
            self._agent, self._began = agent, True
        return agent

    def _living(self) -> AgentClient | None:
        """Return the agent if it still lives, else None. The lease of a dead one is given back by its watcher."""
        if self._agent is not None and self._agent.ended:
            self._agent.close()
            self._agent = None
            self._lost = self._lost or bool(self._leased)
            self._leased.clear()
        if self._lost:
            self._write_down_lapsed()
        return self._agent

    def _write_down_lapsed(self) -> None:
        """Log the settings that a lost lease gave back by itself, as far as the host's journal shows them now."""
        self.change_log.lapsed({(entry.tunable, entry.path) for entry in standing(HostRoot(HERE))})


def standing(root: HostRoot) -> tuple[journal.Entry, ...]:
    """Return the settings that this tool has changed on a host and not given back, without void entries of an earlier
    boot.
    """
    boot = journal.current_boot(root)
    return tuple(e for one in journal.read_journals(root) for e in one.active if not journal.void(e, boot))


def left_over_traces(root: HostRoot) -> tuple[str, ...]:
    """Return the names of the trace instances that a killed measurement left over; none without root's rights."""
    return instances.stale(root)


def anything_to_restore(root: HostRoot) -> bool:
    """Return True if a restore has anything to do; asked without rights. A journal that cannot be read counts, and so
    does a left-over trace, which only root sees."""
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
    """Wait a little for the end of this user's turn: where the agent died, another process gives the machine back."""
    from jitter_workshop.flow.turns.classhost import read_turns

    ends = time.monotonic() + RETURN_S
    while time.monotonic() < ends:
        turn = read_turns().turn
        if turn is None or turn.uid != os.geteuid():
            return
        time.sleep(0.05)


def place_once(pid: int) -> CpuSet:
    """Put a process on the isolated CPUs, over a separate connection that is closed before the run begins. Raises
    HostError.
    """
    with contextlib.closing(AgentSession()) as agent_session:
        return agent_session.place(pid)
