"""Count how often a screening finds the few of nineteen settings that matter, and how often it claims a false one, on
simulated hosts with recorded noise (tests/madescreenings.py). Other designs stand beside it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.model.screening import ScreenedPair, ScreenedRun
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, SIGNIFICANCE, Side
from jitter_workshop.stats.multiple_comparisons import holm
from jitter_workshop.stats.paired import p_value
from jitter_workshop.stats.rounds import draw_orders, measure_lines
from jitter_workshop.stats.screening import measure_of, one_by_one, screening_result
from jitter_workshop.stats.verdicts import Round
from tests.bench.figures import Figure, keep
from tests.calibration.judging import exact
from tests.madescreenings import ACTIVE, SETTINGS, SimulatedHost, screened

HOSTS = 200
OTHERS = 60
"""The hosts for the designs that are only compared."""
FOUND, FALSE, SHARE = 90, 5, 100 / 3
"""The goals, in percent: found at least, hosts with a false claim at most, runs at most of those of one at a time."""


@dataclass(frozen=True)
class Case:
    """Hold a kind of host. ``ratios``: the effects of the settings that matter. ``seconds``: the length of a run.
    ``both``: the first two matter only together, by the first ratio."""

    name: str
    ratios: tuple[float, ...]
    seconds: int = 5
    both: bool = False


CASES = (
    Case("three halve the stalls", (0.5,) * ACTIVE),
    Case("three halve the stalls, runs of 1 s", (0.5,) * ACTIVE, seconds=1),
    Case("three take away 40 %", (0.6,) * ACTIVE),
    Case("÷5, ÷2 and ×2", (0.2, 0.5, 2.0)),
    Case("two do ÷5, but only together", (0.2, 1.0), both=True),
    Case("nothing matters", ()),
)


@dataclass
class Tally:
    """Hold what was seen on hosts of one case. ``active``: the settings that matter, on all hosts together.
    ``covered``, ``of``: the intervals that hold the true ratio, and all intervals."""

    hosts: int = 0
    active: int = 0
    chosen: int = 0
    found: int = 0
    whole: int = 0
    false: int = 0
    runs: int = 0
    covered: int = 0
    of: int = 0


def host_of(case: Case, seed: int) -> tuple[SimulatedHost, dict[int, float]]:
    """Return a host, and the settings that matter there with their main effects."""
    places = random.Random(f"places {seed}").sample(range(SETTINGS), len(case.ratios))
    if case.both:
        host = SimulatedHost(seed, {}, case.seconds, both=(places[0], places[1]), by=case.ratios[0])
        return host, dict.fromkeys(places, case.ratios[0] ** 0.5)
    effects = dict(zip(places, case.ratios, strict=True))
    return SimulatedHost(seed, effects, case.seconds), effects


def screen(case: Case, hosts: int, first_seed: int = 0) -> Tally:
    """Screen hosts of a case."""
    seen = Tally()
    for seed in range(first_seed, first_seed + hosts):
        host, effects = host_of(case, seed)
        made = screened(host, SETTINGS, seed)
        told = screening_result(made)
        assert told is not None
        claimed = {int(row.setting.rpartition("-")[2]) for row in told.ranked if row.verdict in ("lower", "higher")}
        seen.hosts += 1
        seen.active += len(effects)
        seen.chosen += len(effects.keys() & set(made.chosen))
        seen.found += len(effects.keys() & claimed)
        seen.whole += effects.keys() <= claimed
        seen.false += bool(claimed - effects.keys())
        seen.runs = host.made
        for row in told.ranked:
            true = effects.get(int(row.setting.rpartition("-")[2]), 1.0)
            seen.covered += row.low <= true <= (row.high if row.high is not None else true)
            seen.of += 1
    return seen


def one_at_a_time(case: Case, hosts: int) -> Tally:
    """Prove each setting alone, in ten rounds each, with one error rate over all."""
    seen = Tally(runs=one_by_one(SETTINGS))
    for seed in range(hosts):
        host, effects = host_of(case, seed)
        ps = []
        for setting in range(SETTINGS):
            rounds = []
            for order in draw_orders(ENOUGH_ROUNDS, seed * SETTINGS + setting):
                first, second = (host.run(on) for on in (((), (setting,)) if order == "AB" else ((setting,), ())))
                rounds.append(Round(order, first, second) if order == "AB" else Round(order, second, first))
            shown = {line.measure: line.pairs for line in measure_lines(rounds)}
            ps.append(p_value(shown["stalls_per_second_over_100000_ns"]))
        claimed = {n for n, p in enumerate(holm(ps)) if p < SIGNIFICANCE}
        seen.hosts += 1
        seen.active += len(effects)
        seen.found += len(effects.keys() & claimed)
        seen.whole += effects.keys() <= claimed
        seen.false += bool(claimed - effects.keys())
    return seen


def halving(case: Case, hosts: int, keep_last: int = 4) -> Tally:
    """Choose by sequential halving: each setting alone beside a run without any, the better half goes on. Each stage
    makes about as many runs, and all stages together as many as the pairs that choose."""
    seen = Tally()
    for seed in range(hosts):
        host, effects = host_of(case, seed)
        left = list(range(SETTINGS))
        random.Random(f"halving {seed}").shuffle(left)
        sums = dict.fromkeys(left, 0.0)
        while len(left) > keep_last:
            for _ in range(max(1, 12 // (len(left) + 1))):
                base = host.run(())
                for setting in left:
                    sums[setting] += _apart(base, host.run((setting,)))
            left = sorted(left, key=lambda n: -abs(sums[n]))[: max(keep_last, -(-len(left) // 2))]
        seen.hosts += 1
        seen.runs = host.made
        seen.active += len(effects)
        seen.chosen += len(effects.keys() & set(left))
    return seen


def singly(case: Case, hosts: int, rounds: int = 12) -> Tally:
    """Choose as a screening does, and prove the chosen ones in rounds of five runs: none, and each of them alone."""
    seen = Tally()
    for seed in range(hosts):
        host, effects = host_of(case, seed)
        pairs = screened(host, SETTINGS, seed, proofs=0)
        by_arm: dict[tuple[int, ...], list[Side]] = {}
        arms = [(), *((n,) for n in pairs.chosen)]
        chance = random.Random(f"singly {seed}")
        for _ in range(rounds):
            for on in chance.sample(arms, len(arms)):
                by_arm.setdefault(on, []).append(host.run(on))
        ps = []
        for n in pairs.chosen:
            both = [Round("AB", base, other) for base, other in zip(by_arm[()], by_arm[(n,)], strict=True)]
            ps.append(p_value({line.measure: line.pairs for line in measure_lines(both)}[pairs.measure]))
        claimed = {n for n, p in zip(pairs.chosen, holm(ps), strict=True) if p < SIGNIFICANCE}
        seen.hosts += 1
        seen.runs = host.made
        seen.active += len(effects)
        seen.found += len(effects.keys() & claimed)
        seen.whole += effects.keys() <= claimed
        seen.false += bool(claimed - effects.keys())
    return seen


def _apart(base: Side, other: Side) -> float:
    pair = [ScreenedPair(ScreenedRun((), base), ScreenedRun((0,), other))]
    measure, _ = measure_of(pair, "ring")
    found = {line.measure: line.pairs for line in measure_lines([Round("AB", base, other)])}
    return sum(found[measure].contributions(0.0))


def _percent(part: int, of: int) -> str:
    low, high = exact(part, of)
    return f"{part} of {of}, 95 %: {100 * low:.1f} to {100 * high:.1f} %"


def figures_of(case: Case, seen: Tally) -> list[Figure]:
    """Return the figures of a case. The share of missed settings stands beside the share that the goal allows."""
    claimed = _percent(seen.false, seen.hosts)
    without = 100 - 100 * seen.covered / seen.of
    made = [
        Figure(f"{case.name}: hosts with a false claim", 100 * seen.false / seen.hosts, "%", FALSE, claimed),
        Figure(f"{case.name}: intervals without the true ratio", without, "%", 5, f"of {seen.of}"),
    ]
    if seen.active:
        missed, hosts = seen.active - seen.found, seen.hosts - seen.whole
        share, chosen = 100 * hosts / seen.hosts, 100 * seen.chosen / seen.active
        made += [
            Figure(f"{case.name}: missed", 100 * missed / seen.active, "%", 100 - FOUND, _percent(missed, seen.active)),
            Figure(f"{case.name}: hosts with any missed", share, "%", None, _percent(hosts, seen.hosts)),
            Figure(f"{case.name}: not chosen", 100 - chosen, "%", None, f"of {seen.active}"),
        ]
    return made


def run(folder: Path, hosts: int = HOSTS, others: int = OTHERS) -> list[Figure]:
    figures: list[Figure] = []
    raw: dict[str, Mapping[str, int]] = {}
    for case in CASES:
        seen = screen(case, hosts)
        raw[case.name] = vars(seen)
        figures += figures_of(case, seen)
        keep(folder, "screening", raw)
    first = CASES[0]
    share = 100 * raw[first.name]["runs"] / one_by_one(SETTINGS)
    figures.append(Figure("runs, of those of one at a time", share, "%", SHARE, f"{raw[first.name]['runs']} runs"))
    for name, design in (
        ("one at a time", one_at_a_time),
        ("chosen ones singly", singly),
        ("choice by halving", halving),
    ):
        seen = design(first, others)
        raw[f"{first.name}: {name}"] = vars(seen)
        missed = seen.active - (seen.chosen if design is halving else seen.found)
        how = f"{seen.runs} runs; {_percent(missed, seen.active)}"
        figures.append(Figure(f"{first.name}, {name}: missed", 100 * missed / seen.active, "%", None, how))
    keep(folder, "screening", raw)
    return figures
