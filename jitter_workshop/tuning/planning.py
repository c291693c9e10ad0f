"""From wanted tunables to the ordered list of writes; nothing is written here, and no rights are needed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

from jitter_workshop.errors import UsageError
from jitter_workshop.model.change import Change, Plan, Skipped, Wanted
from jitter_workshop.tuning.base import Tunable, Unavailable, Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.kinds import kind_of
from jitter_workshop.tuning.registry import find, tunables


def plan(host: Host, wanted: Sequence[Wanted]) -> Plan:
    """Every write that brings ``wanted`` about on this host, in the order in which it would happen.

    A tunable that needs nothing, or that is not to be had here, is in ``skipped`` with its reason, and so is what is
    known beforehand to stay as it is. Where two tunables
    write the same file, the later one starts from what the earlier one will have left. Raises UsageError for values
    that make no sense.
    """
    asked = sorted(((find(w.id), w) for w in wanted), key=lambda pair: pair[0].order)
    changes: list[Change] = []
    skipped: list[Skipped] = []
    left: dict[tuple[str, str], str] = {}
    for tunable, one in asked:
        if not tunable.changes_host:
            skipped.append(Skipped(tunable.id, f"it is reported, not changed, by this tool: {tunable.title}"))
            continue
        try:
            writes = tunable.writes_once(host, one.value) if one.once else tunable.writes(host, one.value)
            stays = tunable.stays(host, one.value)  # reads once more, and a file may be gone by then
        except Unavailable as refusal:
            skipped.append(Skipped(tunable.id, refusal.reason))
            continue
        count = len(changes)
        for write in writes:
            change = _change(tunable, write, len(changes) + 1, left)
            if change is not None:
                left[change.kind, change.path] = change.after
                changes.append(change)
        if len(changes) == count:
            skipped.append(Skipped(tunable.id, f"nothing to do: {stays or 'it is already so'}"))
        elif stays:
            skipped.append(Skipped(tunable.id, stays, partly=True))
    return Plan(host.kernel.boot_id, host.hot.cpus, tuple(changes), tuple(skipped))


def wanted_by_status(host: Host) -> tuple[Wanted, ...]:
    """All that ``status`` would improve at run time and this tool can change."""
    return tuple(
        Wanted(t.id) for t in tunables() if t.when == "runtime" and t.changes_host and t.assess(host).state == "improve"
    )


def digest(change: Change) -> str:
    """What the agent is told of a change that was shown: it then makes no other. 24 hex digits of SHA-256 over what
    would be written where, and over what; ``n`` and the words do not count."""
    told = "\0".join((change.tunable, change.kind, change.path, change.before, change.after))
    return hashlib.sha256(told.encode()).hexdigest()[:24]


def owned(tunable: Tunable, path: str) -> bool:
    """Whether this tunable may write this path at all. A ``*`` in a pattern stands for one part of a path."""
    parts = path.split("/")
    if ".." in parts or "." in parts:
        return False
    for pattern in tunable.owns:
        wanted = pattern.split("/")
        if len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted)):
            return True
    return False


def _change(tunable: Tunable, write: Write, n: int, left: dict[tuple[str, str], str]) -> Change | None:
    """The numbered Change of a Write, None where it would change nothing. Raises UsageError where the tunable asks for
    a path that it does not own: a mistake in the tunable that must not reach a host."""
    if not owned(tunable, write.path):
        raise UsageError(f"{tunable.id} would write {write.path}, which is not among its own files", "please report it")
    before = left.get((write.kind, write.path), write.before)
    kind = kind_of(write.kind)
    if kind.same(before, write.after) and not kind.always:
        return None
    return Change(
        n=n,
        tunable=tunable.id,
        path=write.path,
        before=before,
        after=write.after,
        when=tunable.when,
        risk=write.risk or tunable.risk,
        why=write.why or tunable.why,
        lease=write.lease,
        kind=write.kind,
        then=write.then,
    )
