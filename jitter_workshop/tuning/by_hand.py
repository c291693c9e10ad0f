"""Watch a user make writes by hand, and record these writes in the journal.

This module never writes to a setting. Before the user begins, this module records the old and the planned value of each
setting. The journal then looks as if an apply had been killed before its first write. If a setting has its planned
value, a restore writes the old value. Otherwise a restore does not change the setting. A restore works in the same way
after this program or its agent was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import eq
from typing import Literal, TypeVar

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.by_hand import HandState, HandWrite
from jitter_workshop.model.change import Applied, Change, Refused
from jitter_workshop.tuning.applying import announced, quoted
from jitter_workshop.tuning.journal import Entry, Recorder
from jitter_workshop.tuning.ordering import cannot_without
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.switched import Switched, Wrote, read_switched
from jitter_workshop.tuning.writer import HostWriter

NOT_MADE = "not made by hand"

_Value = TypeVar("_Value")


def why_not_by_hand(change: Change) -> str:
    """Return the reason why a user cannot make a change by hand. Return "" if the user can make it."""
    kind = kind_of(change.kind)
    if change.lease or kind.name == "held":
        return "the change lasts only while a process keeps a file open"
    if change.when == "boot" or kind.effect_after_boot:
        return "the setting is a boot parameter"
    return "the host does not show if the change was made" if kind.fleeting else ""


def noted_only(change: Wrote) -> bool:
    """Return True if the old and the planned value of a change are the same.

    The plan has such a change only so that the journal records the old value. Another write of the plan makes the
    kernel overwrite this setting.
    """
    return kind_of(change.kind).same(change.before, change.after)


def announce(
    root: HostRoot, writer: HostWriter, changes: Sequence[Change], recorder: Recorder
) -> tuple[list[Change], list[Refused]]:
    """Record ``changes`` in the journal before a user makes them by hand. Return the recorded changes, and a Refused
    for each other change.

    A change is refused if the user cannot make it, or if its setting has changed since the plan. The records are on the
    disk when this function returns.
    """
    barred = [Refused(c.tunable, c.path, f"not watched: {why}") for c in changes if (why := why_not_by_hand(c))]
    ready, refused = announced(root, writer, [c for c in changes if not why_not_by_hand(c)], recorder)
    return ready, [*barred, *refused]


def states_of_writes(
    root: HostRoot, changes: Sequence[Change], command: Callable[[Change], str] = str
) -> tuple[HandWrite, ...]:
    """Return the state of each change on the host, and write nothing. ``command``: a function that returns the shell
    command for a change."""
    switched = read_switched(root, changes)
    found = []
    for change in changes:
        state, value, reason = state_of(root, change, switched)
        found.append(HandWrite(change, state, value, reason, command(change)))
    return tuple(found)


def state_by_hand(
    found: _Value, before: _Value, after: _Value, same: Callable[[_Value, _Value], bool] = eq
) -> Literal["done", "missing", "wrong"]:
    """Return the state of what a user has to change by hand.

    Return ``done`` for the wanted value, ``missing`` for the old value, and ``wrong`` for any other value.

    - ``found``: the present value.
    - ``before``: the old value.
    - ``after``: the wanted value.
    - ``same``: a function that returns True if two values are the same.
    """
    if same(found, after):
        return "done"
    return "missing" if same(found, before) else "wrong"


def state_of(root: HostRoot, write: Wrote, switched: Switched) -> tuple[HandState, str | None, str]:
    """Return the state of one write, the value of its setting, and an error text.

    The value is None if the setting cannot be read; the error text then says why. If the write's task has ended, the
    value is None and the text is "".
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
    state: HandState = state_by_hand(reading.text, write.before, write.after, kind.same)
    if state == "wrong" and (kind.self_moving or kind.by_kernel(root, write.path, reading.text, known, switched)):
        state = "missing"
    return state, reading.text, ""


def adopt(
    root: HostRoot, entries: Collection[Entry], recorder: Recorder, *, wrong: bool = False
) -> tuple[list[Applied], list[Refused]]:
    """Record as written each announced write that a user has made by hand. Return the recorded writes, and a Refused
    for each other write.

    ``entries``: the journal's entries of the announced writes. A write counts as made if its setting has the announced
    value. ``wrong``: True if the user typed other values than the announced ones. Then a write counts as made if its
    setting has any value except the old one. So a restore also restores these settings.

    A refused write stays announced, so this function may be called again. A write recorded by an earlier call is
    returned again. A write to a task that has ended is in neither list.
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
    """Stop waiting for the announced writes that the user has not made. Values that the settings of these writes get
    from now on count as set by somebody else.

    If the kernel changed such a setting because of a recorded write, the change counts as made by this tool. A restore
    includes this change.
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
    return f"the setting has {quoted(found or '')}, but the plan has {quoted(entry.after)}, so no change is recorded"
