"""Estimate the ratio of values with a change to values without it, from runs made in pairs.

The module also tests the ratio against 1, and computes its interval and its spread. Each pair (x without, y with)
contributes to the test of a ratio r:

    d(r) = (v - u) / (v + u + c),   v = y / √r, u = x · √r

If x and y change places and r becomes 1/r, d becomes -d. For times (a percentile), c is 0. Then d is tanh of half the
distance between the pair's log ratio and log r. As tanh is bounded, an extreme round has no more weight than any other.
For counted events, c is 10:

- Far below ten events, a pair's contribution grows with its number of events, as the score of a Poisson rate does. A
  pair without events contributes 0. So 0 need not be replaced by half an event, as a logarithm would require.
- Far above ten events, the contribution is the same bounded function of the log ratio as for times.
- At about ten events, chance between rounds begins to outweigh chance in the counts: 4/c = 0.6², where about 0.6 is the
  spread of the log ratio between rounds.

The test flips signs (``stats.exact.flip_p``). For r = 1 and rounds of random order, the test is exact, whatever the
distribution of the values is. At other ratios, flipped score contributions keep the right error rate under
overdispersion (Hemerik, Goeman and Finos, JRSS B 82, 2020). The interval contains all ratios that the test does not
reject.

All runs with the change, or all runs without it, may have no event. A flip test then cannot tell how large their true
rate may be. So a ratio of counts is rejected only if a second test rejects it, too: the exact conditional test of two
Poisson rates (Przyborowski and Wilenski, Biometrika 1940). The second test can only widen intervals and raise p-values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from jitter_workshop.model.verdict import CONFIDENCE
from jitter_workshop.stats.exact import binomial_two_sided, flip_p, solve

SOFTENING = 10.0
"""The constant c of the module's docstring, for counted events."""

_FAR = 40.0
_FIRST_STEP = 0.05
_FINE = 1e-5
_HAIR = 1e-12
"""A pair whose log ratio is closer than this to the tested log ratio counts as equal to it. So small a difference comes
from rounding alone."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Hold one measure's values in all rounds: ``x`` without the change, ``y`` with it.

    ``counted``: True for numbers of events in equal time, False for times in ns. ``step``: times that differ by less
    than this count as equal. ``shift``, ``slope``: a correction for each pair, () for none. A correction is needed if
    other settings also differ between the two runs of a pair. These other settings change the pair's log ratio by shift
    + (slope - 1) × the tested log ratio. The test takes this amount into account. Raise ValueError if the lengths
    differ, or if a value is negative or not finite.
    """

    x: tuple[float, ...]
    y: tuple[float, ...]
    counted: bool = False
    step: float = 0.0
    shift: tuple[float, ...] = ()
    slope: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or any(len(one) not in (0, len(self.x)) for one in (self.shift, self.slope)):
            raise ValueError("each pair needs a value without and a value with the change")
        if any(not (math.isfinite(v) and v >= 0) for v in (*self.x, *self.y)):
            raise ValueError("each value must be a finite number, zero or more")

    def contributions(self, log_ratio: float) -> list[float]:
        """Return the contribution d of each pair to the test of a log ratio, in the order of the pairs."""
        soft = SOFTENING if self.counted else 0.0
        slope = self.slope or (1.0,) * len(self.shift)
        roots = [math.exp((log_ratio * a + b) / 2) for a, b in zip(slope, self.shift, strict=True)]
        roots = roots or [math.exp(log_ratio / 2)] * len(self.x)
        step, found = self.step, []
        for x, y, root in zip(self.x, self.y, roots, strict=True):
            if step and -step < y - x < step:
                x = y = (x + y) / 2
            v, u = y / root, x * root
            whole = v + u + soft
            apart = (v - u) / whole if whole else 0.0
            found.append(0.0 if -_HAIR <= apart <= _HAIR else apart)
        return found

    @property
    def coarseness(self) -> float:
        """Return the largest change of a log ratio that the clock's resolution alone can cause."""
        smallest = min((sum(side) / len(side) for side in (self.x, self.y) if side), default=0.0)
        return math.log1p(self.step / smallest) if self.step and smallest > 0 else 0.0


def p_value(pairs: Pairs, log_ratio: float = 0.0, give_up: float = 1.0) -> float:
    """Return the p-value of a log ratio. Let this ratio be the true one. Then the p-value is the probability of pairs
    at least as far from it as the given pairs. ``give_up``: if the flip test's p is above ``give_up``, the second test
    is left out, because it could only raise p.
    """
    p = flip_p(pairs.contributions(log_ratio))
    if not pairs.counted or pairs.shift or p > give_up:
        return p
    return max(p, _poisson_p(pairs, log_ratio))


def no_change_p(pairs: Pairs, within: float) -> float:
    """Return the p-value of the claim that nothing changes. Let the true ratio be outside the band. Then the p-value
    is the largest probability of pairs as close to the ratio 1 as the given pairs. The band goes from 1/(1 + within)
    to 1 + within, made narrower by the clock's resolution.

    The result is the larger p of two one-sided tests, one at each end of the band (Schuirmann, Journal of
    Pharmacokinetics and Biopharmaceutics 15, 1987).
    """
    edge = math.log1p(within) - pairs.coarseness
    if edge <= 0:
        return 1.0

    def one_sided(end: float) -> float:
        towards_one = math.fsum(pairs.contributions(end)) * end < 0
        return p_value(pairs, end) / 2 if towards_one else 1.0

    return max(one_sided(-edge), one_sided(edge))


def estimate(pairs: Pairs) -> float | None:
    """Return the ratio at which the sum of the contributions is 0. The ratio is 0 if there are no events with the
    change. Return None if there are no events without the change, or no events at all."""
    if not any(pairs.x):
        return None
    if not any(pairs.y):
        return 0.0
    return math.exp(solve(lambda r: math.fsum(pairs.contributions(r)), 0.0, -_FAR, _FAR))


def ratio_interval(pairs: Pairs, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return the smallest and the largest ratio that the test does not reject; 0 or infinity means no bound. The
    clock's step widens the interval."""
    doubt = 1 - confidence

    def accepted(log_ratio: float) -> bool:
        return p_value(pairs, log_ratio, doubt) > doubt

    middle = estimate(pairs)
    start = _FAR if middle is None else max(-_FAR, min(_FAR, math.log(middle))) if middle else -_FAR
    if middle is None and not any(pairs.y):
        return 0.0, math.inf
    low, high = _edge(accepted, start, -1), _edge(accepted, start, 1)
    return math.exp(low - pairs.coarseness), math.exp(high + pairs.coarseness)


def log_ratio_and_spread(pairs: Pairs) -> tuple[float, float] | None:
    """Return the log ratio of all pairs together, and one pair's standard deviation of it. The number of rounds that
    are needed depends on these two numbers. Return None if there are no events.

    The standard deviation is the sandwich estimate from the contributions. For counts, it is at least as large as the
    standard deviation of a Poisson distribution. If no run with the change has an event, half an event is assumed for
    these runs. The same is done for the runs without the change.
    """
    x, y, n = math.fsum(pairs.x), math.fsum(pairs.y), len(pairs.x)
    if not n or not (x or y):
        return None
    middle = estimate(pairs)
    counting = math.sqrt(n * (1 / max(x, 0.5) + 1 / max(y, 0.5))) if pairs.counted else 0.0
    if not middle:
        return math.log(max(y, 0.5) / max(x, 0.5)), max(counting, 1.0)
    seen = math.sqrt(math.fsum(d * d for d in pairs.contributions(math.log(middle))) * n / max(n - 1, 1))
    slope = _slope(pairs, middle)
    return math.log(middle), max(counting, seen / slope * math.sqrt(n) if slope else 0.0)


def _poisson_p(pairs: Pairs, log_ratio: float) -> float:
    x, y = math.fsum(pairs.x), math.fsum(pairs.y)
    return binomial_two_sided(y, x + y, 1 / (1 + math.exp(-log_ratio))) if x + y else 1.0


def _slope(pairs: Pairs, ratio: float) -> float:
    """Return the derivative of the contributions' sum by the log ratio, as a positive number."""
    root, soft = math.sqrt(ratio), SOFTENING if pairs.counted else 0.0
    both = [(y / root, x * root) for x, y in zip(pairs.x, pairs.y, strict=True) if x or y]
    return math.fsum((2 * u * v + soft * (u + v) / 2) / (u + v + soft) ** 2 for v, u in both)


def _edge(accepted: Callable[[float], bool], start: float, direction: int) -> float:
    """Search from ``start`` in a direction (1 or -1), and return the last log ratio that the test accepts; infinite if
    the test accepts all."""
    inside, step = start, _FIRST_STEP
    while accepted(outside := inside + direction * step):
        inside, step = outside, step * 2
        if abs(inside) > _FAR:
            return direction * math.inf
    # Without events in one of the two, the search starts at the far end, beyond which no ratio is rejected.
    if abs(start) >= _FAR and start * direction > 0:
        return direction * math.inf
    while abs(outside - inside) > _FINE:
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if accepted(middle) else (inside, middle)
    return outside
