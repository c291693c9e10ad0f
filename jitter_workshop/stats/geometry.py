"""Map values to counters as an HdrHistogram does, by plain arithmetic. Nothing is allocated and no library is
loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

MAX_COUNTERS = 500_000
"""The largest number of counters of a histogram in memory (4 MB)."""

MOST_COUNTERS = 4_800_000
"""The largest number of counters of a histogram that is only read from a file: five digits from 1 ns to thirty days."""


class Bin(NamedTuple):
    """Hold a counter that is not zero: its lowest and highest value in ns, and its number of samples."""

    low: int
    high: int
    samples: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """Hold the numbers that map values to counters. Native code needs these numbers to count; the fields have the same
    names as in HdrHistogram.
    """

    lowest_ns: int
    highest_ns: int
    digits: int
    unit_magnitude: int
    sub_bucket_half_count_magnitude: int
    sub_bucket_half_count: int
    sub_bucket_mask: int
    counts_len: int

    def index(self, value_ns: int) -> int:
        """Return the index of a value's counter; values above the range belong to ``index(highest_ns)``."""
        value = min(value_ns, self.highest_ns)
        top = (value | self.sub_bucket_mask).bit_length()
        bucket = top - self.unit_magnitude - (self.sub_bucket_half_count_magnitude + 1)
        sub_bucket = value >> (bucket + self.unit_magnitude)
        return ((bucket + 1) << self.sub_bucket_half_count_magnitude) + sub_bucket - self.sub_bucket_half_count

    def bins(self, counted: Iterable[tuple[int, int]]) -> list[Bin]:
        """Return one :class:`Bin` for each pair (index of a counter, number of samples)."""
        magnitude, half, unit = self.sub_bucket_half_count_magnitude, self.sub_bucket_half_count, self.unit_magnitude
        found: list[Bin] = []
        for index, samples in counted:
            # In the first two halves a counter is one unit wide; the width doubles with each further half.
            wide = (index >> magnitude) - 1
            if wide <= 0:
                shift, low = unit, index << unit
            else:
                shift = wide + unit
                low = (index & (half - 1) | half) << shift
            found.append(Bin(low, low + (1 << shift) - 1, samples))
        return found

    def bounds(self, index: int) -> tuple[int, int]:
        """Return the lowest and the highest value in ns that belong to the counter ``index``."""
        (only,) = self.bins([(index, 0)])
        return only.low, only.high


def counters_needed(lowest: int, highest: int, digits: int) -> int:
    """Return the number of counters that HdrHistogram needs for values from ``lowest`` to ``highest`` ns with
    ``digits`` digits."""
    half: int = 1 << ((2 * 10**digits - 1).bit_length() - 1)
    limit, buckets = (2 * half) << (lowest.bit_length() - 1), 1
    while limit <= highest:
        limit, buckets = limit << 1, buckets + 1
    return (buckets + 1) * half


def layout(lowest: int, highest: int, digits: int) -> Geometry:
    """Return the geometry of a histogram from its lowest value, its highest value and its digits, as Java's
    HdrHistogram computes it. Raise ValueError if these three make no sense, or need more than :data:`MOST_COUNTERS`
    counters."""
    if not 0 <= digits <= 5 or lowest < 1 or not 2 * lowest <= highest < 1 << 63:
        raise ValueError(f"a histogram cannot have this range: {lowest} to {highest}, {digits} digits")
    length = counters_needed(lowest, highest, digits)
    if length > MOST_COUNTERS:
        raise ValueError(f"a histogram from {lowest} to {highest} with {digits} digits is too large")
    magnitude = (2 * 10**digits - 1).bit_length() - 1
    unit = lowest.bit_length() - 1
    half = 1 << magnitude
    return Geometry(lowest, highest, digits, unit, magnitude, half, (2 * half - 1) << unit, length)
