"""Turn wanted tunables into the ordered list of writes. Planning writes nothing to the host and needs no rights."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from jitter_workshop.errors import UsageError
from jitter_workshop.model.change import Change, Plan, Skipped, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Tunable, Unavailable, Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.ordering import ordered, ordering_facts
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.tunables.registry import find_tunable, tunables


def plan_changes(host: Host, wanted: Sequence[Wanted]) -> Plan:
    """Return the plan that sets the tunables ``wanted``: all writes, ordered by ``ordering``.

    ``skipped``: tunables and settings that are not changed, each with the reason. If a tunable takes CPUs offline, the
    other tunables are planned for the remaining CPUs. If several tunables write one setting, the last value is written
    once. Raise UsageError for invalid values.
    """
    order = {tunable.id: n for n, tunable in enumerate(tunables())}
    asked = sorted(((find_tunable(w.id), w) for w in wanted), key=lambda pair: order[pair[0].id])
    leaving = {tunable.id: _taken_offline(host, tunable, one) for tunable, one in asked}
    all_leaving = CpuSet.of(cpu for cpus in leaving.values() for cpu in cpus)
    remaining = host.without(all_leaving) if all_leaving else host
    found: dict[str, tuple[Tunable, Write]] = {}
    skipped: list[Skipped] = []
    for tunable, one in asked:
        if not tunable.changes_host:
            skipped.append(
                Skipped(tunable.id, f"this tool reports this setting and does not change it: {tunable.title}")
            )
            continue
        seen = host if leaving[tunable.id] else remaining
        try:
            writes = tunable.writes_once(seen, one.value) if one.once else tunable.writes(seen, one.value)
            stays = tunable.stays(seen, one.value)  # reads again, and a file may be gone by then
        except Unavailable as refusal:
            skipped.append(Skipped(tunable.id, refusal.reason))
            continue
        count = 0
        for write in writes:
            _check_owned(tunable, write)
            kind = kind_of(write.kind)
            if kind.same(write.before, write.after) and not kind.always:
                continue
            count += 1
            earlier = found.get(write.path)
            if earlier is None:
                found[write.path] = (tunable, write)
            else:
                merged = _merged(earlier[1], write)
                found[write.path] = (earlier[0] if merged.after == earlier[1].after else tunable, merged)
        if not count:
            skipped.append(Skipped(tunable.id, f"nothing to do: {stays or 'the setting has this value already'}"))
        elif stays:
            skipped.append(Skipped(tunable.id, stays, partly=True))
    drawn = list(found.values())
    known = [ordering_facts(write.path, write.kind, write.after) for _, write in drawn]
    positions = ordered(known, [tunable.id for tunable, _ in drawn])
    changes = [_change(*drawn[position], n) for n, position in enumerate(positions, start=1)]
    return Plan(host.kernel.boot_id, host.hot.cpus, tuple(changes), tuple(skipped))


def _taken_offline(host: Host, tunable: Tunable, wanted: Wanted) -> CpuSet:
    try:
        return tunable.takes_offline(host, wanted.value)
    except (Unavailable, UsageError):
        return CpuSet()


def _merged(earlier: Write, later: Write) -> Write:
    """Merge two writes to one setting into one write.

    The merged write has the value of the later write. But if the later write only repeats the setting's current value,
    the earlier write's value is used.
    """
    kind = earlier.kind if kind_of(earlier.kind).always else later.kind
    noted = kind_of(later.kind).same(later.before, later.after)
    after = earlier.after if noted else later.after
    return Write(
        path=later.path,
        before=earlier.before,
        after=after,
        kind=kind,
        why=later.why,
        then=later.then or earlier.then,
        lease=later.lease or earlier.lease,
    )


def wanted_by_status(host: Host) -> tuple[Wanted, ...]:
    """Return all tunables that ``status`` would improve and that can change at run time."""
    return tuple(
        Wanted(t.id) for t in tunables() if t.when == "runtime" and t.changes_host and t.assess(host).state == "improve"
    )


def digest(change: Change) -> str:
    """Return an id that identifies the content of a change. The agent makes a change only if the user's program has
    sent the change's id.

    The id is 24 hex digits of a SHA-256 over tunable, kind, path, old value and new value. The number ``n`` and the
    reason of the change do not influence the id.
    """
    told = "\0".join((change.tunable, change.kind, change.path, change.before, change.after))
    import hashlib  # 3 ms, which status and plan need not wait for

    return hashlib.sha256(told.encode()).hexdigest()[:24]


def owned(tunable: Tunable, path: str) -> bool:
    """Return True if this tunable may write this path. In a pattern, ``*`` does not match a ``/``."""
    parts = path.split("/")
    if ".." in parts or "." in parts:
        return False
    for pattern in tunable.owns:
        wanted = pattern.split("/")
        if len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted)):
            return True
    return False


def _check_owned(tunable: Tunable, write: Write) -> None:
    """Raise UsageError if a tunable asks for a path that it does not own. Such a request is a bug in the tunable."""
    if not owned(tunable, write.path):
        raise UsageError(
            f"the tunable {tunable.id} plans to write {write.path}, but may not write this path",
            "please report this fault",
        )


def _change(tunable: Tunable, write: Write, n: int) -> Change:
    """Return the Change, numbered ``n``, for a Write of a tunable."""
    return Change(
        n=n,
        tunable=tunable.id,
        path=write.path,
        before=write.before,
        after=write.after,
        when=tunable.when,
        risk=tunable.risk,
        why=write.why or tunable.why,
        lease=write.lease,
        kind=write.kind,
        then=write.then,
    )
