"""Draw the chart for standard output: in colours on a terminal that has them, else as plain text. Needs no Textual."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from jitter_workshop.chart import canvas
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.stats.view import View

_PLAIN_SIZE = (80, 28)
_LEAST_COLUMNS = 20
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
        chart = canvas.render(curves, width, rows, "mono", view=view, crowd=crowd)
        lines = [line.rstrip() for line in chart.plain.split("\n")] + [line.plain for line in legend]
        return "\n".join(lines) + "\n"
    chart = canvas.render(curves, width, rows, view=view, crowd=crowd)
    with console.capture() as captured:
        console.print(Text("\n").join([chart, *legend]), no_wrap=True, overflow="crop", crop=True)
    return captured.get()
