"""Making the changes of a plan, one after the other: announce, write, read back; at the end read everything back.

The steps need only a writer and somebody who keeps the journal, so that they run the same on a host and on a made one.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.change import Applied, ApplyResult, Change, Refused
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.aftermath import run_then
from jitter_workshop.tuning.kinds import Kind, kind_of
from jitter_workshop.tuning.planning import digest
from jitter_workshop.tuning.reasons import reason
from jitter_workshop.tuning.writer import HostWriter

_SHOWN = 80


class Keeper(Protocol):
    """Who keeps the journal. ``intent`` has reached the disk when it returns, and raises OSError where it cannot; the
    others do not raise."""

    def intent(self, change: Change) -> None: ...
    def written(self, n: int, read_back: str | None) -> None: ...
    def refused(self, n: int, reason: str) -> None: ...
    def then(self, name: str) -> None: ...


def shown_only(changes: Sequence[Change], digests: Collection[str]) -> tuple[list[Change], list[Refused]]:
    """The changes that were shown (their :func:`planning.digest` is among ``digests``), and the others as refused."""
    known = set(digests)
    shown = [change for change in changes if digest(change) in known]
    # A task that began after the plan was shown is left alone; that is no refusal of what was asked for.
    rest = [change for change in changes if digest(change) not in known and not kind_of(change.kind).of_task]
    words = "it was not in the plan that was shown: the host has changed since; ask for the plan again"
    return shown, [Refused(change.tunable, change.path, words) for change in rest]


def apply_changes(
    root: HostRoot,
    writer: HostWriter,
    changes: Sequence[Change],
    keeper: Keeper,
    stopped: Callable[[], bool] = lambda: False,
) -> ApplyResult:
    """Make ``changes`` in their order. A write that the host refuses is reported and the others are made; ``stopped``
    is asked between any two. The result's ``journal_id`` is None: the caller knows it."""
    made: list[tuple[Change, Kind]] = []
    refused: list[Refused] = []
    for position, change in enumerate(changes):
        if stopped():
            refused += [Refused(c.tunable, c.path, "stopped before it was written") for c in changes[position:]]
            break
        kind = kind_of(change.kind)
        try:
            if kind.of_task and not kind.exists(root, change.path):
                continue  # the task has ended since: nothing is left to change
            why = _make(root, writer, change, kind, keeper, _taken_offline(change for change, _ in made))
        except JournalLost as lost:
            words = f"not written, because the journal cannot be kept: {lost}"
            refused += [Refused(c.tunable, c.path, words) for c in changes[position:]]
            break
        if why and kind.of_task and not kind.exists(root, change.path):
            continue  # it ended while it was written
        if why:
            refused.append(Refused(change.tunable, change.path, why))
        else:
            made.append((change, kind))
    failed = _follow(root, writer, [change for change, _ in made], keeper)
    refused += failed
    applied = [_settle(root, change, kind, keeper) for change, kind in made]
    # What did not get into the boot loader's menu does not wait for the next boot either.
    out = {one.path for one in failed}
    waiting = [change for change, kind in made if change.when == "boot" or kind.effect_after_boot]
    needs_reboot = any(change.then not in out for change in waiting)
    return ApplyResult(None, tuple(applied), tuple(refused), needs_reboot)


def count_ended(root: HostRoot, shown: Iterable[Change], result: ApplyResult) -> ApplyResult:
    """The result with the number of shown writes that fell away because their tasks had ended."""
    made = {(one.path, one.after) for one in result.applied}
    told = {one.path for one in result.refused}
    lost = [c for c in shown if (c.path, c.after) not in made and c.path not in told and kind_of(c.kind).of_task]
    ended = sum(1 for change in lost if not kind_of(change.kind).exists(root, change.path))
    return dataclasses.replace(result, ended=ended)


class JournalLost(Exception):
    """An intent could not be written down; the message is the reason. The write did not happen."""


def _taken_offline(made: Iterable[Change]) -> CpuSet:
    """The CPUs that are offline by what was made before: drivers take them out of their masks at once."""
    parts = [change.path.split("/") for change in made if change.path.endswith("/online") and change.after == "0"]
    return CpuSet.of(int(part[-2][3:]) for part in parts if part[-2][3:].isdecimal())


def _make(root: HostRoot, writer: HostWriter, change: Change, kind: Kind, keeper: Keeper, gone: CpuSet) -> str:
    """Make one change; "" or why it was refused. ``gone``: CPUs that were there when the plan was made."""
    found = kind.read(root, change.path)
    if found.text is None:
        return f"it cannot be read, so it could not be given back: {found.reason}"
    as_planned = kind.same(found.text, change.before)
    if not as_planned and gone:
        as_planned = kind.same(found.text, kind.without(change.before, gone))
    there_already = not as_planned and kind.same(found.text, change.after)
    if not there_already and not as_planned:
        return f"it says {quoted(found.text)} by now, where the plan was made for {quoted(change.before)}"
    try:
        keeper.intent(change)
    except OSError as error:
        raise JournalLost(reason(error)) from error
    why = ""
    if not there_already:
        try:
            kind.write(writer, change.path, change.after)
        except OSError as error:
            why = reason(error)
    read_back = kind.read(root, change.path).text
    if not why and read_back is not None and _ignored(kind, read_back, change):
        why = f"the host took the write and still says {quoted(read_back)}"
    if not why:
        keeper.written(change.n, read_back)
        return ""
    return why + _take_back(root, writer, change, kind, read_back, keeper)


def _ignored(kind: Kind, read_back: str, change: Change) -> bool:
    return kind.same(read_back, change.before) and not kind.same(read_back, change.after)


def _take_back(
    root: HostRoot, writer: HostWriter, change: Change, kind: Kind, read_back: str | None, keeper: Keeper
) -> str:
    """After a refusal: leave the setting as it was before. "" or what is to be said of it."""
    with contextlib.suppress(OSError):
        kind.make_sure(writer, change.path, change.before)
    if read_back is not None and not kind.same(read_back, change.before):
        with contextlib.suppress(OSError):  # what stands there then is read below and told
            kind.write(writer, change.path, change.before)
        read_back = kind.read(root, change.path).text
    if read_back is None or kind.same(read_back, change.before):
        keeper.refused(change.n, "refused")
        return ""
    keeper.written(change.n, read_back)
    return f"; it now says {quoted(read_back)}, and 'restore' tries again to give it back"


def _follow(root: HostRoot, writer: HostWriter, made: Sequence[Change], keeper: Keeper) -> list[Refused]:
    """Do once what follows the writes."""
    refused = []
    for name in dict.fromkeys(change.then for change in made if change.then):
        try:
            run_then(name, root, writer)
            keeper.then(name)
        except OSError as error:
            first = next(change for change in made if change.then == name)
            refused.append(Refused(first.tunable, name, f"written, but what must follow failed: {reason(error)}"))
    return refused


def _settle(root: HostRoot, change: Change, kind: Kind, keeper: Keeper) -> Applied:
    """What the host says of a change after all of them."""
    read_back = kind.read(root, change.path).text
    if read_back is not None and not kind.same(read_back, change.after):
        keeper.written(change.n, read_back)
    return Applied(change.n, change.tunable, change.path, change.before, change.after, read_back)


def quoted(text: str) -> str:
    """A value from the host in a sentence."""
    return f"'{printable(text, _SHOWN)}'"
