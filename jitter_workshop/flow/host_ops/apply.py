"""Change this host and give it back: the plan as root sees it, apply, restore, and the lease in between."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from jitter_workshop.agent.client import AgentClient, connect
from jitter_workshop.agent.tracing import instances
from jitter_workshop.errors import HostError, SessionError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.host_ops.host_status import HostPlan, draw_up
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import ONCE, Applied, ApplyResult, Plan, Refused, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import clean
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.applying import count_ended
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import for_one_boot, parse_wanted

HERE = Path("/")
PROFILE_LIMIT = 64 * 1024
ALREADY = "nothing to do"
"""The beginning of the planner's reason where a tunable is as wanted."""
_ONLY_ROOT = "only root sees if a killed measurement left a trace over: 'sudo jitter-workshop restore' removes it"


def read_profile(path: Path) -> tuple[str, ...]:
    """Return the ``id=value`` words of a profile: one a line, ``#`` begins a comment. Raises UsageError that names file
    and line."""
    shown = clean(path, 200)
    try:
        with path.open("rb") as file:
            data = file.read(PROFILE_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"the profile cannot be read: {error.strerror} ({shown})") from error
    if len(data) > PROFILE_LIMIT:
        raise UsageError(f"{shown} is too large to be a profile", "it has one ID or ID=VALUE a line")
    words: list[str] = []
    first: dict[str, int] = {}
    for number, raw in enumerate(data.decode("utf-8", "replace").splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        try:
            (wanted,) = parse_wanted((line,))
        except UsageError as error:
            raise UsageError(f"{shown}:{number}: {error.message}", error.advice) from error
        if wanted.id in first:
            raise UsageError(f"{shown}:{number}: {wanted.id} stands in line {first[wanted.id]} already")
        first[wanted.id] = number
        words.append(str(wanted))
    if not words:
        raise UsageError(f"{shown} names no tunable", "it has one ID or ID=VALUE a line")
    return tuple(words)


class Changing:
    """Run one ``apply`` from its plan to its end. Reads first, without rights; ``connect`` then asks for root's.

    As a context it ends the connection; changes under a lease are given back then, also after an error.
    """

    def __init__(
        self, words: Sequence[str], cpus: str | None, *, once: bool = False, change_log: ChangeLog | None = None
    ) -> None:
        """Draw up the plan. ``once``: boot parameters for the next boot alone. ``change_log``: records each write.
        Raises UsageError and HostError as ``draw_up`` does."""
        self._change_log = change_log or ChangeLog(None)
        self.words = for_one_boot(words) if once else tuple(map(str, parse_wanted(words)))
        self.drawn: HostPlan = draw_up(HERE, self.words, cpus)
        self.plan: Plan = self.drawn.plan
        self._agent: AgentClient | None = None
        self._leased = False

    def __enter__(self) -> Changing:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._agent is not None:
            self._agent.close()

    @property
    def notice(self) -> str:
        """Return a notice for the user about whose code runs as root, "" for nothing."""
        return self._agent.notice if self._agent is not None else ""

    @property
    def worth_asking(self) -> bool:
        """Return True if a plan as root is worth it: something would be written, or only root can tell."""
        once = any(word.startswith(ONCE) for word in self.words)
        return bool(self.plan.changes) or (once and self.drawn.host.one_boot.shut)

    def connect(self) -> Plan:
        """Start the agent and plan again as root, who sees more. Raises HostError without root's rights."""
        if self._agent is None:
            self._agent = connect()
        self.plan = self._agent.plan(self.words, str(CpuSet(self.plan.hot_cpus)))
        return self.plan

    def not_here(self) -> tuple[Refused, ...]:
        """Return the tunables that this host does not have or that are only reported."""
        return tuple(
            Refused(s.tunable, "", s.reason)
            for s in self.plan.skipped
            if not s.partly and not s.reason.startswith(ALREADY)
        )

    def apply(
        self, lease: bool = False, wait_s: float = 0.0, queued: Callable[[str], None] = lambda sentence: None
    ) -> ApplyResult:
        """Make the changes of ``plan``, and no others. With ``lease`` they last as long as this object's connection. On
        a class host they are made in a turn, which also lasts that long; ``wait_s`` and ``queued``: of the wait for it.
        """
        if not self.plan.changes:
            return ApplyResult(None, (), self.not_here(), False)
        if self._agent is None:
            self.connect()
        assert self._agent is not None
        self._take_turn(wait_s, queued)
        shown = [digest(change) for change in self.plan.changes]
        self._change_log.begin()
        result = self._agent.apply(self.words, str(CpuSet(self.plan.hot_cpus)), shown, lease)
        self._leased = lease
        self._change_log.applied(result, kept=not lease)
        result = count_ended(HostRoot(HERE), self.plan.changes, result)
        return dataclasses.replace(result, refused=(*self.not_here(), *result.refused))

    def _take_turn(self, wait_s: float, queued: Callable[[str], None]) -> None:
        """Take the turn of a class host; root needs none. Raises BusyError, HostError."""
        from jitter_workshop.bench.cancel import CancelToken
        from jitter_workshop.flow.turns.classhost import class_host, take_turn

        if os.geteuid() == 0 or class_host() is None:
            return
        assert self._agent is not None
        token = CancelToken()
        try:
            take_turn(self._agent, wait_s, token, queued)
            with contextlib.suppress(WorkshopError):  # only a note for the users who wait
                self._agent.turn("doing", doing=f"applying {clean(' '.join(self.words), 40)}")
        finally:
            token.close()

    def wait(self) -> None:
        """Wait until a signal raises an exception here. Raises HostError where the agent ends by itself."""
        if self._agent is None:
            return
        try:
            self._agent.wait()
        except HostError:
            self._leased = False  # the agent is gone: give_back has nothing to ask
            raise

    def give_back(self) -> RestoreResult:
        """End a lease and return what was given back; nothing where there is no lease."""
        if self._agent is None or not self._leased:
            return RestoreResult((), (), False)
        self._leased = False
        agent, self._agent = self._agent, None
        result = agent.bye()
        self._change_log.restored(result)
        return result

    def differently(self, applied: Sequence[Applied]) -> tuple[Applied, ...]:
        """Return the changes whose value on the host, after all writes, differs from what was written."""
        kinds = {change.n: change.kind for change in self.plan.changes}
        return tuple(
            a
            for a in applied
            if a.read_back is not None and not kind_of(kinds.get(a.n, "value")).same(a.read_back, a.after)
        )


def standing(root: HostRoot) -> tuple[journal.Entry, ...]:
    """Return what this tool has changed on a host and not given back, without void entries of an earlier boot."""
    boot = journal.current_boot(root)
    return tuple(e for one in journal.read_journals(root) for e in one.active if not journal.void(e, boot))


def anything_to_restore(root: HostRoot) -> bool:
    """Return True if a restore has anything to do; asked without rights. A journal that cannot be read counts, and so
    does a trace that a killed measurement left over, which only root sees (see ``trace_hidden``)."""
    return bool(journal.read_journals(root) or left_over_traces(root))


def left_over_traces(root: HostRoot) -> tuple[str, ...]:
    """Return the names of the trace instances that a killed measurement left over; none without root's rights."""
    return instances.stale(root)


def trace_hidden(root: HostRoot) -> bool:
    """Return True if only root can tell if a trace is left over."""
    return instances.hidden(root)


def restore(tunables: Sequence[str] = (), *, forget: bool = False) -> tuple[RestoreResult, str]:
    """Give back what is applied (of these tunables) and remove left-over traces; return the result and a notice, or "".
    ``forget``: also strike off what another program or user has changed since. Raises HostError, UsageError."""
    for word in tunables:
        if "=" in word:
            raise UsageError(f"restore takes no value: '{clean(word, 60)}'", "say only the id")
    parse_wanted(tunables)
    root = HostRoot(HERE)
    if not anything_to_restore(root):
        return RestoreResult((), (), False), _ONLY_ROOT if trace_hidden(root) else ""
    with connect() as agent:
        return agent.restore(tunables, forget=forget), agent.notice


def diary_of(session: str | None) -> ChangeLog:
    """Return the change log of a session (None: the current one), also while a workshop has it open; where there is no
    session, a log that writes nothing."""
    store = SessionStore()
    try:
        opened = store.open(session) if session is not None else store.current()
    except SessionError:
        return ChangeLog(None)  # ``note_stack`` says what is wrong
    if opened is None:
        return ChangeLog(None)
    with opened:
        return ChangeLog(opened, HostRoot(HERE))


def note_stack(session: str | None) -> str:
    """Record in the session (None: the current one) what is applied now; return "" or an error for a warning."""
    store = SessionStore()
    try:
        opened = store.open(session) if session is not None else store.current()
        if opened is None:
            return ""
        with opened:
            if opened.read_only:
                return ""
            opened.save(dataclasses.replace(opened.session, stack=journal.stack(HostRoot(HERE))))
    except SessionError as error:
        return f"the session does not know what is applied: {error.sentence()}"
    return ""


def none_applied(result: ApplyResult) -> HostError:
    """Return the error of an apply that changed nothing."""
    first = result.refused[0]
    more = len(result.refused) - 1
    where = f" ({clean(first.path, 120)})" if first.path else ""
    rest = f"; {more} more {'is' if more == 1 else 'are'} not applied" if more else ""
    return HostError(f"nothing was applied: {first.tunable}: {clean(first.reason, 400)}{where}{rest}")
