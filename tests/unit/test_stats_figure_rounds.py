"""Rounds of a command: one figure a run, judged by the same arithmetic as our own runs."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.verdict import ENOUGH_ROUNDS, Judgement
from jitter_workshop.stats.comparison import amount
from jitter_workshop.stats.rounds import draw_orders, figure_rounds
from jitter_workshop.stats.verdicts import judge_change, ratios_so_far


def judged(without: list[float], with_it: list[float], measure: str = "wall_time", unit: str = "ns") -> Judgement:
    orders = draw_orders(len(without), 3)
    return judge_change(figure_rounds(measure, unit, zip(orders, without, with_it, strict=True)), "command")


def noisy(chance: random.Random, rounds: int = ENOUGH_ROUNDS, spread: float = 0.05) -> list[float]:
    return [1e6 * chance.lognormvariate(0, spread) for _ in range(rounds)]


def test_a_figure_that_halves_is_lower_and_nothing_is_said_of_stalls() -> None:
    chance = random.Random(1)
    without = noisy(chance)
    said = judged(without, [value / 2 for value in noisy(chance)])
    (row,) = said.rows
    assert row.verdict == said.headline.verdict == "lower"
    assert (row.measure, row.unit) == ("wall_time", "ns")
    assert row.ratio == pytest.approx(0.5, rel=0.1)
    assert row.without == pytest.approx(1e6, rel=0.1)
    assert said.worst == ""
    # It has the share of a primary line: half of the error rate.
    assert row.p_adjusted == pytest.approx(2 * row.p)
    assert row.confidence == 0.975
    assert said.headline.text.startswith("wall time: ")


def test_equal_figures_are_no_change_and_few_rounds_give_none() -> None:
    chance = random.Random(2)
    level = noisy(chance, 20, 0.01)
    assert judged(level, [value * chance.lognormvariate(0, 0.01) for value in level]).rows[0].verdict == "no_change"
    assert judged(level[:9], level[:9]).rows[0].verdict == "cannot_tell"


def test_false_claims_stay_below_their_rate() -> None:
    """Runs of a program on a busy host: a few are twice as long."""
    chance = random.Random(11)
    claims = 0
    for _ in range(400):
        both = [[v * chance.choice((1, 1, 1, 2)) for v in noisy(chance, 10, 0.1)] for _ in range(2)]
        claims += judged(*both).rows[0].verdict in ("lower", "higher")
    assert claims / 400 <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / 400)


def test_a_claim_and_its_interval_agree_and_need_a_p_below_a_fortieth() -> None:
    chance = random.Random(5)
    told = [judged(noisy(chance), [1.04 * value for value in noisy(chance)]).rows[0] for _ in range(100)]
    claimed = [row for row in told if row.verdict == "higher"]
    weak = [row for row in told if 0.025 <= row.p < 0.05]
    assert all(row.low > 1 and row.p < 0.025 for row in claimed)
    assert all(row.low <= 1 <= (row.high or math.inf) for row in told if row not in claimed)
    assert weak
    assert not {row.verdict for row in weak} & {"lower", "higher"}
    assert len(claimed) > 20
    assert not any("all lines" in row.words for row in weak)  # there are no other lines


def test_user_times_within_a_step_of_the_clock_are_equal() -> None:
    (row,) = judged([5_000.0] * 12, [5_900.0] * 12, "user_time").rows
    assert row.ratio == pytest.approx(1.0)
    (row,) = judged([5_000.0] * 12, [5_900.0] * 12, "wall_time").rows
    assert row.verdict == "higher"


def test_a_zero_counts_as_one_round_and_no_more() -> None:
    said = judged([0.0] * 12, [0.0] * 12, "held_up_time")
    assert said.rows[0].verdict == "cannot_tell"
    assert said.rows[0].ratio is None
    without = [1.0] * 12
    assert judged(without, [0.0, *without[1:]], "match", "x").rows[0].verdict == "cannot_tell"


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_a_figure_that_is_not_finite_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="finite number"):
        figure_rounds("wall_time", "ns", [("AB", 1.0, value)])


@given(st.lists(st.tuples(st.floats(1e-3, 1e12), st.floats(1e-3, 1e12)), min_size=1, max_size=12))
def test_sides_that_change_places_give_the_inverse(pairs: list[tuple[float, float]]) -> None:
    without, with_it = (list(side) for side in zip(*pairs, strict=True))
    (there,) = judged(without, with_it, "match", "x").rows
    (back,) = judged(with_it, without, "match", "x").rows
    assert there.ratio is not None
    assert back.ratio == pytest.approx(1 / there.ratio, rel=1e-6)
    assert there.p == pytest.approx(back.p)
    assert {"lower": "higher", "higher": "lower"}.get(there.verdict, there.verdict) == back.verdict


def test_the_ratio_of_each_round_is_shown_while_they_are_made() -> None:
    seen = ratios_so_far(figure_rounds("match", "x", [("AB", 2.0, 4.0), ("BA", 2.0, 1.0)]), "command")
    assert seen is not None
    assert seen.ratios == (2.0, 0.5)


def test_a_value_is_told_in_its_unit() -> None:
    assert amount("wall_time", 1.5e6, "ns") == "1.5 ms"
    assert amount("match", 1450.0, "MB/s") == "1,450 MB/s"
    assert amount("match", 3.0, "\x1b[2J") == "3 [2J"
    assert amount("match", None, "x") == "–"
