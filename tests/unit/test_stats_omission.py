"""Test which runs sent far fewer messages than planned because a thread was stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.run import INTENDED, Run, of_transit
from jitter_workshop.stats.figures import FIGURES, KnownRun, transit_of
from jitter_workshop.stats.omission import leaves_out_waits, on_one_clock, sent_share, share_told
from tests import madeup


def stopped(sent: int, stopped_ns: float, workload: str = "ring") -> Run:
    """A run of 10 ms, with a planned message each 10 µs, that sent so many of its 1,000 messages."""
    made: Run = madeup.make_run([[100] * sent], block_s=0.01)[0]
    return replace(made, workload=workload, stalls=replace(made.stalls, stolen_ns_per_second=stopped_ns))


@pytest.mark.parametrize(
    ("sent", "stopped_ns", "share"),
    [
        (87, 0.92e9, 0.087),
        (899, 0.2e9, 0.899),
        (900, 0.2e9, None),  # enough were sent
        (500, 0.25e9, 0.5),
        (500, 0.24e9, None),  # the thread was slow, not stopped
    ],
)
def test_a_run_counts_as_cut_if_stalls_explain_the_missing_messages(
    sent: int, stopped_ns: float, share: float | None
) -> None:
    found = sent_share(KnownRun(stopped(sent, stopped_ns)))
    assert found == (None if share is None else pytest.approx(share))


def test_no_share_is_known_of_other_workloads_and_other_machines() -> None:
    run = stopped(87, 0.92e9)
    assert sent_share(KnownRun(replace(run, histograms={}))) is None
    assert sent_share(KnownRun(replace(run, interval_ns=0))) is None
    assert sent_share(KnownRun(replace(run, duration_s=0.0))) is None
    assert sent_share(KnownRun(run, recorded={})) is None
    assert sent_share(KnownRun(run, emulated=True)) is None
    assert sent_share(KnownRun(replace(run, workload="ack"))) is None


def test_a_share_is_never_rounded_up_to_enough_or_down_to_nothing() -> None:
    assert [share_told(share) for share in (0.087, 0.8999, 0.004, 0.96)] == ["9 %", "89 %", "less than 1 %", "96 %"]


def due(run: Run, p999: int) -> KnownRun:
    """The run with p99.9 of 100 ns by transit, and with this value from when a message was due."""
    main = run.main_summary
    assert main is not None
    plain = replace(main, percentiles={**main.percentiles, "99.9": 100})
    summary = replace(main, percentiles={**main.percentiles, "99.9": p999}, max=9)
    return KnownRun(replace(run, histograms={run.main_histogram: plain, INTENDED: summary}))


def test_latency_counts_from_when_a_message_was_due_if_the_run_has_it() -> None:
    run = due(stopped(1_000, 0.0), 7).run
    assert FIGURES["99.9"].of(KnownRun(run)) == run.percentile("99.9") == 7
    assert FIGURES["max"].of(KnownRun(run)) == 9
    assert transit_of(KnownRun(run), "99.9") == of_transit(run).percentile("99.9") == 100
    assert FIGURES["99.9"].of(KnownRun(of_transit(run))) == 100


def test_two_runs_are_compared_by_a_clock_that_both_have() -> None:
    full, long = due(stopped(1_000, 0.0), 7), due(stopped(87, 0.92e9), 900)
    older, stopped_older = (KnownRun(of_transit(one.run)) for one in (full, long))
    assert on_one_clock(full, long) == (full, long)
    assert on_one_clock(full, older) == on_one_clock(older, full) == (older, older)
    assert [on_one_clock(one, other) for one, other in ((full, stopped_older), (long, older))] == [None, None]
    assert on_one_clock(stopped_older, stopped_older) is None
    assert [leaves_out_waits(one) for one in (full, long, older, stopped_older)] == [False, False, False, True]
