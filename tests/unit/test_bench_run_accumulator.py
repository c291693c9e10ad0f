"""Test the sums of blocks against plain sums."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench.protocol import BlockDone, HistogramBlock
from jitter_workshop.bench.run_accumulator import RunAccumulator
from jitter_workshop.model.run import Counter, Stall, StallTotal, ThreadRecord
from jitter_workshop.model.spec import Placement, RunSpec
from jitter_workshop.stats import histogram
from tests import madeup

SPEC = RunSpec("spin", Placement("none"), blocks=9, block_ns=1_000, threshold_ns=1_000)
COUNTS = st.integers(0, 1_000)
MAYBE = st.none() | COUNTS
BY_CPU = st.dictionaries(st.sampled_from(["0", "2", "10"]), COUNTS)


@st.composite
def block(draw: st.DrawFn) -> BlockDone:
    values = draw(st.lists(st.integers(1, 10**10), max_size=20))
    counted = histogram.new_histogram()
    for value in values:
        counted.record_value(value)
    length = draw(st.integers(1, 10**9))
    stalls = draw(st.lists(st.integers(1_000, 10**6), max_size=3))
    counters = draw(st.none() | st.dictionaries(st.sampled_from(["LOC", "36"]), BY_CPU))
    return BlockDone(
        index=draw(COUNTS),
        start_ns=draw(st.integers(0, 10**12)),
        end_ns=0,
        wall_start_s=0.0,
        histograms={
            "spin_gap": HistogramBlock(
                histogram.encode_histogram(counted),
                len(values),
                min(values, default=None),
                max(values, default=None),
                sum(values),
                draw(COUNTS),
            )
        },
        threads=(
            ThreadRecord(
                "sampler",
                draw(BY_CPU),
                draw(MAYBE),
                draw(MAYBE),
                draw(MAYBE),
                None,
                draw(COUNTS),
                waited_ns=draw(MAYBE),
            ),
        ),
        stalls=tuple(Stall(0, "sampler", 1, 5, 5 + s, 1) for s in stalls),
        stall_totals=(StallTotal(1_000, len(stalls), sum(stalls)),),
        blocked_publishes=None,
        negative_deltas=draw(COUNTS),
        core_hz=draw(MAYBE),
        ping_pong_ns=None,
        interrupts=None if counters is None else {k: Counter(k, dict(v)) for k, v in counters.items()},
        softirqs=None,
        steal_ns=draw(MAYBE),
        throttled_periods=None,
        parent_switches=0,
        notes={"length": str(length)},
        counted_ns=draw(MAYBE),
        buckets=draw(st.none() | st.lists(COUNTS, min_size=26, max_size=26).map(tuple)),
        sampled_ns=draw(MAYBE),
        missed_wakeups=draw(MAYBE),
    )


def test_the_first_writes_have_the_lower_quartile_of_all_blocks() -> None:
    _, blocks = madeup.make_run([[100], [100]], name="spin_gap")
    gathered = RunAccumulator(SPEC)
    for done, times, pages in zip(blocks, [(9_000, 190, 200), (180, 8_000)], [3, 2], strict=True):
        gathered.add(dataclasses.replace(done, first_writes_ns=times, huge_pages=pages))
    assert (gathered.first_write_ns(), gathered.sum_of("huge_pages")) == (190, 5)
    gathered.add(blocks[0])
    assert (gathered.first_write_ns(), gathered.sum_of("huge_pages")) == (190, None)


def test_a_run_without_blocks_knows_no_buckets() -> None:
    assert (RunAccumulator(SPEC).buckets, RunAccumulator(SPEC).sampled_s) == (None, None)


@pytest.mark.parametrize(("duty", "rated_s"), [(100, 2.0), (50, 1.0), (10, 0.2)])
def test_the_rates_of_a_sampler_that_pauses_are_of_the_time_in_which_it_looked(duty: int, rated_s: float) -> None:
    _, (one, other) = madeup.make_run([[100, 200_000], [100]], name="spin_gap", block_s=1.0)
    gathered = RunAccumulator(dataclasses.replace(SPEC, duty=duty))
    for done in (one, other):
        gathered.add(dataclasses.replace(done, sampled_ns=duty * 10_000_000))
    found = gathered.stalls()
    assert (found.count, found.rated_s) == (1, rated_s)
    assert found.per_second == pytest.approx(1 / rated_s)
    assert found.rates[0].stolen_ns_per_second == pytest.approx(200_000 / rated_s)
    assert found.per_second_low is not None
    assert found.per_second_high is not None
    assert found.per_second_low < found.per_second < found.per_second_high


def test_without_word_of_the_sampled_time_rates_are_of_the_blocks() -> None:
    _, (done,) = madeup.make_run([[100, 200_000]], name="spin_gap", block_s=1.0)
    gathered = RunAccumulator(dataclasses.replace(SPEC, duty=10))
    gathered.add(done)
    assert gathered.stalls().rated_s == 1.0


def known(values: list[int | None]) -> int | None:
    return None if None in values else sum(v for v in values if v is not None)


@given(st.lists(block(), min_size=1, max_size=5))
def test_a_run_is_the_sum_of_its_blocks(blocks: list[BlockDone]) -> None:
    whole = [dataclasses.replace(b, end_ns=b.start_ns + int(b.notes["length"])) for b in blocks]
    gathered = RunAccumulator(SPEC)
    for done in whole:
        gathered.add(done)

    parts = [b.histograms["spin_gap"] for b in whole]
    summary = gathered.merged["spin_gap"].summary()
    assert summary.count == sum(p.count for p in parts)
    assert summary.overflow == sum(p.overflow for p in parts)
    assert summary.min == min((p.min for p in parts if p.min is not None), default=None)
    assert summary.max == max((p.max for p in parts if p.max is not None), default=None)
    if summary.count:
        assert summary.mean == sum(p.total for p in parts) / summary.count

    assert [b.index for b in gathered.blocks] == list(range(len(whole)))
    assert sum(b.duration_ns for b in gathered.blocks) == sum(int(b.notes["length"]) for b in blocks)
    assert [b.stalls for b in gathered.blocks] == [len(b.stalls) for b in whole]
    stalls = gathered.stalls()
    assert stalls.count == sum(len(b.stalls) for b in whole)
    origin = whole[0].start_ns
    assert {(s.block, s.start_ns) for s in stalls.worst} == {
        (i, b.start_ns - origin + 5) for i, b in enumerate(whole) for _ in b.stalls
    }

    (thread,) = gathered.threads({"sampler": 77})
    assert thread.tid == 77
    assert sum(thread.messages_by_cpu.values()) == sum(sum(b.threads[0].messages_by_cpu.values()) for b in whole)
    assert list(thread.cpus) == sorted(thread.cpus)
    assert thread.migrations == known([b.threads[0].migrations for b in whole])
    assert thread.minor_faults is None
    assert thread.waited_ns == known([b.threads[0].waited_ns for b in whole])
    assert gathered.sum_of("steal_ns") == known([b.steal_ns for b in whole])
    counted_ns = known([b.counted_ns for b in whole])
    assert gathered.counted_s == (None if counted_ns is None else counted_ns / 1e9)
    sampled_ns = known([b.sampled_ns for b in whole])
    assert gathered.sampled_s == (None if sampled_ns is None else sampled_ns / 1e9)
    if sampled_ns is None or any(b.buckets is None for b in whole):
        assert gathered.buckets is None
    else:
        assert gathered.buckets is not None
        assert sum(b.count for b in gathered.buckets) == sum(sum(b.buckets or ()) for b in whole)
    assert gathered.softirqs is None
    if any(b.interrupts is None for b in whole):
        assert gathered.interrupts is None
    else:
        assert gathered.interrupts is not None
        total = sum(sum(c.per_cpu.values()) for c in gathered.interrupts.values())
        assert total == sum(sum(c.per_cpu.values()) for b in whole for c in (b.interrupts or {}).values())
