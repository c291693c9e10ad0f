"""Draw the small pictures of an HTML report as SVG.

The pictures are: a verdict's interval, the axis of such intervals, a bar, and a stall's timeline. The page's style
sheet sets the colours. Screen readers skip the pictures, because the text beside each picture says the same.
"""

from __future__ import annotations

from jitter_workshop.model.evidence import ExplainedStall
from jitter_workshop.model.palette import CAUSES
from jitter_workshop.model.screening import Ranked
from jitter_workshop.model.verdict import Verdict
from jitter_workshop.stats import interval_plot
from jitter_workshop.stats.interval_plot import Axis

SHADES = 4
"""The number of a stall's causes that get a colour of their own."""
REST = "cause-rest"
"""The CSS class of the part of a stall that belongs to none of its coloured causes."""
_STRIP, _STRIP_HEIGHT, _EDGE = 260, 26, 10
"""The width and height of an interval's picture, and the width that stays free at each of its ends, in pixels."""
_BAR = 160
_TIMELINE, _TIMELINE_HEIGHT = 640, 18
_MOST_PIECES = 400


def ratio_picture(verdict: Verdict | Ranked, axis: Axis) -> str:
    """Return a picture of the interval of a ratio. The picture also marks the ratio 1, and the band around this ratio
    that counts as no change. Return "" if the interval contains every ratio.
    """
    drawn = interval_plot.strip(verdict, axis)
    if drawn is None:
        return ""
    middle, high = _STRIP_HEIGHT / 2, _STRIP_HEIGHT
    (left, right), one = map(_x, axis.band), _x(axis.position(1.0))
    start, end = _x(drawn.low), _x(drawn.high)
    parts = [
        f'<rect class="strip-band" x="{left}" y="0" width="{right - left:.1f}" height="{high}"/>',
        f'<line class="strip-one" x1="{one}" x2="{one}" y1="0" y2="{high}"/>',
        f'<line class="strip-line" x1="{start}" x2="{end}" y1="{middle}" y2="{middle}"/>',
    ]
    for x, goes_on, way in ((start, drawn.below, -1), (end, drawn.above, 1)):
        if goes_on:
            tip = f"{x + 7 * way:.1f},{middle} {x},{middle - 5} {x},{middle + 5}"
            parts.append(f'<polygon class="strip-tip" points="{tip}"/>')
        else:
            parts.append(f'<line class="strip-line" x1="{x}" x2="{x}" y1="{middle - 5}" y2="{middle + 5}"/>')
    if drawn.ratio is not None:
        parts.append(f'<circle class="strip-dot" cx="{_x(drawn.ratio)}" cy="{middle}" r="4.5"/>')
    return _picture(f"strip {verdict.verdict.replace('_', '-')}", _STRIP, high, parts)


def interval_axis(axis: Axis) -> str:
    """Return the labels of the axis that the intervals of a table share, as a picture."""
    parts = [
        f'<text x="{_x(place)}" y="12" text-anchor="{anchor}">{label}</text>'
        for (place, label), anchor in zip(axis.ticks, ("start", "middle", "end"), strict=True)
    ]
    return _picture("strip strip-axis", _STRIP, 16, parts)


def bar_picture(share: float) -> str:
    """Return the picture of a bar. ``share``: its length as a share of the longest bar's length, 0 to 1."""
    wide = max(round(_BAR * min(max(share, 0.0), 1.0), 1), 1.0)
    return _picture("bars", _BAR, 14, [f'<rect class="bar" x="0" y="1" width="{wide}" height="12"/>'])


def cause_styles(stall: ExplainedStall) -> list[str]:
    """Return the CSS classes of a stall's largest causes, the largest cause first. A kind of cause has the same colour
    as on the screen. If two causes are of the same kind, the second one has a paler colour.
    """
    styles: list[str] = []
    for part in stall.parts[:SHADES]:
        style = CAUSES[part.kind].replace("_", "-") if part.kind in CAUSES else REST
        before = sum(one.split()[0] == style for one in styles)
        styles.append(f"{style} pale-{before}" if before and style != REST else style)
    return styles


def timeline(stall: ExplainedStall) -> str:
    """Return the picture of a stall from its start to its end, in the colours of its largest causes."""
    styles = dict(zip(((part.kind, part.name) for part in stall.parts), cause_styles(stall), strict=False))
    scale = _TIMELINE / max(stall.duration_ns, 1)
    parts = [
        f'<rect class="{styles.get((piece.kind, piece.name), REST)}" x="{piece.offset_ns * scale:.1f}" y="0" '
        f'width="{max(piece.ns * scale, 0.5):.1f}" height="{_TIMELINE_HEIGHT}"/>'
        for piece in stall.timeline[:_MOST_PIECES]
    ]
    return _picture("timeline", _TIMELINE, _TIMELINE_HEIGHT, parts, ' preserveAspectRatio="none"')


def _x(place: float) -> float:
    return round(_EDGE + place * (_STRIP - 2 * _EDGE), 1)


def _picture(style: str, width: int, height: int, parts: list[str], more: str = "") -> str:
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return f'<svg class="{style}" {size}{more} aria-hidden="true">{"".join(parts)}</svg>'
