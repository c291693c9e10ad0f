"""``explain RUN`` for a terminal, whatever is known of the run: its kernel trace, or counters."""

from __future__ import annotations

from jitter_workshop.model.counters import CounterReport
from jitter_workshop.model.evidence import EvidenceReport
from jitter_workshop.report.text import counters as counters_text
from jitter_workshop.report.text import evidence as evidence_text
from jitter_workshop.report.text.terminal import Style


def render(report: EvidenceReport | CounterReport, style: Style, label: str = "") -> str:
    """The whole report, ending with a line break. ``label``: what the run is called."""
    if isinstance(report, CounterReport):
        return counters_text.render(report, style, label)
    return evidence_text.render(report, style, label)
