"""Count gaps by length in the 26 buckets of the micro jitter sampler (Peter Lawrey, 2013), as events an hour.

The hour is one of *sampled* time, because a sampler sees no gap while it sleeps. Only so can a thread that is busy a
tenth of the time be compared with one that is always busy.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.model.run import GapBucket

_US = (2, 3, 4, 6, 8, 10, 14, 20, 30, 40, 60, 80, 100, 140, 200, 300, 400, 600, 800)
_MS = (1, 2, 5, 10, 20, 50, 100)
BOUNDS_NS = (*(us * 1_000 for us in _US), *(ms * 1_000_000 for ms in _MS))
"""The start of each bucket. It ends where the next one begins; the last one is open."""

_HOUR_NS = 3_600_000_000_000


def buckets(counts: Sequence[int], sampled_ns: int) -> tuple[GapBucket, ...]:
    """Return counts by bucket as rates over ``sampled_ns``. Raise ValueError unless there are 26 counts."""
    ends = (*BOUNDS_NS[1:], None)
    return tuple(
        GapBucket(start, end, count, count * _HOUR_NS / sampled_ns if sampled_ns > 0 else None)
        for start, end, count in zip(BOUNDS_NS, ends, counts, strict=True)
    )


def add(counts: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    """Return the sum of two blocks' counts. Raise ValueError where they are of different buckets."""
    return tuple(a + b for a, b in zip(counts, more, strict=True))
