"""Compute the histograms, stalls and CPU use of one block from its time stamps.

The arithmetic is in ``native/analysis.c``. Other code adds three things to a returned block: the start and end in ns,
the threads' resource usage, and the kernel's counters.

In each array of stamps, entry 0 is the stamp of the last message before the block. The first interval begins at this
stamp. Entries 1 … n are the stamps of the block's messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jitter_workshop.bench.native import ffi, lib
from jitter_workshop.bench.protocol import BlockDone, HistogramBlock
from jitter_workshop.errors import MeasureError
from jitter_workshop.model.run import Stall, StallTotal, ThreadRecord
from jitter_workshop.model.spec import KINDS, RunSpec
from jitter_workshop.stats import histogram as histograms
from jitter_workshop.stats.stalls import BUCKETS_NS, stall_thresholds

_CPUS = 65_536


class NativeHistogram:
    """Hold a histogram whose counters native code writes."""

    def __init__(self, histogram: Any = None) -> None:
        self.histogram = histogram if histogram is not None else histograms.new_histogram()
        space = histograms.geometry(self.histogram)
        # The counters belong to the Python histogram, which must outlive the native view of them.
        self._counters = ffi.from_buffer("uint64_t[]", histograms.counts_array(self.histogram), require_writable=True)
        self.native = ffi.new("jw_histogram *")
        self.native.counts = self._counters
        self.native.counts_len = space.counts_len
        self.native.sub_bucket_half_count = space.sub_bucket_half_count
        self.native.sub_bucket_mask = space.sub_bucket_mask
        self.native.unit_magnitude = space.unit_magnitude
        self.native.sub_bucket_half_count_magnitude = space.sub_bucket_half_count_magnitude
        self.native.highest = space.highest_ns
        lib.jw_histogram_reset(self.native)

    @property
    def negative(self) -> int:
        """Return the number of values that were not recorded because they were negative."""
        return int(self.native.negative)

    def block(self) -> HistogramBlock:
        """Return the recorded values as an encoded histogram.

        The number, minimum, maximum and sum of the recorded values are exact.
        """
        native = self.native
        empty = native.count == 0
        return HistogramBlock(
            encoded=histograms.encode_histogram(self.histogram),
            count=native.count,
            min=None if empty else native.min,
            max=None if empty else native.max,
            total=native.total,
            overflow=native.overflow,
        )


@dataclass(frozen=True, slots=True)
class Stamps:
    """Hold one thread's records of a block. ``times``: the stamps (``uint64_t *``, ticks). ``cpus``: the CPU of each
    stamp (``uint16_t *``). Both arrays have n + 1 entries for n messages."""

    times: Any
    cpus: Any


def ring_block(
    clock: Any, spec: RunSpec, index: int, count: int, ready: Any, producer: Stamps, consumers: Mapping[str, Stamps]
) -> BlockDone:
    """Return the results of one block of the ring.

    - ``clock``: a ``jw_clock *``.
    - ``count``: the number of messages.
    - ``ready``: when each message was ready, before it was copied (``uint64_t *``, ticks).
    - ``producer``: when each message was published.
    - ``consumers``: the stamps of ``accumulator``, and of ``journaller`` if the run has one.

    Each message has two latencies: transit and hand-off. Both end at the consumer's stamp. The transit begins when the
    message is ready. The hand-off begins when the message is published. A transit that lasts too long is a stall of the
    consumer. Raise MeasureError if ``count`` is below 1, or if there is not enough memory.
    """
    if count < 1:
        raise MeasureError("a block ended before its first message")
    start = int(producer.times[0])
    scheduled = spec.pacing == "schedule"
    expected_ns = spec.interval_ns if scheduled else int(lib.jw_analyse_median_gap(clock, ready, count))
    if expected_ns < 0:
        raise MeasureError("there is not enough memory to analyse a block")
    recorders = {"publisher_interval": NativeHistogram()}
    lib.jw_analyse_intervals(clock, producer.times, count, recorders["publisher_interval"].native)
    sent = Stamps(ready, producer.cpus)
    stalls = {"producer": _producer_stalls(clock, start, count, expected_ns, scheduled, spec.threshold_ns, sent)}
    negative = 0
    for name, consumer in consumers.items():
        transit, handoff, interval, intended = (NativeHistogram() for _ in range(4))
        lib.jw_analyse_transit(clock, ready, consumer.times, count, transit.native)
        lib.jw_analyse_transit(clock, producer.times, consumer.times, count, handoff.native)
        lib.jw_analyse_intervals(clock, consumer.times, count, interval.native)
        if scheduled:
            lib.jw_analyse_intended_schedule(clock, start, consumer.times, count, expected_ns, intended.native)
        else:
            lib.jw_analyse_intended_spin(clock, ready, consumer.times, count, expected_ns, intended.native)
        recorders |= {f"{name}_transit": transit, f"{name}_handoff": handoff}
        recorders |= {f"{name}_interval": interval, f"{name}_intended": intended}
        stalls[name] = _consumer_stalls(clock, start, count, spec.threshold_ns, sent, consumer)
        # Of both times of a message, hand-off is the shorter one: it turns negative first.
        negative += handoff.negative
    threads = {"producer": producer, **consumers}
    end = max(int(stamps.times[count]) for stamps in threads.values())
    by_cpu = {name: _residence(stamps, count) for name, stamps in threads.items()}
    return _block(spec, index, start, end, recorders, stalls, negative, by_cpu)


def spin_block(
    clock: Any, spec: RunSpec, index: int, result: Any, table: Any, table_len: int, gaps: Any, by_cpu: Any
) -> BlockDone:
    """Return the results of one block of the sampler.

    - ``clock``: a ``jw_clock *``.
    - ``result``: a ``jw_spin_result``.
    - ``table``: the number of short gaps for each length in ticks, with ``table_len`` entries.
    - ``gaps``: the log of long gaps.
    - ``by_cpu``: the number of readings on each CPU.
    """
    spin_gap = NativeHistogram()
    lib.jw_analyse_gaps(clock, table, table_len, gaps, result.gaps, spin_gap.native)
    stalls = _two_pass(
        lambda out, room: lib.jw_analyse_gap_stalls(
            clock, result.start, gaps, result.gaps, spec.threshold_ns, out, room
        )
    )
    found = _block(
        spec,
        index,
        result.start,
        result.end,
        {"spin_gap": spin_gap},
        {"sampler": stalls},
        result.negative,
        {"sampler": _used(by_cpu)},
    )
    sampled_ns = int(lib.jw_clock_ns(clock, result.end - result.start - result.asleep_ticks))
    return replace(found, buckets=_buckets(clock, gaps, int(result.gaps)), sampled_ns=sampled_ns)


def wakeup_block(clock: Any, spec: RunSpec, index: int, count: int, due: Stamps, woken: Stamps) -> BlockDone:
    """Return the results of one block of ``wakeup``.

    - ``clock``: a ``jw_clock *``.
    - ``count``: the number of wake-ups.
    - ``due``: the times at which the thread had to wake up.
    - ``woken``: the times at which the thread read the clock.
    """
    latency = NativeHistogram()
    lib.jw_analyse_transit(clock, due.times, woken.times, count, latency.native)
    start, end = int(woken.times[0]), int(woken.times[count])
    stalls = {"sleeper": _consumer_stalls(clock, start, count, spec.threshold_ns, due, woken)}
    by_cpu = {"sleeper": _residence(woken, count)}
    return _block(spec, index, start, end, {"wakeup_latency": latency}, stalls, latency.negative, by_cpu)


def ack_block(
    clock: Any, spec: RunSpec, index: int, sent: int, answered: int, sender: Stamps, receiver: Stamps
) -> BlockDone:
    """Return the results of one block of ``ack``. Raise MeasureError if ``answered`` is 0.

    - ``sent``: the number of segments.
    - ``answered``: the number of the receiver's stamps. The receiver takes one stamp before each ACK that it sends.

    A stall is an interval between two successive stamps of a thread. It is at least as long as the threshold. Its
    duration is the whole interval. The totals count only the receiver's stalls. ``BlockDone.stalls`` lists the sender's
    stalls, too, because a receiver cannot answer a segment that was not sent.
    """
    if answered < 1:
        raise MeasureError("in one block all segments were answered at the same instant", "measure for longer")
    intervals = {"ack_interval": NativeHistogram(), "sender_interval": NativeHistogram()}
    lib.jw_analyse_intervals(clock, receiver.times, answered, intervals["ack_interval"].native)
    lib.jw_analyse_intervals(clock, sender.times, sent, intervals["sender_interval"].native)
    start, end = int(sender.times[0]), max(int(sender.times[sent]), int(receiver.times[answered]))
    # The expected interval is 0, so that a stall is the whole interval from one stamp to the next.
    stalls = {
        "receiver": _producer_stalls(clock, start, answered, 0, False, spec.threshold_ns, receiver),
        "sender": _producer_stalls(clock, start, sent, 0, False, spec.threshold_ns, sender),
    }
    negative = sum(recorder.negative for recorder in intervals.values())
    by_cpu = {"sender": _residence(sender, sent), "receiver": _residence(receiver, answered)}
    return _block(spec, index, start, end, intervals, stalls, negative, by_cpu)


def _block(
    spec: RunSpec,
    index: int,
    start_ticks: int,
    end_ticks: int,
    recorders: Mapping[str, NativeHistogram],
    stalls: Mapping[str, NativeStalls],
    negative: int,
    by_cpu: dict[str, dict[str, int]],
) -> BlockDone:
    """Return a block with the fields that all workloads have.

    The totals count the stalls of the threads in ``model.spec.WorkloadKind.rated``. The list has the longest stalls of
    all threads.
    """
    counted = [stalls[name] for name in KINDS[spec.workload].rated]
    return BlockDone(
        index=index,
        histograms={name: recorder.block() for name, recorder in recorders.items()},
        threads=tuple(
            ThreadRecord(name, messages, cpus=tuple(int(cpu) for cpu in messages)) for name, messages in by_cpu.items()
        ),
        stalls=longest(index, stalls, spec.listed_stalls),
        unlisted=unlisted(stalls, spec.listed_stalls),
        stall_totals=totals(spec.threshold_ns, *counted),
        negative_deltas=negative,
        start_ticks=start_ticks,
        end_ticks=end_ticks,
    )


@dataclass(frozen=True, slots=True)
class NativeStalls:
    """Hold the stalls of one thread in order of time: a native array ``jw_stall[]``, and its length."""

    items: Any
    count: int


NO_STALLS = NativeStalls(ffi.NULL, 0)


def totals(threshold_ns: int, one: NativeStalls, other: NativeStalls = NO_STALLS) -> tuple[StallTotal, ...]:
    """Return the number and the total length of stalls for each threshold.

    ``one``, ``other``: the stalls of two threads. Stalls of both threads at the same time count once.
    """
    limits = stall_thresholds(threshold_ns)
    counts = ffi.new("int64_t[]", len(limits))
    stolen_ns = ffi.new("int64_t[]", len(limits))
    lib.jw_analyse_totals(
        one.items, one.count, other.items, other.count, ffi.new("int64_t[]", limits), len(limits), counts, stolen_ns
    )
    return tuple(StallTotal(t, counts[i], stolen_ns[i]) for i, t in enumerate(limits))


def longest(index: int, stalls: Mapping[str, NativeStalls], listed: int) -> tuple[Stall, ...]:
    """Return the ``listed`` longest stalls among those of all threads. They are in order of time, not of length."""
    found = [
        Stall(index, thread, item.cpu, item.start_ns, item.end_ns, item.messages)
        for thread, some in stalls.items()
        for item in _top(some, listed)
    ]
    found.sort(key=lambda stall: stall.duration_ns, reverse=True)
    return tuple(sorted(found[:listed], key=lambda stall: (stall.start_ns, stall.thread)))


def unlisted(stalls: Mapping[str, NativeStalls], listed: int) -> int:
    """Return the number of stalls that :func:`longest` leaves out. ``stalls``: thread → its stalls.

    ``listed``: the largest number of listed stalls, as for :func:`longest`.
    """
    return max(sum(some.count for some in stalls.values()) - listed, 0)


def _top(stalls: NativeStalls, listed: int) -> Sequence[Any]:
    """Return the ``listed`` longest stalls of one thread.

    Only these stalls become Python objects, because a thread may have a million stalls.
    """
    if stalls.count <= listed:
        return [stalls.items[i] for i in range(stalls.count)]
    order = sorted(
        range(stalls.count), key=lambda i: int(stalls.items[i].end_ns - stalls.items[i].start_ns), reverse=True
    )
    return [stalls.items[i] for i in order[:listed]]


def _two_pass(find: Callable[[Any, int], int]) -> NativeStalls:
    """Return the stalls that the native function ``find`` reports.

    The first call of ``find`` returns the number of stalls. The second call fills an array of this length.
    """
    count = int(find(ffi.NULL, 0))
    if count == 0:
        return NO_STALLS
    items = ffi.new("jw_stall[]", count)
    find(items, count)
    return NativeStalls(items, count)


def _consumer_stalls(
    clock: Any, start: int, count: int, threshold_ns: int, producer: Stamps, consumer: Stamps
) -> NativeStalls:
    return _two_pass(
        lambda out, room: lib.jw_analyse_consumer_stalls(
            clock, start, producer.times, consumer.times, consumer.cpus, count, threshold_ns, out, room
        )
    )


def _producer_stalls(
    clock: Any, start: int, count: int, expected_ns: int, scheduled: bool, threshold_ns: int, producer: Stamps
) -> NativeStalls:
    return _two_pass(
        lambda out, room: lib.jw_analyse_producer_stalls(
            clock, start, producer.times, producer.cpus, count, expected_ns, int(scheduled), threshold_ns, out, room
        )
    )


def _buckets(clock: Any, gaps: Any, count: int) -> tuple[int, ...]:
    counts = ffi.new("uint64_t[]", len(BUCKETS_NS))
    lib.jw_analyse_buckets(clock, gaps, count, ffi.new("int64_t[]", BUCKETS_NS), len(BUCKETS_NS), counts)
    return tuple(ffi.unpack(counts, len(BUCKETS_NS)))


def _residence(stamps: Stamps, count: int) -> dict[str, int]:
    by_cpu = ffi.new("uint64_t[]", _CPUS)
    lib.jw_analyse_residence(stamps.cpus, count, by_cpu)
    return _used(by_cpu)


def _used(by_cpu: Any) -> dict[str, int]:
    # All but the first few are zero, and checking all 65,536 would take half the time of the analysis.
    used = len(bytes(ffi.buffer(ffi.cast("uint64_t *", by_cpu), _CPUS * 8)).rstrip(b"\0"))
    counts = ffi.unpack(ffi.cast("uint64_t *", by_cpu), -(-used // 8)) if used else []
    return {str(cpu): messages for cpu, messages in enumerate(counts) if messages}
