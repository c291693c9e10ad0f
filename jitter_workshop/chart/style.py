"""Choose the looks of curves in a terminal: colours and marks by theme, and the legend beside the canvas.

With colours, a curve's mark is a block that is drawn at the height of its value, and curves differ by colours that all
kinds of sight tell apart. Without colours, and in ASCII, each curve has a mark of its own shape. This module imports
Rich but not Textual, because the verb ``chart`` and the line-by-line workshop use it, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.style import Style
from rich.text import Text

from jitter_workshop.chart.marks import current, spelled
from jitter_workshop.model.curve import ROLES, PercentileCurve
from jitter_workshop.model.palette import MONO, PALETTES, Palette, blended
from jitter_workshop.model.text import LABEL, WORD, clean
from jitter_workshop.stats.curve import curve_value_at, numbers_of_curves
from jitter_workshop.stats.scale import nice_ns

ChartPoint = tuple[float, int]
"""A point on the chart that belongs to no curve: percentile (0..100) and ns."""
LegendFigure = tuple[str, str]
"""A figure of a curve in the legend: its name and its value."""


MARK_GLYPH = "×"
COMBINED, COMBINED_MARK = "◉", "⊗"
"""The sign for the signs of several curves in one cell, and the sign for a guess and those of curves in one cell. With
colours, several curves have a BLOCK in the colour of text."""
FILLS = {True: "░", False: "▒"}
"""The character that fills the space between two curves in a chart without colours. Key: True where the second curve is
better."""
TINTED_FILLS = {True: " ", False: "╱"}
"""The character that fills the space between two curves in a chart with colours. Key: True where the second curve is
better. The worse space is hatched, too, for people who see both tints as equal."""
_TINT, _HATCH = 0.82, 0.62
"""The share of the background colour that is mixed into the tint of a filled space, and into its hatching."""
_GLYPHS = ("●", "■", "◆", "▲", "▼", "★")
_REFERENCE_GLYPHS = ("○", "□", "◇", "△")
BLOCK, FLAT = "■", "▬"
"""The marks with colours: of a measured curve, and of a published or recorded one."""
_AT_HEIGHTS = {BLOCK: "▀■▄", FLAT: "▔▬▂"}
"""These marks in the upper part of a cell, in its middle, and in its lower part."""
_OFF_CENTER = {BLOCK: 0.125, FLAT: 0.25}
"""The share of a row from the centre of its cell from which a value has the mark in the upper or the lower part."""
SIGNS = frozenset((*_GLYPHS, *_REFERENCE_GLYPHS, BLOCK, FLAT))
"""The characters that distinguish curves."""
_QUIETER = 0.35
_WIDE_LEGEND = 60
_LEAST_LABEL = 18
"""The least number of columns for the label of a published curve, beside its origin and its figures."""
_LEAST_NAME = 10
"""The least number of columns for a name that stands on one line with figures."""
_OF_CHAPTER = " · "
"""The sign between the name of a run and the title of its chapter in a label."""
_VALUE = 7
"""The least number of columns for a value, so that a live value does not move those behind it."""
_GAP = 2
"""The number of blanks between two columns of the legend."""


@dataclass(frozen=True, slots=True)
class CurveLook:
    """Hold a curve's mark and the styles of its line and of its mark."""

    glyph: str
    line: Style
    point: Style


def theme_named(name: str) -> Palette:
    """Return the theme with this name; "dark" for an unknown name. With NO_COLOR, return the theme without colours."""
    if os.environ.get("NO_COLOR") or name == MONO.name:
        return MONO
    return PALETTES.get(name, PALETTES["dark"])


def in_blocks(theme: Palette) -> bool:
    """Return True if marks are blocks at the height of their value, and not characters of different shapes."""
    return bool(theme.good) and current() != "ascii"


def marks_told(theme: Palette, elsewhere: bool) -> str:
    """Return the words for the marks of curves of other machines, or of this session's runs, with the marks."""
    if in_blocks(theme):
        return f"flat marks ({FLAT})" if elsewhere else f"square marks ({BLOCK})"
    kind, glyphs = ("hollow", _REFERENCE_GLYPHS) if elsewhere else ("filled", _GLYPHS)
    first, second, *_ = glyphs
    return spelled(Text(f"{kind} marks ({first} {second})"), current()).plain


def combined_glyph(theme: Palette) -> str:
    """Return the mark that stands for those of several curves in one cell."""
    return BLOCK if in_blocks(theme) else COMBINED


def at_height(glyph: str, below: float) -> str:
    """Return the mark BLOCK or FLAT in the part of its cell that is nearest to its value. ``below``: by which share of
    a row the value is below the centre of the cell.

    A mark is then at most a quarter of a row away from its value, the distance of two dots of a curve.
    """
    far = _OFF_CENTER[glyph]
    return _AT_HEIGHTS[glyph][0 if below < -far else 2 if below > far else 1]


def plain_style(colour: str, *, dim: bool = False, bold: bool = False) -> Style:
    """Return a style of one colour. If ``colour`` is "" (a theme without colours), ``dim`` makes the style faint."""
    if colour:
        return Style(color=colour, bold=bold or None)
    return Style(dim=dim or None, bold=bold or None)


def fill_style(theme: Palette, better: bool) -> Style:
    """Return the style that fills the space between two curves.

    ``better``: True where the second curve is better. A theme has one colour for better and one for worse. The style is
    a tint of one of these two colours. In a theme without colours, both styles are faint. The two areas then differ by
    their characters (:data:`FILLS`).
    """
    colour = theme.good if better else theme.bad
    if not colour:
        return Style(dim=True)
    return Style(color=blended(colour, theme.background, _HATCH), bgcolor=blended(colour, theme.background, _TINT))


def looks(curves: Sequence[PercentileCurve], theme: Palette, highlight: int | None, crowd: int = 0) -> list[CurveLook]:
    """Return the look of each curve: its mark and styles.

    Measured and published curves have two separate lists of marks and colours. ``stats.curve.numbers_of_curves`` gives
    each curve its entry of its list. With colours, all measured curves have one mark, and all others another one. A
    recorded curve that has a role in the chapter keeps the mark of the others, and has the colour of this role.
    ``highlight``: the index of a curve to show bold; other curves fade. None: no curve fades. ``crowd``: the number of
    curves, from the first, that are faint and have no mark.
    """
    found: list[CurveLook] = []
    faint = plain_style(theme.references[-1], dim=True)
    found += [CurveLook(" ", faint, faint)] * min(crowd, len(curves))
    shown = curves[crowd:]
    for number, (curve, place) in enumerate(zip(shown, numbers_of_curves(shown), strict=True), crowd):
        glyphs, colours = (_REFERENCE_GLYPHS, theme.references) if curve.elsewhere else (_GLYPHS, theme.curves)
        glyph, colour = glyphs[place % len(glyphs)], colours[place % len(colours)]
        if in_blocks(theme):
            glyph = FLAT if curve.elsewhere else BLOCK
        # Without colours, only the brightness tells the lines of a pair apart.
        faint_line = (curve.elsewhere and curve.role is None) or (not colour and curve.role == "before")
        if curve.elsewhere and curve.role is not None:
            colour = theme.curves[ROLES.index(curve.role) % len(theme.curves)]
        bright = highlight == number
        back = highlight is not None and not bright
        seen = blended(colour, theme.background, _QUIETER) if back and colour and not faint_line else colour
        line = plain_style(seen, dim=back or faint_line, bold=bright)
        found.append(CurveLook(glyph, line, plain_style(seen, dim=back, bold=not back)))
    return found


def legend_lines(
    curves: Sequence[PercentileCurve],
    *,
    theme: str = "dark",
    highlight: int | None = None,
    marks: Sequence[ChartPoint] = (),
    width: int = 80,
    asked: float = 99.9,
    most: int | None = None,
    doubts: Sequence[Mapping[float, str]] = (),
) -> list[Text]:
    """Return the lines of a chart's legend: an entry for each curve, then the guesses ``marks``.

    An entry shows the curve's mark, label, p50, percentile ``asked`` and maximum. A value that the samples cannot give
    is ``–``. No line is wider than ``width`` columns. If the entries need more than ``most`` lines, they show only mark
    and label, several on a line. ``doubts``: for each curve, percentile → the sign in front of its value, such as
    ``~`` for few stalls.
    """
    style = theme_named(theme)
    every = looks(curves, style, highlight)
    wide = width >= _WIDE_LEGEND
    heads = _columns([name for name, _ in names(asked)], width)
    dim = plain_style(style.dim, dim=True)
    figures = _padded(
        [_figures(curve, asked, signs) for curve, signs in zip(curves, [*doubts, *[{}] * len(curves)], strict=False)]
    )
    # Heads alone would read as part of the axis above, so they stand there only if a figure has no room for its name.
    named = all(_all_columns(one) <= width for one in figures)
    lines = [] if named else [Text(heads, dim, no_wrap=True, end="")]
    # A label gets a line of its own before it is cut, if there are lines for all curves.
    apart = most is not None and 2 * len(curves) + len(marks) <= most
    wide = wide and not (apart and any(len(c.label) > _room(width, f) for c, f in zip(curves, figures, strict=True)))
    for number, (curve, look) in enumerate(zip(curves, every, strict=True)):
        made = _wide_line if wide and _fits(curve, width, figures[number]) else _narrow_lines
        lines += made(curve, look, style, width, number == highlight, figures[number])
    long = any(len(c.label) > _room(width, f) for c, f in zip(curves, figures, strict=True))
    full = most is not None and len(lines) + len(marks) > most >= len(curves) + len(marks)
    if full or (most is not None and wide and long):
        lines = _one_line_each(curves, every, style, width, highlight, figures) or lines
    if most is not None and len(lines) + len(marks) > most:
        each = -(-len(curves) // max(most - len(marks), 1)) or 1
        room = max((width + _GAP) // each - _GAP, 1)
        labels = [
            _narrow_lines(curve, look, style, room, number == highlight, figures[number])[0]
            for number, (curve, look) in enumerate(zip(curves, every, strict=True))
        ]
        lines = [_beside(labels[at : at + each], room) for at in range(0, len(labels), each)]
    for percentile, value_ns in marks:
        line = Text(no_wrap=True, end="")
        line.append(MARK_GLYPH, plain_style(style.mark, bold=True))
        line.append(" your guess  ", plain_style(style.text))
        line.append(f"p{percentile:g} ", dim)
        line.append(nice_ns(value_ns), plain_style(style.text))
        lines.append(line)
    for line in lines:
        line.truncate(max(width, 1), overflow="ellipsis")
        spelled(line, current())
    return lines


def _one_line_each(
    curves: Sequence[PercentileCurve],
    every: Sequence[CurveLook],
    theme: Palette,
    width: int,
    highlight: int | None,
    figures: Sequence[Sequence[LegendFigure]],
) -> list[Text]:
    """Return a line for each curve. If a name does not fit, all lines leave out the maximum; if it still does not fit,
    it is cut. Return [] if a name would get fewer than _LEAST_NAME columns."""
    shorter = [one[:-1] for one in figures]
    longest = max((len(one.label) + (len(one.origin) + 2 if one.origin else 0) for one in curves), default=0)
    shown = figures if all(longest <= _room(width, one) for one in figures) else shorter
    if any(width - _GAP - _all_columns(one) < _LEAST_NAME for one in shown):
        return []
    lines = []
    for number, (curve, look) in enumerate(zip(curves, every, strict=True)):
        lines += _wide_line(curve, look, theme, width, number == highlight, shown[number])
    return lines


def _beside(named: Sequence[Text], room: int) -> Text:
    """Return one line with the labels ``named`` side by side. Each label gets ``room`` columns, and a longer label is
    cut."""
    line = Text(no_wrap=True, end="")
    for number, name in enumerate(named):
        if number:
            line.append(" " * (number * (room + _GAP) - line.cell_len))
        name.truncate(room, overflow="ellipsis")
        line.append_text(name)
    return line


def names(asked: float) -> tuple[tuple[str, float | None], ...]:
    """Return (name, percentile) for each of the three values in a legend entry. The maximum has the percentile None.
    The first value is always p50. The second is the percentile ``asked``, or p99.9 if ``asked`` is 50.
    """
    further = 99.9 if asked == 50 else asked
    return ("p50", 50.0), (f"p{further:.10g}", further), ("max", None)


def _figures(curve: PercentileCurve, asked: float, doubts: Mapping[float, str]) -> list[LegendFigure]:
    """Return (name, value) of each figure of a curve. ``doubts``: percentile → the sign in front of its value."""
    # If the count of a curve is not known, its last point need not be the greatest.
    last = curve.points[-1].value_ns if curve.points and curve.count else None
    values = [(name, p, last if p is None else curve_value_at(curve, p)) for name, p in names(asked)]
    return [(name, ("" if p is None or v is None else doubts.get(p, "")) + nice_ns(v)) for name, p, v in values]


def _padded(figures: Sequence[Sequence[LegendFigure]]) -> list[list[LegendFigure]]:
    """Return the figures of all curves with values that are equally wide in each column, so that they are aligned."""
    wide = [max(_VALUE, *(len(value) for _, value in column)) for column in zip(*figures, strict=True)]
    return [[(name, f"{value:<{n}}") for (name, value), n in zip(one, wide, strict=True)] for one in figures]


def _all_columns(figures: Sequence[LegendFigure]) -> int:
    """Return the columns of a curve's figures with their names, behind the two columns of the curve's mark. The last
    value may be shorter than its column."""
    return 2 + _GAP * (len(figures) - 1) + sum(len(name) + 1 + len(value) for name, value in figures)


def _room(width: int, figures: Sequence[LegendFigure]) -> int:
    """Return the columns that a legend line of ``width`` columns leaves for the curve's label. The line also shows the
    curve's three values. The result is at least 8."""
    return max(width - _GAP - _all_columns(figures), 8)


def _fits(curve: PercentileCurve, width: int, figures: Sequence[LegendFigure]) -> bool:
    """Return True if a curve's legend entry fits on one line of ``width`` columns. A measured curve always fits,
    because its label may be cut, unless the label names a chapter: this has a line of its own. A published curve needs
    room for its origin and its label. For the label, 18 columns are enough.
    """
    if _OF_CHAPTER in curve.label and len(curve.label) > _room(width, figures):
        return False
    return not curve.origin or min(len(curve.label), _LEAST_LABEL) + len(curve.origin) + 2 <= _room(width, figures)


def _wide_line(
    curve: PercentileCurve,
    look: CurveLook,
    theme: Palette,
    width: int,
    bright: bool,
    figures: Sequence[LegendFigure],
) -> list[Text]:
    dim = plain_style(theme.dim, dim=True)
    line = Text(no_wrap=True, end="")
    line.append(f"{look.glyph} ", look.point)
    # The origin keeps its room, so that a published curve is never taken for one that was measured here.
    origin = f"  {clean(curve.origin, WORD)}" if curve.origin else ""
    room = _room(width, figures)
    name = Text(clean(curve.label, max(room - len(origin), 4)), plain_style(theme.text, bold=bright))
    name.append(origin, dim)
    name.truncate(room, overflow="ellipsis", pad=True)
    line.append_text(name)
    for head, value in figures:
        line.append(f"{'':{_GAP}}{head} ", dim)
        line.append(value, plain_style(theme.text, bold=bright))
    line.rstrip()
    return [line]


def _narrow_lines(
    curve: PercentileCurve,
    look: CurveLook,
    theme: Palette,
    width: int,
    bright: bool,
    figures: Sequence[LegendFigure],
) -> list[Text]:
    dim = plain_style(theme.dim, dim=True)
    first = Text(no_wrap=True, end="")
    first.append(f"{look.glyph} ", look.point)
    label, more = clean(curve.label, LABEL), ""
    if len(label) > width - 2:
        # The name of a run and that of its chapter are rather on two lines than cut.
        label, _, more = label.partition(_OF_CHAPTER)
    first.append(clean(label, max(width - 2, 4)), plain_style(theme.text, bold=bright))
    if curve.origin and first.cell_len + len(curve.origin) + 2 <= width:
        first.append(f"  {clean(curve.origin, WORD)}", dim)
    if _all_columns(figures) <= width:
        second = Text("  ", end="")
        for number, (head, value) in enumerate(figures):
            second.append(f"{'':{_GAP if number else 0}}{head} ", dim)
            second.append(value, plain_style(theme.text))
    else:
        second = Text(_columns([value.rstrip() for _, value in figures], width), plain_style(theme.text), end="")
    second.rstrip()
    return [first, *([Text(f"  {clean(more, max(width - 2, 4))}", dim, end="")] if more else []), second]


def _columns(cells: Sequence[str], width: int) -> str:
    each = max(min((width - 2) // max(len(cells), 1), 11), 1)
    return "  " + "".join(f"{cell:<{each}}" for cell in cells).rstrip()
