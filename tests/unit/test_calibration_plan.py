"""The plan of the calibration: every run in one comparison only, orders drawn, sides as far apart as is said."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.calibration.plan import FAR, NEAR, OFF, NullPlan, PowerPlan


def test_each_of_four_thousand_runs_is_in_one_of_two_hundred_comparisons() -> None:
    plan = NullPlan()
    planned = plan.comparisons_planned()
    used = Counter(n for same in planned for pair in same.pairs for n in (pair.without, pair.with_it))
    assert sorted(used) == [slot.number for slot in plan.slots()] == list(range(4_000))
    assert set(used.values()) == {1}
    assert Counter(same.half for same in planned) == {NEAR: 100, FAR: 100}
    assert {len(same.pairs) for same in planned} == {10}


def test_near_sides_follow_each_other_and_far_ones_are_half_the_series_apart() -> None:
    plan = NullPlan()
    units = {slot.number: slot.unit for slot in plan.slots()}
    for same in plan.comparisons_planned():
        apart = {abs(pair.with_it - pair.without) for pair in same.pairs}
        assert apart == ({1} if same.half == NEAR else {2_000})
        together = {units[pair.with_it] == units[pair.without] for pair in same.pairs}
        assert together == {same.half == NEAR}


def test_a_comparison_is_of_one_workload_and_a_quarter_of_either_half_is_spin() -> None:
    plan = NullPlan()
    workloads = {slot.number: slot.workload for slot in plan.slots()}
    spin = Counter()
    for same in plan.comparisons_planned():
        assert {workloads[n] for pair in same.pairs for n in (pair.without, pair.with_it)} == {same.workload}
        spin[same.half] += same.workload == "spin"
    assert spin == {NEAR: 25, FAR: 25}


def test_which_run_is_called_with_is_drawn_and_balanced() -> None:
    orders = [tuple(pair.order for pair in same.pairs) for same in NullPlan().comparisons_planned()]
    assert {some.count("AB") for some in orders} == {5}
    assert len(set(orders)) > 100
    for same in NullPlan().comparisons_planned():
        for pair in same.pairs:
            assert (pair.without < pair.with_it) == (pair.order == "AB")


@pytest.mark.parametrize("comparisons", [0, 1, 99, -2])
def test_halves_that_do_not_pair_are_refused(comparisons: int) -> None:
    with pytest.raises(ValueError, match="even number"):
        NullPlan(comparisons)


def test_a_pool_has_each_effect_once_a_group_in_an_order_by_chance() -> None:
    plan = PowerPlan(120, ("2", "4"))
    slots = plan.slots()
    for group in range(120):
        some = slots[3 * group : 3 * group + 3]
        assert {slot.effect for slot in some} == {OFF, "2", "4"}
        assert {slot.unit for slot in some} == {3 * group}
    for effect in plan.effects:
        rounds = plan.rounds_planned(effect)
        assert len(rounds) == 120
        assert all((slots[r.without].effect, slots[r.with_it].effect) == (OFF, effect) for r in rounds)
        # Of 120 fair draws fewer than 40 or more than 80 come up by luck in one of 2,500.
        assert 40 <= sum(r.order == "AB" for r in rounds) <= 80


def test_the_second_null_takes_each_run_once() -> None:
    plan = PowerPlan(121, ("2",))
    for effect in (OFF, "2"):
        used = [n for pair in plan.rounds_of_same(effect) for n in (pair.without, pair.with_it)]
        assert len(used) == len(set(used)) == 120
        assert {plan.slots()[n].effect for n in used} == {effect}


@pytest.mark.parametrize(("groups", "effects"), [(0, ("2",)), (5, ()), (5, ("off",)), (5, ("2", "2"))])
def test_a_pool_of_nothing_is_refused(groups: int, effects: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="a pool has"):
        PowerPlan(groups, effects)
