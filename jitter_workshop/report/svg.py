"""The chart as a picture: one self-contained SVG, light or dark as the reader's system is, with no script in it.

Axes, ticks and ranges are those of ``stats.scale``, so that it shows what the terminal shows. Curves differ by colour
and by the mark on them; solid where at least ten samples lie beyond, dotted where not; published curves are grey, thin
and named as published. What others chose (labels) is cleaned and escaped.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from xml.sax.saxutils import escape

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.text import clean
from jitter_workshop.stats import scale
from jitter_workshop.stats.curve import value_at
from jitter_workshop.stats.view import Point, View, percentiles

WIDTH = 960
_PLOT_HEIGHT = 440
_LEFT, _RIGHT, _TOP = 84, 28, 56
_AXIS_ROOM = 64
_LEGEND_LINE = 26

_LIGHT = ("#1b5e9e", "#b06a00", "#23713a", "#6741a0", "#b3261e", "#00706a")
_DARK = ("#7db7e8", "#e5b567", "#86c793", "#c4b5f0", "#ec8a7e", "#6fd0c5")
_LIGHT_REFERENCES = ("#6f7885", "#868e99", "#9aa1ab")
_DARK_REFERENCES = ("#98a2b3", "#7d8798", "#677183")

_STYLE = """
svg { --paper: #fbfaf7; --ink: #22272f; --dim: #5c6878; --grid: #e2dfd7; }
@media (prefers-color-scheme: dark) { svg { --paper: #12161c; --ink: #d6dde8; --dim: #8f9bad; --grid: #262e39; } }
.paper { fill: var(--paper); }
text { font: 14px system-ui, sans-serif; fill: var(--ink); }
.figure { font-variant-numeric: tabular-nums; text-anchor: end; }
.title { font-size: 18px; font-weight: 600; }
.dim { fill: var(--dim); }
.grid { stroke: var(--grid); stroke-width: 1; }
.axis { stroke: var(--dim); stroke-width: 1; }
.line { fill: none; stroke-width: 2.25; stroke-linejoin: round; stroke-linecap: round; }
.few { stroke-dasharray: 0.1 6; }
.reference { stroke-width: 1.5; }
.mark { stroke-width: 1.5; }
"""


def render_svg(curves: Sequence[PercentileCurve], title: str = "", view: View | None = None) -> str:
    """The curves as SVG text: chart, axis labels, and a legend with p50, p99.9 and maximum. ``view``: what to show of
    the curves, one path a curve; None = value by percentile."""
    view = percentiles(curves) if view is None else view
    title = title or view.title
    bottom = _TOP + _PLOT_HEIGHT
    height = bottom + _AXIS_ROOM + _LEGEND_LINE * (len(curves) + 1) + 8
    names = _classes(curves)
    plot = _Plot(view)
    named = "; ".join(f"{_label(c)}{' (' + clean(c.origin, 30) + ')' if c.origin else ''}" for c in curves)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-labelledby="title description">',
        f'<title id="title">{_text(title)}</title>',
        f'<desc id="description">{view.y_name.capitalize()} by {view.x_name}, both axes logarithmic: '
        f"{_text(named, 2_000)}</desc>",
        f"<style>{_STYLE}{_colours(names)}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_LEFT}" y="32">{_text(title)}</text>',
        *_axes(plot, bottom),
        *itertools.chain.from_iterable(
            _curve(plot, i, c, n) for i, (c, n) in enumerate(zip(curves, names, strict=True))
        ),
        *_legend(curves, names, bottom + _AXIS_ROOM),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Plot:
    """From a view's points to the picture's coordinates."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.ranges = view.ranges

    def x(self, position: float) -> float:
        share = (position - self.ranges.x_low) / (self.ranges.x_high - self.ranges.x_low)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def y(self, position: float) -> float:
        share = (self.ranges.y_high - position) / (self.ranges.y_high - self.ranges.y_low)
        return _TOP + share * _PLOT_HEIGHT

    def path(self, number: int) -> list[Point]:
        """A curve's points."""
        return [(self.x(x), self.y(y)) for x, y in self.view.paths[number]]


def _classes(curves: Sequence[PercentileCurve]) -> list[str]:
    """A class a curve: ``c0``, ``c1``, … for measured ones, ``r0``, … for published ones."""
    measured, published = itertools.count(), itertools.count()
    return [f"r{next(published)}" if c.origin else f"c{next(measured)}" for c in curves]


def _colours(names: Sequence[str]) -> str:
    def rules(own: Sequence[str], reference: Sequence[str]) -> str:
        found = []
        for name in names:
            colours = reference if name[0] == "r" else own
            colour = colours[int(name[1:]) % len(colours)]
            found.append(f".{name} {{ stroke: {colour}; }} .{name}.mark {{ fill: {_fill(name, colour)}; }}")
        return "\n".join(found)

    dark = rules(_DARK, _DARK_REFERENCES)
    return f"{rules(_LIGHT, _LIGHT_REFERENCES)}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _fill(name: str, colour: str) -> str:
    return "var(--paper)" if name[0] == "r" else colour


def _axes(plot: _Plot, bottom: int) -> list[str]:
    right = WIDTH - _RIGHT
    parts = []
    for tick in scale.ticks(plot.view.y, plot.ranges.y_low, plot.ranges.y_high):
        y = f"{plot.y(tick.position):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="dim figure" x="{_LEFT - 10}" y="{y}" dy="0.35em">{tick.label}</text>')
    for tick in scale.ticks(plot.view.x, plot.ranges.x_low, plot.ranges.x_high):
        x = f"{plot.x(tick.position):.1f}"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(f'<text class="dim" text-anchor="middle" x="{x}" y="{bottom + 20}">{tick.label}</text>')
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    parts.append(f'<line class="axis" x1="{_LEFT}" x2="{_LEFT}" y1="{_TOP}" y2="{bottom}"/>')
    middle = (_LEFT + right) / 2
    parts.append(f'<text class="dim" text-anchor="middle" x="{middle}" y="{bottom + 42}">{plot.view.x_name}</text>')
    middle_y = f"{_TOP + _PLOT_HEIGHT / 2:.0f}"
    turned = f'x="18" y="{middle_y}" transform="rotate(-90 18 {middle_y})"'
    parts.append(f'<text class="dim" text-anchor="middle" {turned}>{plot.view.y_name}</text>')
    return parts


def _curve(plot: _Plot, number: int, curve: PercentileCurve, name: str) -> list[str]:
    """The line, solid then dotted, and a few marks on it."""
    points, solid = plot.path(number), plot.view.solid[number]
    if not points:
        return []
    kind = f"line {name}" + (" reference" if curve.origin else "")
    parts = []
    for some, few in ((points[:solid], ""), (points[max(solid - 1, 0) :], " few")):
        if len(some) > 1:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in some)
            parts.append(f'<polyline class="{kind}{few}" points="{path}"/>')
    for x, y in _stations(plot, points, int(name[1:])):
        parts.append(_mark(name, x, y))
    return parts


def _stations(plot: _Plot, points: Sequence[Point], place: int) -> list[Point]:
    """Where a curve shows its mark: at its end, and about every decade, staggered from curve to curve."""
    found = [points[-1]]
    low = plot.ranges.x_low
    wanted = plot.x(low + 0.25 + (place % 5) * 0.17)
    for x, y in points:
        if x >= wanted and found[0][0] - x > 12:
            found.append((x, y))
            wanted = x + plot.x(low + 1.0) - _LEFT
    return found


def _mark(name: str, x: float, y: float) -> str:
    number = int(name[1:]) % 4
    where = f'class="mark {name}"'
    if number == 0:
        return f'<circle {where} cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
    if number == 1:
        return f'<rect {where} x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    sides = {2: ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)), 3: ((0, -5), (5, 4), (-5, 4))}[number]
    return f'<polygon {where} points="{" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in sides)}"/>'


def _legend(curves: Sequence[PercentileCurve], names: Sequence[str], top: int) -> list[str]:
    columns = [("p50", 640.0, 50.0), ("p99.9", 770.0, 99.9), ("max", 900.0, None)]
    parts = [f'<text class="dim figure" x="{x:.0f}" y="{top + 16}">{head}</text>' for head, x, _ in columns]
    for number, (curve, name) in enumerate(zip(curves, names, strict=True), start=1):
        y = top + 16 + number * _LEGEND_LINE
        kind = f"line {name}" + (" reference" if curve.origin else "")
        parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_LEFT + 30}" y1="{y - 5}" y2="{y - 5}"/>')
        parts.append(_mark(name, _LEFT + 15, y - 5))
        origin = f' <tspan class="dim">{_text(curve.origin, 30)}</tspan>' if curve.origin else ""
        parts.append(f'<text x="{_LEFT + 42}" y="{y}">{_text(_label(curve))}{origin}</text>')
        for _, x, percentile in columns:
            known = curve.points[-1].value_ns if curve.points else None
            value = known if percentile is None else value_at(curve, percentile)
            parts.append(f'<text class="figure" x="{x:.0f}" y="{y}">{scale.nice_ns(value)}</text>')
    return parts


def _label(curve: PercentileCurve) -> str:
    return clean(curve.label, 48) or "run"


def _text(text: str, limit: int = 80) -> str:
    return escape(clean(text, limit))
