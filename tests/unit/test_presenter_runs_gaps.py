"""Test the table of a clock loop's gaps, of one run and of two."""

from __future__ import annotations

import dataclasses
from typing import Any

from jitter_workshop.model.run import Counter, GapBucket, Run, StallRate, ThreadRecord
from jitter_workshop.presenter.runs.gaps import gaps
from jitter_workshop.presenter.text.lines import written
from jitter_workshop.stats.figures import KnownRun
from tests import madeup


def a_run(long: float, preempted: int, **changed: Any) -> Run:
    """Return a run of two seconds on CPU 1, with ``long`` gaps of 100 µs a second and ``preempted`` preemptions."""
    made = madeup.make_run([[100] * 90 + [200_000]], workload="spin", name="spin_gap")[0]
    rates = tuple(StallRate(t, int(2 * rate), rate, 0.0) for t, rate in ((10_000, 700.0), (100_000, long)))
    placed = dataclasses.replace(made.placement, sampler=1, hot=(1,))
    interrupts = {"LOC": Counter("Local timer interrupts", {"0": 9_999, "1": 500}), "24": Counter("eth0", {"1": 60})}
    fields: dict[str, Any] = {
        "duration_s": 2.0,
        "stalls": dataclasses.replace(made.stalls, rates=rates, rated_s=2.0),
        "threads": (ThreadRecord("sampler", {}, involuntary_switches=preempted),),
        "placement": placed,
        "interrupts": interrupts,
        "sampled_s": 2.0,
        "buckets": (
            GapBucket(8_000, 10_000, 5_000, None),
            GapBucket(10_000, 14_000, 30, None),
            GapBucket(20_000, 30_000, 10, None),
            GapBucket(30_000, 40_000, 5_000, None),
        ),
    }
    return dataclasses.replace(made, **{**fields, **changed})


def said(*runs: Run, width: int = 76) -> list[list[str]]:
    lines = written(gaps([KnownRun(run) for run in runs], width)).splitlines()
    assert all(len(line) <= width for line in lines)
    return [[part.strip() for part in line.split("  ") if part.strip()] for line in lines]


def test_one_run_has_its_four_figures_and_both_parts_of_the_difference() -> None:
    assert said(a_run(120.0, 200)) == [
        ["GAPS, PER SECOND OF SAMPLED TIME"],
        ["10 µs and more", "700"],
        ["100 µs and more", "120"],
        ["preemptions", "100"],
        ["100 µs and more, minus preemptions", "20"],
        ["the longest gap", "200 µs"],
        ["interrupts on this CPU, a second of the run", "280"],
    ]


def test_fewer_gaps_than_preemptions_leave_a_number_that_is_not_known() -> None:
    (row,) = (row for row in said(a_run(86.0, 214)) if "minus" in row[0])
    assert row[1] == "not known (fewer than preemptions)"


def test_two_runs_of_one_duty_stand_side_by_side() -> None:
    rows = said(a_run(120.0, 200), a_run(60.0, 20))
    assert rows[0][1:] == ["run 1", "run 2"]
    assert rows[4][1:] == ["20", "50"]


def test_two_duties_are_compared_by_rates_and_never_by_the_longest_gap() -> None:
    assert said(a_run(120.0, 200), a_run(60.0, 20, duty=10, sampled_s=0.2)) == [
        ["GAPS, PER SECOND OF SAMPLED TIME", "100 % busy", "10 % busy"],
        ["100 µs and more", "120", "60"],
        ["10 to 30 µs", "20", "200"],
        ["10 µs and more", "700", "700"],
        ["preemptions", "100", "10"],
        ["timer interrupts, a second of the run", "250", "250"],
    ]


def test_uncounted_figures_are_not_known_and_other_workloads_have_no_table() -> None:
    bare = a_run(120.0, 200, threads=(), interrupts=None, buckets=None)
    assert [row[1] for row in said(bare)[3:]] == ["not known", "not known", "200 µs", "not known"]
    assert said(bare, dataclasses.replace(bare, duty=10))[2][1:] == ["not known", "not known"]
    assert not said(dataclasses.replace(bare, workload="ring"))
    assert not said()
