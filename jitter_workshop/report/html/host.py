"""Build a page's part about the host: each write and its fate, status before and after, open points, the commands."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.history import CheckState, HostEvent, Snapshot
from jitter_workshop.model.host import HostSummary
from jitter_workshop.model.report import Command, OpenPoint, ReportDocument, ReportedChange
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.document_words import FATES, KINDS, checks, host_facts
from jitter_workshop.report.html.write import (
    UNKNOWN,
    Html,
    bullets,
    cell,
    code,
    folded,
    join,
    name,
    row,
    shown,
    table,
    tag,
    when,
)
from jitter_workshop.report.text.status import MARKS

_DID = {
    "applied": "applied",
    "refused": "refused",
    "restored": "given back",
    "left_alone": "left alone",
    "kept": "kept",
}
LONG_LIST = 12
"""A list with more rows than this is folded."""


def changes(document: ReportDocument) -> Html:
    """Return each write and its fate."""
    found = document.changes
    parts: list[Html] = []
    if found:
        rows = [_change(one) for one in found]
        heads = ("setting", "path", "before", "after", "read back", "what became of it")
        caption = f"{many(len(found), 'write')} of this session, oldest first"
        parts.append(_foldable(heads, rows, caption, "changes"))
    elif not document.events:
        parts.append(tag("p", "This session changed no setting of a host."))
    if document.events:
        lines = [_event(one) for one in document.events]
        heads = ("when", "what", "setting", "path", "before → after", "why")
        log = table(heads, lines, "As it was written down", "events")
        parts.append(folded(f"The session's own record: {many(len(lines), 'line')}", log))
    return join(parts)


def _change(one: ReportedChange) -> Html:
    fate = [tag("strong", FATES[one.fate])]
    fate += [join([" ", when(one.fate_at)])] if one.fate_at else []
    told = one.text.removeprefix(f"{FATES[one.fate]}: ")
    fate += [tag("span", shown(told, 400), class_="below")] if told else []
    said = code(one.read_back)
    differs = one.read_back is not None and one.after is not None and one.read_back != one.after
    if differs:
        said = join([said, tag("span", "not what was written", class_="below attention")])
    source = f"in chapter {clean(one.chapter, 40)}" if one.chapter else ""
    head = [shown(one.tunable, 60), tag("span", join([when(one.at), f" {source}"]), class_="below")]
    cells = (code(one.path, 300), code(one.before), code(one.after), said, join(fate))
    return row(join(head), *map(cell, cells), class_=f"fate-{one.fate.replace('_', '-')}")


def _event(one: HostEvent) -> Html:
    what = _DID[one.did] + (", to stay until restore" if one.kept else "")
    change = join([code(one.before), " → ", code(one.after)])
    cells = (what, shown(one.tunable, 60), code(one.path, 300), change, shown(one.reason, 400))
    return row(when(one.at, seconds=True), *map(cell, cells))


def _foldable(heads: Sequence[str], rows: Sequence[Html], caption: str, class_: str) -> Html:
    if len(rows) <= LONG_LIST:
        return table(heads, rows, caption, class_)
    first = table(heads, rows[:LONG_LIST], f"{caption}: the first {LONG_LIST}", class_)
    rest = table(heads, rows[LONG_LIST:], f"{caption}: the others", class_)
    return join([first, folded(f"{len(rows) - LONG_LIST:,} more", rest)])


def status(document: ReportDocument) -> Html:
    """Return every check before and after, those that differ first."""
    before, after = document.before, document.after
    if before is None and after is None:
        return _unknown(document, "before", "after")
    differ, same = checks(before, after)
    parts = [_unknown(document, "before", "after"), _other_boot(before, after)]
    if before is None or after is None:
        return join([*parts, *_one_status(before or after, "before" if after is None else "after")])
    told = "One check differs." if len(differ) == 1 else f"{many(len(differ), 'check')} differ."
    heads = ("check", join(["before", _moment(before)]), join(["after", _moment(after)]))
    parts.append(tag("p", told[0].upper() + told[1:]))
    if differ:
        lines = [_pair(*pair) for pair in differ]
        parts.append(table(heads, lines, "Checks that differ between before and after", "status"))
    lines = [_pair(*pair) for pair in same]
    rest = table(heads, lines, "Checks that are the same", "status")
    return join([*parts, folded(f"{many(len(same), 'check')} the same", rest) if same else None])


def _one_status(snapshot: Snapshot | None, called: str) -> list[Html]:
    """Return the only status that is known: the checks that could be better are shown, the rest is folded."""
    found = snapshot.checks if snapshot is not None else ()
    heads = ("check", join([called, _moment(snapshot)]))
    better = [_check(one, _state(one)) for one in found if one.state == "improve"]
    others = [_check(one, _state(one)) for one in found if one.state != "improve"]
    parts = [table(heads, better, "Checks that could be better", "status")] if better else []
    if others:
        parts.append(folded(f"{many(len(others), 'other check')}", table(heads, others, "Other checks", "status")))
    return parts


def _moment(snapshot: Snapshot | None) -> Html:
    if snapshot is None:
        return tag("span", "not known", class_="below")
    hot = f", hot {CpuSet(snapshot.hot_cpus)}" if snapshot.hot_cpus else ""
    return tag("span", join([when(snapshot.at), hot]), class_="below")


def _other_boot(before: Snapshot | None, after: Snapshot | None) -> Html | None:
    if before is None or after is None or before.boot_id == after.boot_id:
        return None
    return tag("p", "The host was booted between the two.", class_="dim")


def _pair(was: CheckState | None, now: CheckState | None) -> Html:
    one = now or was
    assert one is not None
    return _check(one, _state(was), _state(now))


def _check(one: CheckState, *states: Html) -> Html:
    return row(join([shown(one.title, 80), tag("span", code(one.id, 40), class_="below")]), *map(cell, states))


def _state(check: CheckState | None) -> Html:
    if check is None:
        return shown("not looked at")
    mark, word, _ = MARKS[check.state]
    label = tag("span", tag("span", mark, aria_hidden="true"), f" {word}", class_=f"badge state-{check.state}")
    value = [" ", code(check.value)] if check.value is not None else []
    wanted = [" → ", code(check.wanted)] if check.state == "improve" and check.wanted is not None else []
    return join([label, *value, *wanted, tag("span", shown(check.reason, 400), class_="below")])


def _unknown(document: ReportDocument, *keys: str) -> Html:
    """Tell why a part is not known, from the document's own notes."""
    told = [
        tag("p", f"Status {key}: {clean(document.notes[key], 400)}.", class_="unknown")
        for key in keys
        if document.notes.get(key)
    ]
    return join(told)


def still_open(points: Sequence[OpenPoint]) -> Html:
    """Return the open points, the host's own state first."""
    if not points:
        return tag("p", "Nothing is open, as far as this report knows.")
    parts = []
    for kind, word in KINDS.items():
        items = [join([tag("strong", name(p.title, 80)), ": ", shown(p.text, 500)]) for p in points if p.kind == kind]
        if items:
            listed = bullets(items)
            long = len(items) > LONG_LIST
            head = f"{word[0].upper()}{word[1:]}: {len(items):,}"
            parts.append(folded(head, listed) if long else join([tag("h3", head), listed]))
    return join(parts)


def commands(found: Sequence[Command]) -> Html:
    """Return lines of shell, each with its purpose."""
    if not found:
        return tag("p", "No commands are known.")
    return tag("dl", *(_command(one) for one in found), class_="commands")


def _command(one: Command) -> Html:
    # A line of shell is shown character for character. Characters that cannot be seen were quoted when it was made.
    return join([tag("dt", tag("pre", tag("code", shown(one.command, 4_000)))), tag("dd", shown(one.why, 300))])


def hosts(found: Sequence[HostSummary]) -> Html:
    """Return the known facts of each host."""
    return join(_host(one) for one in found)


def _host(one: HostSummary) -> Html:
    rows = [
        row(
            what,
            cell(
                join(
                    [
                        shown(UNKNOWN) if value is None else code(value, 300),
                        tag("span", shown(why, 300), class_="below") if why else None,
                    ]
                )
            ),
        )
        for what, value, why in host_facts(one)
    ]
    recorded = [" ", tag("span", "recorded, not measured on", class_="origin")] if one.recorded else []
    head = tag("h3", name(one.name, 80), *recorded)
    return tag("section", head, table(("", "value"), rows, f"Host {clean(one.name, 80)}", "host"))
