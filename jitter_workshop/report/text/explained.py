"""Show ``explain RUN`` for a terminal, from the run's kernel trace or from counters."""

from __future__ import annotations

from jitter_workshop.model.evidence import CounterReport, EvidenceReport
from jitter_workshop.report.text import counters as counters_text
from jitter_workshop.report.text import evidence as evidence_text
from jitter_workshop.report.text.terminal import Style


def render(report: EvidenceReport | CounterReport, style: Style, label: str = "") -> str:
    """Return the whole report, ending with a line break. ``label``: the run's label."""
    if isinstance(report, CounterReport):
        return counters_text.render(report, style, label)
    return evidence_text.render(report, style, label)
