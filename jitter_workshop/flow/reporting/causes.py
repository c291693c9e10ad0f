"""Explain a report's runs: the causes of their stalls, from their traces or counters."""

from __future__ import annotations

from functools import partial

from jitter_workshop.errors import SessionError
from jitter_workshop.flow.attribution import explain_or_load
from jitter_workshop.flow.reporting.subject import ReportSubject
from jitter_workshop.model.evidence import CounterReport
from jitter_workshop.model.report import RunCauses
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import SENTENCE, clean
from jitter_workshop.report.cause_words import cause_sentences

TOP_STALLS = 5
"""Number of a run's longest stalls in a report; 'explain' shows as many as the user asks for."""


def causes_of_runs(subject: ReportSubject, *, keep: bool = False) -> tuple[RunCauses, ...]:
    """Return the causes of stalls for some runs of a report, the oldest run first. These are the traced run of each
    chapter and the newest traced run. If the user picked runs, they are all picked runs with a trace. ``keep``: True
    saves new explanations in the session.
    """
    wanted = _explainable(subject)
    return tuple(_causes_of(subject, run, number, len(wanted), keep) for number, run in enumerate(wanted, 1))


def _explainable(subject: ReportSubject) -> list[Run]:
    told = [run for run in subject.runs if subject.context.runs.traced(run)]
    if not told:
        asked = "no run was measured with --evidence, so no task is named" if subject.runs else "nothing was measured"
        subject.notes.setdefault("culprits", asked)
        return []
    if subject.chosen:
        return told
    ids = {run.id for walk in subject.walks if (run := walk.runs.traced_run()) is not None}
    return [run for run in told if run.id in ids or run is told[-1]]


def _causes_of(subject: ReportSubject, run: Run, number: int, total: int, keep: bool) -> RunCauses:
    what = "explaining" if total == 1 else f"explaining run {number} of {total}"
    try:
        report = explain_or_load(subject.context.handle, run, TOP_STALLS, partial(subject.progress, what), keep=keep)
    except SessionError as error:
        return RunCauses(run.id, "none", None, (clean(error.sentence(), SENTENCE),))
    if isinstance(report, CounterReport):
        return RunCauses(run.id, "counters", None, cause_sentences(report))
    return RunCauses(run.id, "trace", report, cause_sentences(report))
