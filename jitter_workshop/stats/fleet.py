"""Find the hosts whose figures differ from those of all other hosts. Hosts are blocks: a host's runs belong together.

A claim needs two things, so each row has two p values, and the larger one counts:

- It is not the luck of runs. If a host were like the others, its runs would be a random choice of all runs. The exact
  probability is computed that so many of the chosen runs are among the highest (or lowest) ones. No distribution is
  assumed.
- It is not the fleet's ordinary spread. Hosts that are bought alike differ a little. The host's median is compared
  with the medians of the other hosts, on a logarithmic scale, by their median and their median absolute deviation
  (MAD). This ratio has about a t distribution. It has a third as many degrees of freedom as there are other hosts,
  because the MAD of few values is not known well.

A host within 10 % of the others is never claimed. All p values together are adjusted by the method of Benjamini and
Hochberg, so the expected share of false claims among the claims is bounded. tests/unit/test_stats_fleet.py simulates
fleets and counts this share.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jitter_workshop.model.fleet import FDR, FleetFigure, FleetRow, HostDirection
from jitter_workshop.model.text import many
from jitter_workshop.model.verdict import NO_CHANGE_WITHIN
from jitter_workshop.stats.exact import solve, student_two_sided
from jitter_workshop.stats.multiple_comparisons import benjamini_hochberg

FEWEST_HOSTS = 5
"""The least number of hosts with two runs or more for which there is a test."""
ONE_RUN = "one run: no test"
ALL_ZERO = "every run has the value 0"
FEW_HOSTS = f"fewer than {FEWEST_HOSTS} hosts with two runs or more: no test"
_SIDES = 2
_MAD_TO_DEVIATION = 1.4826
"""The standard deviation of normal values is this number times their MAD."""
_FREEDOM = 3
"""A t distribution with n / _FREEDOM degrees of freedom has, in its tails, the quantiles of (x - median) / MAD for n
normal values, or larger ones (simulated for n = 4 to 99)."""
_LARGEST_T = 1e9
_MOST_RUNS = 100

RunValues = Mapping[str, Mapping[str, Sequence[float]]]
"""Figure → host → the values of its runs, none of them negative."""


@dataclass(frozen=True, slots=True)
class _Spread:
    """Hold the centre of hosts' medians and their standard deviation, both of logarithms."""

    centre: float
    deviation: float


def compare_hosts(values: RunValues, fdr: float = FDR) -> tuple[tuple[FleetRow, ...], tuple[FleetFigure, ...]]:
    """Return a row for each figure and host, and for each figure what its tests could find. The rows that differ come
    first, those with the smallest p before the others. ``fdr``: the bound of the false discovery rate, 0 to 1."""
    found = [row for figure, hosts in values.items() if hosts for row in _rows(figure, hosts)]
    tested = [i for i, row in enumerate(found) if row.p is not None]
    adjusted = dict(zip(tested, benjamini_hochberg([found[i].p or 0.0 for i in tested]), strict=True))
    rows = [_judged(row, adjusted.get(i), fdr) for i, row in enumerate(found)]
    rows.sort(key=lambda row: (not row.different, row.p if row.p is not None else 2.0))
    limit = fdr / max(len(tested), 1)
    return tuple(rows), tuple(_power(figure, hosts, limit) for figure, hosts in values.items() if hosts)


def luck_of_runs(own: Sequence[float], everything: Sequence[float]) -> float:
    """Return the two-sided p of a host's runs as a random choice of all runs.

    ``own``: the host's values. ``everything``: the sorted values of all hosts, ``own`` included. Two events are looked
    at: more than half of the runs, and all runs, are among the highest (or lowest). Equal values count as equally
    extreme. The p is exact, times the number of events looked at.
    """
    total, runs = len(everything), len(own)
    ordered = sorted(own)
    needed = sorted({runs // 2 + 1, runs})
    best = 1.0
    for hits in needed:
        above = total - bisect_left(everything, ordered[runs - hits])
        below = bisect_right(everything, ordered[hits - 1])
        best = min(best, _chosen(total, above, runs, hits), _chosen(total, below, runs, hits))
    return min(1.0, _SIDES * len(needed) * best)


def _chosen(total: int, marked: int, runs: int, hits: int) -> float:
    """Return the probability that at least ``hits`` of ``runs`` values, chosen from ``total``, are among the
    ``marked`` ones (hypergeometric)."""
    ways = sum(math.comb(marked, n) * math.comb(total - marked, runs - n) for n in range(hits, min(runs, marked) + 1))
    return ways / math.comb(total, runs)


def _rows(figure: str, hosts: Mapping[str, Sequence[float]]) -> list[FleetRow]:
    medians = {host: statistics.median(seen) for host, seen in hosts.items()}
    able = [host for host, seen in hosts.items() if len(seen) > 1]
    enough = len(able) >= FEWEST_HOSTS
    everything = sorted(value for host in able for value in hosts[host])
    shift = _shift(value for seen in hosts.values() for value in seen)
    places = {host: math.log(medians[host] + shift) for host in able}
    ordered = sorted(places.values())
    usual_runs = statistics.median(len(hosts[host]) for host in able) if able else 0
    by_size = sorted(medians.values())
    rows = []
    for host, seen in hosts.items():
        p, direction = None, ""
        why = ONE_RUN if len(seen) < 2 else "" if enough else FEW_HOSTS
        if not why:
            beyond = _spread(_without(ordered, places[host]))
            away = places[host] - beyond.centre
            # A host with fewer runs than most has a median that is known less well.
            wide = beyond.deviation * math.sqrt(max(1.0, usual_runs / len(seen)))
            p = max(_luck_of_hosts(away, wide, len(able) - 1), luck_of_runs(seen, everything))
            p = p if abs(away) > math.log(1 + NO_CHANGE_WITHIN) else 1.0
            direction = "higher" if away > 0 else "lower"
        fleet = statistics.median(_without(by_size, medians[host])) if len(by_size) > 1 else medians[host]
        ratio = medians[host] / fleet if fleet else None
        rows.append(
            FleetRow(
                *(figure, host, medians[host], min(seen), max(seen), None, _direction(direction)),
                *(len(seen), fleet, ratio, p, None, why),
            )
        )
    return rows


def _direction(word: str) -> HostDirection:
    return "higher" if word == "higher" else "lower" if word == "lower" else ""


def _judged(row: FleetRow, adjusted: float | None, fdr: float) -> FleetRow:
    """Return the row with its adjusted p and with the claim. Without a claim it has no direction."""
    claimed = None if adjusted is None else adjusted <= fdr
    return FleetRow(
        *(row.figure, row.host, row.value, row.low, row.high, claimed, row.direction if claimed else ""),
        *(row.runs, row.fleet, row.ratio, row.p, adjusted, row.why),
    )


def _without(ordered: Sequence[float], value: float) -> list[float]:
    """Return sorted values without one value that is among them."""
    at = bisect_left(ordered, value)
    return [*ordered[:at], *ordered[at + 1 :]]


def _spread(ordered: Sequence[float]) -> _Spread:
    centre = statistics.median(ordered)
    return _Spread(centre, _MAD_TO_DEVIATION * statistics.median(abs(value - centre) for value in ordered))


def _luck_of_hosts(away: float, deviation: float, others: int) -> float:
    """Return the two-sided p of a host that is ``away`` from the centre of the other hosts."""
    if deviation <= 0:
        return 0.0 if away else 1.0
    return student_two_sided(away / deviation, others / _FREEDOM)


def _shift(values: Iterable[float]) -> float:
    """Return the number to add to each value before its logarithm is taken: half of the smallest value above 0 if any
    value is 0, else 0."""
    seen = sorted(set(values))
    return next((value for value in seen if value > 0), 1.0) / 2 if seen and seen[0] <= 0 else 0.0


def _power(figure: str, hosts: Mapping[str, Sequence[float]], limit: float) -> FleetFigure:
    """Return what the tests of a figure could find. ``limit``: the p that a single claim needs."""
    able = {host: seen for host, seen in hosts.items() if len(seen) > 1}
    if len(able) < FEWEST_HOSTS:
        return FleetFigure(figure, len(hosts), 0, None, 0, FEW_HOSTS)
    if not any(value for seen in able.values() for value in seen):
        return FleetFigure(figure, len(hosts), len(able), None, 0, ALL_ZERO)
    runs = round(statistics.median(map(len, able.values())))
    if _least_luck(len(able), runs) > limit:
        needed = next((n for n in range(runs + 1, _MOST_RUNS) if _least_luck(len(able), n) <= limit), None)
        advice = f"; {many(needed, 'run')} of each host would do" if needed is not None else ""
        why = f"too few runs: a single host that differs could not be found{advice}"
        return FleetFigure(figure, len(hosts), len(able), None, 0, why)
    shift = _shift(value for seen in hosts.values() for value in seen)
    spread = _spread(sorted(math.log(statistics.median(seen) + shift) for seen in able.values()))
    freedom = (len(able) - 1) / _FREEDOM
    away = spread.deviation * solve(lambda t: student_two_sided(t, freedom), limit, 0.0, _LARGEST_T)
    least = math.exp(min(away, math.log(_LARGEST_T)))
    together = _most_together(len(able), runs, limit)
    return FleetFigure(figure, len(hosts), len(able), max(least, 1 + NO_CHANGE_WITHIN), together)


def _least_luck(hosts: int, runs: int, together: int = 0) -> float:
    """Return the p of :func:`luck_of_runs` for a host whose runs are all beyond those of the others. ``together``: the
    number of hosts that are so, each with its runs among theirs; 0 for one host with the most extreme runs of all."""
    total, tries = hosts * runs, {runs // 2 + 1, runs}
    best = min(_chosen(total, together * runs or hits, runs, hits) for hits in tries)
    return min(1.0, _SIDES * len(tries) * best)


def _most_together(hosts: int, runs: int, limit: float) -> int:
    """Return how many hosts may differ in the same way and are still found. They hide each other: the more of them
    there are, the less strange are the runs of each."""
    fits = (
        together
        for together in range((hosts - 1) // 2, 1, -1)
        if _least_luck(hosts, runs, together) <= together * limit
    )
    return next(fits, 1)
