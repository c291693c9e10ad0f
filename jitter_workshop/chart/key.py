"""Say in a chart's legend, or inside of the chart, what the shaded space between two curves means, and what a combined
sign means."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.axes import Cell, PlotFrame
from jitter_workshop.chart.marks import current, spelled
from jitter_workshop.chart.style import (
    FILLS,
    MARK_GLYPH,
    SIGNS,
    TINTED_FILLS,
    CurveLook,
    combined_glyph,
    fill_style,
    plain_style,
)
from jitter_workshop.model.palette import Palette

_WORDS = {True: "second run better", False: "second run worse"}
"""The meaning of a shaded space. Key: True where the second curve is better, that is lower."""
_SHORT = {True: "better", False: "worse"}
"""The same in one word: behind the words on another shading, and where the words have no room."""
_FAINT = " ┈┊┼·"
"""The characters that the key may cover: empty cells, and faint lines of the grid."""
_ROOM = re.compile(" {2,}")
"""Blanks in a line of a legend. One blank is inside of a name or a figure."""
_BOTH = 2
_NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
_FORMS = ((2, False), (1, False), (2, True), (1, True))
"""The forms of the key, the preferred one first: the cells of a sample, and True for one word instead of words."""
_APART, _CLEAR = 2, 3
"""The number of blanks between two entries of the key, and of cells on both sides
of the key that show nothing else. With one blank, the key and a distance's label would read as one sentence."""


def key_texts(shaded: Collection[bool], theme: Palette, tinted: bool) -> list[Text]:
    """Return the key of the shaded space as text, wider forms first; [] if nothing is shaded. ``shaded``, ``tinted``:
    as in :func:`put_key`."""
    found = []
    for swatch, short in _FORMS if shaded else ():
        text = Text(no_wrap=True, end="")
        for sign, style in _key(shaded, theme, tinted, swatch, short=short):
            text.append(sign, style)
        found.append(text)
    return found


def combined_text(combined: Collection[Sequence[int]], every: Sequence[CurveLook], curves: int, theme: Palette) -> Text:
    """Return the key of combined signs as text: the curves for which all of them stand, or the numbers of curves.

    ``combined``: the indices of each combined sign's curves. ``every``: the look of each curve. ``curves``: how many
    curves of the chart have signs.
    """
    groups = sorted(set(map(tuple, combined)))
    numbers = sorted({len(group) for group in groups})
    dim = plain_style(theme.dim, dim=True)
    text = Text(no_wrap=True, end="").append(f"{combined_glyph(theme)} ", plain_style(theme.text, bold=True))
    if len(groups) == 1 and numbers[0] < curves:
        *others, last = [every[at] for at in groups[0]]
        for look in others:
            text.append(f"{look.glyph} ", look.point)
        return text.append("and ", dim).append(last.glyph, last.point)
    if numbers in ([], [curves]):
        return text.append("both curves" if curves == _BOTH else f"all {nice_count(curves)} curves", dim)
    return text.append(f"{' or '.join(map(nice_count, numbers))} curves", dim)


def nice_count(number: int) -> str:
    return _NUMBERS.get(number, str(number))


def put_in_legend(legend: list[Text], second: int, keys: Sequence[Text], width: int) -> bool:
    """Write the key of the shaded space into a legend: behind the name of the second curve, or else at the end of a
    line below it that is not one of a curve, such as that of a guess, or else behind the name of an earlier curve.
    Return False if no line has room.

    ``legend``: the lines, which are changed. ``second``: the number of the second curve in the legend, from 0 on.
    ``keys``: the forms of the key, the preferred one first. ``width``: the columns of a line.
    """
    signs = {spelled(Text(sign), current()).plain for sign in SIGNS}
    entries = [number for number, line in enumerate(legend) if line.plain[:1] in signs]
    if second >= len(entries):
        return False
    at = entries[second]
    below = [n for n in range(at + 1, len(legend)) if legend[n].plain[:1] in (" ", MARK_GLYPH)]
    # A line with the names of several curves has no place that belongs to one of them.
    alone = [n for n in range(at, -1, -1) if not any(f"  {sign} " in legend[n].plain for sign in signs)]
    for number in [*alone[:1], *below, *alone[1:]] if at in alone else below:
        line = legend[number]
        rooms = [found.span() for found in _ROOM.finditer(line.plain.ljust(width))]
        for key in keys:
            # The end of a line needs no blank behind the key.
            fits = ((a, b) for a, b in rooms if b - a >= _APART + key.cell_len + (b < width))
            if (room := next(fits, None)) is not None:
                parts = line[: room[0]], " " * _APART, key, line[room[0] + _APART + key.cell_len :]
                legend[number] = Text.assemble(*parts, no_wrap=True, end="")
                return True
    return False


def _key(shaded: Collection[bool], theme: Palette, tinted: bool, swatch: int, *, short: bool = False) -> list[Cell]:
    """Return the cells of the key: for each shading, a sample of ``swatch`` cells and words, or one ``short`` word."""
    key: list[Cell] = []
    for better in sorted(shaded, reverse=True):
        word = (_SHORT if key or short else _WORDS)[better]
        sample = (TINTED_FILLS if tinted else FILLS)[better]
        key += [(" ", Style.null())] * (_APART if key else 0)
        key += [(sample, fill_style(theme, better))] * swatch
        key += [(letter, plain_style(theme.dim, dim=True)) for letter in f" {word}"]
    return key


def put_key(
    frame: PlotFrame,
    cells: list[list[Cell]],
    shaded: Collection[bool],
    theme: Palette,
    tinted: bool,
    ticked: Collection[int] = (),
) -> bool:
    """Write the key of the shaded space into ``cells``: for each shading that is drawn, a sample and a word.

    The key stands in the first row with enough cells side by side that show nothing else, as far to the left as
    possible. Rows beside a label of the y axis, ``ticked``, come last, and there the key stands as far to the right as
    possible, so that it does not read as a value. ``shaded``: the shadings that are drawn, True for the better one.
    ``tinted``: as in ``canvas``: the shading is a colour and not only a character. Return False if nothing is shaded,
    or if the key has no room.
    """
    forms = (_key(shaded, theme, tinted, swatch, short=short) for swatch, short in _FORMS)
    return any(_put_cells(frame, cells, key, ticked) for key in forms)


def put_combined(frame: PlotFrame, cells: list[list[Cell]], words: Text, ticked: Collection[int] = ()) -> bool:
    """Write the key of a combined sign, ``words``, into ``cells``, at a place as of :func:`put_key`."""
    styles = [
        next(iter(span.style for span in words.spans if span.start <= at < span.end), Style.null())
        for at in range(len(words.plain))
    ]
    key = [(letter, style) for letter, style in zip(words.plain, styles, strict=True) if isinstance(style, Style)]
    return _put_cells(frame, cells, key, ticked)


def _put_cells(frame: PlotFrame, cells: list[list[Cell]], key: Sequence[Cell], ticked: Collection[int]) -> bool:
    """Write the cells of a key into a row of ``cells`` as :func:`put_key` chooses it."""
    if not key:
        return False
    # A blank on both sides keeps the key apart from curves.
    need = len(key) + 2
    for number in sorted(range(len(cells)), key=lambda row: row in ticked):
        row = cells[number]
        free = [text in _FAINT and style.bgcolor is None for text, style in row]
        starts = range(frame.columns - need + 1)
        for start in reversed(starts) if number in ticked else starts:
            if all(free[max(start + 1 - _CLEAR, 0) : start + need - 1 + _CLEAR]):
                row[start : start + need] = [(" ", Style.null()), *key, (" ", Style.null())]
                return True
    return False
