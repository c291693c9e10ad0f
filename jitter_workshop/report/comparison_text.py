"""A comparison as text: at most 80 columns, no escapes; it may go to a terminal, a file or a mail."""

from __future__ import annotations

import textwrap

from jitter_workshop.model.curve import Comparison
from jitter_workshop.model.run import Run
from jitter_workshop.model.text import clean
from jitter_workshop.stats.measurewords import amount, measure_name

WIDTH = 80
_LABEL, _COLUMN, _RATIO = 26, 20, 10


def render(comparison: Comparison, baseline: Run, other: Run, metric: str) -> str:
    """The two runs, the rows, and what may be said of them, ending with a line break."""
    lines = [f"{baseline.id} → {other.id} · {clean(metric, 30)}", ""]
    if baseline.label or other.label:
        lines.insert(0, f"{clean(baseline.label or baseline.id, 34)} → {clean(other.label or other.id, 34)}")
    if comparison.rows:
        lines.append(_line("", clean(baseline.label or "A", 18), clean(other.label or "B", 18), "B/A"))
        lines += [
            _line(
                measure_name(row.measure), amount(row.measure, row.a), amount(row.measure, row.b), ratio_text(row.ratio)
            )
            for row in comparison.rows
        ]
        lines.append("")
    lines += textwrap.wrap(clean(comparison.text, 2_000), WIDTH)
    return "\n".join(lines) + "\n"


def ratio_text(ratio: float | None) -> str:
    """A ratio in three digits: ``1.15×``, ``57×``, ``1/57``; ``–`` where unknown, ``=`` where the values are equal."""
    if ratio is None:
        return "–"
    if ratio == 1.0:
        return "="
    if ratio <= 0:
        return "0"
    if ratio >= 9.95:
        return f"{ratio:,.0f}×"
    return f"{ratio:.2f}×" if ratio > 0.1 else f"1/{1 / ratio:,.0f}"


def _line(name: str, a: str, b: str, ratio: str) -> str:
    return f"{name:<{_LABEL}}{a:>{_COLUMN}}{b:>{_COLUMN}}{ratio:>{_RATIO}}".rstrip()
