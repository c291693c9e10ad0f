"""Collect a report's host: each write with its fate, status before and after, and the points that are still open."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.flow.host_ops.change_log import snapshot
from jitter_workshop.flow.reporting.subject import Subject
from jitter_workshop.model.history import CheckState, HostEvent, Snapshot
from jitter_workshop.model.report import Fate, OpenPoint, ReportedChange
from jitter_workshop.model.text import clean, many
from jitter_workshop.session import history
from jitter_workshop.tuning import journal

_ELSEWHERE = "not known: this report was not made on that host, or the host was rebooted since"
_GONE = (
    "by the host's journal it does not stand any more, though this session did not see it given back (another terminal "
    "gave it back, or this program was killed)"
)


@dataclass(frozen=True, slots=True)
class Standing:
    """Hold the host's part of a report. ``after``: status now, or the last one that is known. ``stands``: what this
    tool has set on this host and not given back, in any session; None where this host is not the session's."""

    events: tuple[HostEvent, ...]
    changes: tuple[ReportedChange, ...]
    after: Snapshot | None
    stands: tuple[journal.Entry, ...] | None


def look(subject: Subject) -> Standing:
    """Read this host if it is the session's, and join it with the history. Unknown facts stand in ``notes``."""
    stands, unread = _stands(subject)
    rows = _reconciled(subject.events, stands, journal.current_boot(subject.root), unread)
    shown = _without_rounds(subject.events)
    known = {id(event) for event in shown}
    folded = sum(id(event) not in known for event, _ in rows)
    if folded:
        told = f"{many(folded, 'write')} made and given back within proofs are not listed: each proof has its own"
        subject.notes["changes"] = "; ".join(filter(None, (subject.notes.get("changes", ""), told)))
    return Standing(
        events=tuple(shown),
        changes=tuple(row for event, row in rows if id(event) in known),
        after=_after(subject),
        stands=stands,
    )


def still_open(subject: Subject, standing: Standing) -> tuple[OpenPoint, ...]:
    """Return the open points: standing settings, a reboot, checks to improve, chapters of a course that was begun."""
    return (*_left_standing(standing), *_reboots(subject), *_checks(standing.after), *_open_chapters(subject))


def _stands(subject: Subject) -> tuple[tuple[journal.Entry, ...] | None, str]:
    """Return the active entries of the host's journal, or None and the reason why they are not known."""
    if subject.recorded:
        return None, "not known: this is about a recorded host"
    if subject.elsewhere:
        return None, f"{_ELSEWHERE} ({subject.elsewhere})"
    damaged = [one.id for one in journal.read_journals(subject.root) if one.problems]
    if damaged:
        subject.notes["changes"] = f"{many(len(damaged), 'journal')} of this host cannot be read whole: {damaged[0]}"
    return journal.active(subject.root), ""


def _reconciled(
    events: Sequence[HostEvent], stands: tuple[journal.Entry, ...] | None, boot: str | None, unread: str
) -> list[tuple[HostEvent, ReportedChange]]:
    """Return each write and refusal with its fate, in the order of time. The last write is given back first: a
    ``restored`` belongs to the newest write of its path that is not given back yet."""
    open_rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    rows: list[tuple[HostEvent, Fate, str | None, str]] = []
    for event in events:
        key = (event.tunable, event.path)
        if event.did == "refused":
            rows.append((event, "refused", None, clean(event.reason, 400) or "refused"))
        elif event.did == "applied":
            open_rows[key].append(len(rows))
            rows.append((event, "kept" if event.kept else "standing", None, ""))
        elif open_rows[key]:
            at = open_rows[key][-1]
            first = rows[at][0]
            if event.did == "restored":
                open_rows[key].pop()
                rows[at] = (first, "restored", event.at, f"given back: {clean(event.after or 'nothing', 120)}")
            elif event.did == "left_alone":
                rows[at] = (first, "left_alone", event.at, clean(event.reason, 400) or "left alone")
            else:
                rows[at] = (first, "kept", None, "")
    standing = {(e.tunable, e.path) for e in stands or ()}
    return [(event, _row(event, fate, at, text, standing, stands, boot, unread)) for event, fate, at, text in rows]


def _row(
    event: HostEvent,
    fate: Fate,
    at: str | None,
    text: str,
    standing: set[tuple[str, str]],
    stands: tuple[journal.Entry, ...] | None,
    boot: str | None,
    unread: str,
) -> ReportedChange:
    if fate in ("standing", "kept", "left_alone"):
        fate, text = _now(event, fate, text, (event.tunable, event.path) in standing, stands is None, boot, unread)
    return ReportedChange(
        at=event.at,
        tunable=event.tunable,
        path=event.path,
        before=event.before,
        after=event.after,
        read_back=event.read_back,
        fate=fate,
        fate_at=at,
        text=text,
        chapter=event.chapter,
        proof=event.proof,
    )


def _now(
    event: HostEvent, fate: Fate, text: str, stands: bool, unknown: bool, boot: str | None, unread: str
) -> tuple[Fate, str]:
    """Return the fate of a write that this session did not see given back, by the journal of the host."""
    if unknown:
        return (fate, text) if fate == "left_alone" else ("unknown", unread)
    if stands and fate != "left_alone":
        return fate, "stands now, until 'jitter-workshop restore'" if fate == "kept" else "stands now"
    if fate == "left_alone":
        return fate, text
    if event.boot_id is not None and boot is not None and event.boot_id != boot:
        return "rebooted", "gone with a reboot"
    return "gone", _GONE


def _without_rounds(events: Sequence[HostEvent]) -> list[HostEvent]:
    """Return the events without those of a proof's rounds, which the proof applied and gave back itself."""
    made: dict[tuple[str, str], list[HostEvent]] = defaultdict(list)
    folded: set[int] = set()
    for event in events:
        key = (event.tunable, event.path)
        if event.did == "applied":
            made[key].append(event)
        elif event.did == "restored" and made[key]:
            first = made[key].pop()
            if first.proof and first.proof == event.proof:
                folded |= {id(first), id(event)}
    return [event for event in events if id(event) not in folded]


def _after(subject: Subject) -> Snapshot | None:
    """Return status now if this is the session's host, else the last status that the session kept."""
    if subject.chosen:
        subject.notes["before"] = subject.notes["after"] = "this report is about single runs"
        subject.first = None
        return None
    why = subject.elsewhere
    if not why:
        try:
            now = snapshot(subject.root)
        except WorkshopError as error:
            why = f"the host could not be read: {error.sentence()}"
        else:
            _keep(subject, now)
            return now
    last, none = (subject.last, "") if subject.last is not None else history.last(subject.handle.folder)
    if last is not None:
        subject.notes["after"] = f"the last status that was kept, of {last.at}: {why}"
        return last
    subject.notes["after"] = f"{why}; {none}"
    return None


def _keep(subject: Subject, now: Snapshot) -> None:
    """Keep this status for a later report that is made elsewhere, or after a reboot."""
    if not subject.root.recorded and not subject.handle.read_only:
        with contextlib.suppress(SessionError):
            history.keep_last(subject.handle.folder, now)


def _left_standing(standing: Standing) -> Iterator[OpenPoint]:
    for ident in dict.fromkeys(entry.tunable for entry in standing.stands or ()):
        entries = [e for e in standing.stands or () if e.tunable == ident]
        first = entries[0]
        more = f" and {len(entries) - 1} more" if len(entries) > 1 else ""
        text = (
            f"{clean(first.path, 120)} = {clean(first.after, 120)}{more}; 'jitter-workshop restore {ident}' undoes it"
        )
        yield OpenPoint("standing", ident, f"{ident} is still set", text)


def _reboots(subject: Subject) -> Iterator[OpenPoint]:
    if subject.elsewhere or subject.recorded:
        return
    for walk in subject.walks():
        if walk.awaits_reboot:
            yield OpenPoint(
                "reboot", walk.chapter.id, walk.chapter.title, "its boot parameters take effect with the next boot"
            )


def _checks(after: Snapshot | None) -> Iterator[OpenPoint]:
    for check in after.checks if after is not None else ():
        if check.state == "improve":
            yield OpenPoint("check", check.id, check.title, _improvable(check))


def _improvable(check: CheckState) -> str:
    told = clean(check.value, 120) if check.value is not None else "not known"
    wanted = f" → {clean(check.wanted, 120)}" if check.wanted else ""
    return f"{told}{wanted}: {clean(check.reason, 300)}"


def _open_chapters(subject: Subject) -> Iterator[OpenPoint]:
    """Yield the chapters that are not done, if one chapter of the course was begun; begun ones with their step."""
    begun = {walk.chapter.id: walk for walk in subject.walks()}
    if not begun:
        return
    for chapter in subject.workshop.course.chapters:
        walk = begun.get(chapter.id)
        if walk is None:
            yield OpenPoint("chapter", chapter.id, chapter.title, "not begun")
        elif not walk.progress.done:
            yield OpenPoint("chapter", chapter.id, chapter.title, f"at its step '{walk.current}'")
