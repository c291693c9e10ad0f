"""Verdicts on made-up hosts: how often they claim what is not there, and how often they miss what is."""

from __future__ import annotations

from pathlib import Path

from jitter_workshop.model.verdict import SIGNIFICANCE
from jitter_workshop.stats.comparison import stall_measure
from jitter_workshop.stats.multiple_comparisons import adjust
from jitter_workshop.stats.paired import p_value
from jitter_workshop.stats.rounds import measure_lines
from tests.bench.figures import Figure, keep
from tests.maderounds import LAPTOP, NULLS, false_claims, false_no_change, make_rounds

PROOFS = 2_000
PROOFS_OF_POWER = 200
RATES = (1, 2, 5, 20, 100)
SPREADS = (0.1, 0.2, 0.3, 0.5)
ROUNDS = (10, 20, 40)
RATIOS = (1.3, 2.0, 4.0)


def power(rounds: int, ratio: float, spread: float, per_second: float) -> float:
    """The share of proofs that claim a change of stalls over 100 µs, of which there are ``per_second`` without it."""
    rates = {**LAPTOP, 100_000: per_second * 0.75, 1_000_000: per_second * 0.25}
    seen = 0
    for seed in range(PROOFS_OF_POWER):
        shown = measure_lines(make_rounds(9_000 + seed, rounds, ratio, rates, spread))
        adjusted = adjust(shown, [p_value(line.pairs) for line in shown])
        at = next(i for i, line in enumerate(shown) if line.measure == stall_measure(100_000))
        seen += adjusted[at] < SIGNIFICANCE
    return seen / PROOFS_OF_POWER


def run(folder: Path) -> list[Figure]:
    figures = [
        Figure(f"false claims, {host}", false_claims(host, PROOFS, 500_000), "", 0.05, f"{PROOFS} proofs of nothing")
        for host in NULLS
    ]
    figures.append(
        Figure(
            "false claims of no change",
            false_no_change(1.1001, 1_000, spread=0.05, first_seed=500_000),
            "",
            0.05,
            "1,000 proofs, all lines just outside the band",
        )
    )
    table = [
        {"per_second": rate, "spread": spread, "rounds": n, "ratio": ratio, "power": power(n, ratio, spread, rate)}
        for rate in RATES
        for spread in SPREADS
        for n in ROUNDS
        for ratio in RATIOS
    ]
    keep(folder, "power", table)
    usual = {"per_second": 5, "spread": 0.2, "rounds": 10, "ratio": 2.0}
    seen = next(row["power"] for row in table if usual.items() <= row.items())
    figures.append(
        Figure("a doubling over 100 µs missed", 1 - seen, "", 0.1, f"ten rounds, 5/s, {PROOFS_OF_POWER} proofs")
    )
    return figures
