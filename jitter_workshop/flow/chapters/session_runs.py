"""Hold the runs of an open session, with their curves and the causes of their stalls."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jitter_workshop.errors import SessionError
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.model.run import INTENDED, UNSTEADY, Run, of_transit
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.session.store import OpenSession

if TYPE_CHECKING:
    from jitter_workshop.flow.attribution import ExplainProgress
    from jitter_workshop.stats.heat import Heat

MOST_STALLS = 40
"""Number of longest stalls on a run's page of causes."""


class SessionRuns:
    """Read the runs of a session. Curves, heat maps and causes are kept in memory, because a screen asks for them
    often."""

    def __init__(self, handle: OpenSession) -> None:
        self._handle = handle
        self._runs: dict[str, Run] = {}
        self._curves: dict[tuple[str, str], PercentileCurve] = {}
        self._further: dict[str, tuple[RunCurve, ...]] = {}
        self._heats: dict[str, Heat] = {}
        self._explained: tuple[str, EvidenceReport | CounterReport] | None = None
        self._known: dict[str, EvidenceReport] = {}

    def remember(self, run: Run) -> None:
        """Keep a run in memory. So a screen also shows a run that has no file because the disk is full."""
        self._runs[run.id] = run

    def run(self, run_id: str) -> Run | None:
        """Return this session's run with this id; None if there is none."""
        if run_id in self._runs:
            return self._runs[run_id]
        return next((run for run in self._handle.runs() if run.id == run_id), None)

    def every(self) -> tuple[Run, ...]:
        """Return all runs of the session, oldest first. New runs that could not be stored come last."""
        stored = self._handle.runs()
        known = {run.id for run in stored}
        return (*stored, *(run for ident, run in self._runs.items() if ident not in known))

    def curve(self, run: Run, *, transit: bool = False) -> RunCurve | None:
        """Return the curve of a run's latencies (``Run.latency``); None if the run has none. ``transit``: True for the
        transit of a run of the ring. The run of the curve then has no other latencies."""
        run = of_transit(run) if transit else run
        name = run.latency_histogram
        if name not in run.histograms:
            return None
        key = run.id, name
        if key not in self._curves:
            curve = self._curve(run, name)
            if curve is None:
                return None
            self._curves[key] = curve
        # Such a run was not measured in one state, wherever its curve is drawn.
        label = f"{run.label or run.id}{' (settings changed)' if UNSTEADY in run.notes else ''}"
        curve, sent = self._curves[key], run.main_summary.count if run.main_summary is not None else 0
        curve = dataclasses.replace(curve, sent=sent if 0 < sent < curve.count else None)
        return RunCurve(key=run.id, label=label, curve=curve, run=run, from_due=name == INTENDED)

    def _curve(self, run: Run, name: str) -> PercentileCurve | None:
        """Return the curve of a run's histogram ``name``; None if the session has no such histogram."""
        if run.id in self._runs and all(run.id != stored.id for stored in self._handle.runs()):
            # A new run that could not be stored has no histogram on disk: its table of percentiles is used instead.
            from jitter_workshop.stats.curve import curve_from_summary

            return curve_from_summary(run.label or run.id, run.histograms[name])
        try:
            return self._handle.curve(run, name)
        except SessionError:
            return None

    def further_curves(self, run: Run) -> tuple[RunCurve, ...]:
        """Return up to two further curves of a run (``measuring.curves.further_curves``). They are computed once for
        each run, because a screen asks for them at every redraw."""
        from jitter_workshop.flow.measuring.curves import further_curves

        if run.id not in self._further:
            self._further[run.id] = further_curves(self._handle, run)
        return self._further[run.id]

    def heat(self, run: Run) -> Heat:
        """Return the heat map of a run's latencies. Raise SessionError if the run has no histograms of its blocks.
        The first call for a run of an hour takes seconds."""
        if run.id not in self._heats:
            self._heats[run.id] = self._handle.heat(run, run.latency_histogram)
        return self._heats[run.id]

    def traced(self, run: Run) -> bool:
        """Return True if a run has evidence: the kernel's trace, or counters in place of a missing trace."""
        return run.counters is not None or self._handle.has_trace(run.id)

    def causes(self, run: Run, progress: ExplainProgress | None = None) -> EvidenceReport | CounterReport:
        """Return the causes of a run's stalls, or the run's counters if it has no trace. This takes a second for every
        few hundred thousand events. Raise the errors of ``attribution.explain``."""
        from jitter_workshop.flow.attribution import explain_or_load, unheard

        if self._explained is None or self._explained[0] != run.id:
            self._explained = run.id, explain_or_load(self._handle, run, MOST_STALLS, progress or unheard)
        return self._explained[1]

    @property
    def known_reports(self) -> int:
        """Return the number of runs of which :meth:`known_causes` has found a report so far."""
        return len(self._known)

    def known_causes(self, run: Run) -> EvidenceReport | None:
        """Return the stored report on a run's trace; None if this program has not made one yet. No report is computed
        here."""
        from jitter_workshop.flow.attribution import kept_report

        if run.id not in self._known and (report := kept_report(self._handle, run)) is not None:
            self._known[run.id] = report
        return self._known.get(run.id)

    def curves(self, runs: Iterable[Run]) -> tuple[RunCurve, ...]:
        """Return the curves of these runs. A run without a curve is left out. A curve of transit is named so if others
        count from when a message was due."""
        from jitter_workshop.flow.measuring.curves import told_apart_by_clock

        return told_apart_by_clock([curve for run in runs if (curve := self.curve(run)) is not None])

    def imported(self) -> tuple[RunCurve, ...]:
        """Return the curves that were imported into this session, oldest first. Each curve has the name of the tool
        that measured it. No comparison uses these curves."""
        from jitter_workshop.flow.measuring.curves import imported_curves

        return imported_curves(self._handle.imports())
