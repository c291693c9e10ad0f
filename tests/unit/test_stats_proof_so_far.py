"""The figures of a proof under way, and how long it takes in words."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.run import StallRate
from jitter_workshop.stats.comparison import stall_measure
from jitter_workshop.stats.scale import nice_duration
from jitter_workshop.stats.verdicts import judge_change, ratios_so_far
from tests.maderounds import QUIET, make_rounds


def test_a_ratio_a_round_of_the_measure_that_the_judgement_speaks_of() -> None:
    rounds = make_rounds(3, rounds=12, ratio=0.1)
    seen = ratios_so_far(rounds)
    assert seen is not None
    assert len(seen.ratios) == 12
    judged = judge_change(rounds)
    assert seen.measure == judged.headline.measure
    assert seen.name == "stalls over 100 µs"
    assert all(r is not None and r < 1 for r in seen.ratios)


def test_of_one_round_there_is_a_figure_too() -> None:
    seen = ratios_so_far(make_rounds(1, rounds=1))
    assert seen is not None
    assert len(seen.ratios) == 1


def test_a_round_with_zero_on_one_side_has_no_finite_ratio() -> None:
    some, none = (StallRate(100_000, n, n / 5, 1e5 * n) for n in (4, 0))
    made = []
    for one, (x, y) in zip(make_rounds(1, rounds=3), ((some, none), (none, some), (none, none)), strict=True):
        sides = (dataclasses.replace(s, stalls=(r,)) for s, r in ((one.without, x), (one.with_it, y)))
        made.append(dataclasses.replace(one, without=next(sides), with_it=next(sides)))
    seen = ratios_so_far(made)
    assert seen is not None
    assert seen.ratios == (0.0, math.inf, None)


def test_a_quiet_host_is_followed_by_shorter_stalls() -> None:
    seen = ratios_so_far(make_rounds(2, per_second=QUIET))
    assert seen is not None
    assert seen.measure == stall_measure(10_000)


def test_no_round_has_no_figure() -> None:
    assert ratios_so_far([]) is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (-3, "0 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (80, "1 min 20 s"),
        (599.4, "9 min 59 s"),
        (600, "10 min"),
        (3_599, "1 h"),
        (3_600, "1 h"),
        (7_500, "2 h 5 min"),
    ],
)
def test_a_duration_in_words(seconds: float, said: str) -> None:
    assert nice_duration(seconds) == said


@given(st.floats(0, 1e7))
def test_a_rounded_duration_is_near_the_real_one(seconds: float) -> None:
    units = {"h": 3600, "min": 60, "s": 1}
    words = nice_duration(seconds).split()
    told = sum(int(n) * units[u] for n, u in zip(words[::2], words[1::2], strict=True))
    assert abs(told - seconds) <= (30.5 if seconds >= 599 else 0.5)
