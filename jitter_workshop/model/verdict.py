"""Define the results of paired rounds: their figures, and a verdict for each measure (``stats`` computes them).

A round has two new runs, one without the change and one with it. Their order is drawn by chance. Times are in ns unless
a name says otherwise."""

from __future__ import annotations

from typing import Literal

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import StallRate

Order = Literal["AB", "BA"]
"""The order of the two runs of a round. AB: first the run without the change, then the run with it. BA: the reverse."""
VerdictWord = Literal["lower", "higher", "no_change", "cannot_tell"]

ENOUGH_ROUNDS = 10
"""The least number of rounds for a verdict."""
SIGNIFICANCE = 0.05
"""The largest share of proofs in which any line may claim a change that is not there."""
CONFIDENCE = 0.95
"""The confidence of each line's own interval, except a command's."""
COMMAND_SHARE = 0.5
"""The share of SIGNIFICANCE that the one line of a command has: half, as the primary line of our own runs. So 1 minus
``COMMAND_SHARE * SIGNIFICANCE`` is the confidence of its interval (docs/verdicts.md)."""
NO_CHANGE_WITHIN = 0.10
"""The width w of the band of no change. A verdict ``no_change`` needs a whole interval between 1/(1 + w) and 1 + w."""


@dataclass(frozen=True, slots=True)
class CommandFigure:
    """Hold the figure that a user's command measured in one run.

    - ``measure``: the figure's name in JSON (``stats.comparison.measure_name`` has names for people).
    - ``unit``: ``ns`` for a time, else the user's own word.
    - ``value``: zero or more.
    """

    measure: str
    unit: str
    value: float


@dataclass(frozen=True, slots=True)
class Side:
    """Hold one run of a round.

    - ``duration_s``: the time in which stalls could be seen.
    - ``stalls``: rates of distinct stalls by decade.
    - ``stolen_ns_per_second``: the time in all stalls over ``threshold_ns``.
    - ``percentiles``: percentile → ns in the main histogram, None if there are too few samples.
    - ``beyond``: percentile → a number of distinct stalls whose length is at least the percentile's value. There may be
      more such stalls, because a run lists only its longest stalls. Only stalls of the thread that fills the histogram
      count.
    - ``figure``: the figure of a user's command, None for the tool's own runs. If there is a figure, nothing else is
      compared.
    """

    run: str
    duration_s: float
    threshold_ns: int
    stalls: tuple[StallRate, ...]
    stolen_ns_per_second: float
    percentiles: dict[str, int | None]
    beyond: dict[str, int]
    worst_ns: int | None
    resolution_ns: int
    figure: CommandFigure | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """Hold one round: two runs, one made right after the other."""

    order: Order
    without: Side
    with_it: Side


@dataclass(frozen=True, slots=True)
class Verdict:
    """Hold one line of a proof's result: a measure and its verdict.

    - ``without``, ``with_it``: the measure without and with the change. A rate is in events a second, and time in
      stalls in ns a second. A percentile is a geometric mean in ns. A command's figure is a geometric mean in ``unit``.
    - ``unit``: the unit of a command's figure, "" for the lines of our own runs.
    - ``ratio``: with/without; None if the value without the change is 0, or if there is nothing to compare.
    - ``low``, ``high``: the interval of the ratio, not adjusted for other lines. ``high`` is None if there is no upper
      bound.
    - ``p``: the p value of this line, not adjusted for other lines.
    - ``p_adjusted``: the p value adjusted for all lines shown; 1.0 for a line that cannot show a change. A proof with a
      command has only one line, which may use half of the usual error rate. So the line's ``p_adjusted`` is twice its
      ``p``.
    - ``rounds_needed``: number of rounds that would decide this line, if its spread stays the same. None if the line is
      decided, or would need too many rounds.
    - ``confidence``: the confidence of the interval: 0.975 for a user's command, otherwise 0.95.
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
    unit: str = ""
    confidence: float = CONFIDENCE


@dataclass(frozen=True, slots=True)
class Headline:
    """Hold the line that is shown first, in words."""

    measure: str
    verdict: VerdictWord
    text: str


@dataclass(frozen=True, slots=True)
class Drift:
    """Hold how a measure depends on time and on the order of the runs. No figure is corrected for these effects.

    - ``later_ratio``: the mean in the last half of the rounds, divided by the mean in the first half.
    - ``second_ratio``: the mean in the second runs of the rounds, divided by the mean in the first runs. The change's
      effect is removed from the values before these means are computed.
    - ``later_p``, ``second_p``: the exact p value of each ratio. The p values are not adjusted for each other.

    A ratio is None if a mean is zero or unknown.
    """

    measure: str
    later_ratio: float | None
    later_p: float
    second_ratio: float | None
    second_p: float
    words: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """Hold all results of paired rounds.

    - ``rows``: one verdict for each measure, the primary measures first.
    - ``worst``: a sentence on the longest latency without and with the change. A maximum is one event, so it gets no
      verdict.
    """

    rounds: int
    rows: tuple[Verdict, ...]
    headline: Headline
    drift: Drift
    worst: str


@dataclass(frozen=True, slots=True)
class Budget:
    """Hold how many ``messages`` a run needs to have ten events beyond a percentile, and how many ``seconds`` these
    messages take.

    ``stalls_seen``: True if a stall counts as one event, False if each late message counts as one event. It is True if
    an earlier run on this host had stalls that each made several messages late.
    """

    percentile: str
    messages: int
    seconds: float
    stalls_seen: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """Hold how well a run supports the value of a percentile.

    - ``samples_beyond``: the number of samples beyond the percentile.
    - ``stalls_beyond``: the number of distinct stalls beyond the percentile.
    - ``solid``: True if at least ten samples lie beyond the percentile. A chart then draws a full line.
    - ``proof``: True if not only ten samples, but also ten distinct stalls lie beyond the percentile. A percentile
      above p99 gets a verdict only if this is True.
    """

    percentile: str
    value_ns: int | None
    samples_beyond: float
    stalls_beyond: int
    solid: bool
    proof: bool
