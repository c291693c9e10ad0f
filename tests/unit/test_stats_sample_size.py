"""Test the samples that a percentile needs before a run, and those that support it after the run."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.run import HistogramSummary, Run, Stall
from jitter_workshop.stats.curve import curve_from_summary
from jitter_workshop.stats.sample_size import budget, budget_from, standings
from tests.madeup import make_run

PERCENTILES = st.sampled_from(["50", "90", "99", "99.9", "99.99", "99.999", "99.9999"])


def run_of(
    count: int, percentiles: dict[str, int | None], stalls: list[tuple[int, int]], duration_s: float = 5.0
) -> Run:
    """A run of so many messages; ``stalls``: length in ns and the messages each made late."""
    run, _ = make_run()
    listed = tuple(
        Stall(0, "accumulator", 1, at * 10**9, at * 10**9 + length, late) for at, (length, late) in enumerate(stalls)
    )
    summary = HistogramSummary("ns", count, 50, 9_000_000, 100.0, percentiles)
    return replace(
        run,
        duration_s=duration_s,
        histograms={"accumulator_transit": summary},
        stalls=replace(run.stalls, worst=listed, rates=()),
    )


def test_p99_9_needs_ten_thousand_messages() -> None:
    one = budget("99.9", 100_000)
    assert (one.messages, one.seconds, one.stalls_seen) == (10_000, pytest.approx(0.1), False)


def test_a_stall_that_makes_many_late_is_one_event() -> None:
    one = budget("99.99", 100_000, 40)
    assert (one.messages, one.seconds, one.stalls_seen) == (4_000_000, pytest.approx(40), True)


@given(PERCENTILES, st.floats(0.1, 1e8), st.floats(1, 1e4))
def test_a_budget_grows_with_the_effect_of_stalls_and_shrinks_with_speed(key: str, rate: float, late: float) -> None:
    one = budget(key, rate, late)
    assert budget(key, rate, late * 2).messages >= one.messages
    assert budget(key, rate * 2, late).seconds < one.seconds
    assert one.messages * (1 - float(key) / 100) / late >= 10 * (1 - 1e-6)


@pytest.mark.parametrize(
    ("percentile", "rate", "late"), [("0", 1, 1), ("100", 1, 1), ("99", 0, 1), ("99", 1, 0.5), ("99", float("nan"), 1)]
)
def test_nonsense_has_no_budget(percentile: str, rate: float, late: float) -> None:
    with pytest.raises(ValueError, match="no budget"):
        budget(percentile, rate, late)


def test_a_run_that_does_not_know_a_percentile_lends_the_size_of_its_stalls() -> None:
    run = run_of(500_000, {"99.9999": None}, [(1_000_000, 100), (300_000, 20)])
    one = budget_from(run, "99.9999")
    assert one is not None
    assert (one.messages, one.seconds) == (600_000_000, pytest.approx(6_000))


def test_a_run_that_knows_it_says_how_often_stalls_went_beyond() -> None:
    # Fifty of its messages lie beyond p99.99, and two stalls made them.
    run = run_of(500_000, {"99.99": 250_000}, [(1_000_000, 30), (300_000, 20), (9_000, 1)])
    one = budget_from(run, "99.99")
    assert one is not None
    assert one.messages == 10 * 250_000
    assert one.seconds == pytest.approx(25)


def test_messages_that_another_thread_made_late_are_not_lent() -> None:
    run = run_of(500_000, {"99.9999": None}, [(1_000_000, 100), (300_000, 20)])
    others = tuple(Stall(0, "producer", 0, 0, 5_000_000, 500) for _ in range(9))
    stalls = replace(run.stalls, worst=(*others, *run.stalls.worst))
    assert budget_from(replace(run, stalls=stalls), "99.9999") == budget_from(run, "99.9999")


def test_an_empty_run_has_nothing_to_lend() -> None:
    assert budget_from(run_of(0, {}, []), "99") is None
    assert budget_from(run_of(10, {}, [], duration_s=0.0), "99") is None


def test_each_percentile_counts_its_samples_and_stalls_beyond() -> None:
    run = run_of(100_000, {"99": 200, "99.9": 5_000, "99.99": 90_000, "99.999": 400_000}, [(95_000, 9)] * 12)
    by_name = {s.percentile: s for s in standings(run)}
    assert by_name["99.9"].samples_beyond == 100
    assert (by_name["99.9"].solid, by_name["99.9"].proof, by_name["99.9"].stalls_beyond) == (True, True, 12)
    assert (by_name["99.99"].solid, by_name["99.99"].samples_beyond) == (True, 10)
    assert (by_name["99.999"].solid, by_name["99.999"].proof) == (False, False)
    assert by_name["50"].value_ns is None
    assert not by_name["50"].solid
    assert standings(replace(run, histograms={})) == ()


@given(st.integers(0, 10**9))
def test_it_is_solid_where_the_chart_draws_it_solid(count: int) -> None:
    run = run_of(count, {"50": 90, "90": 95, "99": 100, "99.9": 120, "99.99": 200, "99.999": 900, "99.9999": 2_000}, [])
    drawn = {p.value_ns: p.solid for p in curve_from_summary("", run.histograms["accumulator_transit"]).points}
    for one in standings(run):
        if one.value_ns in drawn:
            assert drawn[one.value_ns] == one.solid
