"""Draw the chart with its legend line by line: in colours on a terminal that has them, else as plain text."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from jitter_workshop.chart import canvas
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.text import clean
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.view import View

_PLAIN_SIZE = (80, 28)
_LEAST_COLUMNS = 20
_NARROW = 40
"""Below this width figures stand in the chart's place."""
_MOST_ROWS = 36
_BELOW_A_CROWD = 3
"""Lines of text printed below a chart with a crowd."""


def printed(curves: Sequence[PercentileCurve], view: View | None = None, crowd: int = 0) -> str:
    """Return the curves and their legend at the terminal's size (80×28 without a terminal), ending with a line break.
    ``view``: what to show of the curves; None = value by percentile. ``crowd``: this number of curves, from the first,
    are faint and have no line in the legend."""
    console = Console(highlight=False)
    width, height = shutil.get_terminal_size(_PLAIN_SIZE) if console.is_terminal else _PLAIN_SIZE
    width = max(width, _LEAST_COLUMNS)
    legend = canvas.legend(curves[crowd:], width=width)
    below = len(curves) - crowd + (_BELOW_A_CROWD if crowd else 0)
    rows = max(min(height - 2 - below, _MOST_ROWS), canvas.LEAST_HEIGHT)
    if not console.is_terminal or console.is_dumb_terminal:
        return "".join(f"{line}\n" for line in in_plain(curves, width, rows, view, crowd))
    chart = canvas.render(curves, width, rows, view=view, crowd=crowd)
    with console.capture() as captured:
        console.print(Text("\n").join([chart, *legend]), no_wrap=True, overflow="crop", crop=True)
    return captured.get()


def in_plain(
    curves: Sequence[PercentileCurve], width: int, rows: int, view: View | None = None, crowd: int = 0
) -> list[str]:
    """Return the curves and their legend as lines without colours; without room for a chart, a line or two per
    curve."""
    if width < _NARROW:
        return [line[:width] for curve in curves for line in _figures(curve)]
    chart = canvas.render(curves, width, rows, "mono", view=view, crowd=crowd)
    legend = canvas.legend(curves[crowd:], width=width)
    return [line.rstrip() for line in (*chart.plain.split("\n"), *(entry.plain for entry in legend))]


def _figures(curve: PercentileCurve) -> list[str]:
    line = f"{clean(curve.label, 20)} p99.9 {nice_ns(value_at(curve, 99.9))}"
    return [line, f"  ({clean(curve.origin, 20)})"] if curve.origin else [line]
