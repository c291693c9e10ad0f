"""Add up a run's blocks: histograms, stalls, threads and counters (pure arithmetic, no processes)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import TYPE_CHECKING

from jitter_workshop.bench.protocol import BlockDone, HistogramBlock
from jitter_workshop.model.curve import PercentileCurve
from jitter_workshop.model.run import (
    THREAD_COUNTS,
    Block,
    Counter,
    GapBucket,
    HistogramSummary,
    Stall,
    Stalls,
    StallTotal,
    ThreadRecord,
)
from jitter_workshop.model.spec import KINDS, RunSpec
from jitter_workshop.stats import histogram as histograms
from jitter_workshop.stats import stalls as stall_arithmetic
from jitter_workshop.stats.curve import percentile_curve

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram

_LISTED_PER_RUN = 20_000
"""The largest number of stalls that are kept in memory during a run. It limits the memory that hours of blocks can
fill."""


@dataclass(slots=True)
class MergedHistogram:
    """Hold one histogram over all blocks so far, with the exact minimum, maximum and sum.

    The histogram itself rounds its values.
    """

    histogram: HdrHistogram
    min: int | None = None
    max: int | None = None
    total: int = 0
    overflow: int = 0

    def add(self, block: HistogramBlock, decoded: HdrHistogram) -> None:
        histograms.add_counts(self.histogram, decoded)
        self.min = min((v for v in (self.min, block.min) if v is not None), default=None)
        self.max = max((v for v in (self.max, block.max) if v is not None), default=None)
        self.total += block.total
        self.overflow += block.overflow

    def summary(self) -> HistogramSummary:
        return histograms.summarise_histogram(
            self.histogram, min_ns=self.min, max_ns=self.max, total_ns=self.total, overflow=self.overflow
        )

    def curve(self, label: str) -> PercentileCurve:
        return percentile_curve(self.histogram, label, max_ns=self.max, min_ns=self.min)


@dataclass(slots=True)
class RunAccumulator:
    """Hold the blocks of a run so far.

    ``raw``: the child's data of each block, with its encoded histograms. Stalls, notes and counters are not in ``raw``,
    because those of an hour could fill the memory. They are added to totals at once.
    """

    spec: RunSpec
    blocks: list[Block] = field(default_factory=list)
    raw: list[BlockDone] = field(default_factory=list)
    merged: dict[str, MergedHistogram] = field(default_factory=dict)
    listed: list[Stall] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    interrupts: dict[str, Counter] | None = field(default_factory=dict)
    softirqs: dict[str, Counter] | None = field(default_factory=dict)

    @property
    def main_name(self) -> str:
        return KINDS[self.spec.workload].histogram

    @property
    def buckets(self) -> tuple[GapBucket, ...] | None:
        """Return ``spin``'s gaps by length; None if a block has no counts of gaps."""
        counted = [block.buckets for block in self.raw if block.buckets is not None]
        sampled_ns = self.sum_of("sampled_ns")
        if not counted or len(counted) < len(self.raw) or sampled_ns is None:
            return None
        return stall_arithmetic.buckets([sum(counts) for counts in zip(*counted, strict=True)], sampled_ns)

    @property
    def sampled_s(self) -> float | None:
        """Return the time in s in which ``spin`` sampled; None if it is not known for a block."""
        sampled_ns = self.sum_of("sampled_ns") if self.raw else None
        return None if sampled_ns is None else sampled_ns / 1e9

    @property
    def duration_s(self) -> float:
        """Return the measured time in s: the blocks without the pauses between them."""
        return sum(b.duration_ns for b in self.blocks) / 1e9

    @property
    def _rated_s(self) -> float:
        """Return the time in s in which stalls could be seen. The pauses of a sampler are not included."""
        sampled_s = self.sampled_s if self.spec.workload == "spin" and self.spec.duty < 100 else None
        return self.duration_s if sampled_s is None else sampled_s

    @property
    def counted_s(self) -> float | None:
        """Return the time in s that the kernel's counters cover; None if it is unknown.

        The counters cover each block and its lead-in: the unrecorded messages just before the block. If the time is
        unknown for at least one block, return None.
        """
        counted_ns = self.sum_of("counted_ns")
        return None if counted_ns is None else counted_ns / 1e9

    def add(
        self, done: BlockDone, temperature_celsius: float | None = None, throttle_events: int | None = None
    ) -> Block:
        """Add one finished block to the run, and return its main figures. Raise ValueError if the block cannot be
        read."""
        decoded = {name: histograms.decode_histogram(h.encoded) for name, h in done.histograms.items()}
        if self.main_name not in decoded:
            raise ValueError(f"the block has no {self.main_name} histogram")
        for name, block in done.histograms.items():
            self.merged.setdefault(name, MergedHistogram(histograms.new_histogram())).add(block, decoded[name])
        index = len(self.blocks)
        start_ns = done.start_ns - self.raw[0].start_ns if self.raw else 0
        percentiles = histograms.percentile_values(histograms.non_zero(decoded[self.main_name]), ("50", "99", "99.9"))
        main = done.histograms[self.main_name]
        headline = Block(
            index=index,
            start_ns=start_ns,
            duration_ns=done.end_ns - done.start_ns,
            count=main.count,
            p50=percentiles["50"],
            p99=percentiles["99"],
            p999=percentiles["99.9"],
            max=main.max,
            stalls=sum(t.count for t in done.stall_totals if t.threshold_ns == self.spec.threshold_ns),
            core_hz=done.core_hz,
            ping_pong_ns=done.ping_pong_ns,
            parent_switches=done.parent_switches,
            temperature_celsius=temperature_celsius,
            throttle_events=throttle_events,
        )
        self.listed.extend(_in_run(s, index, start_ns) for s in done.stalls)
        if len(self.listed) > 2 * _LISTED_PER_RUN:
            self.listed = list(stall_arithmetic.worst(self.listed, _LISTED_PER_RUN))
        self.blocks.append(headline)
        self.interrupts = _grown(self.interrupts, done.interrupts)
        self.softirqs = _grown(self.softirqs, done.softirqs)
        self.raw.append(replace(done, stalls=(), notes={}, interrupts=None, softirqs=None))
        for name, reason in done.notes.items():
            self.notes.setdefault(name, reason)
        return headline

    def stalls(self) -> Stalls:
        totals: list[StallTotal] = [t for block in self.raw for t in block.stall_totals]
        return stall_arithmetic.stalls_of_run(self.spec.threshold_ns, totals, self.listed, self._rated_s)

    def threads(self, tids: Mapping[str, int]) -> tuple[ThreadRecord, ...]:
        names = dict.fromkeys(t.name for block in self.raw for t in block.threads)
        return tuple(
            _thread(name, tids.get(name, 0), [t for block in self.raw for t in block.threads if t.name == name])
            for name in names
        )

    def sum_of(self, counter: str) -> int | None:
        """Return the sum of the field ``counter`` over the blocks; None if any block has no value for it."""
        return _sum(getattr(block, counter) for block in self.raw)

    def first_write_ns(self) -> int | None:
        """Return the lower quartile of the accumulator's times in ns for messages whose copies begin a new 2 MiB.

        Return None if there are none. Other tasks only make such a time longer, so the short ones show the write.
        """
        times = sorted(ns for block in self.raw for ns in block.first_writes_ns or ())
        return times[(len(times) - 1) // 4] if times else None

    def core_hz(self) -> int | None:
        return _median(b.core_hz for b in self.blocks)

    def cpu_hz(self) -> int | None:
        return _median(b.cpu_hz for b in self.raw)


def _in_run(stall: Stall, block: int, start_ns: int) -> Stall:
    return Stall(block, stall.thread, stall.cpu, stall.start_ns + start_ns, stall.end_ns + start_ns, stall.messages)


def _median(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(median(known)) if known else None


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _thread(name: str, tid: int, blocks: list[ThreadRecord]) -> ThreadRecord:
    by_cpu: dict[str, int] = {}
    for block in blocks:
        for cpu, messages in block.messages_by_cpu.items():
            by_cpu[cpu] = by_cpu.get(cpu, 0) + messages
    ordered = {cpu: by_cpu[cpu] for cpu in sorted(by_cpu, key=int) if by_cpu[cpu]}
    return ThreadRecord(
        name=name,
        messages_by_cpu=ordered,
        tid=tid,
        cpus=tuple(int(cpu) for cpu in ordered),
        **{count: _sum(getattr(block, count) for block in blocks) for count in THREAD_COUNTS},
    )


def _grown(total: dict[str, Counter] | None, block: dict[str, Counter] | None) -> dict[str, Counter] | None:
    """Return the total with a block's counters added. Return None if this block or any earlier one had no counters."""
    if total is None or block is None:
        return None
    for key, counter in block.items():
        row = total.setdefault(key, Counter(counter.name, {})).per_cpu
        for cpu, count in counter.per_cpu.items():
            row[cpu] = row.get(cpu, 0) + count
    return total
