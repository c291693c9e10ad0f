"""Test the figures that a lesson's [shows] compares, and the factor between two runs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.model.course import Shows
from jitter_workshop.model.evidence import EvidenceReport, InterferingTask, QuietCpus, Residence
from jitter_workshop.model.run import Counter, Run, StallRate, ThreadRecord
from jitter_workshop.model.spec import Placement
from jitter_workshop.stats.figures import (
    FIGURES,
    Figure,
    KnownRun,
    all_device_interrupts,
    as_said,
    counts_alone,
    figure_with_id,
    managed_told,
    ratio,
    titled,
)
from tests import madeup


@pytest.fixture(scope="module")
def run() -> Run:
    made = madeup.make_run([[100, 200, 5_000]])[0]
    threads = (
        ThreadRecord("producer", {"0": 9}, involuntary_switches=70, migrations=1, minor_faults=4, write_calls=0),
        ThreadRecord("accumulator", {"1": 9}, involuntary_switches=30, migrations=2, minor_faults=0, write_calls=7),
    )
    stalls = dataclasses.replace(
        made.stalls,
        rates=(StallRate(10_000, 40, 20.0, 9e5), StallRate(100_000, 5, 2.5, 9e5), StallRate(1_000_000, 1, 0.5, 1e6)),
        stolen_ns_per_second=2e6,
        rated_s=None,
    )
    summary = made.histograms[made.main_histogram]
    intended = dataclasses.replace(summary, percentiles={**summary.percentiles, "99": 777})
    counters = {
        "LOC": Counter("LOC", {"0": 500, "1": 2_000, "2": 9_999}),
        "36": Counter("36", {"1": 60, "2": 9_999}),
        "NMI": Counter("NMI", {"1": 9}),
    }
    return dataclasses.replace(
        made,
        workload="ring",
        duration_s=2.0,
        threads=threads,
        stalls=stalls,
        interrupts=counters,
        softirqs={"NET_RX": Counter("NET_RX", {"0": 1, "1": 7}), "TIMER": Counter("TIMER", {"1": 99})},
        placement=Placement("auto", 0, 1, hot=(0, 1)),
        core_hz=3_000_000_000,
        blocks=tuple(dataclasses.replace(made.blocks[0], core_hz=hz) for hz in (3_000, None, 2_400, 2_900)),
        histograms={**made.histograms, "accumulator_intended": intended},
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("preempted", 15.0),  # the accumulator's alone: the main histogram is about it
        ("threads-preempted", 50.0),
        ("migrations", 1.5),
        ("faults", 2.0),
        ("write-calls", 3.5),
        ("stalls-100us", 2.5),
        ("stalls-1ms", 0.5),
        ("stalled", 2e6),
        ("ticks", 1_250.0),
        ("device-interrupts", 30.0),
        ("net-rx", 4.0),
        ("core-hz", 3e9),
        ("stalls-10us", 20.0),
        ("stalls-unswitched", None),  # 2.5 stalls, 15 preemptions: each stall may be one
        ("core-hz-spread", 1.25),
        ("intended-99", 777),
    ],
)
def test_a_figure_is_a_rate_over_the_run_and_of_the_hot_cpus(run: Run, name: str, value: float | None) -> None:
    assert FIGURES[name].of(KnownRun(run)) == value


def test_percentiles_are_those_of_the_main_histogram(run: Run) -> None:
    summary = run.histograms[run.main_histogram]
    assert FIGURES["max"].of(KnownRun(run)) == summary.max
    assert FIGURES["50"].of(KnownRun(run)) == summary.percentiles["50"]


def test_the_older_id_of_a_figure_stays_valid_and_files_have_it() -> None:
    assert figure_with_id("interference") is figure_with_id("stalled") is FIGURES["stalled"]
    assert figure_with_id("stalled").written == "interference"
    assert figure_with_id("ticks").written == "ticks"


@pytest.mark.parametrize("name", FIGURES)
def test_a_run_that_counted_nothing_of_a_kind_has_no_figure_or_zero(run: Run, name: str) -> None:
    empty = dataclasses.replace(
        run, threads=(), interrupts=None, softirqs=None, histograms={}, blocks=(), core_hz=None, duration_s=0.0
    )
    stalls = dataclasses.replace(empty.stalls, rates=(), stolen_ns_per_second=0.0)
    assert FIGURES[name].of(KnownRun(dataclasses.replace(empty, stalls=stalls))) in (None, 0.0)


def with_switches(run: Run, count: int) -> Run:
    return dataclasses.replace(run, threads=(ThreadRecord("accumulator", {}, involuntary_switches=count),))


@pytest.mark.parametrize("timer", ["arch_timer", "riscv-timer"])
def test_ticks_are_counted_by_the_timer_of_each_processor(run: Run, timer: str) -> None:
    counters = {
        "11": Counter(timer, {"0": 500, "1": 2_000, "2": 9_999}),
        "16": Counter("arm-pmu", {"1": 40}),
        "36": Counter("eth0", {"1": 60, "2": 9_999}),
        "IPI0": Counter("Rescheduling interrupts", {"1": 70}),
    }
    known = KnownRun(dataclasses.replace(run, interrupts=counters))
    assert FIGURES["ticks"].of(known) == 1_250.0
    assert FIGURES["device-interrupts"].of(known) == 30.0


@pytest.mark.parametrize(
    ("before", "after", "rises", "factor"),
    [
        (300, 30, False, 10.0),
        (30, 300, True, 10.0),
        (300, 0, False, 300.0),  # fewer than one event: counted as one
        (0, 300, True, 300.0),
        (0, 0, False, 0.0),
        (30, 300, False, 0.1),
    ],
)
def test_a_factor_counts_at_least_one_event(run: Run, before: int, after: int, rises: bool, factor: float) -> None:
    sides = KnownRun(with_switches(run, before)), KnownRun(with_switches(run, after))
    assert ratio(FIGURES["preempted"], *sides, rises=rises) == pytest.approx(factor)


def test_without_a_value_there_is_no_factor(run: Run) -> None:
    assert ratio(FIGURES["core-hz"], KnownRun(run), KnownRun(dataclasses.replace(run, core_hz=None))) is None


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_falling_and_rising_are_each_others_inverse(before: int, after: int) -> None:
    sides = [KnownRun(with_switches(RUN, count)) for count in (before, after)]
    preempted: Figure = FIGURES["preempted"]
    fell, rose = ratio(preempted, *sides), ratio(preempted, *sides, rises=True)
    assert fell is not None
    assert rose is not None
    assert fell * rose == pytest.approx(1.0)


def _made(make: Callable[..., Any]) -> Run:
    found: Run = make([[100]])[0]
    stalls = dataclasses.replace(found.stalls, rated_s=None)
    return dataclasses.replace(found, workload="ring", duration_s=2.0, stalls=stalls)


RUN = _made(madeup.make_run)


def test_stalls_that_no_preemption_explains_are_counted_at_least(run: Run) -> None:
    one = FIGURES["stalls-unswitched"]
    assert one.of(KnownRun(with_switches(run, 3))) == 1.0
    assert one.told(KnownRun(with_switches(run, 3))) == "2.5 − 1.5 = 1 a second"


def test_a_difference_of_fewer_stalls_than_preemptions_is_not_known(run: Run) -> None:
    one = FIGURES["stalls-unswitched"]
    assert one.of(KnownRun(with_switches(run, 30))) is None
    assert one.told(KnownRun(with_switches(run, 30))) == "2.5 − 15 is not known (fewer than preemptions)"
    none = dataclasses.replace(run.stalls.rates[0], threshold_ns=100_000, count=0, per_second=0.0)
    quiet = dataclasses.replace(run, stalls=dataclasses.replace(run.stalls, rates=(none,)))
    assert one.of(KnownRun(with_switches(quiet, 30))) == 0.0, "no stall is left of none"
    for switches in (30, 0):
        told = one.told(KnownRun(with_switches(quiet, switches)))
        assert told == "0 a second (stalls of 100 µs and more: 0)", "no equation that is false"


def test_a_figure_is_told_with_its_unit() -> None:
    assert FIGURES["ticks"].with_unit(250.0) == "250 a second"
    assert FIGURES["max"].with_unit(12_000) == "12 µs"
    assert FIGURES["core-hz-spread"].change(1.25, None) == "1.25 → unknown"


VISITORS = (
    InterferingTask(1, "workqueue", "flush_to_ldisc", 40, 9, 9),
    InterferingTask(2, "workqueue", "flush_to_ldisc", 2, 9, 9),
    InterferingTask(1, "workqueue", "vmstat_update", 8, 9, 9),
    InterferingTask(1, "task", "rngd", 6, 9, 9),
    InterferingTask(1, "softirq", "RCU", 100, 9, 9),
)


def traced(visitors: tuple[InterferingTask, ...], measured_ns: int = 2_000_000_000) -> KnownRun:
    proof = QuietCpus((1, 2), measured_ns, False, 0, 0, 0, "")
    present = Residence((), visitors, (), (), (), proof)
    report = EvidenceReport(1, "r", "trace", 1_000, "mono", 1, 0, (), (), measured_ns, residence=present)
    return KnownRun(RUN, report)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("work-items", 25.0),
        ("work:flush_to_ldisc", 21.0),
        ("work:vmstat_update", 4.0),
        ("work:never_seen", 0.0),
        ("task-runs", 3.0),
    ],
)
def test_a_trace_counts_the_events_on_the_hot_cpus(name: str, value: float) -> None:
    assert figure_with_id(name).of(traced(VISITORS)) == value
    assert figure_with_id(name).traced
    assert figure_with_id(name).of(KnownRun(RUN)) is None  # without a trace it is not known: not zero
    assert figure_with_id(name).of(traced(VISITORS, 0)) is None


def test_the_exit_latency_is_the_mean_over_all_entries() -> None:
    seen = KnownRun(dataclasses.replace(RUN, idle_entries=40, idle_exit_us=4_000))
    assert figure_with_id("idle-exit").of(seen) == 100_000  # ns
    assert figure_with_id("idle-exit").of(KnownRun(dataclasses.replace(RUN, idle_entries=0, idle_exit_us=0))) == 0
    assert figure_with_id("idle-exit").of(KnownRun(RUN)) is None
    assert figure_with_id("cpu-hz").of(KnownRun(dataclasses.replace(RUN, cpu_hz=8))) == 8


def test_the_first_writes_have_a_time_and_not_a_count() -> None:
    assert figure_with_id("first-write").of(KnownRun(dataclasses.replace(RUN, first_write_ns=190_000))) == 190_000
    assert figure_with_id("first-write").of(KnownRun(RUN)) is None
    assert not counts_alone(figure_with_id("first-write"))


@pytest.mark.parametrize("name", ["work:", "work:a b", "work:é", "work:1x", "nothing", "", f"work:{'x' * 80}"])
def test_a_name_that_means_no_figure_is_refused(name: str) -> None:
    with pytest.raises(KeyError):
        figure_with_id(name)


def test_without_hot_cpus_their_counters_are_not_known(run: Run) -> None:
    free = dataclasses.replace(run, placement=Placement("none"))
    assert [FIGURES[name].of(KnownRun(free)) for name in ("ticks", "device-interrupts", "net-rx")] == [None] * 3


def test_interrupts_are_counted_a_second_of_the_time_that_the_counters_cover(run: Run) -> None:
    """Explain divides by this time, and both pages must tell one rate."""
    covered = dataclasses.replace(run, counted_s=2 * run.duration_s)
    for name in ("ticks", "device-interrupts", "net-rx"):
        blocks_alone = FIGURES[name].of(KnownRun(run))
        assert blocks_alone is not None
        assert FIGURES[name].of(KnownRun(covered)) == pytest.approx(blocks_alone / 2)
    assert FIGURES["preempted"].of(KnownRun(covered)) == FIGURES["preempted"].of(KnownRun(run))


def test_preemptions_are_counted_a_second_of_sampling(run: Run) -> None:
    # As many preemptions in each second of sampling, and a tenth of the time is sampled.
    threads = tuple(dataclasses.replace(t, involuntary_switches=3) for t in run.threads)
    tenth = dataclasses.replace(run, threads=threads, stalls=dataclasses.replace(run.stalls, rated_s=0.2))
    assert FIGURES["preempted"].of(KnownRun(tenth)) == pytest.approx(15.0)
    assert ratio(FIGURES["preempted"], KnownRun(run), KnownRun(tenth)) == pytest.approx(1.0)


def with_interrupts(run: Run, movable: int, managed: int, name: str = "virtio1-req.0") -> KnownRun:
    """A run of 2 s on the hot CPUs 0 and 1."""
    counters = {"34": Counter("virtio4-input", {"1": movable}), "36": Counter(name, {"1": managed})}
    return KnownRun(dataclasses.replace(run, interrupts=counters))


def test_a_managed_interrupt_is_no_part_of_the_figure_that_a_plan_of_masks_moves(run: Run) -> None:
    before, after = with_interrupts(run, 324, 118), with_interrupts(run, 0, 300)
    movable = titled(FIGURES["device-interrupts"], before.run)
    assert movable.title == "movable device interrupts"
    assert (movable.of(before), movable.of(after)) == (162.0, 0.0)
    assert (FIGURES["managed-interrupts"].of(before), all_device_interrupts(after)) == (59.0, 150.0)
    assert as_said(Shows("device-interrupts", 3.0), before, after)[1]
    assert managed_told(before, after) == "virtio1-req.0, which cannot be moved: 59 → 150 a second."


def test_managed_interrupts_of_several_names_are_told_together_and_none_is_not_told(run: Run) -> None:
    two = managed_told(with_interrupts(run, 0, 2), with_interrupts(run, 0, 4, "nvme0q2"))
    assert two.startswith("Managed device interrupts, which cannot be moved: 1 → 2")
    assert managed_told(with_interrupts(run, 2, 0), with_interrupts(run, 2, 0)) == ""


def test_a_recorded_run_keeps_the_figure_of_all_device_interrupts(run: Run) -> None:
    bare = dataclasses.replace(run, interrupts=None)
    known = KnownRun(bare, recorded={"device-interrupts": 30.0})
    assert titled(FIGURES["device-interrupts"], bare).title == "device interrupts"
    assert all_device_interrupts(known) == 30.0
    assert all_device_interrupts(KnownRun(bare)) is None
    assert managed_told(known, known) == ""
