"""Test which runs sent far fewer messages than planned because a thread was stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jitter_workshop.model.curve import CurvePoint, PercentileCurve
from jitter_workshop.model.run import Block, Progress, Run
from jitter_workshop.stats.figures import FIGURES, INTENDED, KnownRun
from jitter_workshop.stats.omission import has_waits, needs_waits, sent_share, share_told, waits_are_needed, with_waits
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
    assert [share_told(share) for share in (0.087, 0.8999, 0.004)] == ["9 %", "89 %", "less than 1 %"]


def due(run: Run, p999: int, longest: int = 9) -> KnownRun:
    """The run with p99.9 of 100 ns, and with these values from the due time."""
    main = run.main_summary
    assert main is not None
    plain = replace(main, percentiles={**main.percentiles, "99.9": 100})
    summary = replace(main, percentiles={**main.percentiles, "99.9": p999}, max=longest)
    return KnownRun(replace(run, histograms={run.main_histogram: plain, INTENDED: summary}))


def test_the_histogram_from_the_due_time_has_the_waits() -> None:
    run = stopped(87, 0.92e9)
    assert with_waits(FIGURES["99.9"]).of(KnownRun(run)) is None
    assert with_waits(FIGURES["99.9"]).of(due(run, 7)) == 7
    assert with_waits(FIGURES["max"]).of(due(run, 7, 8)) == 8
    assert with_waits(FIGURES["99.9"]).title == "p99.9 with the waits"


@pytest.mark.parametrize(
    ("sent", "stopped_ns", "p999", "found"),
    [
        (980, 0.02e9, 151, True),
        (980, 0.02e9, 149, False),  # the waits change little
        (980, 0.009e9, 900, False),  # the thread was slow, not stopped
        (1000, 0.02e9, 900, False),  # all messages were sent
        (400, 0.6e9, 100, True),  # few messages were sent
    ],
)
def test_a_run_needs_the_waits_if_few_messages_were_sent_or_they_change_the_latency(
    sent: int, stopped_ns: float, p999: int, found: bool
) -> None:
    assert needs_waits(due(stopped(sent, stopped_ns), p999)) is found


@pytest.mark.parametrize(
    ("sent", "p999", "waits", "found"), [(899, 100, 100, True), (900, 100, 149, False), (900, 100, 150, True)]
)
def test_an_unfinished_run_needs_the_waits_by_the_same_limits(sent: int, p999: int, waits: int, found: bool) -> None:
    def curve(count: int, value: int) -> PercentileCurve:
        points = tuple(CurvePoint(at, ns, True) for at, ns in ((50.0, 10), (99.9, value), (100.0, 900)))
        return PercentileCurve("run", points, count)

    assert waits_are_needed(curve(sent, p999), curve(1_000, waits)) is found


@pytest.mark.parametrize(
    ("sent", "needed", "done", "wanted", "found"),
    [
        (699, True, 1, False, True),  # few messages were sent: this does not pass
        (700, True, 39, False, False),  # one long stall in the first blocks
        (700, True, 40, False, True),
        (950, True, 39, False, False),  # a percentile of the first blocks
        (950, True, 40, False, True),
        (950, True, 80, False, True),  # the rule of the finished run
        (950, False, 80, False, False),
        (950, False, 1, True, True),  # a run beside it has the waits
    ],
)
def test_an_unfinished_run_does_not_change_between_two_quantities_in_its_first_half(
    sent: int, needed: bool, done: int, wanted: bool, found: bool
) -> None:
    curve, waits = PercentileCurve("run", (), sent), PercentileCurve("run", (), 1_000)
    block = Block(0, 0, 1, 1, 1, 1, 1, 1, 0)
    now = Progress(block, done, 80, curve, 5, 10_000, with_waits=waits, needs_waits=needed)
    assert has_waits(now, wanted=wanted) is found
    assert not has_waits(replace(now, with_waits=None), wanted=wanted)
