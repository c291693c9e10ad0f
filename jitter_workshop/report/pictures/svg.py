"""Draw a chart as one self-contained SVG without a script.

The shapes come from ``report.pictures.drawing``. By default, the chart is light or dark like the reader's system. Each
id and each CSS rule contains the chart's own name (``scope``). So several charts in a page do not affect each other,
nor the rest of the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.palette import PALETTES, Palette
from jitter_workshop.report.pictures import drawing
from jitter_workshop.report.pictures.drawing import (
    WIDTH,
    Area,
    ChartSeries,
    CurveMark,
    DrawnShape,
    Rule,
    Stroke,
    Theme,
    Tiles,
    Words,
    colour_of,
)
from jitter_workshop.stats.heat import Heat
from jitter_workshop.stats.view import CurveView

_SCOPE = re.compile(r"[a-z][a-z0-9-]*")

_STYLE = f"""
.paper {{ fill: var(--paper); }}
text {{ font: {drawing.TEXT_PX}px system-ui, sans-serif; fill: var(--ink); }}
.figure {{ font-variant-numeric: tabular-nums; }}
.title {{ font-size: {drawing.TITLE_PX}px; font-weight: 600; }}
.dim {{ fill: var(--dim); }}
.grid {{ stroke: var(--grid); stroke-width: {drawing.RULE_PX}; }}
.axis {{ stroke: var(--dim); stroke-width: {drawing.RULE_PX}; }}
.line {{ fill: none; stroke-width: {drawing.CURVE_PX}; stroke-linejoin: round; stroke-linecap: round; }}
.few {{ stroke-dasharray: 0.1 {drawing.DOTS_PX - 0.1:.0f}; }}
.reference {{ stroke-width: {drawing.REFERENCE_PX}; }}
.area {{ stroke: none; fill-opacity: {drawing.FILL_SHARE}; }}
.better {{ fill: var(--good); }}
.worse {{ fill: var(--bad); }}
.mark {{ stroke-width: {drawing.MARK_PX}; }}
"""


def render_svg(
    curves: Sequence[PercentileCurve],
    title: str = "",
    view: CurveView | None = None,
    *,
    scope: str = "chart",
    theme: Theme | None = None,
    between: tuple[int, int] | None = None,
) -> str:
    """Return a chart of curves as SVG text.

    The chart has axes, labels, and a legend with p50, p99.9 and maximum. ``view``: the axes, and one path for each
    curve; None shows latency by percentile. ``scope``: the chart's id, which must be unique in its page. ``theme``:
    light or dark; None follows the reader's system, and is light on paper. ``between``: the indices of the curves
    before and after a change. The chart fills the space between these two curves. Raise ValueError if ``scope`` is not
    a word of lower-case letters, digits and dashes.
    """
    return _written(drawing.picture(curves, title, view, between), scope, theme)


def render_heat_svg(heat: Heat, title: str = "", *, scope: str = "heat", theme: Theme | None = None) -> str:
    """Return the heat map of a run as SVG text. ``scope``, ``theme`` and the errors are those of :func:`render_svg`."""
    return _written(drawing.heat_picture(heat, title), scope, theme)


def render_matrix_svg(matrix: Matrix, title: str = "", *, scope: str = "matrix", theme: Theme | None = None) -> str:
    """Return a matrix of cache-line times as SVG text. ``scope``, ``theme`` and the errors are those of
    :func:`render_svg`."""
    return _written(drawing.matrix_picture(matrix, title), scope, theme)


def _written(drawn: drawing.Picture, scope: str, theme: Theme | None) -> str:
    if not _SCOPE.fullmatch(scope):
        raise ValueError(f"a picture's scope is lower-case letters, digits and dashes, not {scope!r}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{scope}" viewBox="0 0 {WIDTH} {drawn.height}" width="{WIDTH}" '
        f'height="{drawn.height}" role="img" aria-labelledby="{scope}-title {scope}-description">',
        f'<title id="{scope}-title">{escape(drawn.title)}</title>',
        f'<desc id="{scope}-description">{escape(drawn.description)}</desc>',
        f"<style>{_style(scope, drawn, theme)}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{drawn.height}"/>',
        *map(_element, drawn.shapes),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style(scope: str, drawn: drawing.Picture, theme: Theme | None) -> str:
    own = "\n".join(f"#{scope} {rule}" if rule else "" for rule in _STYLE.split("\n"))
    if theme is not None:
        return own + _colours(scope, drawn, PALETTES[theme])
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_colours(scope, drawn, PALETTES['dark'])}}}\n"
    return own + _colours(scope, drawn, PALETTES["light"]) + dark


def _colours(scope: str, drawn: drawing.Picture, palette: Palette) -> str:
    p = palette
    rules = [
        f"#{scope} {{ --paper: {p.background}; --ink: {p.text}; --dim: {p.dim}; --grid: {p.fine_grid}; "
        f"--good: {p.good}; --bad: {p.bad}; }}"
    ]
    for shade in sorted({shape.level for shape in drawn.shapes if isinstance(shape, Tiles)}):
        rules.append(f"#{scope} .h{shade} {{ fill: {drawing.heat_colour(p, shade)}; }}")
    for one in drawn.series:
        name, colour = f"#{scope} .{_class(one)}", colour_of(palette, one)
        fill = "var(--paper)" if one.reference else colour
        rules.append(f"{name} {{ stroke: {colour}; }} {name}.mark {{ fill: {fill}; }}")
    return "\n".join(rules) + "\n"


def _class(series: ChartSeries) -> str:
    """Return the CSS class of a curve: ``c0``, ``c1``, … for measured curves, ``r0``, ``r1``, … for published
    curves."""
    return f"{'r' if series.reference else 'c'}{series.number}"


def _element(shape: DrawnShape) -> str:
    if isinstance(shape, Rule):
        kind = "axis" if shape.axis else "grid"
        return f'<line class="{kind}" x1="{shape.x1:.1f}" x2="{shape.x2:.1f}" y1="{shape.y1:.1f}" y2="{shape.y2:.1f}"/>'
    if isinstance(shape, Words):
        return _text(shape)
    if isinstance(shape, Area):
        return f'<polygon class="area {"better" if shape.better else "worse"}" points="{_points(shape.outline)}"/>'
    if isinstance(shape, Tiles):
        tiles = "".join(f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in shape.cells)
        return f'<path class="h{shape.level}" d="{tiles}"/>'
    return _stroke(shape) if isinstance(shape, Stroke) else _mark(shape)


def _text(words: Words) -> str:
    classes = " ".join(filter(None, ("" if words.role == "plain" else words.role, "figure" if words.figure else "")))
    where = f'x="{words.x:.1f}" y="{words.y:.1f}"'
    if words.turned:
        where += f' transform="rotate(-90 {words.x:.1f} {words.y:.1f})"'
    if words.anchor != "start":
        where += f' text-anchor="{words.anchor}"'
    tail = f' <tspan class="dim">{escape(words.tail)}</tspan>' if words.tail else ""
    kind = f'class="{classes}" ' if classes else ""
    return f"<text {kind}{where}>{escape(words.text)}{tail}</text>"


def _stroke(stroke: Stroke) -> str:
    classes = f"line {_class(stroke.series)}"
    classes += (" reference" if stroke.series.reference else "") + (" few" if stroke.few else "")
    if stroke.sample:
        (x1, y1), (x2, y2) = stroke.points
        return f'<line class="{classes}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'
    return f'<polyline class="{classes}" points="{_points(stroke.points)}"/>'


def _mark(mark: CurveMark) -> str:
    where = f'class="mark {_class(mark.series)}"'
    if not mark.outline:
        return f'<circle {where} cx="{mark.x:.1f}" cy="{mark.y:.1f}" r="{drawing.CIRCLE_PX}"/>'
    return f'<polygon {where} points="{_points(mark.outline)}"/>'


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
