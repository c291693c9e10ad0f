"""From runs to rounds: what is taken of a run, and which runs may not be set against each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.run import Run, Stall, StallRate
from jitter_workshop.model.spec import KINDS
from jitter_workshop.stats.rounds import rounds_of, side_of, stalls_beyond
from tests.madeup import make_run


def run_with(*lengths_ns: int, **changed: object) -> Run:
    run, _ = make_run(run_id="20260101-000000-bbbb")
    listed = tuple(
        Stall(0, "accumulator", 1, at * 10**9, at * 10**9 + length, 1) for at, length in enumerate(lengths_ns)
    )
    changed.setdefault("stalls", replace(run.stalls, worst=listed))
    return replace(run, **changed)  # type: ignore[arg-type]


def test_a_side_has_the_figures_of_its_run() -> None:
    run = run_with()
    side = side_of(run)
    assert (side.run, side.duration_s, side.threshold_ns) == (run.id, run.duration_s, 1_000)
    assert side.stalls == run.stalls.rates
    assert side.stolen_ns_per_second == run.stalls.stolen_ns_per_second
    assert side.percentiles == run.histograms["accumulator_transit"].percentiles
    assert side.worst_ns == 70_000
    assert side.beyond.keys() == {p for p, v in side.percentiles.items() if v is not None}


def test_the_time_of_a_sampler_that_pauses_is_its_sampled_time() -> None:
    run = run_with()
    half = replace(run, duty=50, stalls=replace(run.stalls, rated_s=run.duration_s / 2))
    assert side_of(half).duration_s == run.duration_s / 2


def listing(workload: str, *stalls: tuple[str, int, int], rates: tuple[StallRate, ...] = ()) -> Run:
    """``stalls``: thread, start and end in ns."""
    listed = tuple(Stall(0, thread, 1, start, end, 1) for thread, start, end in stalls)
    run, _ = make_run()
    return replace(run, workload=workload, stalls=replace(run.stalls, worst=listed, rates=rates))


def test_stalls_beyond_are_those_of_the_own_thread_that_are_as_long() -> None:
    run = run_with(9_000, 3_000, 3_000)
    assert (stalls_beyond(run, 3_000), stalls_beyond(run, 9_001)) == (3, 0)


def test_a_theft_that_three_threads_saw_is_one_stall_beyond() -> None:
    seen = [(thread, 0, 400_000) for thread in ("producer", "accumulator", "journaller")]
    assert stalls_beyond(listing("ring", *seen), 300_000) == 1


def test_gaps_of_the_producer_lie_beyond_no_transit() -> None:
    # Of a rate both threads' stalls are counted, so that it says nothing of the accumulator's alone.
    gaps = [("producer", at * 10**6, at * 10**6 + 500_000) for at in range(30)]
    run = listing("ring", *gaps, ("accumulator", 10**9, 10**9 + 450_000), rates=(StallRate(100_000, 31, 1.0, 1.0),))
    assert stalls_beyond(run, 90_000) == 1


def test_stalls_that_overlap_are_one_and_touching_short_ones_are_no_long_one() -> None:
    run = listing("ring", *(("accumulator", at, at + 60_000) for at in (0, 50_000, 110_000)))
    assert (stalls_beyond(run, 60_000), stalls_beyond(run, 100_000)) == (1, 0)


@pytest.mark.parametrize("workload", ["spin", "wakeup", "ack"])
def test_rates_of_the_own_thread_alone_count_unlisted_stalls(workload: str) -> None:
    rates = (StallRate(1_000, 900, 1.0, 1.0), StallRate(10_000, 70, 1.0, 1.0))
    thread = KINDS[workload].rated[0]
    run = listing(workload, (thread, 0, 9_000), ("sender", 50_000, 59_000), rates=rates)
    # All 70 over 10 µs are over 5 µs too; of the 830 below it that is not known.
    assert stalls_beyond(run, 5_000) == 70
    assert stalls_beyond(run, 1_000) == 900
    assert stalls_beyond(replace(run, stalls=replace(run.stalls, rates=())), 5_000) == 1


def test_each_workload_has_a_main_thread_and_an_unknown_one_has_none() -> None:
    assert all(set(kind.rated) <= kind.threads.keys() for kind in KINDS.values())
    assert stalls_beyond(listing("made elsewhere", ("accumulator", 0, 9_000)), 1_000) == 0


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
