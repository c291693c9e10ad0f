"""Say inside a chart what the shaded space between two curves means."""

from __future__ import annotations

from collections.abc import Collection

from rich.style import Style

from jitter_workshop.chart.axes import Cell, PlotFrame
from jitter_workshop.chart.style import FILLS, TINTED_FILLS, fill_style, plain_style
from jitter_workshop.model.palette import Palette

_WORDS = {True: "better", False: "worse"}
"""The meaning of a shaded space. Key: True where the second curve is better, that is lower."""
_FAINT = " ┈┊┼·"
"""The characters that the key may cover: empty cells, and faint lines of the grid."""
_SWATCH, _APART, _CLEAR = 2, 2, 3
"""The number of cells of a sample of the shading, of blanks between two entries of the key, and of cells on both sides
of the key that show nothing else. With one blank, the key and a distance's label would read as one sentence."""


def put_key(frame: PlotFrame, cells: list[list[Cell]], shaded: Collection[bool], theme: Palette, tinted: bool) -> bool:
    """Write the key of the shaded space into ``cells``: for each shading that is drawn, a sample and a word.

    The key stands in the first row with enough cells side by side that show nothing else, as far to the left as
    possible. ``shaded``: the shadings that are drawn, True for the better one. ``tinted``: as in ``canvas``: the
    shading is a colour and not only a character. Return False if nothing is shaded, or if the key has no room.
    """
    key: list[Cell] = []
    for better in sorted(shaded, reverse=True):
        sample = (TINTED_FILLS if tinted else FILLS)[better]
        key += [(" ", Style.null())] * (_APART if key else 0)
        key += [(sample, fill_style(theme, better))] * _SWATCH
        key += [(letter, plain_style(theme.dim, dim=True)) for letter in f" {_WORDS[better]}"]
    if not key:
        return False
    # A blank on both sides keeps the key apart from curves.
    need = len(key) + 2
    for row in cells:
        free = [text in _FAINT and style.bgcolor is None for text, style in row]
        for start in range(frame.columns - need + 1):
            if all(free[max(start + 1 - _CLEAR, 0) : start + need - 1 + _CLEAR]):
                row[start : start + need] = [(" ", Style.null()), *key, (" ", Style.null())]
                return True
    return False
