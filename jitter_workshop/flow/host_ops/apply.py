"""Apply and restore settings for the verbs. This module also reads a profile, gets root's plan, takes the turn, and
writes the session's log.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from jitter_workshop.agent.tracing import instances
from jitter_workshop.errors import HostError, SessionError, UsageError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection, anything_to_restore
from jitter_workshop.flow.host_ops.change_log import ChangeLog
from jitter_workshop.flow.host_ops.host_status import HostPlan
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Applied, ApplyResult, Plan, Refused, RestoreResult
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import ID, LABEL, LINE, PATH, SENTENCE, clean
from jitter_workshop.session.store import SessionStore
from jitter_workshop.tuning import journal
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import parse_wanted

HERE = Path("/")
PROFILE_LIMIT = 64 * 1024
_FORM = "write one ID or ID=VALUE on each line"
ALREADY = "nothing to do"
"""The first words of the planner's reason for a tunable that needs no change."""
_ONLY_ROOT = (
    "only root can see traces that a killed measurement left behind: 'sudo jitter-workshop restore' removes them"
)


def read_profile(path: Path) -> tuple[str, ...]:
    """Return the settings in a profile, as ``ID`` or ``ID=VALUE``. A profile has one setting in each line, and ``#``
    begins a comment. Raise UsageError with the file and the line if a line is wrong."""
    shown = clean(path, PATH)
    try:
        with path.open("rb") as file:
            data = file.read(PROFILE_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"the profile cannot be read: {error.strerror} ({shown})") from error
    if len(data) > PROFILE_LIMIT:
        raise UsageError(f"{shown} is too large for a profile", _FORM)
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
            raise UsageError(f"{shown}:{number}: {wanted.id} is in line {first[wanted.id]} already")
        first[wanted.id] = number
        words.append(str(wanted))
    if not words:
        raise UsageError(f"{shown} names no tunable", _FORM)
    return tuple(words)


def apply(
    agent_connection: AgentConnection,
    drawn: HostPlan,
    lease: bool = False,
    wait_s: float = 0.0,
    queued: Callable[[str], None] = lambda sentence: None,
) -> ApplyResult:
    """Make the changes of a plan, and return the applied and the refused ones. With ``lease`` the changes last until
    the connection ends.

    On a class host, first take a turn. The turn lasts until the connection ends. ``wait_s``: the longest wait for the
    turn in seconds. ``queued`` is called with a sentence during the wait. Raise BusyError after ``wait_s``, HostError
    on any other failure.
    """
    if not drawn.plan.changes:
        return ApplyResult(None, (), not_here(drawn.plan), False)
    _take_turn(agent_connection, drawn, wait_s, queued)
    result = agent_connection.apply(drawn.words, CpuSet(drawn.plan.hot_cpus), drawn.plan.changes, lease=lease)
    return dataclasses.replace(result, refused=(*not_here(drawn.plan), *result.refused))


def plan_as_root(agent_connection: AgentConnection, drawn: HostPlan) -> HostPlan:
    """Return the plan that root makes, because root can read more files.

    If the plan has no changes, return it as it is, because root need not make it again. On some hosts, only root can
    see if a boot parameter can be set for one boot. Then root makes the plan, even if the plan has no changes. Raise
    HostError without root's rights.
    """
    once = any(one.once for one in drawn.wanted)
    if not drawn.plan.changes and not (once and drawn.host.one_boot.shut):
        return drawn
    return dataclasses.replace(drawn, plan=agent_connection.plan(drawn.words, CpuSet(drawn.plan.hot_cpus)))


def not_here(plan: Plan) -> tuple[Refused, ...]:
    """Return a refusal for each planned tunable that cannot be changed on this host. This host lacks such a tunable, or
    this tool only reports it."""
    return tuple(
        Refused(s.tunable, "", s.reason) for s in plan.skipped if not s.partly and not s.reason.startswith(ALREADY)
    )


def differently(plan: Plan, applied: Sequence[Applied]) -> tuple[Applied, ...]:
    """Return the changes whose written value differs from the value that the host has now. Values are compared after
    all writes.
    """
    kinds = {change.n: change.kind for change in plan.changes}
    return tuple(
        a
        for a in applied
        if a.read_back is not None and not kind_of(kinds.get(a.n, "value")).same(a.read_back, a.after)
    )


def _take_turn(
    agent_connection: AgentConnection, drawn: HostPlan, wait_s: float, queued: Callable[[str], None]
) -> None:
    """Take the turn of a class host. Do nothing as root, or on other hosts. Raise the errors of ``take_turn``."""
    from jitter_workshop.bench.cancel import CancelToken
    from jitter_workshop.flow.turns.classhost import class_host, take_turn

    if os.geteuid() == 0 or class_host() is None:
        return
    with contextlib.closing(CancelToken()) as token:
        take_turn(agent_connection, wait_s, token, queued)
        agent_connection.say_doing(f"applying {clean(' '.join(drawn.words), ID)}")


def restore_tunables(
    agent_connection: AgentConnection, tunables: Sequence[str] = (), *, forget: bool = False
) -> tuple[RestoreResult, str]:
    """Restore the settings of these tunables (() for all), and remove left-over traces. Return the result, and a notice
    or "". ``forget``: also drop settings from the journal if another program or user has changed them after this tool.
    Raise HostError on failure, UsageError for an unknown id."""
    for word in tunables:
        if "=" in word:
            raise UsageError(f"'restore' takes only ids, without values: '{clean(word, LABEL)}'", "give only the id")
    parse_wanted(tunables)
    root = HostRoot(HERE)
    only_root = not anything_to_restore(root) and instances.hidden(root)
    result = agent_connection.restore(tunables, forget=forget)
    return result, _ONLY_ROOT if only_root else agent_connection.notice


def change_log_of(session: str | None) -> ChangeLog:
    """Return the change log of a session, even while a workshop has the session open. ``session``: None means the
    current session. If there is no session, the log writes nothing."""
    try:
        with SessionStore().current(session) or contextlib.nullcontext() as opened:
            return ChangeLog(opened, HostRoot(HERE))
    except SessionError:
        return ChangeLog(None)  # ``note_stack`` reports the error


def note_stack(session: str | None) -> str:
    """Record in a session which settings are applied now; None means the current session. Return a warning if this
    failed, or ""."""
    try:
        with SessionStore().current(session) or contextlib.nullcontext() as opened:
            if opened is not None and not opened.read_only:
                opened.save(dataclasses.replace(opened.session, stack=journal.applied_tunables(HostRoot(HERE))))
    except SessionError as error:
        return f"the session cannot record the applied settings: {error.sentence()}"
    return ""


def none_applied(result: ApplyResult) -> HostError:
    """Return the error to raise after an apply that changed nothing. Its message gives the first refusal and the number
    of all others."""
    first = result.refused[0]
    more = len(result.refused) - 1
    where = f" ({clean(first.path, LINE)})" if first.path else ""
    rest = f"; {more} more {'is' if more == 1 else 'are'} not applied" if more else ""
    return HostError(f"nothing was applied: {first.tunable}: {clean(first.reason, SENTENCE)}{where}{rest}")
