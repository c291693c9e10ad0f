"""Screenings: the design, the choice, and what may be claimed. The noise is recorded."""

from __future__ import annotations

import dataclasses
import random

import pytest

from jitter_workshop.model.screening import ScreenedPair, ScreenedRun
from jitter_workshop.model.verdict import CommandFigure
from jitter_workshop.stats.rounds import side_of_figure
from jitter_workshop.stats.screening import (
    FEW,
    choose_settings,
    draw_pairs,
    draw_proofs,
    measure_of,
    most_chosen,
    one_by_one,
    pairs_needed,
    proofs_needed,
    screening_result,
)
from tests.madescreenings import SimulatedHost, blank, screened


@pytest.mark.parametrize("settings", [9, 11, 12, 19, 20, 23, 31, 40])
def test_each_setting_is_on_as_often_with_another_one_as_without_it(settings: int) -> None:
    pairs = draw_pairs(settings, seed=5)
    assert len(pairs) == pairs_needed(settings) > settings
    signs = [[1 if n in second else -1 for _, second in pairs] for n in range(settings)]
    for n, column in enumerate(signs):
        assert sum(column) == 0
        assert all(sum(a * b for a, b in zip(column, other, strict=True)) == 0 for other in signs[:n])
    assert all(sorted((*first, *second)) == list(range(settings)) for first, second in pairs)


def test_a_seed_draws_the_same_design_again_and_another_one_another() -> None:
    assert draw_pairs(19, 1) == draw_pairs(19, 1) != draw_pairs(19, 2)
    assert draw_proofs((2, 5), 32, 1) == draw_proofs((2, 5), 32, 1) != draw_proofs((2, 5), 32, 2)


def test_chance_decides_the_order_of_the_pairs() -> None:
    # One pair has all settings in the same run; in the design it is the last one.
    places = [[not (first and second) for first, second in draw_pairs(19, seed)].index(True) for seed in range(40)]
    assert len(set(places)) > 8


def test_coins_decide_where_a_proven_setting_is_on() -> None:
    pairs = draw_proofs((2, 5, 9), 400, 7)
    for n in (2, 5, 9):
        assert 150 < sum(n in first for first, _ in pairs) < 250
        assert all((n in first) != (n in second) for first, second in pairs)
    assert 60 < sum({2, 5, 9} <= set(first) or {2, 5, 9} <= set(second) for first, second in pairs) < 140


def test_few_settings_are_proven_without_a_choice() -> None:
    assert (pairs_needed(FEW), most_chosen(FEW)) == (0, FEW)
    assert draw_pairs(FEW, 1) == ()
    assert pairs_needed(FEW + 1) == 12
    for settings in range(2, 60):
        assert 2 * (pairs_needed(settings) + proofs_needed(settings)) <= one_by_one(settings)
    assert 3 * 2 * (pairs_needed(19) + proofs_needed(19)) < one_by_one(19)


@pytest.mark.parametrize("seed", range(3))
def test_three_of_nineteen_are_found_in_recorded_noise(seed: int) -> None:
    effects = dict.fromkeys(random.Random(seed).sample(range(19), 3), 0.5)
    found = screening_result(screened(SimulatedHost(seed, effects), 19, seed))
    assert found is not None
    lower = {row.setting for row in found.ranked if row.verdict == "lower"}
    assert lower == {f"setting-{n}" for n in effects}
    assert {row.verdict for row in found.ranked} <= {"lower", "no_change", "cannot_tell"}
    assert {row.setting for row in found.ranked[:3]} == lower
    for row in found.ranked[:3]:
        assert row.high is not None
        assert row.low < 0.5 < row.high or abs(row.high / 0.5 - 1) < 0.2 or abs(row.low / 0.5 - 1) < 0.2
    assert "These 3 settings move stalls over 100 µs here" in found.text
    assert "The other 16 do not, as far as 104 runs can see" in found.text


def test_a_setting_that_makes_it_worse_is_found_and_called_higher() -> None:
    found = screening_result(screened(SimulatedHost(4, {3: 2.5}), 19, 4))
    assert found is not None
    assert [(row.setting, row.verdict) for row in found.ranked if row.verdict != "cannot_tell"] == [
        ("setting-3", "higher")
    ]


def test_two_settings_that_only_help_together_are_both_found() -> None:
    found = screening_result(screened(SimulatedHost(8, {}, both=(1, 7), by=0.1), 19, 8))
    assert found is not None
    assert {row.setting for row in found.ranked if row.verdict == "lower"} == {"setting-1", "setting-7"}


def test_nothing_is_claimed_where_nothing_matters() -> None:
    for seed in range(4):
        found = screening_result(screened(SimulatedHost(seed, {}), 19, seed))
        assert found is not None
        assert not [row for row in found.ranked if row.verdict in ("lower", "higher")]
        assert found.text.startswith("None of 19 settings is shown to move")


def test_nothing_is_claimed_before_all_pairs_are_there_or_with_fewer_than_ten() -> None:
    whole = screened(SimulatedHost(1, {0: 0.2}), 19, 1)
    for part in (
        dataclasses.replace(whole, proofs=whole.proofs[:31]),
        dataclasses.replace(whole, proofs=whole.proofs[:9], planned_proofs=9),
        dataclasses.replace(whole, proofs=()),
    ):
        found = screening_result(part)
        assert found is not None
        assert {row.verdict for row in found.ranked} == {"cannot_tell"}
        assert found.text.startswith("Nothing is claimed yet")
    assert (
        screening_result(dataclasses.replace(whole, proofs=(), chosen=(), measure="", pairs=whole.pairs[:19])) is None
    )
    assert screening_result(blank(19, 1)) is None


def test_only_the_proofs_decide_the_claims() -> None:
    """A choice is made because a setting looks large, so its pairs must not count again."""
    lucky = screened(SimulatedHost(2, {6: 0.2}), 19, 2)
    quiet = SimulatedHost(3, {})
    proofs = tuple(
        ScreenedPair(*(ScreenedRun(run.on, quiet.run(run.on)) for run in (one.first, one.second)))
        for one in lucky.proofs
    )
    assert 6 in lucky.chosen
    found = screening_result(dataclasses.replace(lucky, proofs=proofs))
    assert found is not None
    assert not [row for row in found.ranked if row.verdict in ("lower", "higher")]


def _figures(settings: int, seed: int, effects: dict[int, float], spread: float) -> list[ScreenedPair]:
    chance = random.Random(seed)

    def run(on: tuple[int, ...]) -> ScreenedRun:
        value = 1e9 * chance.lognormvariate(0, spread)
        for n in on:
            value *= effects.get(n, 1.0)
        return ScreenedRun(on, side_of_figure(CommandFigure("wall_time", "ns", value)))

    return [ScreenedPair(run(first), run(second)) for first, second in draw_pairs(settings, seed)]


def test_a_large_effect_hides_no_smaller_one() -> None:
    pairs = _figures(19, 3, {2: 1 / 50, 11: 0.5, 17: 2.0}, 0.1)
    measure, name = measure_of(pairs, "command")
    assert (measure, name) == ("wall_time", "wall time")
    assert {2, 11, 17} < set(choose_settings(pairs, range(19), 4, measure, "command"))


def test_figures_that_never_vary_choose_and_claim_nothing_by_luck() -> None:
    pairs = _figures(9, 3, {}, 0.0)
    chosen = choose_settings(pairs, range(9), 4, "wall_time", "command")
    assert len(chosen) == 4
    made = blank(9, 3, proofs=12, workload="command", pairs=tuple(pairs), chosen=chosen, measure="wall_time")
    same = side_of_figure(CommandFigure("wall_time", "ns", 5.0))
    proofs = tuple(ScreenedPair(*(ScreenedRun(on, same) for on in arms)) for arms in draw_proofs(chosen, 12, 3))
    found = screening_result(dataclasses.replace(made, proofs=proofs, command=("true",)))
    assert found is not None
    assert {row.verdict for row in found.ranked} <= {"no_change", "cannot_tell"}


def test_among_many_an_interval_within_the_band_is_not_yet_no_change() -> None:
    """One error rate over all settings holds for "no change", too."""
    chance, chosen = random.Random(7), tuple(range(FEW))

    def run(on: tuple[int, ...]) -> ScreenedRun:
        return ScreenedRun(on, side_of_figure(CommandFigure("wall_time", "ns", 1e9 * chance.lognormvariate(0, 0.05))))

    proofs = tuple(ScreenedPair(run(first), run(second)) for first, second in draw_proofs(chosen, 12, 7))
    made = blank(FEW, 7, proofs=12, workload="command", chosen=chosen, measure="wall_time")
    found = screening_result(dataclasses.replace(made, proofs=proofs, command=("true",)))
    assert found is not None
    within = [row for row in found.ranked if row.low >= 1 / 1.1 and row.high is not None and row.high <= 1.1]
    assert within
    assert {row.verdict for row in within} == {"cannot_tell"}


def test_a_setting_that_was_left_out_is_not_ranked() -> None:
    from jitter_workshop.model.change import Skipped

    host = SimulatedHost(5, {1: 0.3})
    made = screened(host, 10, 5, left_out=(Skipped("setting-4", "refused"),))
    assert 4 not in made.chosen
    found = screening_result(made)
    assert found is not None
    assert len(found.ranked) == 9
    assert "setting-4" not in {row.setting for row in found.ranked}
