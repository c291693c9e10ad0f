"""Count how often ``prove -- CMD`` claims a change where there is none, and how often it sees one.

* Made up: the share of proofs that see a change of the figure, and the share that claim one where there is none, for
  hosts whose runs differ in several ways.
* Run: 200 comparisons of ten rounds each compare a command with itself; which run of a round is called "with" is drawn
  as in a proof, and no run is in two of them. The commands are a loop of the shell and a ring between two threads of a
  JVM. Each run gives the wall time, the user time and, for the ring, the percentiles that it prints. The environment
  variable COMPARISONS sets another number; with 0 nothing is run.
"""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from jitter_workshop.flow.programs.kept import Ended, KeptCommand
from jitter_workshop.flow.programs.metrics import Metric, metric_of_options
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, SIGNIFICANCE, Order
from jitter_workshop.stats.multiple_comparisons import adjust
from jitter_workshop.stats.paired import p_value
from jitter_workshop.stats.rounds import draw_orders, figure_rounds, measure_lines
from jitter_workshop.stats.verdicts import judge_change
from tests.bench.figures import Figure, keep
from tests.calibration.judging import exact

COMPARISONS = int(os.environ.get("COMPARISONS", "200"))
PROOFS_OF_POWER = 400
PROOFS_OF_NOTHING = 4_000
POWER = [(spread, ratio, n) for spread in (0.02, 0.1, 0.3) for ratio in (1.05, 1.2, 2.0) for n in (10, 20)]
SHELL = ("sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done")
RING = Path(__file__).with_name("Ring.java")
PERCENTILES = tuple(metric_of_options(None, match=f"{name}=([0-9]+)", unit="ns") for name in ("p50", "p99"))
Run = dict[str, float]
T = TypeVar("T")


def shell_loop(folder: Path) -> tuple[tuple[str, ...], tuple[Metric, ...]]:
    return SHELL, ()


def java_ring(folder: Path) -> tuple[tuple[str, ...], tuple[Metric, ...]] | None:
    """The command of the ring; None where there is no JDK."""
    java, compiler = shutil.which("java"), shutil.which("javac")
    if java is None or compiler is None:
        return None
    subprocess.run([compiler, "-d", str(folder), str(RING)], check=True)
    options = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx64m", "-cp", str(folder.resolve()))
    return (java, *options, "Ring", "20000"), PERCENTILES


def measured(words: Sequence[str], metrics: Sequence[Metric]) -> Run:
    """One run of a command, as a proof makes it."""
    with KeptCommand(words, 60.0) as command:
        command.release()
        ended: Ended = command.result()
    found = {"wall_time": float(ended.wall_ns), "user_time": float(ended.user_ns)}
    for metric in metrics:
        found[re.sub(r"\W.*", "", metric.pattern)] = metric.of_output(ended.output).value
    return found


def sorted_by(order: Order, first: T, second: T) -> tuple[T, T]:
    """Return the run without the change, and the run with it. ``first``: the run that was made first."""
    return (first, second) if order == "AB" else (second, first)


def comparison(words: Sequence[str], metrics: Sequence[Metric], seed: int) -> list[tuple[Order, Run, Run]]:
    """Rounds of a command against itself: (order, the run that is called "without", the one that is called "with")."""
    found: list[tuple[Order, Run, Run]] = []
    for order in draw_orders(ENOUGH_ROUNDS, seed):
        first, second = measured(words, metrics), measured(words, metrics)
        found.append((order, *sorted_by(order, first, second)))
    return found


def claims(found: Sequence[Sequence[tuple[Order, Run, Run]]], measure: str) -> int:
    """Return how many comparisons claim a change of a measure, by the judgement of ``prove``."""
    known = measure if measure.endswith("time") else "match"

    def word(rounds: Sequence[tuple[Order, Run, Run]]) -> str:
        figures = [(order, a[measure], b[measure]) for order, a, b in rounds]
        return judge_change(figure_rounds(known, "ns", figures), "command").headline.verdict

    return sum(word(rounds) in ("lower", "higher") for rounds in found)


def power(spread: float, ratio: float, rounds: int) -> float:
    """The share of made-up proofs that see a ratio. ``spread``: the coefficient of variation of one run's figure."""
    chance, deviation = random.Random(7_000), math.sqrt(math.log1p(spread * spread))
    seen = 0
    for seed in range(PROOFS_OF_POWER):
        pairs = [
            (order, chance.lognormvariate(0, deviation), ratio * chance.lognormvariate(0, deviation))
            for order in draw_orders(rounds, seed)
        ]
        seen += judge_change(figure_rounds("wall_time", "ns", pairs), "command").headline.verdict in ("lower", "higher")
    return seen / PROOFS_OF_POWER


def _as_levels(level: Callable[[random.Random, int], float]) -> Callable[[random.Random], list[float]]:
    """Return a function that makes the times of a proof's runs, in order of time. ``level``: the log of the time of a
    run, by its number; 5 % of luck are added."""
    return lambda chance: [math.exp(level(chance, n) + chance.gauss(0, 0.05)) for n in range(2 * ENOUGH_ROUNDS)]


def _two_levels(chance: random.Random) -> list[float]:
    found, slow = [], chance.random() < 0.5
    for _ in range(2 * ENOUGH_ROUNDS):
        slow ^= chance.random() < 0.1
        found.append(math.exp(0.3 * slow + chance.gauss(0, 0.02)))
    return found


def _related(chance: random.Random) -> list[float]:
    found, level = [], chance.gauss(0, 0.2)
    for _ in range(2 * ENOUGH_ROUNDS):
        level = 0.8 * level + 0.6 * chance.gauss(0, 0.2)
        found.append(math.exp(level))
    return found


NOTHING: dict[str, Callable[[random.Random], list[float]]] = {
    "even runs": _as_levels(lambda chance, n: 0.0),
    "one run in four twice as long": _as_levels(lambda chance, n: 0.7 * (chance.random() < 0.25)),
    "two levels, each for ten runs or so": _two_levels,
    "each run like the one before (0.8)": _related,
    "1.5 times as long at the end": _as_levels(lambda chance, n: 0.4 * n / (2 * ENOUGH_ROUNDS)),
    "the first runs twice as long": _as_levels(lambda chance, n: 0.7 * math.exp(-n / 2)),
    "the second run always 1.2 times as long": _as_levels(lambda chance, n: 0.18 * (n % 2)),
    "slow in turn: short, long, long, short": _as_levels(lambda chance, n: 0.18 * (n % 4 in (1, 2))),
}
"""Hosts on which the change does nothing: a function that makes the times of a proof's runs, in order of time."""


def claims_of_nothing(host: str) -> int:
    """Return how many of PROOFS_OF_NOTHING proofs of ten rounds claim a change on a host of NOTHING."""
    chance, claimed = random.Random(9_000), 0
    for seed in range(PROOFS_OF_NOTHING):
        times = iter(NOTHING[host](chance))
        pairs = [(order, *sorted_by(order, next(times), next(times))) for order in draw_orders(ENOUGH_ROUNDS, seed)]
        (line,) = measure_lines(figure_rounds("wall_time", "ns", pairs), "command")
        claimed += adjust([line], [p_value(line.pairs)])[0] < SIGNIFICANCE
    return claimed


def run(folder: Path) -> list[Figure]:
    figures = []
    for host in NOTHING:
        seen = claims_of_nothing(host)
        low, high = exact(seen, PROOFS_OF_NOTHING)
        how = f"{seen} of {PROOFS_OF_NOTHING} made-up proofs, 95 %: {100 * low:.1f} to {100 * high:.1f} %"
        figures.append(Figure(f"{host}: false claims", 100 * seen / PROOFS_OF_NOTHING, "%", 5, how))
    for spread, ratio, rounds in POWER:
        missed = 100 * (1 - power(spread, ratio, rounds))
        how = f"runs that vary by {spread:.0%}, {rounds} rounds, {PROOFS_OF_POWER} made-up proofs"
        figures.append(Figure(f"×{ratio:g} missed", missed, "%", None, how))
    for name, make in (("shell loop", shell_loop), ("Java ring", java_ring)):
        made = make(folder)
        if made is None:
            print(f"{name}: left out (no JDK)")
            continue
        found = []
        for seed in range(COMPARISONS):
            found.append(comparison(*made, seed))
            keep(folder, f"commands-{name.replace(' ', '-')}", found)
        for measure in found[0][0][1] if found else ():
            seen = claims(found, measure)
            low, high = exact(seen, len(found))
            how = f"{seen} of {len(found)} comparisons of ten rounds, 95 %: {100 * low:.1f} to {100 * high:.1f} %"
            figures.append(Figure(f"{name}, {measure}: false claims", 100 * seen / len(found), "%", 5, how))
    return figures
