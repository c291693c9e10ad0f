"""Merge windows of stolen time into distinct stalls, and compute a run's rates from its blocks' totals."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Protocol

from jitter_workshop.model.run import Stall, StallRate, Stalls
from jitter_workshop.stats.poisson import rate_limits

WORST_KEPT = 100
"""The number of stalls that a run keeps in full; all of them are counted."""


class BlockTotal(Protocol):
    """Give one block's total for one threshold (see ``bench.protocol.StallTotal``)."""

    @property
    def threshold_ns(self) -> int: ...
    @property
    def count(self) -> int: ...
    @property
    def stolen_ns(self) -> int: ...


def union(windows: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merge windows [start, end) in ns that overlap or touch into distinct ones. Empty ones are dropped."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(w for w in windows if w[1] > w[0]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def rates(totals: Iterable[BlockTotal], duration_s: float) -> tuple[StallRate, ...]:
    """Return totals of many blocks as rates over ``duration_s`` of measured time, the lowest threshold first."""
    sums: dict[int, tuple[int, int]] = {}
    for total in totals:
        count, stolen = sums.get(total.threshold_ns, (0, 0))
        sums[total.threshold_ns] = (count + total.count, stolen + total.stolen_ns)
    return tuple(
        StallRate(threshold, count, _per_second(count, duration_s), _per_second(stolen, duration_s))
        for threshold, (count, stolen) in sorted(sums.items())
    )


def worst(stalls: Iterable[Stall], keep: int = WORST_KEPT) -> tuple[Stall, ...]:
    """Return the longest stalls, longest first; of equals the earlier one."""
    return tuple(heapq.nsmallest(keep, stalls, key=lambda s: (-s.duration_ns, s.start_ns)))


def of_run(
    threshold_ns: int, totals: Iterable[BlockTotal], listed: Iterable[Stall], duration_s: float, keep: int = WORST_KEPT
) -> Stalls:
    """Return all stalls of a run: the totals over ``threshold_ns`` first, then the rates by decade and the worst in
    full. ``duration_s``: the time in which they could be seen.

    ``listed`` must count from the run's start already. A threshold that no block reported has no stalls.
    """
    by_threshold = rates(totals, duration_s)
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


def _per_second(amount: int, duration_s: float) -> float:
    return amount / duration_s if duration_s > 0 else 0.0
