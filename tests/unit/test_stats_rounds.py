"""From runs to rounds: what is taken of a run, and which runs may not be set against each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.run import Run, Stall, StallRate
from jitter_workshop.stats.rounds import rounds_of, side_of, stalls_beyond
from tests.madeup import make_run


def run_with(*lengths_ns: int, **changed: object) -> Run:
    run, _ = make_run(run_id="20260101-000000-bbbb")
    listed = tuple(Stall(0, "accumulator", 1, 0, length, 1) for length in lengths_ns)
    changed.setdefault("stalls", replace(run.stalls, worst=listed))
    return replace(run, **changed)  # type: ignore[arg-type]


def test_a_side_is_what_the_run_says() -> None:
    run = run_with()
    side = side_of(run)
    assert (side.run, side.duration_s, side.threshold_ns) == (run.id, run.duration_s, 1_000)
    assert side.stalls == run.stalls.rates
    assert side.stolen_ns_per_second == run.stalls.stolen_ns_per_second
    assert side.percentiles == run.histograms["accumulator_transit"].percentiles
    assert side.worst_ns == 70_000
    assert side.beyond.keys() == {p for p, v in side.percentiles.items() if v is not None}


def test_of_a_sampler_that_pauses_the_time_is_what_it_sampled() -> None:
    run = run_with()
    half = replace(run, duty=50, stalls=replace(run.stalls, rated_s=run.duration_s / 2))
    assert side_of(half).duration_s == run.duration_s / 2


def test_stalls_beyond_are_those_listed_or_those_counted_for_certain() -> None:
    run = run_with(9_000, 3_000, 3_000)
    run = replace(run, stalls=replace(run.stalls, rates=()))
    assert stalls_beyond(run, 3_000) == 3
    assert stalls_beyond(run, 9_001) == 0
    counted = replace(run, stalls=replace(run.stalls, rates=(StallRate(1_000, 900, 1, 1), StallRate(10_000, 70, 1, 1))))
    # All 70 over 10 µs are over 5 µs too; of the 830 below it nobody knows.
    assert stalls_beyond(counted, 5_000) == 70
    assert stalls_beyond(counted, 1_000) == 900


def test_rounds_keep_sides_and_order() -> None:
    a, b = run_with(), run_with(9_000)
    (one,) = rounds_of([("BA", a, b)])
    assert (one.order, one.without, one.with_it) == ("BA", side_of(a), side_of(b))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"workload": "spin"}, "workload"),
        ({"pacing": "schedule"}, "pacing"),
        ({"interval_ns": 50_000}, "interval"),
        ({"duty": 10}, "duty"),
        ({"clock": replace(make_run()[0].clock, source="monotonic")}, "clock"),
    ],
)
def test_runs_made_otherwise_are_no_rounds(changed: dict[str, object], said: str) -> None:
    a = run_with()
    with pytest.raises(ValueError, match=f"cannot be compared: .*{said}"):
        rounds_of([("AB", a, a), ("BA", a, run_with(**changed))])


def test_a_run_without_its_histogram_has_stalls_only() -> None:
    bare = side_of(run_with(histograms={}))
    assert (bare.percentiles, bare.worst_ns) == ({}, None)
