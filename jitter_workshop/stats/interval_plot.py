"""Draw a verdict's interval as a small picture. The pictures of one proof or screening have the same logarithmic axis;
its middle is the ratio 1.

Positions go from 0 (left end) to 1 (right end). A value beyond an end is drawn on that end and marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from jitter_workshop.model.verdict import NO_CHANGE_WITHIN
from jitter_workshop.stats.scale import ratio_text

REACHES = (2.0, 5.0, 10.0, 30.0, 100.0, 1_000.0)
"""The factors that the right end of an axis may have, from the smallest to the largest."""
_SHARE = 0.8
"""The share of all interval ends that must fit on the axis. One very wide interval must not make the others too small
to read."""


class Ratio(Protocol):
    """Describe the type of a line of a proof or screening. The line has a ratio with its interval, as in
    ``Verdict``.
    """

    @property
    def ratio(self) -> float | None: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Axis:
    """Hold a logarithmic axis of ratios, from 1/``reach`` to ``reach``."""

    reach: float

    def position(self, ratio: float) -> float:
        """Return the position of a ratio on the axis, 0 at the left end to 1 at the right end."""
        if ratio <= 0:
            return 0.0
        if math.isinf(ratio):
            return 1.0
        return min(max((math.log(ratio) / math.log(self.reach) + 1) / 2, 0.0), 1.0)

    @property
    def band(self) -> tuple[float, float]:
        """Return the positions of both ends of the band that counts as no change. The band is ±10 % around the ratio
        1.
        """
        return self.position(1 / (1 + NO_CHANGE_WITHIN)), self.position(1 + NO_CHANGE_WITHIN)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Return the positions of the left end, the middle and the right end with their labels: ``1/10``, ``1``,
        ``10×``."""
        reach = ratio_text(self.reach)
        return (0.0, f"1/{reach.rstrip('×')}"), (0.5, "1"), (1.0, reach)


@dataclass(frozen=True, slots=True)
class Strip:
    """Hold the interval of a ratio as positions on an axis. ``ratio``: the position of the ratio; None if there is
    none. ``below``, ``above``: True if the interval reaches beyond the left or the right end of the axis."""

    low: float
    ratio: float | None
    high: float
    below: bool
    above: bool


def axis_of(rows: Iterable[Ratio]) -> Axis:
    """Return the shortest axis that contains at least 80 % of the intervals' ends. The possible axes are in REACHES.
    If none of them contains so many ends, return the longest axis.
    """
    wanted = [abs(math.log(end)) for row in rows for end in (row.low, row.high) if end is not None and end > 0]
    wanted.sort()
    far = wanted[max(math.ceil(len(wanted) * _SHARE) - 1, 0)] if wanted else 0.0
    return Axis(next((r for r in REACHES if math.log(r) >= far - 1e-9), REACHES[-1]))


def strip(row: Ratio, axis: Axis) -> Strip | None:
    """Return the positions of a line's interval; None if the interval has no bound at all."""
    if row.low <= 0 and row.high is None:
        return None
    high = math.inf if row.high is None else row.high
    return Strip(
        low=axis.position(row.low),
        ratio=None if row.ratio is None else axis.position(row.ratio),
        high=axis.position(high),
        below=row.low < 1 / axis.reach * (1 - 1e-9),
        above=high > axis.reach * (1 + 1e-9),
    )


def interval_picture(found: Strip | None, axis: Axis, width: int) -> str:
    """Return the picture of an interval in ``width`` characters, such as ``├──●──┤``. ``│`` marks the ratio 1, and
    ``┊`` the ends of the band of no change. ``◂`` and ``▸`` mark an interval that reaches beyond the axis. With an odd
    width, the ratio 1 is exactly in the middle."""

    def cell(position: float) -> int:
        return round(position * (width - 1))

    cells = [" "] * max(width, 1)
    for end in axis.band:
        cells[cell(end)] = "┊"
    cells[cell(0.5)] = "│"
    if found is None:
        return "".join(cells)
    first, last = cell(found.low), cell(found.high)
    for at in range(first, last + 1):
        cells[at] = "┼" if at == cell(0.5) else "─"
    cells[last] = "▸" if found.above else "┤"
    cells[first] = "◂" if found.below else cells[last] if first == last and found.above else "├"
    if found.ratio is not None:
        at = min(max(cell(found.ratio), first), last)
        cells[at] = cells[at] if cells[at] in "◂▸" else "●"
    return "".join(cells)


def scale(axis: Axis, width: int) -> str:
    """Return the labels of an axis in ``width`` cells, to print above the pictures."""
    (_, left), (_, middle), (_, right) = axis.ticks
    half = round(0.5 * (width - 1))
    return f"{left:<{half}}{middle}{right:>{max(width - half - 1, 0)}}"[:width]
