"""Return the report's preview in words and rows, for the screen and for the line-by-line workshop. Needs no Textual.

It holds the report's parts in the report's own order, each shortened for a preview. The file has all of them in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jitter_workshop.flow.reporting.anonymizer import Names, names_in
from jitter_workshop.model.assessment import State
from jitter_workshop.model.history import Snapshot
from jitter_workshop.model.proof import Proof
from jitter_workshop.model.report import Culprits, ReportDocument, ReportedChange, ReportedRun
from jitter_workshop.model.text import called, clean, many, minute
from jitter_workshop.presenter import proof_words
from jitter_workshop.report.text import proof as proof_text
from jitter_workshop.report.text.evidence import cause_words
from jitter_workshop.stats import interval_plot
from jitter_workshop.stats.measurewords import measure_name
from jitter_workshop.stats.scale import nice_ns, times

MOST_RUNS = 12
"""Runs that are listed here; the file lists all."""
MOST_CAUSES = 4
MOST_CHANGES = 8
MOST_NAMES = 6
STRIP = 25
"""Cells of a verdict's picture."""

_SAID_ELSEWHERE = frozenset({"before", "after", "culprits", "events", "private"})
"""Notes that are shown in the place of the missing part, and not in the list of notes."""

_STATES: tuple[tuple[State, str], ...] = (
    ("ok", "good"),
    ("improve", "could be better"),
    ("unavailable", "not on this host"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """Hold a part of the preview: sentences, then rows with a head (columns in ``right`` are numbers), then
    ``more``."""

    title: str
    told: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: tuple[int, ...] = ()
    more: tuple[str, ...] = ()


def opening(document: ReportDocument) -> Section:
    """Return the title, the first lines of the report, and its place and time."""
    where = f"{clean(document.host_line, 160)} · made {minute(document.made_at)} UTC"
    recorded = (f"About a recorded host: {clean(document.recorded, 60)}.",) if document.recorded else ()
    return Section(clean(document.title, 120), (*recorded, *(clean(s, 400) for s in document.summary)), more=(where,))


def sections(document: ReportDocument) -> Iterator[Section]:
    """Yield the sections below the charts. An empty section says that it is empty, or why."""
    yield from map(_proof, document.proofs)
    if not document.proofs:
        yield Section(
            "VERDICTS", ("Nothing was proven: 'p' at a chapter's compare step, or 'prove', compares rounds.",)
        )
    yield _culprits(document)
    yield _changes(document)
    yield _chapters(document)
    yield _status(document)
    yield Section("STILL OPEN", _limited([f"{clean(p.title, 60)}: {clean(p.text, 200)}" for p in document.still_open]))
    yield Section("HOW TO GET THERE AGAIN", _limited([clean(c.command, 200) for c in document.commands]))
    yield _runs(document)
    if document.imports:
        yield Section("BY OTHER TOOLS", _limited([clean(line, 160) for line in document.imports]))
    unknown = [f"{clean(k, 40)}: {clean(v, 200)}" for k, v in document.notes.items() if k not in _SAID_ELSEWHERE]
    if unknown:
        yield Section("WHAT IS NOT KNOWN", tuple(unknown))


def for_others(document: ReportDocument, raw: bool) -> tuple[str, ...]:
    """Return the parts of the file that the user may not want others to see, one sentence each. ``raw``: this format
    contains the raw data."""
    found = names_in(document)
    lines = [*_names(document, found)]
    typed = list(dict.fromkeys(called(run.label, 30) for run in document.runs if run.label))
    if typed:
        lines.append(f"The session's name and {_some(typed, 'label')} of runs, as they were typed.")
    lines.append("The host: kernel, CPU model, CPUs, its settings and boot parameters as far as this tool reads them.")
    if raw and not document.private:
        lines.append(f"The raw data of {many(len(document.runs), 'run')}, which contain all of this, too.")
    elif raw:
        lines.append("No raw data: they would have the names. 'sessions import' cannot bring the session back from it.")
    return tuple(lines)


def others_in_short(document: ReportDocument, raw: bool) -> str:
    """Return :func:`for_others` in one sentence, for the line that is always in sight."""
    if document.private:
        return "For others: names of hosts, users and tasks are replaced, and no raw data go with it."
    found = names_in(document)
    parts = [f"host {called(found.hosts[0], 30)}"] if len(found.hosts) == 1 else []
    parts += [many(len(found.hosts), "host name")] if len(found.hosts) > 1 else []
    parts += [many(len(found.tasks), "task name")] if found.tasks else []
    parts += [many(len(found.users), "user name")] if found.users else []
    parts += ["labels", *(["the raw data"] if raw else [])]
    return f"Others will see: {', '.join(parts[:-1])}{' and ' if parts[:-1] else ''}{parts[-1]}."


def size(count: int) -> str:
    """Return a number of bytes for people: ``940 bytes``, ``612 kB``, ``1.4 MB``."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1_000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


def files(names: Sequence[str] | dict[str, bytes]) -> str:
    """Return the file that is written, and the number of files beside it."""
    first, *rest = names
    return clean(first, 120) + (f" and {beside(len(rest))}" if rest else "")


def beside(count: int) -> str:
    """Return ``2 files beside it``."""
    return f"{many(count, 'file')} beside it"


def _names(document: ReportDocument, found: Names) -> Iterator[str]:
    if document.private:
        yield "Names of hosts, users and tasks, labels and paths are replaced by 'host 1', 'task 1', 'run 1', …"
        yield "The kernel's own tasks and well-known services keep their names."
        return
    for kind, names in (("host", found.hosts), ("user", found.users), ("task", found.tasks)):
        if names:
            shown = [called(name, 24) for name in names]
            yield f"Names of {kind}s: {_listed(shown)}."


def _proof(proof: Proof) -> Section:
    title = f"PROOF: {proof_words.subject(proof.subject)}"
    judged = proof.judgement
    rest = (*proof_words.rest(proof), proof_words.restored(proof))
    if judged is None:
        return Section(title, (f"{proof_text.headline(proof)}.", *rest))
    axis = interval_plot.axis_of(judged.rows)
    head = ("", "ratio", interval_plot.scale(axis, STRIP), "")
    rows = [
        (
            measure_name(row.measure),
            times(row.ratio) if row.ratio is not None else "–",
            interval_plot.drawn(interval_plot.strip(row, axis), axis, STRIP),
            proof_text.WORDS[row.verdict],
        )
        for row in judged.rows
    ]
    rounds = f"{many(judged.rounds, 'round')} of {clean(proof.workload, 20)}."
    return Section(title, (f"{proof_text.headline(proof)}.", rounds), (head, *rows), (1,), rest)


def _culprits(document: ReportDocument) -> Section:
    labels = {run.id: _label(run) for run in document.runs}
    rows: list[tuple[str, ...]] = []
    told: list[str] = []
    for one in document.culprits:
        name = labels.get(one.run, clean(one.run, 40))
        if one.report is None:
            told += [f"{name}: {clean(text, 300)}" for text in one.text[:2]]
            continue
        rows += _causes(name, one)
    if not document.culprits:
        told.append(_sentence(document.notes.get("culprits", "no run was traced, so no cause is named")))
    head = (("", "stalls", "in all", "worst"),) if rows else ()
    return Section("WHO STOLE THE TIME", tuple(told), (*head, *rows), (1, 2, 3))


def _causes(name: str, one: Culprits) -> Iterator[tuple[str, ...]]:
    assert one.report is not None
    yield (name, "", "", "")
    for cause in one.report.causes[:MOST_CAUSES]:
        words = cause_words(cause.kind, cause.name, 34)
        yield (f"  {words}", f"{cause.count:,}", nice_ns(cause.total_ns), nice_ns(cause.worst_ns))
    rest = len(one.report.causes) - MOST_CAUSES
    if rest > 0:
        yield (f"  and {many(rest, 'other')}", "", "", "")


def _changes(document: ReportDocument) -> Section:
    if not document.changes:
        why = document.notes.get("events", "")
        return Section("CHANGED ON THE HOST", (_sentence(why or "nothing was written"),))
    counts: dict[str, int] = {}
    for change in document.changes:
        counts[change.fate] = counts.get(change.fate, 0) + 1
    told = ", ".join(f"{n} {fate.replace('_', ' ')}" for fate, n in counts.items())
    lines = _limited([_change(change) for change in document.changes], MOST_CHANGES)
    return Section("CHANGED ON THE HOST", (f"{many(len(document.changes), 'write')}: {told}.", *lines))


def _change(change: ReportedChange) -> str:
    values = f"{_value(change.before)} → {_value(change.after)}"
    return f"{clean(change.path, 90)}: {values}; {clean(change.text or change.fate.replace('_', ' '), 80)}"


def _value(value: str | None) -> str:
    return "not known" if value is None else clean(value, 30) or "empty"


def _chapters(document: ReportDocument) -> Section:
    lines = []
    for chapter in document.chapters:
        state = "done" if chapter.done else "begun"
        where = ", on a recording" if chapter.rehearsed else ""
        said = clean(chapter.outcome.text, 200) if chapter.outcome else clean(chapter.guess, 120)
        lines.append(f"{clean(chapter.title, 60)} ({state}{where})" + (f": {said}" if said else ""))
    return Section("CHAPTERS AND PREDICTIONS", _limited(lines) if lines else ("No chapter was begun.",))


def _status(document: ReportDocument) -> Section:
    title = "STATUS BEFORE AND AFTER"
    before, after = document.before, document.after
    if before is None and after is None:
        return Section(title, (_sentence(document.notes.get("before", "not known")),))
    rows = [("", *(word for _, word in _STATES))]
    for name, snapshot in (("before", before), ("after", after)):
        if snapshot is not None:
            rows.append((f"{name}, {minute(snapshot.at)} UTC", *(str(n) for n in _states(snapshot))))
    missing = [f"{k}: {clean(document.notes.get(k, 'not known'), 160)}" for k in ("before", "after")]
    more = [line for line, one in zip(missing, (before, after), strict=True) if one is None]
    if before is not None and after is not None:
        was = {check.id: check.state for check in before.checks}
        moved = [clean(c.title, 50) for c in after.checks if was.get(c.id, c.state) != c.state]
        more.append(f"Not as before: {_listed(moved)}." if moved else "No check differs from before.")
    return Section(title, (), tuple(rows), (1, 2, 3), tuple(more))


def _states(snapshot: Snapshot) -> tuple[int, ...]:
    return tuple(sum(check.state == state for check in snapshot.checks) for state, _ in _STATES)


def _runs(document: ReportDocument) -> Section:
    title = f"RUNS: {len(document.runs):,}"
    rows: list[tuple[str, ...]] = [("", "p50", "p99.9", "max", "stalls/s")] if document.runs else []
    for run in document.runs[-MOST_RUNS:]:
        found = run.histogram
        values = (found.percentiles.get("50"), found.percentiles.get("99.9"), found.max) if found else (None,) * 3
        rows.append((_label(run), *map(nice_ns, values), f"{run.stalls.per_second:,.1f}"))
    hidden = len(document.runs) - MOST_RUNS
    more = (f"The newest; {hidden:,} older ones are in the file, too.",) if hidden > 0 else ()
    return Section(title, () if document.runs else ("Nothing was measured.",), tuple(rows), (1, 2, 3, 4), more)


def _label(run: ReportedRun) -> str:
    return (clean(run.label, 34) or clean(run.id, 34)) + ("" if run.complete else " (stopped)")


def _sentence(reason: str) -> str:
    """Return a reason as a sentence of its own."""
    told = clean(reason, 300).removesuffix(".")
    return f"{told[:1].upper()}{told[1:]}."


def _limited(lines: Sequence[str], most: int = 12) -> tuple[str, ...]:
    """Return at most this number of lines, and how many more the file has."""
    if not lines:
        return ("Nothing.",)
    rest = len(lines) - most
    return (*lines[:most], *((f"and {rest:,} more in the file",) if rest > 0 else ()))


def _some(names: Sequence[str], what: str) -> str:
    return f"{many(len(names), what)} ({_listed(names)})"


def _listed(names: Sequence[str]) -> str:
    rest = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {rest:,} more" if rest > 0 else "")
