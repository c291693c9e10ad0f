"""Compute the heat map of a run: how many values of each length there were at each time.

A run keeps a histogram of each block, so a block is the finest step of time. The shade of a cell is the logarithm of a
count, as the axis of latency is logarithmic: one stall must be seen beside a million fast messages.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from jitter_workshop.model.run import Block
from jitter_workshop.stats import scale
from jitter_workshop.stats.histogram import Bin

PER_DECADE = 40
"""The number of bars for each decade of latency. A bar is the finest range of latency for which values are counted."""
LEAST_BLOCKS = 8
"""A run with fewer blocks is too short to show when something happened."""
_BURST = 10
_MOST_LOUD = 0.5

Interval = tuple[float, float, Sequence[Bin]]
"""A block: its start in s, its length in s, and its counters."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Hold the counts of a run by block and bar. ``label``: the run's name. ``starts_s``: each block's start, in s from
    the run's start; ``end_s``: the end of the last block; ``block_s``: the median length of a block. ``counts``: for
    each block (bar n, number of values) in ascending order; bar n holds 10^(n/40) ns to 10^((n+1)/40) ns."""

    label: str
    starts_s: tuple[float, ...]
    end_s: float
    block_s: float
    counts: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def ranges(self) -> scale.Ranges:
        """Return the axes' ranges: x in s, y in log10 of ns. y ends at quarters of a decade and spans two decades at
        least."""
        bars = [bar for block in self.counts for bar, _ in block] or [3 * PER_DECADE]
        low = math.floor(4 * min(bars) / PER_DECADE) / 4
        high = math.ceil(4 * (max(bars) + 1) / PER_DECADE) / 4
        return scale.Ranges(max(self.end_s, 1e-3), max(low, 0.0), max(high, low + 2))

    @property
    def edges_s(self) -> tuple[float, ...]:
        """Return the start of each block, and as the last value the end of the last block, in s. A pause belongs to the
        block before it."""
        return (*self.starts_s, self.end_s)

    def by_block(self, rows: int, low: float, high: float) -> tuple[tuple[float, ...], ...]:
        """Return, for each block, its number of values in each of ``rows`` rows from ``high`` down to ``low`` (log10 of
        ns). The values of a bar that lies in two rows are divided between both."""
        found = []
        for block in self.counts:
            column = [0.0] * rows
            for bar, count in block:
                top, bottom = ((high - y) / (high - low) * rows for y in ((bar + 1) / PER_DECADE, bar / PER_DECADE))
                for row, part in _parts(top, bottom, rows):
                    column[row] += count * part / (bottom - top)
            found.append(tuple(column))
        return tuple(found)

    def grid(self, columns: int, rows: int, low: float, high: float) -> tuple[tuple[float, ...], ...]:
        """Divide the run's time into ``columns`` equal parts. Return, for each part, the number of values that a block
        has in each of ``rows`` rows. If every block covers the middle of some column, each column shows the block at
        its middle; else each column shows the mean of its blocks."""
        each = self.end_s / columns
        middles = [max(bisect.bisect_right(self.starts_s, (n + 0.5) * each) - 1, 0) for n in range(columns)]
        blocks = self.by_block(rows, low, high)
        if len(set(middles)) == len(blocks):
            return tuple(blocks[n] for n in middles)
        found = [[0.0] * rows for _ in range(columns)]
        for (start, end), block in zip(itertools.pairwise(self.edges_s), blocks, strict=True):
            for column, part in _parts(start / each, end / each, columns):
                for row, count in enumerate(block):
                    found[column][row] += count * part
        return tuple(map(tuple, found))


def heat(label: str, blocks: Iterable[Interval]) -> Heat:
    """Return the heat map of a run's blocks, in order of time. Raise ValueError without a block."""
    found = sorted(blocks, key=lambda block: block[0])
    if not found:
        raise ValueError("a heat map needs a block")
    first = found[0][0]
    counts = tuple(_bars(bins) for _, _, bins in found)
    end = max(start + length for start, length, _ in found) - first
    return Heat(
        label, tuple(start - first for start, _, _ in found), end, median(length for _, length, _ in found), counts
    )


def bounds(most: float, levels: int) -> tuple[int, ...]:
    """Return the least count of each shade, for at most ``levels`` shades. The counts begin at 1 and grow by equal
    factors towards ``most``."""
    return tuple(dict.fromkeys(max(math.floor(most ** (n / levels) + 1e-9), 1) for n in range(levels)))


def level(count: float, limits: Sequence[int]) -> int:
    """Return the number of the shade for a count: 0 if nothing was counted, 1 for a count between 0 and 1. ``limits``:
    the least count of each shade."""
    if count <= 0:
        return 0
    return max(sum(limit <= count for limit in limits), 1)


def shows_bursts(blocks: Sequence[Block]) -> bool:
    """Return True if a run's longest times come in bursts: :func:`loud_blocks` returns at least two blocks, and at most
    half of all blocks. Return False for a run of fewer than eight blocks."""
    longest = [block.max for block in blocks if block.max is not None]
    return len(longest) >= LEAST_BLOCKS and 2 <= len(loud_blocks(blocks)) <= _MOST_LOUD * len(longest)


def loud_blocks(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks whose longest value is at least ten times the median of all blocks' longest values."""
    longest = [block.max for block in blocks if block.max is not None]
    limit = _BURST * max(median(longest), 1) if longest else math.inf
    return tuple(block for block in blocks if block.max is not None and block.max >= limit)


def _bars(bins: Sequence[Bin]) -> tuple[tuple[int, float], ...]:
    """Return (bar, count) for the counters of a block.

    A counter that is wider than a bar has its samples divided among the bars that it covers, because gaps between short
    times would appear otherwise. Any other counter belongs to the bar in which its middle lies.
    """
    found: dict[int, float] = {}
    for low, high, samples in bins:
        first, last = (math.log10(max(value, 1)) * PER_DECADE for value in (low, high + 1))
        parts = _parts(first, last, 20 * PER_DECADE) if last - first > 1 else []
        if not parts:
            parts = [(math.floor((first + last) / 2 + 1e-9), 1.0)]
        whole = sum(part for _, part in parts)
        for bar, part in parts:
            found[bar] = found.get(bar, 0.0) + samples * part / whole
    return tuple(sorted(found.items()))


def _parts(start: float, end: float, cells: int) -> list[tuple[int, float]]:
    """Return (cell, length) for each cell that a range overlaps. The length is that of the overlap."""
    found = []
    for cell in range(max(math.floor(start), 0), min(math.ceil(end), cells)):
        overlap = min(end, cell + 1) - max(start, cell)
        if overlap > 1e-9:
            found.append((cell, overlap))
    return found
