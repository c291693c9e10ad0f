"""Run the exact sign-flip test: if chance alone had decided which run of a round was "with", how often would the sum be
so far from zero? (Fisher, The Design of Experiments, 1935, §21.)"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import fsum

GROUPS = 16
"""More contributions than this are flipped in this many groups: 2^16 ways to flip are ample."""

_HAIR = 1e-12


def p_value(contributions: Sequence[float]) -> float:
    """Return the share of all sign flips whose sum is at least as far from zero as the one seen; 1.0 where nothing
    differs.

    Exact, never drawn: the sums of either half's flips are listed and counted against each other. Of more than
    :data:`GROUPS` contributions whole groups are flipped. These flips are a group in the algebraic sense, too, so the
    test stays exact (Hemerik and Goeman, TEST 27, 2018) at the cost of a little power.
    """
    parts = _grouped([c for c in contributions if c])
    seen = abs(fsum(parts))
    hair = _HAIR * fsum(abs(c) for c in parts)
    if seen <= hair:
        return 1.0
    half = len(parts) // 2
    left, right = _sums(parts[:half]), sorted(_sums(parts[half:]))
    as_far = sum(len(right) - bisect_left(right, seen - hair - one) for one in left)
    # Flipping all signs mirrors a sum, so that the other tail is as large.
    return min(1.0, 2 * as_far / (len(left) * len(right)))


def smallest_p(contributions: Sequence[float]) -> float:
    """Return the smallest p that contributions of these sizes could give with any signs."""
    flipped = min(GROUPS, sum(1 for c in contributions if c))
    return min(1.0, 2 / (1 << flipped))


def _grouped(parts: list[float]) -> list[float]:
    if len(parts) <= GROUPS:
        return parts
    return [fsum(parts[first::GROUPS]) for first in range(GROUPS)]


def _sums(parts: Sequence[float]) -> list[float]:
    sums = [0.0]
    for part in parts:
        sums = [s + part for s in sums] + [s - part for s in sums]
    return sums
