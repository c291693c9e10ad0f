"""Tell of stalls that are shorter than those which the result of two runs counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jitter_workshop.flow.chapters.judging import neither_is_better
from jitter_workshop.model.run import StallRate
from jitter_workshop.report.diagnosis_words import label
from jitter_workshop.stats.effect import CHANCE, LEAST_EVENTS, MOVED, judge_of
from jitter_workshop.stats.figures import FIGURES, KnownRun
from jitter_workshop.stats.scale import nice_ns, nice_number

_OF_THE_HOST = "no_event"
"""The kind of cause that has no event: what took the time lies below the kernel."""
_MOST = 0.5
"""The least share of the difference with which a cause is named."""


def short_stalls_told(runs: Sequence[KnownRun]) -> str:
    """Return a sentence on the shortest stalls of two runs, if their number moved by the factor MOVED or more, and by
    more than chance explains; else "". They are stalls between the runs' two lowest thresholds, usually 1 and 10 µs.

    If longer stalls judge the runs, their result does not count the short ones, but their curves show them. Return ""
    for other runs. The sentence names the cause of most of the difference, if the traces tell it. Also return "" for
    runs of another machine, of an emulated one, and for two kinds of run of which neither can be better."""
    if len(runs) != 2 or any(seen.timeless or seen.recorded is not None for seen in runs) or neither_is_better(runs):
        return ""
    if FIGURES[judge_of(None, *runs)].unit != "a second":
        return ""
    both = [sorted(seen.run.stalls.rates, key=lambda rate: rate.threshold_ns)[:2] for seen in runs]
    first, second = ([rate.threshold_ns for rate in rates] for rates in both)
    if first != second or len(first) < 2:
        return ""
    counts = [rates[0].count - rates[1].count for rates in both]
    each = [_between(*rates) for rates in both]
    low, high = sorted(each)
    by_chance = abs(counts[1] - counts[0]) < CHANCE * math.sqrt(sum(counts))
    if max(counts) < LEAST_EVENTS or by_chance or high < MOVED * low:
        return ""
    span = f"{nice_ns(first[0]).rpartition(' ')[0]} to {nice_ns(first[1])}"
    told = " → ".join(nice_number(float(f"{rate:.3g}")) for rate in each)
    return f"Stalls of {span}: {told} a second{_most_from(runs, each)}."


def _between(lowest: StallRate, next_one: StallRate) -> float:
    """Return the rate, in stalls a second, of the stalls between two thresholds."""
    return lowest.per_second - next_one.per_second


def _most_from(runs: Sequence[KnownRun], each: Sequence[float]) -> str:
    """Return a clause on the cause of which at least half of the difference in short stalls comes; "" if the traces do
    not tell it. ``each``: the rate of short stalls in each run."""
    more = int(each[1] > each[0])
    rates: list[dict[str, float]] = []
    for seen in runs:
        if seen.report is None or seen.report.measured_ns <= 0:
            return ""
        rates.append({})
        for one in seen.report.causes:
            name = _cause(one.kind, one.name)
            # Several causes of one stall have one name: their numbers are not added up.
            rates[-1][name] = max(rates[-1].get(name, 0.0), one.count * 1e9 / seen.report.measured_ns)
    grown = {name: rate - rates[1 - more].get(name, 0.0) for name, rate in rates[more].items()}
    most = max(grown, key=lambda name: grown[name], default="")
    if not most or grown[most] < _MOST * (each[more] - each[1 - more]):
        return ""
    return f", most {most}"


def _cause(kind: str, name: str) -> str:
    return "with no event of the kernel" if kind == _OF_THE_HOST else f"from {label(kind, name)}"
