"""Hosts that differ from the rest: exact p values, and how often fleets without a difference get a claim."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence

import pytest

from jitter_workshop.model.fleet import FleetRow
from jitter_workshop.stats.exact import student_two_sided
from jitter_workshop.stats.fleet import ALL_ZERO, FEW_HOSTS, ONE_RUN, RunValues, compare_hosts, luck_of_runs
from jitter_workshop.stats.multiple_comparisons import benjamini_hochberg

Draw = Callable[[random.Random], float]


def made_fleet(
    chance: random.Random, hosts: int, runs: int, luck: Draw, between: float, slow: int = 0, factor: float = 2.0
) -> RunValues:
    """Two figures of a fleet. The first ``slow`` hosts are slower. ``luck``: a run's deviation. ``between``: how much
    hosts differ that are bought alike. Both are of the logarithm."""
    return {
        figure: {
            f"h{host}": [
                math.exp(own + luck(chance)) * (factor if host < slow else 1.0) for _ in range(runs)
            ]
            for host in range(hosts)
            for own in (chance.gauss(0, between),)
        }
        for figure in ("p50", "p99")
    }  # fmt: skip


def even(chance: random.Random) -> float:
    return chance.gauss(0, 0.15)


def wild(chance: random.Random) -> float:
    """A t distribution with two degrees of freedom: some runs are far off."""
    return 0.15 * chance.gauss(0, 1) / math.sqrt(-math.log(1 - chance.random()))


def claims(rows: Sequence[FleetRow]) -> list[FleetRow]:
    return [row for row in rows if row.different]


@pytest.mark.parametrize(("luck", "between"), [(even, 0.0), (even, 0.3), (wild, 0.0), (wild, 0.2)])
@pytest.mark.parametrize(("hosts", "runs"), [(8, 3), (20, 5)])
def test_fleets_without_a_difference_get_few_claims(luck: Draw, between: float, hosts: int, runs: int) -> None:
    """Each claim here is false, so the false discovery rate is the share of fleets with a claim."""
    chance, fleets = random.Random(1), 200
    false = sum(
        bool(claims(compare_hosts(made_fleet(chance, hosts, runs, luck, between))[0])) for _ in range(fleets)
    )  # fmt: skip
    # 5 % of 200 fleets are 10. More than 18 have a probability below 1 % if the rate is exactly 5 %.
    assert false <= 18


@pytest.mark.parametrize(("luck", "between"), [(even, 0.1), (wild, 0.1)])
def test_among_the_claims_few_are_false_and_most_slow_hosts_are_found(luck: Draw, between: float) -> None:
    chance, fleets, slow = random.Random(2), 100, 3
    share, found = 0.0, 0
    for _ in range(fleets):
        claimed = claims(compare_hosts(made_fleet(chance, 20, 5, luck, between, slow, 3.0))[0])
        false = sum(int(row.host[1:]) >= slow for row in claimed)
        share += false / max(len(claimed), 1)
        found += len(claimed) - false
        assert all(row.direction == "higher" for row in claimed if int(row.host[1:]) < slow)
    assert share / fleets <= 0.08
    assert found >= 0.8 * fleets * slow * 2


def test_the_least_ratio_tells_which_difference_is_found() -> None:
    chance = random.Random(3)
    _, (figure, _) = compare_hosts(made_fleet(chance, 20, 5, even, 0.05))
    assert figure.least_ratio is not None
    found = [
        bool(claims(compare_hosts(made_fleet(chance, 20, 5, even, 0.05, 1, factor))[0]))
        for factor in (figure.least_ratio * 1.5, 1.05)
        for _ in range(10)
    ]
    assert sum(found[:10]) >= 8
    assert sum(found[10:]) <= 1


def test_hosts_that_differ_together_are_found_up_to_the_number_that_is_told() -> None:
    """Slow hosts hide each other: with few runs, a third of a fleet is not told from luck."""
    for runs in (3, 5, 10):
        _, (figure, _) = compare_hosts(made_fleet(random.Random(4), 40, runs, even, 0.05))
        for slow, whole in ((figure.together, True), (min(2 * figure.together, 19), runs == 10)):
            rows, _ = compare_hosts(made_fleet(random.Random(4), 40, runs, even, 0.05, slow, 50.0))
            assert (len(claims(rows)) == 2 * slow) is whole, (runs, slow, len(claims(rows)))


@pytest.mark.parametrize("values", [(1, 2, 3, 4, 5, 6, 7), (1, 1, 2, 2, 2, 3, 3), (0, 0, 0, 0, 0, 0, 9)])
@pytest.mark.parametrize("runs", [2, 3])
def test_the_luck_of_runs_is_never_underestimated(values: tuple[float, ...], runs: int) -> None:
    """Each choice of runs is equally likely: at most a share p of the choices may have a p as small."""
    found = sorted(luck_of_runs(own, values) for own in itertools.combinations(values, runs))
    assert all(sum(other <= p for other in found) / len(found) <= p + 1e-12 for p in found)


def test_the_luck_of_runs_is_a_count_of_choices() -> None:
    """The two highest of five values: one choice of ten, and the lowest ones would be as strange."""
    assert luck_of_runs((5, 4), (1, 2, 3, 4, 5)) == pytest.approx(2 / 10)
    assert luck_of_runs((1, 5), (1, 2, 3, 4, 5)) == 1.0


def test_a_host_with_one_run_gets_no_test_and_does_not_disturb() -> None:
    values = {"p50": {f"h{n}": [100.0 + n, 101.0 + n, 102.0] for n in range(6)} | {"single": [900.0]}}
    rows, (figure,) = compare_hosts(values)
    (single,) = (row for row in rows if row.host == "single")
    assert (single.different, single.p, single.why, single.direction) == (None, None, ONE_RUN, "")
    assert single.ratio == pytest.approx(900 / 102, rel=0.05)
    assert (figure.hosts, figure.tested) == (7, 6)


def test_four_hosts_are_too_few() -> None:
    rows, (figure,) = compare_hosts({"p50": {f"h{n}": [1.0, 2.0] for n in range(4)}})
    assert {row.why for row in rows} == {FEW_HOSTS}
    assert (figure.least_ratio, figure.why) == (None, FEW_HOSTS)


def test_too_few_runs_are_told_with_a_number_that_would_do() -> None:
    _, (figure,) = compare_hosts({"p50": {f"h{n}": [1.0 + n, 2.0] for n in range(6)}})
    assert figure.least_ratio is None
    assert "runs of each host would do" in figure.why


def test_rates_of_nothing_are_no_difference_and_one_noisy_host_is_found() -> None:
    quiet = {f"h{n:02}": [0.0] * 5 for n in range(12)}
    rows, (figure,) = compare_hosts({"stalls": quiet})
    assert claims(rows) == []
    assert figure.why == ALL_ZERO
    rows, _ = compare_hosts({"stalls": quiet | {"h03": [4.0, 5.0, 3.0, 6.0, 4.0]}})
    assert [(row.host, row.ratio, row.direction) for row in claims(rows)] == [("h03", None, "higher")]


def test_a_small_difference_is_none_however_sure_it_is() -> None:
    values = {f"h{n:02}": [100.0 + n / 100, 100.1, 100.05] for n in range(30)} | {"odd": [108.0, 108.0, 108.0]}
    assert claims(compare_hosts({"p50": values})[0]) == []
    assert [row.host for row in claims(compare_hosts({"p50": values | {"odd": [115.0] * 3}})[0])] == ["odd"]


@pytest.mark.parametrize(
    ("t", "freedom", "p"), [(12.706, 1, 0.05), (2.228, 10, 0.05), (3.169, 10, 0.01), (-2.042, 30, 0.05), (0, 4, 1)]
)
def test_students_distribution_has_the_quantiles_of_its_tables(t: float, freedom: float, p: float) -> None:
    assert student_two_sided(t, freedom) == pytest.approx(p, rel=2e-3)


def test_adjusted_values_are_those_of_benjamini_and_hochberg() -> None:
    """Of the fifteen values in section 3.2 of their paper, four are claimed at 5 %."""
    ps = [
        *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344),
        *(0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
    ]
    adjusted = benjamini_hochberg(list(reversed(ps)))
    assert sum(p <= 0.05 for p in adjusted) == 4
    assert adjusted == sorted(adjusted, reverse=True)
    assert adjusted[-1] == pytest.approx(0.0015)
    assert benjamini_hochberg([]) == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([1.5])
