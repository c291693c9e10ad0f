"""The analysis of made-up stamps against the same rules written down plainly in Python (ticks are ns here)."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jitter_workshop.bench import block_analysis
from jitter_workshop.bench.block_analysis import NativeHistogram, Stamps
from jitter_workshop.bench.native import ffi, lib, new_clock
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.errors import MeasureError
from jitter_workshop.model.run import Stall
from jitter_workshop.model.spec import LISTED_STALLS, Pacing, Placement, RunSpec, WorkloadName
from jitter_workshop.stats.stalls import BUCKETS_NS

pytestmark = pytest.mark.native

NS = new_clock(lib.JW_CLOCK_MONOTONIC, 1_000_000_000)
INTERVAL = 10_000


@dataclass
class Made:
    publish: list[int]
    receive: list[int]
    cpus: list[int]
    ready: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """A message for which no other moment is given was ready when it was published."""
        self.ready = self.ready or self.publish

    @property
    def count(self) -> int:
        return len(self.publish) - 1


@st.composite
def blocks(draw: st.DrawFn) -> Made:
    """Publish times with gaps, and receive times in order; a receiver's clock may be a little behind."""
    gap = st.one_of(st.integers(INTERVAL - 50, INTERVAL + 50), st.integers(0, 300_000))
    gaps = draw(st.lists(gap, min_size=1, max_size=60))
    publish = [draw(st.integers(10_000, 2**60))]
    for g in gaps:
        publish.append(publish[-1] + g)
    delay = st.one_of(st.integers(40, 400), st.integers(0, 200_000), st.integers(-30, 0))
    receive: list[int] = []
    for p in publish:
        receive.append(max(p + draw(delay), receive[-1] if receive else 0))
    cpus = draw(st.lists(st.integers(0, 300), min_size=len(publish), max_size=len(publish)))
    ready = [publish[0], *(max(p - draw(st.integers(0, 500)), before) for before, p in pairwise(publish))]
    return Made(publish, receive, cpus, ready)


def stamps(times: list[int], cpus: list[int]) -> Stamps:
    return Stamps(ffi.new("uint64_t[]", times), ffi.new("uint16_t[]", cpus))


def asked(workload: WorkloadName, threshold_ns: int, pacing: Pacing = "spin") -> RunSpec:
    return RunSpec(workload, Placement("none"), 1, 1, pacing=pacing, interval_ns=INTERVAL, threshold_ns=threshold_ns)


def analysed(made: Made, pacing: Pacing = "spin", threshold_ns: int = 1_000) -> BlockDone:
    spec = asked("ring", threshold_ns, pacing)
    accumulator = {"accumulator": stamps(made.receive, made.cpus)}
    ready = ffi.new("uint64_t[]", made.ready)
    return block_analysis.ring_block(NS, spec, 0, made.count, ready, stamps(made.publish, made.cpus), accumulator)


def by_cpu(found: BlockDone) -> dict[str, dict[str, int]]:
    return {thread.name: thread.messages_by_cpu for thread in found.threads}


def recorded(values: list[int]) -> Any:
    recorder = NativeHistogram()
    lib.jw_record_many(recorder.native, ffi.new("int64_t[]", values), len(values))
    return recorder.block()


def plain_intended(made: Made) -> list[int]:
    expected = median_low(b - a for a, b in pairwise(made.ready))
    found: list[int] = []
    for i in range(1, made.count + 1):
        transit = made.receive[i] - made.ready[i]
        if transit < 0:
            continue
        late = made.ready[i] - made.ready[i - 1] - expected
        found.append(transit + max(late, 0))
        k = 1
        while expected > 0 and late - k * expected > 0:
            found.append(transit + late - k * expected)
            k += 1
    return found


def plain_union(windows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    united: list[tuple[int, int]] = []
    for start, end in sorted(windows):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def consumer_windows(made: Made, threshold_ns: int) -> list[tuple[int, int]]:
    base = made.publish[0]
    return [
        (max(made.ready[i], made.receive[i - 1]) - base, made.receive[i] - base)
        for i in range(1, made.count + 1)
        if made.receive[i] - made.ready[i] >= threshold_ns
    ]


def producer_windows(made: Made, expected: int, threshold_ns: int) -> list[tuple[int, int]]:
    base = made.publish[0]
    return [
        (made.ready[i - 1] + expected - base, made.ready[i] - base)
        for i in range(1, made.count + 1)
        if made.ready[i] - made.ready[i - 1] - expected >= threshold_ns
    ]


@given(blocks())
def test_transit_and_intervals(made: Made) -> None:
    found = analysed(made)
    for name, begun in (("transit", made.ready), ("handoff", made.publish)):
        times = [r - p for p, r in zip(begun[1:], made.receive[1:], strict=True)]
        assert found.histograms[f"accumulator_{name}"] == recorded([t for t in times if t >= 0])
    # Of both times of a message, hand-off is the shorter one: it turns negative first.
    assert found.negative_deltas == sum(r < p for p, r in zip(made.publish[1:], made.receive[1:], strict=True))
    assert found.histograms["publisher_interval"] == recorded([b - a for a, b in pairwise(made.publish)])
    assert found.histograms["accumulator_interval"] == recorded([b - a for a, b in pairwise(made.receive)])
    assert (found.start_ticks, found.end_ticks) == (made.publish[0], max(made.publish[-1], made.receive[-1]))


@given(blocks())
def test_intended_corrects_the_producer_only(made: Made) -> None:
    assert analysed(made).histograms["accumulator_intended"] == recorded(plain_intended(made))


@given(blocks())
def test_intended_on_a_schedule(made: Made) -> None:
    due = [made.publish[0] + i * INTERVAL for i in range(made.count + 1)]
    late = [made.receive[i] - due[i] for i in range(1, made.count + 1)]
    assert analysed(made, "schedule").histograms["accumulator_intended"] == recorded([v for v in late if v >= 0])


@given(blocks(), st.sampled_from([1_000, 5_000, 100_000]))
def test_stalls_are_unions_of_windows(made: Made, threshold_ns: int) -> None:
    found = analysed(made, threshold_ns=threshold_ns)
    expected = median_low(b - a for a, b in pairwise(made.ready))
    consumer = plain_union(consumer_windows(made, threshold_ns))
    producer = plain_union(producer_windows(made, expected, threshold_ns))
    listed = {
        name: [(s.start_ns, s.end_ns) for s in found.stalls if s.thread == name] for name in ("accumulator", "producer")
    }
    assert listed == {"accumulator": consumer, "producer": producer}
    late = sum(s.messages for s in found.stalls if s.thread == "accumulator")
    assert late == len(consumer_windows(made, threshold_ns))
    both = plain_union(consumer + producer)
    for total in found.stall_totals:
        over = [end - start for start, end in both if end - start >= total.threshold_ns]
        assert (total.count, total.stolen_ns) == (len(over), sum(over))


@given(blocks())
def test_residence(made: Made) -> None:
    found = by_cpu(analysed(made))["accumulator"]
    assert found == {str(cpu): made.cpus[1:].count(cpu) for cpu in sorted(set(made.cpus[1:]))}


def test_received_messages_do_not_show_a_stop_of_all_threads() -> None:
    """The coordinated omission: all stand still for 1 ms, and each message after that is as fast as ever."""
    stop, transit = 1_000_000, 100
    due = [i * INTERVAL for i in range(301)]
    publish = [t if t < stop else max(t, 2 * stop + i * 10) for i, t in enumerate(due)]
    receive = [p + transit for p in publish]
    spin, scheduled = (analysed(Made(publish, receive, [0] * 301), pacing) for pacing in ("spin", "schedule"))
    for found in (spin, scheduled):
        assert found.histograms["accumulator_transit"].max == transit
    late = [r - d for r, d in zip(receive[1:], due[1:], strict=True)]
    assert max(late) > stop
    assert sum(v > transit for v in late) >= stop // INTERVAL
    assert scheduled.histograms["accumulator_intended"] == recorded(late)


def test_a_stall_names_the_cpu_where_the_time_was_stolen() -> None:
    made = Made([0, 10_000, 20_000], [100, 60_000, 60_100], [3, 5, 5])
    (stall,) = (s for s in analysed(made).stalls if s.thread == "accumulator")
    assert stall == Stall(0, "accumulator", 3, 10_000, 60_100, 2)


def test_a_late_schedule_counts_the_messages_that_were_due() -> None:
    made = Made([0, 10_000, 55_000, 55_020, 55_040], [50, 10_050, 55_050, 55_070, 55_090], [0] * 5)
    (stall,) = analysed(made, "schedule").stalls
    assert (stall.thread, stall.start_ns, stall.end_ns, stall.messages) == ("producer", 20_000, 55_000, 4)


def test_only_the_longest_are_listed_but_all_are_counted() -> None:
    count = 3 * LISTED_STALLS
    publish = [i * 100_000 for i in range(count + 1)]
    receive = [p + 1_000 + i for i, p in enumerate(publish)]
    found = analysed(Made(publish, receive, [0] * (count + 1)))
    assert len(found.stalls) == LISTED_STALLS
    assert min(s.duration_ns for s in found.stalls) == 1_000 + count - LISTED_STALLS + 1
    assert found.stall_totals[0].count == count


def test_an_empty_block_is_an_error() -> None:
    with pytest.raises(MeasureError):
        analysed(Made([1], [2], [0]))


@given(
    st.dictionaries(st.integers(0, 999), st.integers(1, 10**6), max_size=20),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1_000, 10**7)), max_size=20),
)
def test_the_samplers_gaps(small: dict[int, int], long: list[tuple[int, int]]) -> None:
    table = ffi.new("uint64_t[]", 1_000)
    for ticks, count in small.items():
        table[ticks] = count
    gaps = ffi.new("jw_gap[]", len(long))
    at = 5_000
    windows = []
    for i, (pause, gap) in enumerate(long):
        gaps[i].start, gaps[i].end, gaps[i].cpu = at + pause, at + pause + gap, 2
        windows.append((at + pause - 5_000, at + pause + gap - 5_000))
        at += pause + gap
    result = ffi.new("jw_spin_result *", {"start": 5_000, "end": at, "gaps": len(long)})
    spec, readings = asked("spin", 50_000), ffi.new("uint64_t[]", 65_536)
    found = block_analysis.spin_block(NS, spec, 4, result, table, 1_000, gaps, readings)
    block = found.histograms["spin_gap"]
    assert block.count == sum(small.values()) + len(long)
    assert block.total == sum(t * n for t, n in small.items()) + sum(gap for _, gap in long)
    over = plain_union([w for w in windows if w[1] - w[0] >= 50_000])
    assert [(s.start_ns, s.end_ns) for s in found.stalls] == over
    assert all(s.block == 4 and s.thread == "sampler" and s.cpu == 2 for s in found.stalls)


@given(blocks(), st.sampled_from([1_000, 10_000, 100_000]))
def test_a_sleeper_is_late_by_the_time_from_due_to_woken(made: Made, threshold_ns: int) -> None:
    found = block_analysis.wakeup_block(
        NS,
        asked("wakeup", threshold_ns),
        3,
        made.count,
        stamps(made.publish, made.cpus),
        stamps(made.receive, made.cpus),
    )
    late = [w - d for d, w in zip(made.publish[1:], made.receive[1:], strict=True)]
    counted = found.histograms["wakeup_latency"]
    assert counted.count == sum(ns >= 0 for ns in late)
    assert found.negative_deltas == sum(ns < 0 for ns in late)
    assert counted.total == sum(ns for ns in late if ns >= 0)
    assert (found.start_ticks, found.end_ticks) == (made.receive[0], made.receive[-1])
    assert sum(stall.messages for stall in found.stalls) == sum(ns >= threshold_ns for ns in late)
    for stall in found.stalls:
        assert (stall.block, stall.thread) == (3, "sleeper")
        # From the moment at which the thread was due, unless it was late for the one before as well.
        assert stall.start_ns + found.start_ticks in {*made.publish, *made.receive}
        assert stall.end_ns + found.start_ticks in made.receive
    assert sum(by_cpu(found)["sleeper"].values()) == made.count


@given(blocks(), st.sampled_from([1_000, 10_000, 100_000]))
def test_a_receivers_stalls_are_its_long_intervals(made: Made, threshold_ns: int) -> None:
    answered = max(1, made.count // 2)
    receive = made.receive[: answered + 1]
    found = block_analysis.ack_block(
        NS,
        asked("ack", threshold_ns),
        0,
        made.count,
        answered,
        stamps(made.publish, made.cpus),
        stamps(receive, made.cpus[: answered + 1]),
    )
    intervals = [b - a for a, b in pairwise(receive)]
    sent = [b - a for a, b in pairwise(made.publish)]
    assert found.histograms["ack_interval"].count == answered
    assert found.histograms["ack_interval"].total == sum(intervals)
    assert found.histograms["sender_interval"].total == sum(sent)
    long = [ns for ns in intervals if ns >= threshold_ns]
    mine = [stall for stall in found.stalls if stall.thread == "receiver"]
    assert sum(stall.messages for stall in mine) == len(long)
    assert sum(stall.duration_ns for stall in mine) == sum(long)
    assert sum(s.messages for s in found.stalls if s.thread == "sender") == sum(ns >= threshold_ns for ns in sent)
    # Only the receiver's are counted, and two that touch are one.
    (total,) = (t for t in found.stall_totals if t.threshold_ns == threshold_ns)
    assert total.count == len(mine)
    assert total.stolen_ns == sum(long)


def test_a_block_that_was_answered_at_once_is_refused() -> None:
    one = stamps([1, 2], [0, 0])
    with pytest.raises(MeasureError, match="answered at the same instant"):
        block_analysis.ack_block(NS, asked("ack", 1_000), 0, 1, 0, one, one)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 3 * 10**8)), max_size=40))
def test_gaps_are_counted_by_length(gaps: list[tuple[int, int]]) -> None:
    native = ffi.new("jw_gap[]", [{"start": start, "end": start + length} for start, length in gaps])
    counts = ffi.new("uint64_t[]", len(BUCKETS_NS))
    lib.jw_analyse_buckets(NS, native, len(gaps), ffi.new("int64_t[]", BUCKETS_NS), len(BUCKETS_NS), counts)
    plain = [0] * len(BUCKETS_NS)
    for _, length in gaps:
        if length >= BUCKETS_NS[0]:
            plain[bisect_right(BUCKETS_NS, length) - 1] += 1
    assert list(counts) == plain


@pytest.mark.parametrize(("counts", "listed", "left"), [((3, 4), 7, 0), ((3, 4), 5, 2), ((0, 0), 5, 0), ((9, 0), 0, 9)])
def test_stalls_that_are_not_listed_are_counted(counts: tuple[int, int], listed: int, left: int) -> None:
    items = ffi.new("jw_stall[]", 9)
    for place, item in enumerate(items):
        item.start_ns, item.end_ns = place, 2 * place + 1
    threads = {
        "producer": block_analysis.NativeStalls(items, counts[0]),
        "journaller": block_analysis.NativeStalls(items, counts[1]),
    }
    assert block_analysis.unlisted(threads, listed) == left
    assert len(block_analysis.longest(0, threads, listed)) == sum(counts) - left
