"""Make the changes of a plan.

All changes are first announced in the journal. Then each change is written, and its setting is read back. At the end
all settings are read again.

The caller passes the object that writes and the object that records in the journal. So tests can run these steps on a
tree of test files.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence

from jitter_workshop.errors import reason
from jitter_workshop.host.root import HostRoot, TextReading, printable
from jitter_workshop.model.change import Applied, ApplyResult, Change, Refused
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.journal import Recorder
from jitter_workshop.tuning.ordering import cannot_without, ordering_facts
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.setting_types.kinds import Kind, kind_of
from jitter_workshop.tuning.switched import Switched, read_switched
from jitter_workshop.tuning.writer import HostWriter, run_then

NOT_SHOWN = "this change was not in the plan that was shown"
_SHOWN = 80


def shown_only(changes: Sequence[Change], digests: Collection[str]) -> tuple[list[Change], list[Refused]]:
    """Return the changes that the user has seen, and a Refused for each other change.

    ``digests``: the :func:`planning.digest` of each change that was shown. A change to a task that was not shown is in
    neither list. The task may have begun after the plan was shown.
    """
    known = set(digests)
    shown = [change for change in changes if digest(change) in known]
    # A task that began after the plan was shown is left alone; that does not count as a refusal.
    rest = [change for change in changes if digest(change) not in known and not kind_of(change.kind).of_task]
    words = f"{NOT_SHOWN}, because the host has changed since then; make a new plan"
    return shown, [Refused(change.tunable, change.path, words) for change in rest]


def apply_changes(
    root: HostRoot,
    writer: HostWriter,
    changes: Sequence[Change],
    recorder: Recorder,
    stopped: Callable[[], bool] = lambda: False,
) -> ApplyResult:
    """Make ``changes`` in the given order, and return the outcome of each change. The order must be that of
    ``ordering``.

    All changes are announced in the journal before the first write. The reason: a write to one setting may also change
    another setting. If the host refuses a write, report this write as refused, and all writes that need it. All other
    writes are made.

    ``stopped`` is called before each write. If it returns True, the remaining changes are refused. The result has no
    ``journal_id``; the caller sets it.
    """
    way = _Way(root, writer, recorder, changes)
    ready = way.announce(changes)
    way.switched = read_switched(root, ready)
    for position, change in enumerate(ready):
        if stopped():
            for one in ready[position:]:
                way.refuse(one, "the apply was stopped before this write")
            break
        way.make(change)
    failed = _follow(root, writer, way.made, recorder)
    way.refused += failed
    for change in way.made:
        way.make_again(change)
    applied = [way.as_applied(change) for change in way.made]
    # A change whose follow-up command failed is not in the boot loader's menu, so it needs no reboot.
    out = {one.path for one in failed}
    waiting = [change for change in way.made if change.when == "boot" or kind_of(change.kind).effect_after_boot]
    needs_reboot = any(change.then not in out for change in waiting)
    return ApplyResult(None, tuple(applied), tuple(way.refused), needs_reboot)


def announced(
    root: HostRoot, writer: HostWriter, changes: Sequence[Change], recorder: Recorder
) -> tuple[list[Change], list[Refused]]:
    """Record ``changes`` in the journal, and write to no setting. Return the recorded changes, and a Refused for each
    other change.

    A change is refused if its setting cannot be read, or has changed since the plan was made. A change to a task that
    has ended is in neither list.
    """
    way = _Way(root, writer, recorder, changes)
    return way.announce(changes), way.refused


class _Way:
    """Hold the state of one apply.

    - ``made``, ``refused``: the outcomes so far.
    - ``coming``: the conditions that writes of the plan make and other writes need (``ordering``). An example is that a
      CPU is offline.
    - ``missing``: those of these conditions that are not met, because the writes that make them were refused.
    """

    def __init__(self, root: HostRoot, writer: HostWriter, recorder: Recorder, changes: Sequence[Change]) -> None:
        self.root, self.writer, self.recorder = root, writer, recorder
        self.coming = frozenset().union(*(ordering_facts(c.path, c.kind, c.after).makes for c in changes))
        self.made: list[Change] = []
        self.refused: list[Refused] = []
        self.missing: set[str] = set()
        self.switched = Switched(CpuSet())

    def is_as_planned(self, change: Change) -> bool:
        """Return True if the setting still has the value that the plan expects. Otherwise report the change as refused,
        and return False.

        If the change is to a task that has ended, return False and report nothing.
        """
        kind = kind_of(change.kind)
        if kind.of_task and not kind.exists(self.root, change.path):
            return False  # the task has ended since: nothing is left to change
        found = kind.read(self.root, change.path)
        if found.reason == "no such file" and cannot_without(change.path, change.kind, change.after) & self.coming:
            return True  # in a group that the plan makes
        why = _not_as_planned(change, kind, found)
        if why:
            self._report(change, why)
        return not why

    def announce(self, changes: Sequence[Change]) -> list[Change]:
        """Record in the journal all changes that can be made, and return these changes. If the journal cannot be
        written, report all of them as refused and return an empty list."""
        ready = [change for change in changes if self.is_as_planned(change)]
        try:
            self.recorder.intents(ready)
        except OSError as error:
            words = f"not written, because the journal cannot be written: {reason(error)}"
            self.refused += [Refused(c.tunable, c.path, words) for c in ready]
            return []
        return ready

    def make(self, change: Change) -> None:
        """Write one change and record the outcome in the journal."""
        kind = kind_of(change.kind)
        lost = cannot_without(change.path, change.kind, change.after) & self.missing
        if lost:
            self.refuse(change, "not written: a write that must come first was refused")
            return
        found = kind.read(self.root, change.path)
        if kind.of_task and not kind.exists(self.root, change.path):
            self.recorder.refused(change.n, "ended")
            return
        why = _not_as_planned(change, kind, found)
        if found.text is None or (why and not self._displaced(kind, change, found.text)):
            self.refuse(change, why)
            return
        why = ""
        if not kind.same(found.text, change.after):
            try:
                kind.write(self.writer, change.path, change.after)
            except OSError as error:
                why = reason(error)
        self._take_stock(change, kind, found.text, why)

    def _take_stock(self, change: Change, kind: Kind, found: str, why: str) -> None:
        """Record the outcome of a write, after reading the setting again.

        ``found``: the setting's value before the write. ``why``: the host's reason for refusing the write; "" if the
        host accepted it.
        """
        says = kind.read(self.root, change.path).text
        # A kind with ``always`` only notes a value, so the value may stay as another write of ours has made it.
        ignored = says is not None and kind.same(says, found) and not kind.same(says, change.after) and not kind.always
        if not why and ignored:
            why = f"the host accepted the write, but the setting still has {quoted(says or '')}"
        if not why:
            self.recorder.written(change.n, says)
            self.made.append(change)
            return
        if kind.of_task and not kind.exists(self.root, change.path):
            self.recorder.refused(change.n, "ended")
            return
        # If another write of ours has displaced the setting, only the verb restore can write its old value.
        if kind.same(found, change.before):
            why += self._restore(change, kind, says)
        self.refuse(change, why)

    def _restore(self, change: Change, kind: Kind, says: str | None) -> str:
        """Restore a setting's old value after a refused write. ``says``: the setting's value after the refused write.

        Return "" if the setting has its old value again, or if it cannot be read. Otherwise return a clause that tells
        the setting's present value.
        """
        with contextlib.suppress(OSError):
            kind.make_sure(self.writer, change.path, change.before)
        if says is not None and not kind.same(says, change.before):
            with contextlib.suppress(OSError):  # the value is read and reported below
                kind.write(self.writer, change.path, change.before)
            says = kind.read(self.root, change.path).text
        if says is None or kind.same(says, change.before):
            return ""
        return f"; its value is {quoted(says)} now, and 'restore' will try to write the old value"

    def refuse(self, change: Change, why: str) -> None:
        """Report an announced change as refused, for the reason ``why``.

        Another write of the plan may have changed this setting, although the setting's own write was refused. The
        journal then records the change as written, so that a restore writes the old value.
        """
        kind = kind_of(change.kind)
        says = kind.read(self.root, change.path).text
        if says is None or kind.same(says, change.before):
            self.recorder.refused(change.n, why)
        else:
            self.recorder.written(change.n, says)
        self.missing |= ordering_facts(change.path, change.kind, change.after).makes
        self._report(change, why)

    def make_again(self, change: Change) -> None:
        """Write a change again if a later write of this plan has overwritten the setting."""
        kind = kind_of(change.kind)
        says = kind.read(self.root, change.path).text
        if says is None or kind.same(says, change.after) or not self._displaced(kind, change, says):
            return
        with contextlib.suppress(OSError):  # ``as_applied`` reports what the setting says then
            kind.write(self.writer, change.path, change.after)

    def as_applied(self, change: Change) -> Applied:
        """Return the change as an Applied, with the value that the host shows after all writes."""
        kind = kind_of(change.kind)
        says = kind.read(self.root, change.path).text
        if says is not None and not kind.same(says, change.after):
            self.recorder.written(change.n, says)
        return Applied(change.n, change.tunable, change.path, change.before, change.after, says)

    def _displaced(self, kind: Kind, change: Change, found: str) -> bool:
        known = (change.before, change.after)
        return kind.self_moving or kind.by_kernel(self.root, change.path, found, known, self.switched)

    def _report(self, change: Change, why: str) -> None:
        self.refused.append(Refused(change.tunable, change.path, why))


def _not_as_planned(change: Change, kind: Kind, found: TextReading) -> str:
    """Return the reason why a change cannot be made. Return "" if ``found`` is the old or the new value of
    ``change``."""
    if found.text is None:
        return f"not written: the old value cannot be read, so it could not be restored later: {found.reason}"
    if kind.same(found.text, change.before) or kind.same(found.text, change.after):
        return ""
    return f"the setting has {quoted(found.text)} now, but the plan expected {quoted(change.before)}"


def accounted(root: HostRoot, shown: Iterable[Change], result: ApplyResult) -> ApplyResult:
    """Return ``result`` with the counts ``ended`` and ``changed``.

    Some writes that the user has seen are neither made nor refused in ``result``. ``ended``: the number of those whose
    task has ended. ``changed``: the number of the others. The plan was made again right before the apply, and then
    lacked these writes.
    """
    made = {(one.path, one.after) for one in result.applied}
    told = {one.path for one in result.refused}
    lost = [(kind_of(c.kind), c.path) for c in shown if (c.path, c.after) not in made and c.path not in told]
    ended = sum(1 for kind, path in lost if kind.of_task and not kind.exists(root, path))
    return dataclasses.replace(result, ended=ended, changed=len(lost) - ended)


def _follow(root: HostRoot, writer: HostWriter, made: Sequence[Change], recorder: Recorder) -> list[Refused]:
    """Run each follow-up command of the changes once. Return a Refused for each command that failed."""
    refused = []
    for name in dict.fromkeys(change.then for change in made if change.then):
        try:
            run_then(name, root, writer)
            recorder.then(name)
        except OSError as error:
            first = next(change for change in made if change.then == name)
            refused.append(
                Refused(
                    first.tunable,
                    name,
                    f"the value was written, but the follow-up command failed: {reason(error)}",
                )
            )
    return refused


def quoted(text: str) -> str:
    """Return a value from the host, quoted for use in a sentence."""
    return f"'{printable(text, _SHOWN)}'"
