"""Wrap HdrHistogram. Only this module imports the library, and only on first use, because most commands do not need
it.

All times are whole nanoseconds. Python allocates the counters' memory; native code only adds to the counters, at the
index that :class:`Geometry` gives. Histograms are encoded in HdrHistogram's compressed format V2 (``HISTFAAAA…``),
which HdrHistogram's readers in every language can open. Histograms from a file or a pipe are decoded here in Python,
after their sizes were checked. The library's own decoder does not check the sizes.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from jitter_workshop.model.run import PERCENTILES, HistogramSummary
from jitter_workshop.stats.encoded import packed_counts, unwrap
from jitter_workshop.stats.geometry import MAX_COUNTERS as MAX_COUNTERS
from jitter_workshop.stats.geometry import Bin as Bin
from jitter_workshop.stats.geometry import Geometry as Geometry
from jitter_workshop.stats.geometry import layout

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

LOWEST_NS = 1
HIGHEST_NS = 60_000_000_000
DIGITS = 3
"""The number of significant digits of the workshop's histograms. They reach from 1 ns to 60 s and have 27,648
counters."""

_MOST_SAMPLES = (1 << 63) - 1
"""The largest number of samples of a histogram in the V2 format."""

_HIGHEST_LIMIT = 1 << 62


def new_histogram(lowest_ns: int = LOWEST_NS, highest_ns: int = HIGHEST_NS, digits: int = DIGITS) -> HdrHistogram:
    """Return an empty histogram with 64-bit counters. Raise ValueError for a geometry that makes no sense."""
    if digits < 1 or highest_ns >= _HIGHEST_LIMIT:
        raise ValueError(f"a histogram cannot have this range: {lowest_ns} to {highest_ns}, {digits} digits")
    if layout(lowest_ns, highest_ns, digits).counts_len > MAX_COUNTERS:
        raise ValueError(f"a histogram from {lowest_ns} to {highest_ns} with {digits} digits is too large")
    from hdrh.histogram import HdrHistogram as Library

    return Library(lowest_ns, highest_ns, digits)


def geometry(histogram: HdrHistogram) -> Geometry:
    """Return the geometry of a histogram, for code that counts into it."""
    return layout(histogram.lowest_trackable_value, histogram.highest_trackable_value, histogram.significant_figures)


def counts_array(histogram: HdrHistogram) -> memoryview:
    """Return the counts array itself (unsigned 64 bits each, writable). Call :func:`count_again` after writing to
    it."""
    return memoryview(histogram.counts).cast("B").cast("Q")


def count_again(histogram: HdrHistogram) -> None:
    """Set the histogram's total, minimum and maximum by its counters. Call this after code has written directly into
    the counters."""
    view = counts_array(histogram)
    used = list(itertools.compress(range(len(view)), view))
    if used:
        histogram.set_internal_tacking_values(used[0], used[-1], sum(map(view.__getitem__, used)))
    else:
        histogram.reset()


def add_counts(into: HdrHistogram, other: HdrHistogram) -> None:
    """Add all counts of ``other`` to ``into``. Raise ValueError if ``other`` has values beyond the range of
    ``into``."""
    if geometry(into) == geometry(other):
        into.encoder.add(other.encoder)
    else:
        space, view = geometry(into), counts_array(into)
        found = non_zero(other)
        if found and found[-1].low > space.highest_ns:
            raise ValueError("the other histogram holds values beyond this one's range")
        for low, _, count in found:
            view[space.index(low)] += count
    count_again(into)


def corrected(histogram: HdrHistogram, interval_ns: int) -> HdrHistogram:
    """Return a copy of the histogram that is corrected for coordinated omission.

    For each value above ``interval_ns``, further values are added: value - interval, value - 2 · interval, and so on,
    while the added value is at least the interval (HdrHistogram's ``copyCorrectedForCoordinatedOmission``). Raise
    ValueError if the interval is below 1 ns, or if more than 2^63 samples would be added.
    """
    if interval_ns < 1:
        raise ValueError("the expected interval must be at least 1 ns")
    found = non_zero(histogram)
    space = geometry(histogram)
    result = new_histogram(space.lowest_ns, space.highest_ns, space.digits)
    view = counts_array(result)
    for one in found:
        view[space.index(one.high)] += one.samples
    if not found or found[-1].high < interval_ns:
        count_again(result)
        return result
    reached = range(space.index(interval_ns), space.index(found[-1].high) + 1)
    lows = [max(one.low, interval_ns) for one in space.bins((index, 0) for index in reached)]
    added = _added(found, interval_ns, lows)
    if sum(added) > _MOST_SAMPLES - sum(one.samples for one in found):
        raise ValueError("too many values are far above the expected interval")
    for index, samples in zip(reached, added, strict=True):
        view[index] += samples
    count_again(result)
    return result


def _added(found: Sequence[Bin], interval_ns: int, lows: Sequence[int]) -> list[int]:
    """Return how many samples the correction adds to each counter in ``lows``. ``found``: all counters that are not
    zero. ``lows``: the lowest value of each counter that may get samples, in ascending order. These counters reach
    from the interval to the greatest value in ``found``.
    """
    remainders = sorted({one.high % interval_ns for one in found})
    # A Fenwick tree: the number of values by remainder. A sum over the smaller remainders takes few steps.
    tree = [0] * (len(remainders) + 1)
    waiting = list(found)
    samples = quotients = above = 0
    added = []
    # The samples are counted, not added one by one: a stall of 100 ms can add 10,000. A value v adds
    # floor((v - x) / interval) samples of at least x. With q and r for the quotient and the remainder of a division by
    # the interval, this is q(v) - q(x), and one less if r(v) < r(x). So three sums over all values v of at least x are
    # enough: the number of values, the sum of q(v), and the number of values with r(v) < r(x).
    for low in reversed(lows):
        while waiting and waiting[-1].high >= low:
            one = waiting.pop()
            quotient, remainder = divmod(one.high, interval_ns)
            samples += one.samples
            quotients += one.samples * quotient
            at = bisect_left(remainders, remainder) + 1
            while at < len(tree):
                tree[at] += one.samples
                at += at & -at
        quotient, remainder = divmod(low, interval_ns)
        smaller, at = 0, bisect_left(remainders, remainder)
        while at:
            smaller += tree[at]
            at &= at - 1
        from_low = quotients - samples * quotient - smaller
        added.append(from_low - above)
        above = from_low
    return added[::-1]


def encode_histogram(histogram: HdrHistogram) -> str:
    """Return the histogram as a base64 text (V2, compressed), which :func:`decode_histogram` reads."""
    # The library sizes its buffer by the recorded maximum. With a maximum beyond the counters it writes past the end.
    count_again(histogram)
    return str(histogram.encode().decode("ascii"))


def decode_histogram(text: str | bytes) -> HdrHistogram:
    """Return the histogram in a base64 text (V2, compressed). Raise ValueError if the text is damaged, too large or in
    another format."""
    inner = unwrap(text)
    if inner.version != 2:
        raise ValueError("not a histogram in the V2 format")
    histogram = new_histogram(inner.lowest, inner.highest, inner.digits)
    view = counts_array(histogram)
    for index, count in packed_counts(inner.body, len(view)):
        view[index] = count
    count_again(histogram)
    return histogram


def non_zero(histogram: HdrHistogram) -> list[Bin]:
    """Return all counters that are not zero, from the lowest value to the highest, in one pass."""
    view = counts_array(histogram)
    return geometry(histogram).bins(zip(itertools.compress(range(len(view)), view), filter(None, view), strict=True))


def samples_needed(percentile: str) -> int:
    """Return the least number of samples that is enough to state a percentile. It is 1/(1-p), such as 1,000 for
    ``99.9``.
    """
    beyond = 1 - Fraction(percentile) / 100
    return -(-beyond.denominator // beyond.numerator)


def rank_of(percentile: float, total: int) -> int:
    """Return the rank, counted from 1, of a percentile (0..100) among ``total`` samples."""
    # This is the library's own arithmetic, so every percentile equals the one that HdrHistogram's readers print.
    return max(int(percentile * total / 100 + 0.5), 1)


def percentile_values(bins: list[Bin], wanted: tuple[str, ...] = PERCENTILES) -> dict[str, int | None]:
    """Return percentile → value, as HdrHistogram defines the value. The counter that contains the sample at the
    percentile's rank decides: the value is the upper limit of this counter. The value is None if there are fewer
    samples than 1/(1-p).
    """
    total = sum(b.samples for b in bins)
    ranks = {p: rank_of(float(p), total) for p in wanted}
    values: dict[str, int | None] = dict.fromkeys(wanted)
    waiting = sorted((p for p in wanted if total >= samples_needed(p)), key=lambda p: ranks[p])
    seen = 0
    for entry in bins:
        seen += entry.samples
        while waiting and seen >= ranks[waiting[0]]:
            values[waiting.pop(0)] = entry.high
    return values


def summarise_histogram(
    histogram: HdrHistogram,
    *,
    min_ns: int | None = None,
    max_ns: int | None = None,
    total_ns: int | None = None,
    overflow: int = 0,
) -> HistogramSummary:
    """Return the count, the extremes, the mean and the percentiles of a histogram.

    ``min_ns``, ``max_ns``: the true extremes; None for the limits of the outermost counters. ``total_ns``: the exact
    sum; None to estimate the sum from the counters' middle values. ``overflow``: the number of values above the
    histogram's range, which are in the highest counter. No percentile is above the maximum.
    """
    bins = non_zero(histogram)
    count = sum(b.samples for b in bins)
    percentiles = percentile_values(bins)
    if not count:
        return HistogramSummary("ns", 0, None, None, None, percentiles, overflow)
    total = sum((b.low + b.high) / 2 * b.samples for b in bins) if total_ns is None else total_ns
    lowest = bins[0].low if min_ns is None else min_ns
    highest = bins[-1].high if max_ns is None else max_ns
    percentiles = {p: None if value is None else min(value, highest) for p, value in percentiles.items()}
    return HistogramSummary("ns", count, lowest, highest, total / count, percentiles, overflow)
