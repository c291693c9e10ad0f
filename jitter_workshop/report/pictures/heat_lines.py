"""Draw the heat map of a run as a few lines of plain text, for a report without pictures.

Time goes to the right, and a row is a decade of latency. One of four characters shows how many values a cell has.
"""

from __future__ import annotations

import math

from jitter_workshop.stats.heat import Heat, bounds, shade_of_count
from jitter_workshop.stats.scale import nice_ns

SHADES = "░▒▓█"
MOST_COLUMNS = 60
"""The largest width of the map without its labels. A run with more blocks has several of them in a column."""


def heat_lines(heat: Heat) -> list[str]:
    """Return the heat map as lines: a row for each decade of latency, the longest times first, then the axis of time,
    and the meaning of the characters. The label of a row is its shortest time. A run of at most 60 blocks has a column
    for each block.
    """
    low, high = math.floor(heat.ranges.y_low), math.ceil(heat.ranges.y_high)
    rows, whole = high - low, len(heat.counts) <= MOST_COLUMNS
    columns = heat.by_block(rows, low, high) if whole else heat.grid(MOST_COLUMNS, rows, low, high)
    limits = bounds(max((count for column in columns for count in column), default=1.0), len(SHADES))
    labels = [f"from {nice_ns(10 ** (high - row - 1)):>6}" for row in range(rows)]
    blank = " " * max(map(len, labels))
    cells = f" {SHADES}"
    drawn = [
        f"{label} │{''.join(cells[shade_of_count(column[row], limits)] for column in columns)}".rstrip()
        for row, label in enumerate(labels)
    ]
    end = f"{heat.end_s:.3g} s"
    (first, least), *others = zip(SHADES, limits, strict=False)
    meant = [f"{first} {least:,} or more values in a block of {nice_ns(heat.block_s * 1e9)}"]
    meant += [f"{shade} {limit:,}" for shade, limit in others]
    return [
        *drawn,
        f"{blank} └{'─' * len(columns)}",
        f"{blank}  {'0 s':<{max(len(columns) - len(end), 4)}}{end}",
        ", ".join(meant),
    ]
