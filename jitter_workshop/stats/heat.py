"""Compute the heat map of a run: how many latencies of each length there were at each time.

A run keeps a histogram of each block, so a block is the finest step of time. The axis of latency is logarithmic. The
shade of a cell is logarithmic, too, because one stall must be seen beside a million fast messages.
"""

from __future__ import annotations

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
_PAUSE = 0.1
"""The least share of a block's length that a pause behind the block must have to be shown. A shorter pause belongs to
the block."""
_NARROW = 2
"""The number of columns below which a pause would not be read as a pause: many such gaps look like a fence."""
_COVERED = 0.5
"""The least share of a column's time that must be measured. Less leaves the column blank, if no block would be lost."""
_BURST = 10
_MOST_LOUD = 0.5

BlockBins = tuple[float, float, Sequence[Bin]]
"""A block: its start in s, its length in s, and its counters."""


@dataclass(frozen=True, slots=True)
class Heat:
    """Hold a run's number of values by block and by range of latency. A range of latency is called a bar: bar n has
    the values from 10^(n/40) ns to 10^((n+1)/40) ns.

    ``label``: the run's name. ``starts_s``: the start of each block, in s from the run's start. ``end_s``: the end of
    the last block. ``block_s``: the median length of a block. ``counts``: for each block, pairs (number of a bar,
    number of values in the bar), in ascending order.
    """

    label: str
    starts_s: tuple[float, ...]
    end_s: float
    block_s: float
    counts: tuple[tuple[tuple[int, float], ...], ...]

    @property
    def spans_s(self) -> tuple[tuple[float, float], ...]:
        """Return the start and the end of each block, in s from the run's start. A block usually ends where the next
        block starts; the last block ends with the run. But a long pause without measurement may follow a block: at
        least 10 % of the median block length. Such a block ends one median block length after its start.
        """
        nexts = (*self.starts_s[1:], self.end_s)
        return tuple(
            (start, following if following - start < (1 + _PAUSE) * self.block_s else start + self.block_s)
            for start, following in zip(self.starts_s, nexts, strict=True)
        )

    @property
    def pauses(self) -> bool:
        """Return True if nothing was measured between some blocks."""
        return any(start > end for (_, end), (start, _) in itertools.pairwise(self.spans_s))

    @property
    def ranges(self) -> scale.Ranges:
        """Return the axes' ranges: x in s, y in log10 of ns. The limits of y are multiples of 0.25. The range of y is
        at least 2 (a factor of 100).
        """
        bars = [bar for block in self.counts for bar, _ in block] or [3 * PER_DECADE]
        low = math.floor(4 * min(bars) / PER_DECADE) / 4
        high = math.ceil(4 * (max(bars) + 1) / PER_DECADE) / 4
        return scale.Ranges(max(self.end_s, 1e-3), max(low, 0.0), max(high, low + 2))

    def by_block(self, rows: int, low: float, high: float) -> tuple[tuple[float, ...], ...]:
        """Return a column for each block: the number of values in each of ``rows`` ranges of latency. The ranges go
        from ``high`` down to ``low`` (log10 of ns). The values of a bar that overlaps two ranges are divided between
        them."""
        found = []
        for block in self.counts:
            column = [0.0] * rows
            for bar, count in block:
                top, bottom = ((high - y) / (high - low) * rows for y in ((bar + 1) / PER_DECADE, bar / PER_DECADE))
                for row, part in _parts(top, bottom, rows):
                    column[row] += count * part / (bottom - top)
            found.append(tuple(column))
        return tuple(found)

    def narrow_pauses(self, columns: int) -> bool:
        """Return True if there are pauses, and each is narrower than _NARROW of ``columns`` equal parts of the run's
        time."""
        pauses = [start - end for (_, end), (start, _) in itertools.pairwise(self.spans_s) if start > end]
        return bool(pauses) and max(pauses) * columns < _NARROW * self.end_s

    def grid(
        self, columns: int, rows: int, low: float, high: float, *, bridged: bool = False
    ) -> tuple[tuple[float, ...], ...]:
        """Return the numbers of :meth:`by_block` for ``columns`` equal parts of the run's time.

        Each part usually shows the block that covers most of the part. If a block would then not be shown at all, each
        part shows the mean of the blocks that it covers. A part in which little was measured is blank: all its numbers
        are 0. But for each block, the part that contains most of the block is never blank. ``bridged``: True to let
        each block reach to the next one, over the pause behind it.
        """
        each = self.end_s / columns
        shares: list[list[tuple[float, int]]] = [[] for _ in range(columns)]
        kept = set()
        ends = [*self.starts_s[1:], self.end_s] if bridged else [end for _, end in self.spans_s]
        for n, (start, end) in enumerate(zip(self.starts_s, ends, strict=True)):
            parts = _parts(start / each, end / each, columns)
            for column, part in parts:
                shares[column].append((part, n))
            kept.add(max(parts, key=lambda one: one[1], default=(-1, 0.0))[0])
        blocks = self.by_block(rows, low, high)
        crisp = len({max(of_column)[1] for of_column in shares if of_column}) == len(blocks)
        found = []
        for column, of_column in enumerate(shares):
            covered = sum(part for part, _ in of_column)
            if not of_column or (covered < _COVERED and column not in kept):
                found.append((0.0,) * rows)
            elif crisp:
                found.append(blocks[max(of_column)[1]])
            else:
                sums = (sum(part * blocks[n][row] for part, n in of_column) for row in range(rows))
                found.append(tuple(one / covered for one in sums))
        return tuple(found)


def heat(label: str, blocks: Iterable[BlockBins]) -> Heat:
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
    """Return the least count of each shade, for at most ``levels`` shades. The first count is 1. Each further count is
    larger by about the same factor, so that the last one is near ``most``. Each count is a round number: only its
    first digit is not 0.
    """
    return tuple(dict.fromkeys(_round(most ** (n / levels)) for n in range(levels)))


def _round(count: float) -> int:
    """Return a count of at least 1, rounded down to one digit that is not 0."""
    ten: int = 10 ** math.floor(math.log10(max(count, 1.0)) + 1e-9)
    return max(math.floor(count / ten + 1e-9), 1) * ten


def shade_of_count(count: float, limits: Sequence[int]) -> int:
    """Return the number of the shade for a count. It is 0 if nothing was counted. It is 1 for a count between 0 and 1:
    a mean can be such a count. ``limits``: the least count of each shade.
    """
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
    """Return (bar, count) pairs for the counters of a block, in ascending order.

    The samples of a counter that is wider than a bar are divided among the bars that it covers. Otherwise the heat map
    would have gaps at short times. If a counter is not wider than a bar, all its samples belong to the bar at the
    counter's middle.
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
