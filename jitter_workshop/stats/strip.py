"""A verdict's interval as a strip: where its ends, its ratio, 1 and the band of "no change" lie on a log axis.

All strips of a judgement share one axis with 1 in its middle, so that twice and half are equally far from it. The
terminal, the screen and the report take their positions (0 = left end, 1 = right end) from here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from jitter_workshop.model.verdict import NO_CHANGE_WITHIN, Verdict

REACHES = (1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0)
"""An axis goes from 1/reach to reach, for one of these."""
WIDEST_BOUND = 30.0
"""An interval's end further from its ratio than so many times does not stretch the axis for all others."""
MIDDLE = 0.5


@dataclass(frozen=True, slots=True)
class Axis:
    """From 1/``reach`` to ``reach``. ``band``: where 1/1.1 and 1.1 lie. ``ticks``: (position, ratio), left to right."""

    reach: float
    band: tuple[float, float]
    ticks: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """One line's. ``low`` and ``high``: the ends of its interval, 0..1; ``open_low``, ``open_high``: that end lies
    beyond the axis. ``ratio``: None where there is none; one beyond the axis lies at its end."""

    low: float
    high: float
    ratio: float | None
    open_low: bool
    open_high: bool


def axis(rows: Iterable[Verdict]) -> Axis:
    """The axis that holds these lines: every ratio, and the ends that are not without bound or far out."""
    furthest = 1.0
    for row in rows:
        for value in (row.ratio, *_telling_ends(row)):
            if value is not None and value > 0 and math.isfinite(value):
                furthest = max(furthest, value, 1 / value)
    reach = next((r for r in REACHES if r >= furthest), REACHES[-1])
    edge = 1 + NO_CHANGE_WITHIN
    marks = (1 / reach, 1 / math.sqrt(reach), 1.0, math.sqrt(reach), reach) if reach > 3 else (1 / reach, 1.0, reach)
    return Axis(
        reach,
        (position(1 / edge, reach), position(edge, reach)),
        tuple((position(mark, reach), mark) for mark in marks),
    )


def strip(row: Verdict, on: Axis) -> Strip:
    """A line's strip on an axis."""
    high = math.inf if row.high is None else row.high
    return Strip(
        low=position(row.low, on.reach),
        high=position(high, on.reach),
        ratio=None if row.ratio is None else position(row.ratio, on.reach),
        open_low=row.low < 1 / on.reach * (1 - 1e-9),
        open_high=high > on.reach * (1 + 1e-9),
    )


def position(ratio: float, reach: float) -> float:
    """Where a ratio lies on an axis from 1/reach (0) to reach (1); what lies beyond is at the end."""
    if ratio <= 0:
        return 0.0
    if math.isinf(ratio):
        return 1.0
    return min(1.0, max(0.0, MIDDLE + math.log(ratio) / (2 * math.log(reach))))


def cell(place: float, width: int) -> int:
    """The column (from 0) of a position among ``width`` of them; a width that is odd has 1 in its middle column."""
    return min(width - 1, max(0, math.floor(place * (width - 1) + 0.5)))


def drawn(one: Strip, width: int) -> str:
    """The strip in characters: ``     ├──●──┤    │         ``; ``◂`` and ``▸`` where it goes on beyond the axis."""
    cells = [" "] * width
    left, right = cell(one.low, width), cell(one.high, width)
    for column in range(left, right + 1):
        cells[column] = "─"
    middle = cell(MIDDLE, width)
    cells[middle] = "┼" if left < middle < right else "│"
    cells[left] = "◂" if one.open_low else "├"
    cells[right] = "▸" if one.open_high else "┤"
    if left == right and not (one.open_low or one.open_high):
        cells[left] = "│"
    if one.ratio is not None:
        cells[cell(one.ratio, width)] = "●"
    return "".join(cells)


def _telling_ends(row: Verdict) -> tuple[float | None, ...]:
    """The ends of an interval that are near enough to its ratio to be shown whole."""
    if row.ratio is None or row.ratio <= 0:
        return ()
    ends = (row.low, row.high)
    return tuple(e for e in ends if e and 1 / WIDEST_BOUND <= e / row.ratio <= WIDEST_BOUND)
