"""Distinct stalls and their rates."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.run import Stall
from jitter_workshop.stats import stalls
from jitter_workshop.stats.exact import rate_limits

WINDOWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda w: (w[0], w[0] + w[1])), max_size=20)


@dataclass(frozen=True)
class Total:
    threshold_ns: int
    count: int
    stolen_ns: int


@given(WINDOWS)
def test_the_union_covers_the_same_nanoseconds_once(windows: list[tuple[int, int]]) -> None:
    merged = stalls.union(windows)
    assert {t for s, e in merged for t in range(s, e)} == {t for s, e in windows for t in range(s, e)}
    assert all(a[1] < b[0] for a, b in itertools.pairwise(merged))


def test_rates_are_sums_over_the_measured_time() -> None:
    blocks = [Total(1_000, 4, 40_000), Total(10_000, 1, 20_000), Total(1_000, 6, 60_000)]
    low, high = stalls.stall_rates(blocks, 2.0)
    assert (low.threshold_ns, low.count, low.per_second, low.stolen_ns_per_second) == (1_000, 10, 5.0, 50_000.0)
    assert (high.threshold_ns, high.count) == (10_000, 1)


def test_a_run_without_time_or_without_totals_has_no_rates() -> None:
    assert stalls.stall_rates([Total(1_000, 1, 1)], 0.0)[0].per_second == 0.0
    empty = stalls.stalls_of_run(1_000, [], [], 5.0)
    assert (empty.count, empty.rates, empty.worst) == (0, (), ())


def test_the_worst_are_kept_longest_first() -> None:
    listed = [Stall(0, "accumulator", 1, start, start + length, 1) for start, length in [(5, 10), (0, 30), (1, 30)]]
    found = stalls.stalls_of_run(1_000, [Total(1_000, 3, 70)], listed, 1.0, keep=2)
    assert [s.start_ns for s in found.worst] == [0, 1]
    assert found.count == 3


def test_a_run_says_how_sure_its_rate_is() -> None:
    found = stalls.stalls_of_run(1_000, [Total(1_000, 3, 30_000)], [], 2.0)
    assert (found.per_second_low, found.per_second_high) == rate_limits(3, 2.0)
    none = stalls.stalls_of_run(1_000, [Total(1_000, 0, 0)], [], 1_000.0)
    assert none.per_second_low == 0
    assert none.per_second_high is not None
    assert round(none.per_second_high * 1_000, 2) == 3.0
    assert stalls.stalls_of_run(1_000, [], [], 0.0).per_second_high is None


def test_stalls_are_counted_from_the_threshold_on_and_from_all_greater_powers_of_ten() -> None:
    assert stalls.stall_thresholds(1_000) == (1_000, 10_000, 100_000, 1_000_000)
    assert stalls.stall_thresholds(5_000) == (5_000, 10_000, 100_000, 1_000_000)
    assert stalls.stall_thresholds(2_000_000) == (2_000_000,)
