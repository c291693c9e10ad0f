"""Collect a report's facts about the host. These are this tool's changes, and the host's status before and after them.
A further fact is what the user still has to do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.model.record import made_of
from jitter_workshop.model.report import Fate, OpenPoint, ReportedChange
from jitter_workshop.model.status import HostEvent, Snapshot
from jitter_workshop.model.text import LINE, SENTENCE, clean, many
from jitter_workshop.tuning import journal

_ELSEWHERE = "unknown: this report was not made on that host, or the host was rebooted after the change"
GONE = (
    "the host's journal shows that this write is no longer in place: another terminal restored it, or this program "
    "was killed before it noted the restore"
)


@dataclass(frozen=True, slots=True)
class HostPart:
    """Hold what a report says about the host.

    - ``events``: the session's history. ``changes``: each write with its result.
    - ``stands``: the settings that this tool still changes on this host, from any session. None if they are unknown,
      such as on another host.
    """

    events: tuple[HostEvent, ...]
    changes: tuple[ReportedChange, ...]
    stands: tuple[journal.Entry, ...] | None


def host_facts(subject: ReportSubject) -> HostPart:
    """Return the report's facts about the host from the session's history and the live host's journal. The journal is
    read only if this is the session's host. Reasons for missing facts are added to ``subject.notes``."""
    stands, unread = _stands(subject)
    events, changes = _reconciled(subject.events, stands, journal.current_boot(subject.root), unread)
    folded = sum(e.did in ("applied", "refused") for e in subject.events) - len(changes)
    if folded:
        told = f"{many(folded, 'write')} made and restored within proofs are not listed here: each proof lists them"
        subject.notes["changes"] = "; ".join(filter(None, (subject.notes.get("changes", ""), told)))
    return HostPart(events, changes, stands)


def still_open(subject: ReportSubject, standing: HostPart) -> tuple[OpenPoint, ...]:
    """Return the open points: settings that are still applied, a reboot to make, settings that can be improved, and
    unfinished chapters."""
    return (*_left_standing(standing), *_reboots(subject), *_checks(subject.after), *_open_chapters(subject))


def _stands(subject: ReportSubject) -> tuple[tuple[journal.Entry, ...] | None, str]:
    """Return the active entries of this host's journal, and "" as the second value. If the session is about a recorded
    host or another host, return None and the reason."""
    if subject.recorded:
        return None, "unknown: this report is about a recorded host"
    if subject.elsewhere:
        return None, f"{_ELSEWHERE} ({subject.elsewhere})"
    damaged = [one.id for one in journal.read_journals(subject.root) if one.problems]
    if damaged:
        subject.notes["changes"] = (
            f"{many(len(damaged), 'journal')} of this host cannot be read completely: {damaged[0]}"
        )
    return journal.active(subject.root), ""


def _reconciled(
    events: Sequence[HostEvent], stands: tuple[journal.Entry, ...] | None, boot: str | None, unread: str
) -> tuple[tuple[HostEvent, ...], tuple[ReportedChange, ...]]:
    """Return two lists: the events; and the writes and refusals, each with what happened to it later. Both lists begin
    with the oldest entry. A write that a proof made and restored is in neither list. An event ``restored`` belongs to
    the newest unrestored write of its path.

    - ``stands``: the journal's active entries; None if the journal is not that of the session's host.
    - ``unread``: the reason why ``stands`` is None.
    """
    waiting: dict[tuple[str, str], list[int]] = defaultdict(list)
    fates: dict[int, tuple[Fate, str | None, str]] = {}
    folded: set[int] = set()
    for at, event in enumerate(events):
        open_writes = waiting[event.tunable, event.path]
        if event.did == "refused":
            fates[at] = ("refused", None, clean(event.reason, SENTENCE) or "refused")
        elif event.did == "applied":
            open_writes.append(at)
            fates[at] = ("kept" if event.kept else "standing", None, "")
        elif open_writes and event.did == "restored":
            first = open_writes.pop()
            fates[first] = ("restored", event.at, f"restored: {clean(event.after or 'nothing', LINE)}")
            if event.proof and event.proof == events[first].proof:
                folded |= {first, at}
        elif open_writes and event.did == "left_alone":
            fates[open_writes[-1]] = ("left_alone", event.at, clean(event.reason, SENTENCE) or "left alone")
        elif open_writes:
            fates[open_writes[-1]] = ("kept", None, "")
    standing = {(entry.tunable, entry.path) for entry in stands} if stands is not None else None
    return (
        tuple(event for at, event in enumerate(events) if at not in folded),
        tuple(_change(events[at], *fate, standing, boot, unread) for at, fate in fates.items() if at not in folded),
    )


def _change(
    event: HostEvent,
    fate: Fate,
    fate_at: str | None,
    text: str,
    standing: set[tuple[str, str]] | None,
    boot: str | None,
    unread: str,
) -> ReportedChange:
    """Return a write with its fate, such as ``restored`` or ``gone``. If the session does not record a restore, the
    host's journal decides. ``standing``: the writes in this journal; None if the journal is not that of the session's
    host."""
    if fate in ("standing", "kept"):
        if standing is None:
            fate, text = "unknown", unread
        elif (event.tunable, event.path) in standing:
            text = "applied until 'jitter-workshop restore'" if fate == "kept" else "applied now"
        elif event.boot_id is not None and boot is not None and event.boot_id != boot:
            fate, text = "rebooted", "gone after a reboot"
        else:
            fate, text = "gone", GONE
    return made_of(ReportedChange, event, fate=fate, fate_at=fate_at, text=text)


def _left_standing(standing: HostPart) -> Iterator[OpenPoint]:
    for ident in dict.fromkeys(entry.tunable for entry in standing.stands or ()):
        entries = [e for e in standing.stands or () if e.tunable == ident]
        first = entries[0]
        more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        restores = f"'jitter-workshop restore {ident}' restores it"
        text = f"{clean(first.path, LINE)} = {clean(first.after, LINE)}{more}; {restores}"
        yield OpenPoint("standing", ident, f"{ident} is still changed", text)


def _reboots(subject: ReportSubject) -> Iterator[OpenPoint]:
    if subject.elsewhere or subject.recorded:
        return
    for walk in subject.walks:
        if walk.host.awaits_reboot:
            yield OpenPoint(
                "reboot", walk.chapter.id, walk.chapter.title, "the boot parameters take effect at the next boot"
            )


def _checks(after: Snapshot | None) -> Iterator[OpenPoint]:
    for check in after.checks if after is not None else ():
        if check.state == "improve":
            told = clean(check.value, LINE) if check.value is not None else "not known"
            wanted = f" → {clean(check.wanted, LINE)}" if check.wanted else ""
            yield OpenPoint("check", check.id, check.title, f"{told}{wanted}: {clean(check.reason, SENTENCE)}")


def _open_chapters(subject: ReportSubject) -> Iterator[OpenPoint]:
    """Yield the unfinished chapters of the course, each with its current step or ``not begun``. Yield nothing if no
    chapter was begun."""
    begun = {walk.chapter.id: walk for walk in subject.walks}
    if not begun:
        return
    for chapter in subject.course.chapters:
        walk = begun.get(chapter.id)
        if walk is None:
            yield OpenPoint("chapter", chapter.id, chapter.title, "not begun")
        elif not walk.progress.done:
            yield OpenPoint("chapter", chapter.id, chapter.title, f"at its step '{walk.current}'")
