"""Combine runs made in pairs into rounds, in an order drawn by chance."""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable

from jitter_workshop.model.run import Run, Stall
from jitter_workshop.model.spec import KINDS
from jitter_workshop.model.verdict import Order, Round, Side
from jitter_workshop.stats.comparison import differences
from jitter_workshop.stats.stalls import union


def draw_orders(rounds: int, seed: int) -> tuple[Order, ...]:
    """Return as many AB as BA (an odd one by chance) in random order. A steady drift, and the effect of a run on the
    next one, then fall on both sides alike."""
    chance = random.Random(seed)
    both: tuple[Order, Order] = ("AB", "BA")
    orders = [both[i % 2] for i in range(rounds - rounds % 2)] + [chance.choice(both) for _ in range(rounds % 2)]
    chance.shuffle(orders)
    return tuple(orders)


def side_of(run: Run) -> Side:
    """Return the figures of a run that verdicts need. Its time is the one that its rates refer to: a sampler with
    pauses was looking for less time than the run lasted.
    """
    summary = run.histograms.get(run.main_histogram)
    percentiles = dict(summary.percentiles) if summary else {}
    return Side(
        run=run.id,
        duration_s=run.rated_s,
        threshold_ns=run.stalls.threshold_ns,
        stalls=run.stalls.rates,
        stolen_ns_per_second=run.stalls.stolen_ns_per_second,
        percentiles=percentiles,
        beyond={key: stalls_beyond(run, value) for key, value in percentiles.items() if value is not None},
        worst_ns=summary.max if summary else None,
        resolution_ns=run.clock.resolution_ns,
    )


def stalls_beyond(run: Run, value_ns: int) -> int:
    """Count the distinct stalls of the main histogram's own thread that lasted at least ``value_ns``: those beyond one
    of its percentiles. Another thread's stalls do not count, and stalls that overlap are one event.

    A run with many stalls lists only the longest, so this is a lower bound: it can prevent a verdict, but not cause
    one. Where the rates count that thread alone, they are used instead (not for ``ring``, whose rates include the
    producer's stalls).
    """
    own = main_stalls(run)
    long = [s.start_ns for s in own if s.duration_ns >= value_ns]
    begins = [start for start, _ in union((s.start_ns, s.end_ns) for s in own)]
    listed = len({bisect_right(begins, start) for start in long})
    if run.workload not in KINDS or len(KINDS[run.workload].rated) > 1:
        return listed
    return max([listed, *(r.count for r in run.stalls.rates if r.threshold_ns >= value_ns)])


def main_stalls(run: Run) -> tuple[Stall, ...]:
    """Return the listed stalls of the main histogram's thread."""
    return tuple(s for s in run.stalls.worst if s.thread == run.main_thread)


def rounds_of(pairs: Iterable[tuple[Order, Run, Run]]) -> tuple[Round, ...]:
    """Return rounds from (order, run without, run with). Raise ValueError, in words, where any two runs were not
    measured alike (``comparison.differences``)."""
    listed = list(pairs)
    runs = [run for _, without, with_it in listed for run in (without, with_it)]
    for run in runs[1:]:
        if unlike := differences(runs[0], run):
            raise ValueError(f"runs {runs[0].id} and {run.id} cannot be compared: " + "; ".join(unlike))
    return tuple(Round(order, side_of(without), side_of(with_it)) for order, without, with_it in listed)
