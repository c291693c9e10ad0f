"""Compute how time and the order of runs affect the rounds of a proof.

These two effects are shown with a verdict, but do not change it. The order of the two runs is random in each round. So
the two effects cannot look like an effect of the change; they can only hide it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from jitter_workshop.model.verdict import SIGNIFICANCE, Drift, Order
from jitter_workshop.stats.paired import Pairs, estimate
from jitter_workshop.stats.rounds import MeasureLine

_LISTED = 40
"""Up to this many rounds, p is computed from all orders. For more rounds, p comes from the normal distribution and is
right within 0.005."""
_FEWEST = 5
"""The least number of rounds that can show a trend. With four rounds, even a perfect trend occurs by luck in one case
of twelve."""


def drift(line: MeasureLine, orders: Sequence[Order]) -> Drift:
    """Return the effects of time and of run order on one measure of a proof.

    Kendall's test shows if the levels of the rounds rise or fall with time. The level of a round is the sum of its two
    values. Wilcoxon's rank sum test compares rounds in the order AB with rounds in the order BA. It compares the
    rounds' contributions. A contribution is the difference between a round's two values, limited to -1..1
    (:mod:`paired`). If second runs tend to be higher or lower than first runs, the contributions differ between the two
    orders.
    """
    pairs = line.pairs
    if len(pairs.x) != len(orders):
        return Drift(
            line.measure, None, 1.0, None, 1.0, f"Drift of {line.name}: not known, because some rounds have no value."
        )
    levels = [x + y for x, y in zip(pairs.x, pairs.y, strict=True)]
    half = len(levels) // 2
    early, late = math.fsum(levels[:half]), math.fsum(levels[len(levels) - half :])
    later = late / early if early and late else None
    later_p = kendall_p(levels)
    differences = pairs.contributions(0.0)
    second_p = rank_sum_p(
        [d for d, order in zip(differences, orders, strict=True) if order == "AB"],
        [d for d, order in zip(differences, orders, strict=True) if order == "BA"],
    )
    second = _second_over_first(pairs, orders)
    return Drift(
        line.measure, later, later_p, second, second_p, _words(line.name, len(levels), later, later_p, second, second_p)
    )


def kendall_p(values: Sequence[float]) -> float:
    """Return the two-sided p of Kendall's rank correlation of the values with time (Mann, Econometrica 13, 1945). The
    p is exact for up to forty values. If some values are equal, the p is slightly too large.
    """
    n = len(values)
    rises = sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :])
    if n > _LISTED:
        return _normal_p(abs(rises) - 1, n * (n - 1) * (2 * n + 5) / 18)
    ways = [1]
    for i in range(2, n + 1):
        # ways[k]: the number of orders of i values with k inversions. The i-th value adds 0 to i-1 inversions.
        ways = [sum(ways[max(0, k - i + 1) : k + 1]) for k in range(len(ways) + i - 1)]
    most = n * (n - 1) // 2
    as_far = sum(w for k, w in enumerate(ways) if abs(most - 2 * k) >= abs(rises))
    return as_far / sum(ways)


def rank_sum_p(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the two-sided p of Wilcoxon's rank sum with mid-ranks, exact up to forty values; 1.0 if ``a`` or ``b`` is
    empty."""
    if not a or not b:
        return 1.0
    everything = sorted([*a, *b])
    # Equal values share the mean of their ranks. Twice this mean is a whole number.
    twice = {v: everything.index(v) + (len(everything) - everything[::-1].index(v)) + 1 for v in set(everything)}
    ranks = [twice[v] for v in everything]
    expected = len(a) * (len(everything) + 1)
    seen = abs(sum(twice[v] for v in a) - expected)
    if len(everything) > _LISTED:
        return _normal_p(seen - 1, len(a) * len(b) * (len(everything) + 1) / 3)
    ways: list[dict[int, int]] = [{0: 1}, *({} for _ in a)]
    for rank in ranks:
        for size in range(len(a), 0, -1):
            for total, count in ways[size - 1].items():
                ways[size][total + rank] = ways[size].get(total + rank, 0) + count
    as_far = sum(count for total, count in ways[len(a)].items() if abs(total - expected) >= seen)
    return as_far / math.comb(len(everything), len(a))


def _normal_p(distance: float, variance: float) -> float:
    """Return the two-sided p of a normal variable: the probability of a deviation of ``distance`` or more.
    ``variance``: the variance of the variable. The caller has already applied the continuity correction to
    ``distance``."""
    return min(1.0, 2 * NormalDist().cdf(-max(0.0, distance) / math.sqrt(variance)))


def _second_over_first(pairs: Pairs, orders: Sequence[Order]) -> float | None:
    """Return the typical ratio of a round's second run to its first run; None if it is not known.

    Let s be this ratio, and let c be the ratio that the change alone causes. Values with the change are divided by
    values without it. In the order AB (without the change first), the measured ratio is c · s. In the order BA, the
    measured ratio is c / s. So s is the square root of (measured ratio in AB / measured ratio in BA).
    """
    ratios: list[float] = []
    for which in ("AB", "BA"):
        chosen = [i for i, order in enumerate(orders) if order == which]
        ratio = estimate(Pairs(tuple(pairs.x[i] for i in chosen), tuple(pairs.y[i] for i in chosen), pairs.counted))
        if not ratio:
            return None
        ratios.append(ratio)
    return math.sqrt(ratios[0] / ratios[1])


def _words(name: str, rounds: int, later: float | None, later_p: float, second: float | None, second_p: float) -> str:
    if rounds < _FEWEST:
        return f"Drift of {name}: too few rounds to show one."
    found: list[str] = []
    if later_p < SIGNIFICANCE and later is not None:
        found.append(f"it {'rose' if later > 1 else 'fell'} over the rounds (later half: {_percent(later)})")
    if second_p < SIGNIFICANCE and second is not None:
        found.append(f"the second run of a round compared with the first run: {_percent(second)}")
    if not found:
        return f"Drift of {name}: none was seen."
    still = "The order of the runs is random, so drift makes verdicts rarer, but not wrong."
    return f"Drift of {name}: {'; '.join(found)}. {still}"


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.0f} %" if 0.5 < ratio < 2 else f"at {ratio:.2g}×"
