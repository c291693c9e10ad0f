"""Collect a report's culprits: the causes of its runs' stalls, by their traces or, without one, by counters."""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.attribution.explaining import explained
from jitter_workshop.flow.chapters.traced_runs import shown
from jitter_workshop.flow.reporting.subject import Subject
from jitter_workshop.model.evidence import CounterReport
from jitter_workshop.model.report import Culprits
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.report.text import counters as counters_text
from jitter_workshop.report.text import evidence as evidence_text

TOP_STALLS = 5
"""Number of a run's worst stalls in a report; 'explain' shows as many as the user asks for."""


def culprits(subject: Subject) -> tuple[Culprits, ...]:
    """Return the culprits of each chapter's explained run and of the newest run with evidence, oldest run first. Where
    runs were picked, return those of all picked runs with evidence."""
    wanted = _wanted(subject)
    return tuple(_of(subject, run, number, len(wanted)) for number, run in enumerate(wanted, 1))


def _wanted(subject: Subject) -> list[Run]:
    told = [run for run in subject.runs if _has_evidence(subject, run)]
    if not told:
        asked = "no run was measured with --evidence, so no task is named" if subject.runs else "nothing was measured"
        subject.notes.setdefault("culprits", asked)
        return []
    if subject.chosen:
        return told
    ids = {run.id for walk in subject.walks() if (run := shown(subject.workshop, walk)) is not None}
    return [run for run in told if run.id in ids or run is told[-1]]


def _has_evidence(subject: Subject, run: Run) -> bool:
    return run.counters is not None or subject.handle.has_trace(run.id)


def _of(subject: Subject, run: Run, number: int, total: int) -> Culprits:
    what = "explaining" if total == 1 else f"explaining run {number} of {total}"
    try:
        report = explained(subject.handle, run, TOP_STALLS, partial(subject.progress, what))
    except SessionError as error:
        return Culprits(run.id, "none", None, (clean(error.sentence(), 400),))
    if isinstance(report, CounterReport):
        sentences = (counters_text.headline(report), *counters_text.verdict(report), *counters_text.others(report))
        return Culprits(run.id, "counters", None, sentences)
    said = (evidence_text.headline(report), *evidence_text.limits(report), *evidence_text.explanations(report))
    return Culprits(run.id, "trace", report, said)
