"""Draw the chart for the line-by-line workshop: the screen's own canvas without its colours."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.chart import canvas
from jitter_workshop.model.text import clean
from jitter_workshop.model.walk import RunCurve
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.scale import nice_ns

_THEME = "dark"


def chart_lines(curves: Sequence[RunCurve], width: int, height: int) -> list[str]:
    """Return the curves and their legend as lines of plain text."""
    drawn = tuple(c.curve for c in curves)
    if width < 40:
        return _figures(curves, width)
    text = canvas.render(drawn, width, height, _THEME, None, ())
    legend = canvas.legend(drawn, theme=_THEME, highlight=None, marks=(), width=width)
    return [line.rstrip() for line in (*text.plain.split("\n"), *(entry.plain for entry in legend))]


def _figures(curves: Sequence[RunCurve], width: int) -> list[str]:
    """Return one line per curve where there is no room for a chart, and a line with its origin if it was not measured
    here."""
    return [line[:width] for c in curves for line in _figure(c)]


def _figure(shown: RunCurve) -> list[str]:
    line = f"{clean(shown.label, 20)} p99.9 {nice_ns(value_at(shown.curve, 99.9))}"
    return [line, f"  ({clean(shown.curve.origin, 20)})"] if shown.curve.origin else [line]
