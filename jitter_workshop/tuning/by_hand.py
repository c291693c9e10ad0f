"""Watch a user make writes by hand: announce the writes in the journal, look at the host, adopt the writes that were
made.

This module never writes to a setting. Before the user begins, the journal holds the old and the planned value of each
setting, as if an apply had been killed before its first write. So ``restoring`` gives a setting its old value back if
it has the planned value now, and leaves all other settings alone. A restore works in this way even if this program or
its agent is killed at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Applied, Change, Refused
from jitter_workshop.model.hands import HandState, HandWrite
from jitter_workshop.tuning.applying import announced, quoted
from jitter_workshop.tuning.journal import Entry, Recorder
from jitter_workshop.tuning.ordering import cannot_without
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.switched import Switched, Wrote, read_switched
from jitter_workshop.tuning.writer import HostWriter

NOT_MADE = "not made by hand"


def why_not(change: Change) -> str:
    """Return the reason why a user cannot make a change by hand while this program watches; "" if the user can make
    it."""
    kind = kind_of(change.kind)
    if change.lease or kind.name == "held":
        return "the change lasts only while a process keeps a file open"
    if change.when == "boot" or kind.effect_after_boot:
        return "the setting is a boot parameter"
    return "the host does not show if the change was made" if kind.fleeting else ""


def noted_only(change: Wrote) -> bool:
    """Return True if a change writes the value that its setting has already.

    A plan has such a change if the kernel overwrites the setting because of another write of the plan.
    """
    return kind_of(change.kind).same(change.before, change.after)


def announce(
    root: HostRoot, writer: HostWriter, changes: Sequence[Change], recorder: Recorder
) -> tuple[list[Change], list[Refused]]:
    """Record ``changes``, with their old values, in the journal before a user makes them by hand.

    Return a pair: the announced changes, and a Refused for each change that was not announced. A change is refused if
    it cannot be made by hand, or if its setting does not have the value that the plan was made for. All announced
    changes are on the disk when this function returns.
    """
    barred = [Refused(c.tunable, c.path, f"not watched: {why}") for c in changes if (why := why_not(c))]
    ready, refused = announced(root, writer, [c for c in changes if not why_not(c)], recorder)
    return ready, [*barred, *refused]


def look(root: HostRoot, changes: Sequence[Change], command: Callable[[Change], str] = str) -> tuple[HandWrite, ...]:
    """Return the state of each change on the host, without a write. ``command`` is called with a change and returns the
    shell command that makes it."""
    switched = read_switched(root, changes)
    found = []
    for change in changes:
        state, value, reason = state_of(root, change, switched)
        found.append(HandWrite(change, state, value, reason, command(change)))
    return tuple(found)


def state_of(root: HostRoot, write: Wrote, switched: Switched) -> tuple[HandState, str | None, str]:
    """Return a triple: the state of one write, its setting's value or None, and the reason why the setting cannot be
    read.

    The reason is "" if the setting can be read, or if its task has ended.
    """
    kind = kind_of(write.kind)
    if kind.of_task and not kind.exists(root, write.path):
        return "gone", None, ""
    reading = kind.read(root, write.path)
    if reading.text is None:
        # The folder of this setting is made by another write of the plan.
        to_come = reading.reason == "no such file" and cannot_without(write.path, write.kind, write.after)
        return ("missing" if to_come else "hidden"), None, reading.reason
    known = (write.before, write.after)
    if kind.same(reading.text, write.after):
        return "done", reading.text, ""
    if (
        kind.same(reading.text, write.before)
        or kind.self_moving
        or kind.by_kernel(root, write.path, reading.text, known, switched)
    ):
        return "missing", reading.text, ""
    return "wrong", reading.text, ""


def adopt(
    root: HostRoot, entries: Collection[Entry], recorder: Recorder, *, wrong: bool = False
) -> tuple[list[Applied], list[Refused]]:
    """Record as written each announced write that a user has made by hand.

    ``entries``: the entries of the journal that announced the writes. A write is adopted if its setting has the
    announced value. ``wrong``: True if the user says that they typed other values. Then a write is adopted whatever
    value its setting has, so that a restore gives the setting its old value back.

    Return a pair: the adopted writes, those of an earlier call included, and a Refused for each write that was not
    adopted. A refused write stays announced. A write to a task that has ended is in neither list. The call may be
    repeated.
    """
    switched = read_switched(root, entries)
    seen = [(entry, *state_of(root, entry, switched)) for entry in entries if entry.active]
    taken = ("done", "wrong") if wrong else ("done",)
    if not any(state in taken and not noted_only(entry) for entry, state, _, _ in seen):
        # A setting that is only noted has the announced value from the beginning.
        seen = [one for one in seen if not noted_only(one[0])]
    applied: list[Applied] = []
    refused: list[Refused] = []
    for entry, state, found, reason in seen:
        if state in taken:
            if entry.state != "written" or entry.read_back != found:
                recorder.written(entry.n, found)
                entry.state, entry.read_back = "written", found
            applied.append(Applied(entry.n, entry.tunable, entry.path, entry.before, entry.after, found))
        elif state != "gone":
            refused.append(Refused(entry.tunable, entry.path, _why(state, found, entry, reason)))
    return applied, refused


def give_up(root: HostRoot, entries: Collection[Entry], recorder: Recorder) -> None:
    """Stop waiting for the announced writes that were not adopted. From now on, the values of their settings count as
    set by somebody else.

    An exception is a setting that the kernel changed because of an adopted write. It counts as written, so that a
    restore gives it back.
    """
    switched = read_switched(root, entries)
    for entry in [one for one in entries if one.state == "intent"]:
        state, found, _ = state_of(root, entry, switched)
        if state == "missing" and found is not None and not kind_of(entry.kind).same(found, entry.before):
            recorder.written(entry.n, found)
            entry.state, entry.read_back = "written", found
        else:
            recorder.refused(entry.n, NOT_MADE)
            entry.state = "refused"


def _why(state: HandState, found: str | None, entry: Entry, reason: str) -> str:
    if state == "hidden":
        return f"the setting cannot be read: {reason}"
    if state == "missing":
        return NOT_MADE
    return f"the setting has {quoted(found or '')}, but the plan has {quoted(entry.after)}: the setting is left alone"
