"""Merge overlapping windows into distinct stalls, and compute a run's rates of stalls and gaps."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

from jitter_workshop.model.run import GapBucket, Stall, StallRate, Stalls, StallTotal
from jitter_workshop.model.spec import STALL_DECADES_NS
from jitter_workshop.stats.exact import rate_limits

WORST_KEPT = 100
"""The number of stalls that a run keeps in full. All stalls are counted."""

_US = (2, 3, 4, 6, 8, 10, 14, 20, 30, 40, 60, 80, 100, 140, 200, 300, 400, 600, 800)
_MS = (1, 2, 5, 10, 20, 50, 100)
BUCKETS_NS = (*(us * 1_000 for us in _US), *(ms * 1_000_000 for ms in _MS))
"""The starts of the 26 buckets of the micro jitter sampler (Peter Lawrey, 2013), which counts gaps by length. A bucket
ends where the next one begins; the last one is open."""

_HOUR_NS = 3_600_000_000_000


def stall_thresholds(threshold_ns: int) -> tuple[int, ...]:
    """Return the lengths in ns from which stalls are counted: ``threshold_ns``, and all larger STALL_DECADES_NS."""
    return tuple(sorted({threshold_ns, *(ns for ns in STALL_DECADES_NS if ns > threshold_ns)}))


def union(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge windows (start, end) in ns that overlap or touch. Return the merged windows in order of time; empty windows
    are dropped."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(w for w in windows if w[1] > w[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def stall_rates(totals: Iterable[StallTotal], duration_s: float) -> tuple[StallRate, ...]:
    """Return the rate of stalls for each threshold, the lowest threshold first. ``totals``: the counts of all blocks.
    ``duration_s``: the measured time to which the rates refer."""
    sums: dict[int, tuple[int, int]] = {}
    for total in totals:
        count, in_stalls = sums.get(total.threshold_ns, (0, 0))
        sums[total.threshold_ns] = (count + total.count, in_stalls + total.stolen_ns)
    return tuple(
        StallRate(threshold, count, _per_second(count, duration_s), _per_second(in_stalls, duration_s))
        for threshold, (count, in_stalls) in sorted(sums.items())
    )


def worst(stalls: Iterable[Stall], keep: int = WORST_KEPT) -> tuple[Stall, ...]:
    """Return the ``keep`` longest stalls, the longest first. Of two equal stalls the earlier one comes first."""
    return tuple(heapq.nsmallest(keep, stalls, key=lambda s: (-s.duration_ns, s.start_ns)))


def stalls_of_run(
    threshold_ns: int, totals: Iterable[StallTotal], listed: Iterable[Stall], duration_s: float, keep: int = WORST_KEPT
) -> Stalls:
    """Return the stalls of a run: number, total time, rates by decade, and the longest stalls.

    ``threshold_ns``: the least length of a stall. ``totals``: the counts of all blocks. ``listed``: single stalls,
    whose start counts from the run's start. ``duration_s``: the time in which stalls could be seen. ``keep``: how many
    of the longest stalls are returned.
    """
    by_threshold = stall_rates(totals, duration_s)
    main = next((r for r in by_threshold if r.threshold_ns == threshold_ns), StallRate(threshold_ns, 0, 0.0, 0.0))
    low, high = rate_limits(main.count, duration_s) or (None, None)
    return Stalls(
        threshold_ns,
        main.count,
        main.per_second,
        main.stolen_ns_per_second,
        by_threshold,
        worst(listed, keep),
        low,
        high,
        duration_s,
    )


def buckets(counts: Sequence[int], sampled_ns: int) -> tuple[GapBucket, ...]:
    """Return the 26 buckets of gaps, each with its count and its rate an hour of *sampled* time. ``sampled_ns``: the
    time in which the sampler did not sleep. While a sampler sleeps, it sees no gap. So a thread that is busy for a
    tenth of the time can be compared with a thread that is always busy. Raise ValueError if there are not 26 counts.
    """
    ends = (*BUCKETS_NS[1:], None)
    return tuple(
        GapBucket(start, end, count, count * _HOUR_NS / sampled_ns if sampled_ns > 0 else None)
        for start, end, count in zip(BUCKETS_NS, ends, counts, strict=True)
    )


def _per_second(amount: int, duration_s: float) -> float:
    return amount / duration_s if duration_s > 0 else 0.0
