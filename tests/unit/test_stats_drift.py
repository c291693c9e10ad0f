"""Trend and order of rounds: exact ps against listing all orders, and what is said."""

from __future__ import annotations

import random
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jitter_workshop.stats.drift import drift, kendall_p, rank_sum_p
from jitter_workshop.stats.rounds import draw_orders, measure_lines
from jitter_workshop.stats.verdicts import judge_change
from tests.maderounds import make_rounds


def rises(values: tuple[int, ...]) -> int:
    return abs(sum((b > a) - (b < a) for i, a in enumerate(values) for b in values[i + 1 :]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 99), max_size=6, unique=True))
def test_kendalls_p_is_the_share_of_orders(values: list[int]) -> None:
    orders = [rises(o) for o in permutations(values)]
    assert kendall_p(values) == pytest.approx(sum(o >= rises(tuple(values)) for o in orders) / len(orders))


@given(st.lists(st.integers(0, 3), min_size=2, max_size=12))
def test_ties_only_make_kendalls_p_larger(values: list[int]) -> None:
    broken = [v + i / 1000 for i, v in enumerate(values)]
    falling = [v - i / 1000 for i, v in enumerate(values)]
    assert kendall_p(values) >= min(kendall_p(broken), kendall_p(falling)) - 1e-12


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_the_rank_sums_p_is_the_share_of_splits(a: list[int], b: list[int]) -> None:
    both = sorted([*a, *b])
    rank = {v: (both.index(v) + len(both) - both[::-1].index(v) + 1) / 2 for v in both}
    expected = len(a) * (len(both) + 1) / 2
    far = [abs(sum(rank[v] for v in chosen) - expected) for chosen in combinations(both, len(a))]
    seen = abs(sum(rank[v] for v in a) - expected)
    assert rank_sum_p(a, b) == pytest.approx(sum(f >= seen - 1e-9 for f in far) / len(far))


@pytest.mark.parametrize("seed", range(8))
def test_the_ps_of_many_rounds_are_those_that_counting_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    slope = chance.uniform(-0.03, 0.03)
    values = [chance.random() + i * slope for i in range(40)]
    counted = kendall_p(values), rank_sum_p(values[:20], values[20:])
    monkeypatch.setattr("jitter_workshop.stats.drift._LISTED", 39)
    assert (kendall_p(values), rank_sum_p(values[:20], values[20:])) == pytest.approx(counted, abs=0.006)


def test_without_one_of_the_orders_nothing_is_known_of_order() -> None:
    assert rank_sum_p([], [1.0]) == 1.0


def test_a_rising_host_is_said_to_rise() -> None:
    found = judge_change(make_rounds(1, drift=3.0)).drift
    assert found.later_p < 0.05
    assert found.later_ratio is not None
    assert found.later_ratio > 2
    assert "rose over the rounds" in found.words


def test_a_second_run_that_is_always_worse_is_said_to_be() -> None:
    rounds = make_rounds(2, rounds=20, second=3.0, spread=0.1)
    line = next(one for one in measure_lines(rounds) if one.measure == "stalls_per_second_over_10000_ns")
    found = drift(line, [r.order for r in rounds])
    assert found.second_p < 0.01
    assert "the second run of a round" not in judge_change(make_rounds(3, spread=0.1)).drift.words
    assert "the second run of a round" in found.words


def test_the_second_over_the_first_is_apart_from_the_change() -> None:
    rounds = make_rounds(4, rounds=40, ratio=3.0, second=1.5, spread=0.05)
    line = next(one for one in measure_lines(rounds) if one.measure == "stalls_per_second_over_100000_ns")
    found = drift(line, [r.order for r in rounds])
    assert found.second_ratio == pytest.approx(1.5, rel=0.15)


def test_four_rounds_show_no_drift() -> None:
    assert "too few rounds" in judge_change(make_rounds(5, rounds=4, drift=9.0)).drift.words


@given(st.integers(0, 60), st.integers())
def test_orders_are_balanced_and_drawn_by_the_seed(rounds: int, seed: int) -> None:
    orders = draw_orders(rounds, seed)
    assert len(orders) == rounds
    assert abs(orders.count("AB") - orders.count("BA")) == rounds % 2
    assert orders == draw_orders(rounds, seed)


def test_every_order_comes_up() -> None:
    assert len({draw_orders(4, seed) for seed in range(200)}) == 6
    assert {draw_orders(1, seed) for seed in range(50)} == {("AB",), ("BA",)}
