"""Made-up rounds that look like a host's: medians of two kinds, few long stalls, good and bad runs."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

from jitter_workshop.model.run import StallRate
from jitter_workshop.model.spec import STALL_DECADES_NS
from jitter_workshop.model.verdict import SIGNIFICANCE, Round, Side
from jitter_workshop.stats.multiple_comparisons import adjust
from jitter_workshop.stats.paired import p_value
from jitter_workshop.stats.rounds import draw_orders, measure_lines
from jitter_workshop.stats.verdicts import judge_change

QUICK_S = 5.0

LAPTOP = {1_000: 100.0, 10_000: 320.0, 100_000: 3.5, 1_000_000: 1.2}
"""Stalls a second within each decade: a small machine, pinned, ring at 10 µs."""
QUIET = {1_000: 40.0, 10_000: 5.0, 100_000: 0.0, 1_000_000: 0.0}
NOISY = {threshold: rate * 10 for threshold, rate in LAPTOP.items()}
LENGTHS_NS = {1_000: 3_000, 10_000: 20_000, 100_000: 300_000, 1_000_000: 3_000_000}


def poisson(chance: random.Random, mean: float) -> int:
    """A Poisson count (Knuth's way; of many the normal one)."""
    if mean > 200:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    count, product, floor = 0, chance.random(), math.exp(-mean)
    while product > floor:
        product *= chance.random()
        count += 1
    return count


def make_side(chance: random.Random, per_second: Mapping[int, float], spread: float, level: float = 1.0) -> Side:
    """A run of five seconds; ``spread``: the coefficient of variation of whole runs, so that its counts are negative
    binomial and rise and fall together with its percentiles."""
    luck = chance.gammavariate(1 / spread**2, spread**2) if spread else 1.0
    count, stolen_ns, rates = 0, 0.0, []
    for threshold in sorted(per_second, reverse=True):
        here = poisson(chance, per_second[threshold] * QUICK_S * luck * level)
        count += here
        stolen_ns += here * LENGTHS_NS[threshold] * chance.lognormvariate(0, 0.3)
        rates.append(StallRate(threshold, count, count / QUICK_S, stolen_ns / QUICK_S))
    median = chance.choice((90, 140)) + chance.choice((0, 0, 10))
    return Side(
        run="run",
        duration_s=QUICK_S,
        threshold_ns=STALL_DECADES_NS[0],
        stalls=tuple(reversed(rates)),
        stolen_ns_per_second=stolen_ns / QUICK_S,
        percentiles={
            "50": median,
            "99": round(300 * luck * chance.lognormvariate(0, 0.2)),
            "99.9": round(20_000 * luck * level * chance.lognormvariate(0, 0.3)),
            "99.99": round(80_000 * luck * level * chance.lognormvariate(0, 0.6)),
        },
        beyond={"50": count, "99": count, "99.9": 30, "99.99": 5},
        worst_ns=3_000_000,
        resolution_ns=10,
    )


def make_rounds(
    seed: int,
    rounds: int = 10,
    ratio: float = 1.0,
    per_second: Mapping[int, float] = LAPTOP,
    spread: float = 0.2,
    drift: float = 0.0,
    second: float = 1.0,
) -> list[Round]:
    """Rounds whose stalls are ``ratio`` times as frequent with the change. ``drift``: the log of what the last round
    has over the first; ``second``: what the second run of a round has over its first."""
    chance = random.Random(seed)
    made: list[Round] = []
    for number, order in enumerate(draw_orders(rounds, chance.randrange(2**30))):
        level = math.exp(drift * number / rounds)
        without = make_side(chance, per_second, spread, level * (second if order == "BA" else 1))
        with_it = make_side(chance, per_second, spread, level * ratio * (second if order == "AB" else 1))
        made.append(Round(order, without, with_it))
    return made


NULLS: dict[str, dict[str, Any]] = {
    "even": {"spread": 0.1},
    "as measured": {"spread": 0.2},
    "wild runs": {"spread": 1.0},
    "quiet": {"per_second": QUIET, "spread": 0.5},
    "noisy": {"per_second": NOISY, "spread": 0.5},
    "drifting": {"drift": 2.0},
    "second run worse": {"second": 1.5},
    "forty rounds": {"rounds": 40},
}
"""Hosts on which the change does nothing."""


def false_claims(host: str, proofs: int, first_seed: int = 1_000) -> float:
    """The share of proofs on a host of :data:`NULLS` in which any line would claim a change."""
    claimed = 0
    for seed in range(first_seed, first_seed + proofs):
        shown = measure_lines(make_rounds(seed, **NULLS[host]))
        adjusted = adjust(shown, [p_value(line.pairs) for line in shown])
        claimed += any(p < SIGNIFICANCE and not line.gate for p, line in zip(adjusted, shown, strict=True))
    return claimed / proofs


def false_no_change(
    ratio: float, proofs: int, rounds: int = 10, spread: float = 0.02, first_seed: int = 1_000
) -> float:
    """The share of proofs in which any line would say that it changes by less than 10 % or not at all, though every one
    has truly become ``ratio`` times as large."""
    said = 0
    for seed in range(first_seed, first_seed + proofs):
        judged = judge_change(make_even_rounds(seed, ratio, rounds, spread))
        said += any(row.verdict == "no_change" or "less than ±10 %" in row.words for row in judged.rows)
    return said / proofs


def make_even_rounds(seed: int, ratio: float, rounds: int = 10, spread: float = 0.02) -> list[Round]:
    """Rounds whose lines are independent of each other and spread little, and all ``ratio`` times as large with it."""
    chance = random.Random(seed)

    def level(mean: float) -> float:
        return mean * chance.lognormvariate(0, spread)

    def side(by: float) -> Side:
        rates = [
            StallRate(threshold, round(level(much * by)), 0.0, 0.0)
            for threshold, much in ((1_000, 10**8), (10_000, 10**7), (100_000, 10**6), (1_000_000, 10**5))
        ]
        times = {"50": 10**6, "99": 10**7, "99.9": 10**8, "99.99": 10**9}
        return Side(
            run="run",
            duration_s=QUICK_S,
            threshold_ns=1_000,
            stalls=tuple(rates),
            stolen_ns_per_second=level(10**8 * by),
            percentiles={p: round(level(mean * by)) for p, mean in times.items()},
            beyond={"99.9": 50, "99.99": 50},
            worst_ns=10**10,
            resolution_ns=1,
        )

    return [Round(order, side(1.0), side(ratio)) for order in draw_orders(rounds, chance.randrange(2**30))]
