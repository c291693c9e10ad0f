"""Build a Markdown report's part about the host: each write and its fate, status before and after, open points, and the
commands."""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.history import CheckState, Snapshot
from jitter_workshop.model.report import ReportDocument, ReportedChange
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.document_words import FATES, KINDS, Pair, checks, host_facts
from jitter_workshop.report.markdown.write import (
    UNKNOWN,
    Md,
    bullets,
    fenced,
    heading,
    join,
    line,
    name,
    said,
    span,
    table,
)
from jitter_workshop.report.markdown.write import when as moment
from jitter_workshop.report.text.status import MARKS

IN_FULL = "Status in full"


def changes(document: ReportDocument) -> Iterator[str]:
    """Yield each write and its fate."""
    yield heading(2, "Changes")
    if document.changes:
        heads = ("setting", "path", "before", "after", "read back", "what became of it")
        yield line(f"{many(len(document.changes), 'write')} of this session, oldest first.")
        yield table(heads, map(_change, document.changes))
    elif not document.events:
        yield line("This session changed no setting of a host.")
    for key in ("changes", "events"):
        yield line(document.notes.get(key, ""), 400)


def _change(one: ReportedChange) -> list[str]:
    source = f", in chapter {clean(one.chapter, 40)}" if one.chapter else ""
    told = clean(one.text, 400).removeprefix(f"{FATES[one.fate]}: ")
    fate = [
        Md(f"**{FATES[one.fate]}**"),
        f" {moment(one.fate_at)}" if one.fate_at else "",
        f"; {told}" if told else "",
    ]
    differs = one.read_back is not None and one.after is not None and one.read_back != one.after
    return [
        join([said(one.tunable, 60), f" ({moment(one.at)}{source})"]),
        span(one.path, 300),
        span(one.before),
        span(one.after),
        join([span(one.read_back), Md(" **not what was written**") if differs else ""]),
        join(fate),
    ]


def status(document: ReportDocument) -> Iterator[str]:
    """Yield every check before and after, those that differ first."""
    yield heading(2, "Status before and after")
    before, after = document.before, document.after
    for key in ("before", "after"):
        if why := document.notes.get(key):
            yield line(f"Status {key}: {clean(why, 400)}.")
    if before is None and after is None:
        return
    both = before is not None and after is not None
    yield line(f"Before: {_moment(before)}. After: {_moment(after)}.")
    if before is not None and after is not None and before.boot_id != after.boot_id:
        yield line("The host was booted between the two.")
    differ, same = checks(before, after)
    if both:
        yield line("One check differs." if len(differ) == 1 else f"{many(len(differ), 'check')} differ.")
    if differ:
        rows = ([_title(pair), _state(pair[0]), _state(pair[1])] for pair in differ)
        yield table(("check", "before", "after"), rows)
    if same:
        yield line(f"{many(len(same), 'check')}{' the same' if both else ''}: see {IN_FULL} at the end.")


def status_in_full(document: ReportDocument) -> Iterator[str]:
    """Yield the checks that did not differ; there can be many."""
    _, same = checks(document.before, document.after)
    if same:
        yield heading(2, IN_FULL)
        # This is no table: reasons are long, and the line of a list wraps for readers of the plain text.
        yield bullets(join([_title(pair), ": ", _state(pair[1] or pair[0])]) for pair in same)


def _moment(snapshot: Snapshot | None) -> str:
    if snapshot is None:
        return "not known"
    hot = f", hot CPUs {CpuSet(snapshot.hot_cpus)}" if snapshot.hot_cpus else ""
    return f"{moment(snapshot.at)}{hot}"


def _title(pair: Pair) -> Md:
    one = pair[1] or pair[0]
    return join([said(one.title, 80), " (", span(one.id, 40), ")"]) if one is not None else Md("")


def _state(check: CheckState | None) -> Md:
    if check is None:
        return said("not looked at")
    mark, word, _ = MARKS[check.state]
    value = [Md(" "), span(check.value)] if check.value is not None else []
    wanted = [Md(" → "), span(check.wanted)] if check.state == "improve" and check.wanted is not None else []
    return join([f"{mark} {word}", *value, *wanted, f"; {clean(check.reason, 400)}" if check.reason else ""])


def still_open(document: ReportDocument) -> Iterator[str]:
    """Yield the open points, the host's own state first."""
    yield heading(2, "Still open")
    if not document.still_open:
        yield line("Nothing is open, as far as this report knows.")
    for kind, word in KINDS.items():
        points = [point for point in document.still_open if point.kind == kind]
        if points:
            yield heading(3, f"{word[0].upper()}{word[1:]}: {len(points):,}")
            yield bullets(join([Md("**"), name(p.title), Md("**: "), said(p.text, 500)]) for p in points)


def commands(document: ReportDocument) -> Iterator[str]:
    """Yield lines of shell, each with its purpose."""
    yield heading(2, "How to get there again")
    if not document.commands:
        yield line("No commands are known.")
    for one in document.commands:
        yield line(f"{clean(one.why, 300)}:")
        yield fenced([one.command], "sh")


def hosts(document: ReportDocument) -> Iterator[str]:
    """Yield the known facts of each host."""
    yield heading(2, "Host")
    if not document.hosts:
        yield line("Nothing is known.")
    for host in document.hosts:
        yield heading(3, join([name(host.name), ", recorded, not measured on" if host.recorded else ""]))
        rows = (
            [what, join([UNKNOWN if value is None else span(value, 300), f"; {clean(why, 300)}" if why else ""])]
            for what, value, why in host_facts(host)
        )
        yield table(("what", "value"), rows)
    yield line(document.notes.get("hosts", ""), 400)
