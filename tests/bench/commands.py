"""Count how often ``prove -- CMD`` claims a change where there is none.

200 comparisons of ten rounds each compare a command with itself; which run of a round is called "with" is drawn as in a
proof, and no run is in two of them. The commands are a loop of the shell and a ring between two threads of a JVM. Each
run gives the wall time, the user time and, for the ring, the percentiles that it prints.
"""

from __future__ import annotations

import math
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from jitter_workshop.flow.programs.kept import Ended, KeptCommand
from jitter_workshop.flow.programs.metrics import Metric, chosen
from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Order
from jitter_workshop.stats.rounds import draw_orders, figure_rounds
from jitter_workshop.stats.verdicts import judge
from tests.bench.figures import Figure, keep
from tests.calibration.judging import exact

COMPARISONS = 200
PROOFS_OF_POWER = 400
POWER = [(spread, ratio, n) for spread in (0.02, 0.1, 0.3) for ratio in (1.05, 1.2, 2.0) for n in (10, 20)]
SHELL = ("sh", "-c", "i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done")
RING = Path(__file__).with_name("Ring.java")
PERCENTILES = tuple(chosen(None, match=f"{name}=([0-9]+)", unit="ns") for name in ("p50", "p99"))
Run = dict[str, float]


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


def comparison(words: Sequence[str], metrics: Sequence[Metric], seed: int) -> list[tuple[Order, Run, Run]]:
    """Rounds of a command against itself: (order, the run that is called "without", the one that is called "with")."""
    found: list[tuple[Order, Run, Run]] = []
    for order in draw_orders(ENOUGH_ROUNDS, seed):
        first, second = measured(words, metrics), measured(words, metrics)
        found.append((order, *((first, second) if order == "AB" else (second, first))))
    return found


def claims(found: Sequence[Sequence[tuple[Order, Run, Run]]], measure: str) -> int:
    """Return how many comparisons claim a change of a measure, by the judgement of ``prove``."""
    known = measure if measure.endswith("time") else "match"

    def word(rounds: Sequence[tuple[Order, Run, Run]]) -> str:
        figures = [(order, a[measure], b[measure]) for order, a, b in rounds]
        return judge(figure_rounds(known, "ns", figures), "command").headline.verdict

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
        seen += judge(figure_rounds("wall_time", "ns", pairs), "command").headline.verdict in ("lower", "higher")
    return seen / PROOFS_OF_POWER


def run(folder: Path) -> list[Figure]:
    figures = []
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
        for measure in found[0][0][1]:
            seen = claims(found, measure)
            low, high = exact(seen, len(found))
            how = f"{seen} of {len(found)} comparisons of ten rounds, 95 %: {100 * low:.1f} to {100 * high:.1f} %"
            figures.append(Figure(f"{name}, {measure}: false claims", 100 * seen / len(found), "%", 5, how))
    return figures
