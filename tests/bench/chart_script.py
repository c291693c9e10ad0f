"""pyperf script: six curves drawn afresh at 200×60 and at 80×24, and once more from the cache."""

from __future__ import annotations

import random

import pyperf

from jitter_workshop.chart import canvas
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.stats.curve import percentile_curve
from jitter_workshop.stats.histogram import new_histogram


def curves(seed: int) -> list[PercentileCurve]:
    source = random.Random(seed)
    made = []
    for n in range(6):
        histogram = new_histogram()
        for _ in range(5_000):
            histogram.record_value(int(100 * (n + 1) * source.paretovariate(0.9)) % 10**9 + 40)
        made.append(percentile_curve(histogram, f"curve {n}"))
    return made


def main() -> None:
    runner = pyperf.Runner()
    sets = [curves(seed) for seed in range(16)]
    turn = iter(range(10**9))

    def afresh(width: int, height: int) -> None:
        # Another set and another highlight each time: the cache never has it.
        n = next(turn)
        canvas.draw_curves(sets[n % 16], width, height, "dark", n // 16 % 6, [(99.9, 1_000 + n)])

    runner.bench_func("200×60", afresh, 200, 60)
    runner.bench_func("80×24", afresh, 80, 24)
    runner.bench_func("from the cache", canvas.draw_curves, sets[0], 200, 60)


if __name__ == "__main__":
    main()
