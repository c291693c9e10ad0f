"""Define the axes of charts in the terminal and in SVG files.

x is log10(1/(1-p)) for the percentile p: 0 at 0 %, 1 at 90 %, 2 at 99 %. y is log10 of nanoseconds. So each decade of
rarity has the same width, and each decade of time has the same height. If a stall becomes ten times rarer, the knee of
the curve moves right by one tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.record import dataclass

X_LIMIT = 12.0
"""The right end of every chart's x axis, as a logarithm: 10^12 samples."""

_STEP = 0.25
_MARGIN = 0.1
_LEAST_X = 3.0
_TWICE, _BELOW_TWICE, _WHOLE_FROM, _ROUND_FROM = 2.0, 1.99, 9.95, 999.5
"""Limits of factors that are told: from _TWICE on they have one decimal, from _WHOLE_FROM on none, and from _ROUND_FROM
on two significant digits. _BELOW_TWICE is the largest text of a factor below _TWICE."""
_SMALLER = frozenset({"shorter", "fewer", "less", "lower", "rarer"})
"""The words for a second value that is smaller than the first one."""
LEAST_DECADES = 2.0
_MEDIAN_X = math.log10(2)
_BELOW_MEDIAN = 1.0
"""The number of decades below the smallest p50 at which a chart's y axis begins, if curves go on further below."""
_MOST_ELAPSED = 8
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


@dataclass(frozen=True, slots=True)
class Tick:
    """Hold a position on an axis (log10) and its label."""

    position: float
    label: str


@dataclass(frozen=True, slots=True)
class Ranges:
    """Hold the ranges of a chart's axes: x from ``x_low`` to ``x_high``, y from ``y_low`` to ``y_high``, all in
    log10."""

    x_high: float
    y_low: float
    y_high: float
    x_low: float = 0.0


def x_of_percentile(percentile: float) -> float:
    """Return the position of a percentile (0..100) on the x axis: log10(1/(1-p)). For 100 and more, return the right
    end of the axis."""
    beyond = 1 - percentile / 100
    return X_LIMIT if beyond <= 10**-X_LIMIT else -math.log10(min(beyond, 1.0))


def y_of_ns(value_ns: float) -> float:
    """Return log10 of a time; a time below 1 ns is placed at 1 ns."""
    return math.log10(max(value_ns, 1.0))


def nice_ns(value_ns: float | None) -> str:
    """Return a readable time, three significant digits at most: ``76 ns``, ``4.1 µs``, ``1.2 s``; ``–`` for None."""
    if value_ns is None:
        return "–"
    if value_ns < 0:
        return "-" + nice_ns(-value_ns)
    rounded = _rounded(value_ns, 3)
    size, unit = next(((s, u) for s, u in _UNITS if rounded >= s), _UNITS[-1])
    scaled = _rounded(rounded / size, 3)
    return f"{scaled:.2f}".rstrip("0").rstrip(".") + f" {unit}"


def nice_hz(hertz: float) -> str:
    """Return a readable frequency: ``3.21 GHz``, ``800 MHz``, ``50 Hz``."""
    size, unit = next(((s, u) for s, u in ((1e9, " GHz"), (1e6, " MHz")) if hertz >= s), (1.0, " Hz"))
    return nice_number(hertz / size) + unit


def nice_duration(seconds: float) -> str:
    """Return a readable duration: ``8 s``, ``1 min 20 s``, ``26 min``, ``2 h 5 min``. From ten minutes on, seconds are
    left out."""
    whole = max(0, round(seconds))
    if whole >= 600:
        hours, minutes = divmod(round(whole / 60), 60)
        return f"{minutes} min" if not hours else f"{hours} h {minutes} min" if minutes else f"{hours} h"
    minutes, rest = divmod(whole, 60)
    return f"{rest} s" if not minutes else f"{minutes} min {rest} s" if rest else f"{minutes} min"


def nice_number(value: float) -> str:
    """Return a readable number, such as a rate, with at most three significant digits and without an exponent:
    ``0.0021``, ``4.23``, ``38``, ``1,450``. Below 1 it has at most two: more digits of a rare event are chance."""
    rounded = _rounded(value, 3 if abs(value) >= 1 else 2)
    if rounded and abs(rounded) < 100:
        places = min(max(2 - math.floor(math.log10(abs(rounded))), 1), 12)
        return f"{rounded:.{places}f}".rstrip("0").rstrip(".")
    return f"{rounded:,.0f}"


def times_told(factor: float) -> str:
    """Return a factor of at least 1 as text. All surfaces tell factors by this function, so that one page has one text
    for a factor. It has at most two decimals below 2, one below 10, and none above: ``1.24``, ``4.3``, ``57``. From
    1,000 on it has two significant digits: ``55,000``. A factor below 2 is never rounded up to 2.
    """
    if factor < _TWICE:
        return f"{min(round(factor, 2), _BELOW_TWICE):.2f}".rstrip("0").rstrip(".")
    if factor < _WHOLE_FROM:
        return f"{factor:.1f}".removesuffix(".0")
    return f"{factor if factor < _ROUND_FROM else _rounded(factor, 2):,.0f}"


def difference_told(factor: float, how: str, times: str = "×") -> str:
    """Return by how much a second value differs from a first one: ``28 % more``, ``22 % less``, ``3.1× more``. Below a
    factor of 2 it is told in per cent of the first value, because ``1.28× more`` can be read as 128 % more.

    ``factor``: the larger value divided by the smaller one. ``how``: the word for the second value, such as ``less``.
    ``times``: the sign or the word behind a factor.
    """
    if factor >= _TWICE:
        return f"{times_told(factor)}{times} {how}"
    smaller = how in _SMALLER
    share = 1 - 1 / factor if smaller else factor - 1
    return f"{min(max(round(100 * share), 1), 49 if smaller else 99)} % {how}"


def ratio_text(ratio: float | None) -> str:
    """Return a ratio as text, by :func:`times_told`: ``1.15×``, ``57×``, ``1/57``; ``–`` for None."""
    if ratio is None:
        return "–"
    if ratio <= 0:
        return "0"
    told = times_told(max(ratio, 1 / ratio))
    return f"{told}×" if ratio >= 1 or told == "1" else f"1/{told}"


def percentile_ticks(x_high: float) -> tuple[Tick, ...]:
    """Return one tick for each decade of rarity: 0 %, 90 %, 99 %, 99.9 %, …"""
    ticks = [Tick(0.0, "0 %"), Tick(1.0, "90 %"), Tick(2.0, "99 %")]
    ticks += [Tick(float(n), "99." + "9" * (n - 2) + " %") for n in range(3, math.floor(x_high) + 1)]
    return tuple(t for t in ticks if t.position <= x_high + 1e-9)


def ticks(unit: str, low: float, high: float, parts: Sequence[int] = (1,)) -> tuple[Tick, ...]:
    """Return the ticks of an axis from ``low`` to ``high``. ``unit``: ``percentile``, ``time``, ``share``, ``number``
    or ``elapsed``. Positions are log10 of the values. Only the positions of ``elapsed`` are seconds; they begin at 0.

    For a time, a share or a number, each power of ten has a tick (100 ns, 1 µs, 10 µs, …). ``parts``: the numbers by
    which a power of ten is multiplied to give a tick. With (1, 2, 5), the ticks of a time are 1 µs, 2 µs, 5 µs, 10 µs,
    … A share or a number needs (1,).
    """
    if unit == "percentile":
        return percentile_ticks(high)
    if unit == "elapsed":
        return _elapsed_ticks(high)
    found = ((n, part) for n in range(math.floor(low) - 1, math.floor(high + 1e-9) + 1) for part in parts)
    return tuple(
        Tick(at, nice_ns(part * 10.0**n) if unit == "time" else _power_of_ten(n))
        for n, part in found
        if low - 1e-9 <= (at := n + math.log10(part)) <= high + 1e-9
    )


def _elapsed_ticks(high: float) -> tuple[Tick, ...]:
    """Return ticks at equal steps from 0 s to ``high``, at most eight steps. A step is a round time, such as 0.5 s, 2
    minutes or an hour. If ``high`` is too long for these steps, a step is an eighth of it.
    """
    steps = [n * 10.0**power for power in range(-4, 1) for n in (1, 2, 5)]
    steps += [10.0, 20.0, *(60.0 * n for n in (0.5, 1, 2, 5, 10, 15, 30)), *(3600.0 * n for n in (1, 2, 5, 10, 24, 48))]
    step = next((one for one in steps if high / one <= _MOST_ELAPSED), high / _MOST_ELAPSED)
    count = math.floor(high / step + 1e-9)
    return tuple(Tick(n * step, nice_duration(n * step) if step >= 1 else f"{n * step:g} s") for n in range(count + 1))


def ranges(curves: Iterable[PercentileCurve], marks: Iterable[tuple[float, float]] = ()) -> Ranges:
    """Return ranges that include all curves and marks (percentile, ns), except for the fastest values of the curves:
    the y axis begins at most a decade below the smallest p50. So the slow values have most of the height.

    The limits of the ranges are multiples of 0.25, so that a growing curve seldom changes the limits. The y axis spans
    at least two decades, because a quiet host's curve must look flat.
    """
    xs, ys, medians, marked = [0.0], [], [], []
    for curve in curves:
        xs += [x_of_percentile(p.percentile) for p in curve.points[-1:]]
        ys += [y_of_ns(p.value_ns) for p in curve.points]
        medians += height_at_median(curve)
    for percentile, value_ns in marks:
        xs.append(x_of_percentile(percentile))
        marked.append(y_of_ns(value_ns))
    ys += marked
    if not ys:
        return Ranges(_LEAST_X + 2, 1.5, 7.0)
    low = max(0.0, math.floor((min(ys) - _MARGIN) / _STEP) * _STEP)
    high = math.ceil((max(ys) + _MARGIN) / _STEP) * _STEP
    if medians:
        begins = [math.ceil((min(medians) - _BELOW_MEDIAN) / _STEP) * _STEP, high - LEAST_DECADES]
        low = max(low, min(*begins, *(math.floor((y - _MARGIN) / _STEP) * _STEP for y in marked)))
    if high - low < LEAST_DECADES:
        high = low + LEAST_DECADES
    return Ranges(max(_LEAST_X, math.ceil(max(xs) / _STEP) * _STEP), low, high)


def height_at_median(curve: PercentileCurve) -> list[float]:
    """Return the height of a curve at p50 on the y axis, as the only item of a list. A curve that begins beyond p50 has
    its lowest height there. Return [] for a curve without points."""
    before: tuple[float, float] | None = None
    for point in curve.points:
        at, y = x_of_percentile(point.percentile), y_of_ns(point.value_ns)
        if at >= _MEDIAN_X:
            if before is None or at == before[0]:
                return [y]
            return [before[1] + (y - before[1]) * (_MEDIAN_X - before[0]) / (at - before[0])]
        before = at, y
    return [] if before is None else [before[1]]


def _power_of_ten(exponent: int) -> str:
    if -2 <= exponent <= 3:
        return f"{10**exponent:,}"
    return "10" + str(exponent).translate(_RAISED)


def _rounded(value: float, digits: int) -> float:
    """Return a value rounded to so many significant digits."""
    if value == 0:
        return 0.0
    return round(value, digits - 1 - math.floor(math.log10(abs(value))))
