"""Build a Markdown report's chapters (guess, measurement, outcome), and the causes of the stolen time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.evidence import Cause, EvidenceReport, ExplainedStall
from jitter_workshop.model.report import Culprits, ReportDocument, ReportedChapter, ReportedRun
from jitter_workshop.model.run import AT, made_late
from jitter_workshop.model.text import clean, many
from jitter_workshop.report.document_words import EVIDENCE
from jitter_workshop.report.markdown.write import Md, bullets, heading, join, line, name, said, span, table
from jitter_workshop.report.text import evidence as evidence_text
from jitter_workshop.stats.measurewords import amount, measure_name
from jitter_workshop.stats.scale import nice_ns, times

CAUSES = 14
"""Causes that are listed; the others are only counted."""
_BAR = 20


def chapters(document: ReportDocument) -> Iterator[str]:
    """Yield the chapters that were begun, in the order of the course."""
    if not document.chapters and "chapters" not in document.notes:
        return
    yield heading(2, "Chapters and predictions")
    runs = {run.id: run for run in document.runs}
    for one in document.chapters:
        yield from _chapter(one, runs)
    yield line(document.notes.get("chapters", ""), 400)


def _chapter(one: ReportedChapter, runs: Mapping[str, ReportedRun]) -> Iterator[str]:
    yield heading(3, one.title, 80)
    if one.rehearsed:
        yield Md("**Gone through on a recording: nothing was measured on this host.**")
    setting = {
        None: "sets nothing",
        True: "its setting stands as it should",
        False: "its setting is not as it should be",
    }
    curve = "curve measured" if one.curve else "curve not measured"
    yield line(" · ".join(["done" if one.done else "under way", setting[one.setting], curve]))
    yield bullets(_prediction(one))
    if one.runs:
        made = (join([f"{clean(slot, 30)}: ", _named(ident, runs)]) for slot, ident in list(one.runs.items())[:20])
        yield join(["Runs: ", Md(", ".join(made))])
    yield line(one.comparison_text, 1_500)
    if one.comparison is not None:
        yield _comparison(one.comparison)
    if one.learnt:
        yield line("What was learnt:")
        yield bullets(line(text, 600) for text in one.learnt)


def _named(ident: str, runs: Mapping[str, ReportedRun]) -> Md:
    run = runs.get(ident)
    return name(run.label or run.id, 60) if run is not None else span(ident, 60)


def _prediction(one: ReportedChapter) -> Iterator[Md]:
    if not one.question:
        return
    yield join([Md("**Asked**: "), said(one.question, 600)])
    yield join([Md("**Predicted**: "), said(one.guess, 300) or "nothing was predicted"])
    if one.outcome is not None:
        near = {None: "", True: " (near)", False: " (far)"}[one.outcome.near]
        told = [said(one.outcome.text, 600), near, f" {clean(one.outcome.explanation, 900)}"]
        yield join([Md("**Measured**: "), *told[:2], Md(" "), said(one.outcome.explanation, 900)])


def _comparison(found: Comparison) -> Md:
    if not found.comparable:
        return bullets(line(text, 300) for text in found.differences)
    rows = (
        [measure_name(one.measure), amount(one.measure, one.a), amount(one.measure, one.b), times(one.ratio)]
        for one in found.rows
    )
    return table(("two single runs, described and not judged", "first run", "second run", "ratio"), rows, range(1, 4))


def culprits(document: ReportDocument) -> Iterator[str]:
    """Yield the causes of the stolen time, run by run."""
    yield heading(2, "Who stole the time")
    if not document.culprits:
        yield line("Nothing is known.")
        yield line(document.notes.get("culprits", ""), 400)
    runs = {run.id: run for run in document.runs}
    for one in document.culprits:
        yield from _culprits(one, runs)


def _culprits(one: Culprits, runs: Mapping[str, ReportedRun]) -> Iterator[str]:
    yield heading(3, join([_named(one.run, runs), f", {EVIDENCE[one.evidence]}"]), 400)
    if one.report is not None:
        yield from _causes(one.report)
    items: list[Md] = []
    for text in one.text:
        # Texts that begin with a candidate's mark form a list.
        if text.startswith(evidence_text.ITEM):
            items.append(line(text.removeprefix(evidence_text.ITEM), 400))
        else:
            yield line(text, 600)
    yield bullets(items)
    if one.report is not None and one.report.worst:
        yield line(f"The worst stalls; {AT}.")
        yield bullets(map(_stall, one.report.worst))


def _causes(report: EvidenceReport) -> Iterator[str]:
    if not report.causes:
        yield line("No stall to explain." if not report.stalls else "Nothing is known of what took the time.")
        return
    yield line(
        f"What took the time of {evidence_text.stalls(report)} over {nice_ns(report.threshold_ns)} in "
        f"{nice_ns(report.measured_ns)}; {report.lost_events:,} events lost."
    )
    shares = report.below_now is not None
    heads = ("cause", "in all", "", "stalls", "worst", "a second", *(("in time without it",) if shares else ()))
    most = max((cause.total_ns for cause in report.causes), default=0) or 1
    rows = (_cause(cause, most, shares) for cause in report.causes[:CAUSES])
    yield table(heads, rows, (1, *range(3, len(heads))))
    if len(report.causes) > CAUSES:
        left = report.causes[CAUSES:]
        yield line(f"{many(len(left), 'smaller cause')} took {nice_ns(sum(one.total_ns for one in left))} in all.")


def _cause(cause: Cause, most: int, shares: bool) -> list[str]:
    cells = [
        name(evidence_text.named(cause, 80)),
        nice_ns(cause.total_ns),
        "█" * round(_BAR * cause.total_ns / most) or "▏",
        f"{cause.count:,}",
        nice_ns(cause.worst_ns),
        nice_ns(cause.ns_per_second),
    ]
    if shares:
        cells.append("–" if cause.below_without is None else f"{100 * cause.below_without:.6g} %")
    return cells


def _stall(stall: ExplainedStall) -> Md:
    where = f" on CPU {stall.cpu}" if stall.cpu is not None else ""
    late = made_late(stall.thread, stall.messages)
    head = f"{nice_ns(stall.duration_ns)} of {clean(stall.thread, 20)}{where}, at {nice_ns(stall.at_ns)}"
    shown = (
        join([name(evidence_text.cause_words(one.kind, one.name, 60)), f" {nice_ns(one.ns)}"])
        for one in stall.parts[:4]
    )
    rest = sum(one.ns for one in stall.parts[4:])
    parts = [*shown, *([said(f"others {nice_ns(rest)}")] if rest else [])]
    notes = [said(note, 300) for note in stall.notes]
    return join(
        [f"{head}, {late}: " if late else f"{head}: ", join(parts, " · "), Md("; ") if notes else "", join(notes, "; ")]
    )
