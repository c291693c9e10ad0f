"""Giving back what the journals say was changed: the last write first, and never over somebody else's value.

A setting is given back where it says what we wrote (or what the host made of it when we wrote). Where it says what
stood there before, nothing is to do. Anything else was set by somebody else since: it is left alone and told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import LeftAlone, Restored, RestoreResult
from jitter_workshop.model.record import dataclass, field
from jitter_workshop.tuning.aftermath import run_then
from jitter_workshop.tuning.applying import quoted
from jitter_workshop.tuning.journal import Entry, Journal, void
from jitter_workshop.tuning.kinds import Kind, kind_of
from jitter_workshop.tuning.planning import owned
from jitter_workshop.tuning.reasons import reason
from jitter_workshop.tuning.registry import tunables
from jitter_workshop.tuning.writer import HostWriter


class Recorder(Protocol):
    """Who adds to one journal. Nothing raises: a setting that was given back and could not be written down is found in
    place the next time."""

    def undone(self, n: int, how: str) -> None: ...
    def written(self, n: int, read_back: str | None) -> None: ...
    def then(self, name: str) -> None: ...


@dataclass(slots=True)
class _Way:
    """One restore on its way."""

    root: HostRoot
    writer: HostWriter
    boot_id: str | None
    culprit: Callable[[str], str | None]
    ours: set[tuple[str, int]]
    restored: list[tuple[Entry, Kind, Recorder, str]] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    blocked: set[tuple[str, str]] = field(default_factory=set)
    needs_reboot: bool = False
    all: list[Entry] = field(default_factory=list)
    forget: bool = False

    def first_before(self, entry: Entry) -> str:
        """What stood there before anything of ours did: several applies may lie on one another."""
        return next(e.before for e in self.all if (e.kind, e.path) == (entry.kind, entry.path))


def restore(
    root: HostRoot,
    writer: HostWriter,
    journals: Sequence[tuple[Journal, Recorder]],
    boot_id: str | None,
    only: Collection[str] = (),
    culprit: Callable[[str], str | None] = lambda tunable: None,
    *,
    forget: bool = False,
) -> RestoreResult:
    """Undo the active entries of ``journals`` (oldest first, as they were read): all of them, or those of the tunables
    in ``only``. ``boot_id``: the running kernel's. ``culprit``: who probably changed a tunable's setting, or None.
    ``forget``: what somebody else has changed is told and struck off, instead of being looked at again the next time.

    The journals' entries are brought up to date. May be repeated, also after it was killed anywhere.
    """
    mine = [
        (journal, recorder, [e for e in journal.active if not only or e.tunable in only])
        for journal, recorder in journals
    ]
    everything = [e for _, _, part in mine for e in part]
    way = _Way(root, writer, boot_id, culprit, _ours_at_start(root, everything), all=everything, forget=forget)
    for _, recorder, entries in reversed(mine):
        for entry in reversed(entries):
            _undo(way, entry, recorder)
    _follow(way, journals, only)
    _check_again(way)
    return RestoreResult(
        tuple(Restored(e.tunable, e.path, found, e.before) for e, _, _, found in way.restored),
        tuple(way.left),
        way.needs_reboot,
    )


def _ours_at_start(root: HostRoot, entries: Sequence[Entry]) -> set[tuple[str, int]]:
    """The entries whose setting says now what we made of it: giving back one setting may change another, which is ours
    to give back all the same."""
    ours = set()
    for entry in entries:
        try:
            kind = kind_of(entry.kind)
        except ValueError:
            continue
        found = kind.read(root, entry.path).text
        if found is not None and _is_ours(kind, entry, found):
            ours.add((entry.journal, entry.n))
    return ours


def _is_ours(kind: Kind, entry: Entry, found: str) -> bool:
    return (
        kind.same(found, entry.after)
        or (entry.read_back is not None and kind.same(found, entry.read_back))
        or kind.halfway(found, entry.after)
    )


def _undo(way: _Way, entry: Entry, recorder: Recorder) -> None:
    """Give one setting back, or say why not."""
    if (entry.kind, entry.path) in way.blocked:
        if way.forget:
            _done(entry, recorder, "forgotten")
        return  # a later write to it was left alone and told
    try:
        kind = _checked(entry)
    except ValueError as error:
        _leave(way, entry, None, str(error))
        return
    if void(entry, way.boot_id):
        _done(entry, recorder, "void")
        return
    if not kind.exists(way.root, entry.path):
        _done(entry, recorder, "gone")
        return
    reading = kind.read(way.root, entry.path)
    found = reading.text
    if found is None:
        _leave(way, entry, None, f"it cannot be read: {reading.reason}")
        return
    if kind.same(found, entry.before):
        if entry.state == "intent":
            with contextlib.suppress(OSError):
                kind.make_sure(way.writer, entry.path, entry.before)
        _done(entry, recorder, "same")
        return
    if not _is_ours(kind, entry, found) and (entry.journal, entry.n) not in way.ours:
        who = way.culprit(entry.tunable)
        by = f", probably {who}, which runs here" if who else ""
        was = f"somebody changed it since{by}; it was {quoted(way.first_before(entry))} before"
        _leave(way, entry, found, f"{was}; it stays as it is" if way.forget else was)
        if way.forget:
            _done(entry, recorder, "forgotten")
        return
    try:
        kind.write(way.writer, entry.path, entry.before)
    except OSError as error:
        if not kind.exists(way.root, entry.path):
            _done(entry, recorder, "gone")
        else:
            _leave(way, entry, found, reason(error))
        return
    says = kind.read(way.root, entry.path).text
    if says is None or not kind.same(says, entry.before):
        _leave(way, entry, says, f"{quoted(entry.before)} was written back, but the host did not keep it")
        return
    _done(entry, recorder, "restored")
    way.restored.append((entry, kind, recorder, found))
    if kind.effect_after_boot and entry.boot_id != way.boot_id and kind.in_effect(way.root, entry.after):
        way.needs_reboot = True


def _checked(entry: Entry) -> Kind:
    """The kind of an entry that this version may write. Raises ValueError with the reason for any other."""
    tunable = next((t for t in tunables() if t.id == entry.tunable), None)
    if tunable is None:
        raise ValueError("this version does not know the tunable; restore it with the version that applied it")
    if not owned(tunable, entry.path):
        raise ValueError(f"it is not among the files of {entry.tunable}: not touched")
    return kind_of(entry.kind)


def _follow(way: _Way, journals: Sequence[tuple[Journal, Recorder]], only: Collection[str]) -> None:
    """Run what follows once, for all journals together that it is due in."""
    touched = {entry.journal for entry, *_ in way.restored}
    due: dict[str, list[tuple[Journal, Recorder]]] = {}
    for journal, recorder in journals:
        if only and journal.id not in touched:
            continue
        for entry, _, _, _ in way.restored:
            if entry.journal == journal.id and entry.then and entry.then not in journal.due:
                journal.due.append(entry.then)
        for name in journal.due:
            due.setdefault(name, []).append((journal, recorder))
    for name, owing in due.items():
        try:
            run_then(name, way.root, way.writer)
        except OSError as error:
            whose = next((e.tunable for j, _ in owing for e in j.entries.values() if e.then == name), "journal")
            words = f"what must follow failed: {reason(error)}"
            way.left.append(LeftAlone(whose, name, "done", None, words))
            continue
        for journal, recorder in owing:
            journal.due.remove(name)
            recorder.then(name)


def _check_again(way: _Way) -> None:
    """Read all that was given back once more: what another way back changed is written again, and told if it will not
    stay. Of several writes to one path the first one, undone last, is what counts."""
    last = {(item[0].kind, item[0].path): item for item in way.restored}
    for item in last.values():
        entry, kind, recorder, _ = item
        says = kind.read(way.root, entry.path).text
        if says is None or kind.same(says, entry.before):
            continue
        with contextlib.suppress(OSError):  # what it says then is read and told below
            kind.write(way.writer, entry.path, entry.before)
        says = kind.read(way.root, entry.path).text
        if says is not None and not kind.same(says, entry.before):
            entry.state, entry.read_back = "written", says
            recorder.written(entry.n, says)
            way.restored.remove(item)
            _leave(way, entry, says, "it was given back, and giving back another setting changed it again")


def _done(entry: Entry, recorder: Recorder, how: str) -> None:
    entry.state = "undone"
    recorder.undone(entry.n, how)


def _leave(way: _Way, entry: Entry, found: str | None, why: str) -> None:
    way.blocked.add((entry.kind, entry.path))
    way.left.append(LeftAlone(entry.tunable, entry.path, entry.after, found, why))
