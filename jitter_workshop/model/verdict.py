"""Define the results of paired rounds: their figures, and a verdict for each measure (the arithmetic is in ``stats``).

A round is a fresh run without the change and one with it, in an order drawn by chance. Times are ns unless named.
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import StallRate

Order = Literal["AB", "BA"]
"""AB: first the run without the change, then the one with it."""
VerdictWord = Literal["lower", "higher", "no_change", "cannot_tell"]

ENOUGH_ROUNDS = 10
"""The least number of rounds for a verdict."""
SIGNIFICANCE = 0.05
"""The largest share of judgements in which any line may claim a change that is not there."""
CONFIDENCE = 0.95
"""The confidence of each line's own interval."""
NO_CHANGE_WITHIN = 0.10
"""The half-width of the band of no change: for ``no_change`` the whole interval lies between 1/(1 + this) and 1 + this.
"""


@dataclass(frozen=True, slots=True)
class Side:
    """Hold one run of a round. ``duration_s``: the time in which stalls could be seen. ``stalls``: rates of distinct
    stalls by decade. ``stolen_ns_per_second``: by all stalls over ``threshold_ns``. ``percentiles``: ns of the main
    histogram, None where there are too few samples. ``beyond``: for each of them, the known number of distinct stalls
    at least as long, of the histogram's own thread."""

    run: str
    duration_s: float
    threshold_ns: int
    stalls: tuple[StallRate, ...]
    stolen_ns_per_second: float
    percentiles: dict[str, int | None]
    beyond: dict[str, int]
    worst_ns: int | None
    resolution_ns: int


@dataclass(frozen=True, slots=True)
class Round:
    """Hold a pair of runs made one right after the other."""

    order: Order
    without: Side
    with_it: Side


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold one line. ``without`` and ``with_it``: events a second, ns stolen a second, or the geometric mean in ns.

    ``ratio`` is with/without; None where there was nothing without the change, or nothing to compare. ``low`` and
    ``high`` enclose it at 95 %, this line alone; ``high`` None is without bound. ``p`` is this line's own;
    ``p_adjusted`` allows for all lines shown (1.0 where a line can claim nothing). ``rounds_needed``: how many rounds
    would tell, at the spread seen; None where the line tells already or no sensible number would.
    """

    measure: str
    ratio: float | None
    low: float
    high: float | None
    p: float
    p_adjusted: float
    verdict: VerdictWord
    rounds_needed: int | None
    words: str
    without: float | None = None
    with_it: float | None = None


@dataclass(frozen=True, slots=True)
class Headline:
    """Hold the line that is shown first."""

    measure: str
    verdict: VerdictWord
    text: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Hold the effect of time and order on a measure over the rounds: shown, never corrected for.

    ``later_ratio``: level of the last half of the rounds over that of the first. ``second_ratio``: level of the second
    run of a round over its first, without the change's effect. None where a level is zero or unknown. The ps are exact,
    each on its own.
    """

    measure: str
    later_ratio: float | None
    later_p: float
    second_ratio: float | None
    second_p: float
    words: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold all results of paired rounds: ``rows`` with the primary measures first. ``worst``: the longest seen on each
    side, in words only, because a maximum is one event and supports no verdict."""

    rounds: int
    rows: tuple[Verdict, ...]
    headline: Headline
    drift: Drift
    worst: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Hold the samples needed until ten events lie beyond a percentile: ``messages``, and the ``seconds`` in which they
    come.

    ``stalls_seen``: it was computed from how often this host stalls, not from single messages alone.
    """

    percentile: str
    messages: int
    seconds: float
    stalls_seen: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """Hold the support of a run's percentile: samples beyond it and distinct stalls beyond it. ``solid``: ten samples,
    as the chart draws it. ``proof``: ten distinct stalls too, as a verdict needs beyond p99."""

    percentile: str
    value_ns: int | None
    samples_beyond: float
    stalls_beyond: int
    solid: bool
    proof: bool
