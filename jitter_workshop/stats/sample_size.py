"""Estimate how many rounds would tell, at the spread seen: a guess for the next try, made from the same few rounds."""

from __future__ import annotations

import math
from statistics import NormalDist

from jitter_workshop.model.verdict import ENOUGH_ROUNDS, NO_CHANGE_WITHIN, SIGNIFICANCE

MANY_ROUNDS = 1_000
"""A larger number is no useful advice."""

_POWER = 0.9


def rounds_needed(
    log_ratio: float,
    spread: float,
    rounds: int,
    p_to_reach: float,
    coarseness: float = 0.0,
    p_for_no_change: float = SIGNIFICANCE / 2,
) -> int | None:
    """Return the fewest rounds, more than there are and at least ten, of which nine in ten proofs would either show a
    difference of this size at a p of ``p_to_reach``, or show at ``p_for_no_change`` (one-sided, at each end) that it
    lies within the band of no change.

    ``spread`` is the standard deviation of one round's log ratio, ``coarseness`` the clock's share of an interval.
    Computed by the normal approximation plus a correction for few rounds (z²/2: Guenther, The American Statistician 35,
    1981). None where more than :data:`MANY_ROUNDS` were needed.
    """
    z = NormalDist().inv_cdf
    candidates: list[float] = []
    beyond_clock = abs(log_ratio) - coarseness
    if beyond_clock > 0:
        sure = z(1 - p_to_reach / 2)
        candidates.append(((sure + z(_POWER)) * spread / beyond_clock) ** 2 + sure**2 / 2)
    room = math.log1p(NO_CHANGE_WITHIN) - abs(log_ratio) - coarseness
    if room > 0:
        # In the middle of the band both ends must be excluded.
        sure = z(1 - min(p_for_no_change, SIGNIFICANCE / 2))
        candidates.append(((sure + z((1 + _POWER) / 2)) * spread / room) ** 2 + sure**2 / 2)
    fewest = min(candidates, default=math.inf)
    return max(ENOUGH_ROUNDS, rounds + 1, math.ceil(fewest)) if fewest <= MANY_ROUNDS else None
