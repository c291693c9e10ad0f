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
    done: list[tuple[Entry, Recorder, str]] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    blocked: set[tuple[str, str]] = field(default_factory=set)
    needs_reboot: bool = False
    all: list[Entry] = field(default_factory=list)
    chain: dict[tuple[str, str], list[Entry]] = field(default_factory=dict)
    forget: bool = False

    def first_before(self, entry: Entry) -> str:
        """What stood there before anything of ours did: several applies may lie on one another."""
        return next(e.before for e in self.all if (e.kind, e.path) == (entry.kind, entry.path))

    def further_back(self, entry: Entry, kind: Kind, found: str) -> bool:
        """Whether the setting says what stood there before an earlier write of ours: a restore that was cut short had
        given back this one and those in between, and could not write it down."""
        for earlier in self.chain[entry.kind, entry.path]:
            if earlier is entry:
                return False
            if kind.same(found, earlier.before):
                return True
        return False


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

    The journals' entries are brought up to date, once everything is given back, was read again, and what follows has
    been done and synced. May be repeated, also after it was killed or the power was cut anywhere.
    """
    mine = [
        (journal, recorder, [e for e in journal.active if not only or e.tunable in only])
        for journal, recorder in journals
    ]
    everything = [e for _, _, part in mine for e in part]
    way = _Way(root, writer, boot_id, culprit, _ours_at_start(root, everything), all=everything, forget=forget)
    for e in (e for journal, _ in journals for e in journal.entries.values()):
        if e.state != "refused" and not void(e, boot_id):
            way.chain.setdefault((e.kind, e.path), []).append(e)
    for _, recorder, entries in reversed(mine):
        for entry in reversed(entries):
            _undo(way, entry, recorder)
    _check_again(way)
    made = _follow(way, journals, only)
    return RestoreResult(
        (*(Restored(e.tunable, e.path, found, e.before) for e, _, _, found in way.restored), *made),
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
        or kind.between(found, entry.before, entry.after)
    )


def _undo(way: _Way, entry: Entry, recorder: Recorder) -> None:
    """Give one setting back, or say why not."""
    if (entry.kind, entry.path) in way.blocked:
        if way.forget:
            _done(way, entry, recorder, "forgotten")
        return  # a later write to it was left alone and told
    try:
        kind = _checked(entry)
    except ValueError as error:
        _leave(way, entry, None, str(error))
        return
    if void(entry, way.boot_id):
        _done(way, entry, recorder, "void")
        return
    if not kind.exists(way.root, entry.path):
        _done(way, entry, recorder, "gone")
        return
    reading = kind.read(way.root, entry.path)
    found = reading.text
    if found is None:
        _leave(way, entry, None, f"it cannot be read: {reading.reason}")
        return
    if kind.same(found, entry.before) or way.further_back(entry, kind, found):
        if entry.state == "intent" or kind.survives_boot:
            try:
                stands = entry.before if kind.same(found, entry.before) else found
                kind.make_sure(way.writer, entry.path, stands)
            except OSError as error:
                if kind.survives_boot:
                    _leave(way, entry, found, f"it is as before, which cannot be made to last: {reason(error)}")
                    return
        _needs_reboot(way, entry, kind)
        _done(way, entry, recorder, "same")
        return
    if not _is_ours(kind, entry, found) and (entry.journal, entry.n) not in way.ours:
        who = way.culprit(entry.tunable)
        by = f", probably {who}, which runs here" if who else ""
        was = f"somebody changed it since{by}; it was {quoted(way.first_before(entry))} before"
        _leave(way, entry, found, f"{was}; it stays as it is" if way.forget else was)
        if way.forget:
            _done(way, entry, recorder, "forgotten")
        return
    try:
        kind.write(way.writer, entry.path, entry.before)
    except OSError as error:
        if not kind.exists(way.root, entry.path):
            _done(way, entry, recorder, "gone")
        else:
            _leave(way, entry, found, reason(error))
        return
    says = kind.read(way.root, entry.path).text
    if says is None or not kind.same(says, entry.before):
        _leave(way, entry, says, f"{quoted(entry.before)} was written back, but the host did not keep it")
        return
    _done(way, entry, recorder, "restored")
    way.restored.append((entry, kind, recorder, found))
    _needs_reboot(way, entry, kind)


def _needs_reboot(way: _Way, entry: Entry, kind: Kind) -> None:
    """Note whether the running kernel still has what was given back on the disk."""
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


def _follow(way: _Way, journals: Sequence[tuple[Journal, Recorder]], only: Collection[str]) -> list[Restored]:
    """Run what follows once, for all journals together that it is due in, and only then write down what was given
    back. An entry of which the follower failed stays active: the next restore finds it as before, and tries again.

    A follower is due for each entry that was given back, and for one that was found as before: the cut that undid the
    write need not have undone what followed. Returns what was made anew where no setting had to be written for it."""
    due: dict[str, list[tuple[Journal, Recorder]]] = {}
    for journal, recorder in journals:
        mine = [entry for entry, _, how in way.done if entry.journal == journal.id and how != "forgotten"]
        if only and not mine:
            continue
        for name in dict.fromkeys((*journal.due, *(entry.then for entry in mine if entry.then))):
            due.setdefault(name, []).append((journal, recorder))
    failed = set()
    made = []
    written = {entry.then for entry, *_ in way.restored}
    for name, owing in due.items():
        whose = next((e.tunable for j, _ in owing for e in j.entries.values() if e.then == name), "journal")
        try:
            run_then(name, way.root, way.writer)
        except OSError as error:
            failed.add(name)
            way.left.append(LeftAlone(whose, name, "done", None, f"what must follow failed: {reason(error)}"))
            continue
        if name not in written:
            made.append(Restored(whose, name, "due", "done"))
    for entry, recorder, how in way.done:
        if entry.then not in failed:
            entry.state = "undone"
            recorder.undone(entry.n, how)
    for name, owing in due.items():
        for journal, recorder in owing:
            if name in failed:
                journal.due = [*(one for one in journal.due if one != name), name]
            else:
                journal.due = [one for one in journal.due if one != name]
                recorder.then(name)
    return made


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
            way.done = [one for one in way.done if one[0] is not entry]
            _leave(way, entry, says, "it was given back, and giving back another setting changed it again")


def _done(way: _Way, entry: Entry, recorder: Recorder, how: str) -> None:
    """Note that nothing of this entry is to do any more. It is written down at the end (``_follow``): where the power
    goes before that, the next restore looks at all of them again."""
    way.done.append((entry, recorder, how))


def _leave(way: _Way, entry: Entry, found: str | None, why: str) -> None:
    way.blocked.add((entry.kind, entry.path))
    way.left.append(LeftAlone(entry.tunable, entry.path, entry.after, found, why))
