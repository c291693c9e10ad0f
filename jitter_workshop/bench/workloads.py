"""Drive the workloads in the measuring child: memory, threads, one block at a time."""

from __future__ import annotations

import errno
import math
import mmap
import os
import random
import tempfile
from dataclasses import replace
from typing import Any

from jitter_workshop.bench import block_analysis as digest
from jitter_workshop.bench.block_analysis import Stamps
from jitter_workshop.bench.native import NS_PER_S, TickClock, ffi, lib
from jitter_workshop.bench.waiting import Ack, Wakeup
from jitter_workshop.bench.workload import Measured, Workload, messages_of_block, most_messages, refused, usage_of
from jitter_workshop.errors import HostError, MeasureError, UsageError
from jitter_workshop.model.spec import DUTY_PATTERNS_NS, STALL_DECADES_NS, Pause, RunSpec

UNRECORDED = 1_000
_UNRECORDED_NS = NS_PER_S
_RECORDS = 4_096
_JOURNAL_RECORDS = 65_536
_MOST_GAPS = 1 << 18
_SMALL_GAP_NS = 1_000
_LARGEST_TABLE = 1 << 20
_RESOLVABLE = 8


def shortest_gap_ns(clock: TickClock) -> int:
    """Return the shortest gap in ns that is no mere reading of the clock: the log is for events that interrupt the
    loop."""
    return math.ceil(_RESOLVABLE * max(clock.cost_ns, clock.resolution_ns))


def fitting(spec: RunSpec, clock: TickClock) -> RunSpec:
    """Return the spec as this clock can measure it. A default threshold is raised where a reading takes too long for
    it, as in emulated machines and with the clock source hpet."""
    if spec.workload != "spin" or not spec.threshold_gives_way:
        return spec
    shortest_ns = shortest_gap_ns(clock)
    longer = (t for t in (spec.threshold_ns, *STALL_DECADES_NS) if t >= max(shortest_ns, spec.threshold_ns))
    return replace(spec, threshold_ns=next(longer, shortest_ns))


def start(spec: RunSpec, clock: TickClock) -> Workload:
    """Start the workload of a spec. Raise UsageError, HostError or MeasureError when it cannot be measured."""
    if spec.workload == "ring":
        return Ring(spec, clock)
    if spec.workload == "spin":
        return Spin(spec, clock)
    return Wakeup(spec, clock) if spec.workload == "wakeup" else Ack(spec, clock)


class Ring:
    """Run producer → accumulator and journaller."""

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        if spec.interval_ns < clock.cost_ns:
            raise UsageError(
                f"an interval of {spec.interval_ns} ns is below what one reading of the clock costs here "
                f"({clock.cost_ns:.1f} ns)",
                "choose a longer --interval-us",
            )
        most = most_messages(spec)
        self._spec, self._clock = spec, clock
        self._names = ("producer", "accumulator", "journaller")[: 3 if spec.placement.journaller_on else 2]
        places = (spec.placement.producer, spec.placement.accumulator, spec.placement.journaller)
        config = ffi.new("jw_ring_config *")
        config.clock = clock.native[0]
        config.slots = spec.ring_slots
        config.most_messages = most
        config.cpu = [-1 if cpu is None else cpu for cpu in places]
        config.journaller = int(spec.placement.journaller_on)
        config.fifo_priority = spec.sched_priority
        config.pacing = lib.JW_PACING_SCHEDULE if spec.pacing == "schedule" else lib.JW_PACING_SPIN
        config.interval_ns = spec.interval_ns
        self._records = _scratch(spec, _RECORDS * lib.JW_RECORD_BYTES, "the records to send")
        self._records[:] = random.Random(spec.ring_slots).randbytes(len(self._records))
        config.records = self._records_view = ffi.from_buffer(self._records)
        config.record_count = _RECORDS
        self._journal = _scratch(spec, _JOURNAL_RECORDS * lib.JW_JOURNAL_BYTES, "the journal")
        # Written once, because populating a shared mapping in advance does not make its pages writable.
        self._journal[:] = bytes(len(self._journal))
        config.journal = self._journal_view = ffi.from_buffer(self._journal, require_writable=True)
        config.journal_count = _JOURNAL_RECORDS
        error = ffi.new("int *")
        self._ring = lib.jw_ring_new(config, error)
        if self._ring == ffi.NULL:
            if error[0] == -errno.EINVAL:
                raise UsageError(f"a ring of {spec.ring_slots} slots cannot be made", "use a power of two from 16 on")
            raise HostError("there is not enough memory for the stamps of a block", "measure shorter blocks")
        status = lib.jw_ring_start(self._ring, error)
        if status != 0:
            lib.jw_ring_free(self._ring)
            raise refused(-status, self._names[error[0]], places[error[0]], spec.sched_priority)
        self.tids = {name: int(lib.jw_ring_tid(self._ring, i)) for i, name in enumerate(self._names)}
        self._unrecorded = max(2, min(UNRECORDED, _UNRECORDED_NS // spec.interval_ns))
        self._ping_pong = places[0] is not None and places[1] is not None and places[0] != places[1]

    def lock(self) -> bool:
        return bool(lib.jw_ring_lock_arrays(self._ring) == 0)

    def measure(self, index: int) -> Any:
        request = ffi.new("jw_block_request *")
        request.messages = messages_of_block(self._spec, index)
        request.duration_ticks = 0 if request.messages else self._clock.ticks(self._spec.block_ns)
        request.unrecorded = self._unrecorded
        request.ping_pong = int(self._ping_pong)
        result = ffi.new("jw_block_result *")
        if lib.jw_ring_block(self._ring, request, result) != 0:
            raise MeasureError("the measured threads were stopped during a block")
        return result

    def digest(self, index: int, result: Any) -> Measured:
        spec = self._spec
        for thread in range(1, len(self._names)):
            if result.payload_sum[thread] != result.payload_sum[0]:
                raise MeasureError(f"the {self._names[thread]} read other messages than the producer sent")
        stamps = {
            name: Stamps(lib.jw_ring_stamps(self._ring, i), lib.jw_ring_cpus(self._ring, i))
            for i, name in enumerate(self._names)
        }
        found = digest.ring_block(
            self._clock.native,
            index,
            int(result.count),
            spec.pacing,
            spec.interval_ns,
            spec.threshold_ns,
            stamps.pop("producer"),
            stamps,
            spec.listed_stalls,
        )
        notes: dict[str, str] = {}
        if self._unrecorded < UNRECORDED:
            notes["unrecorded"] = f"{self._unrecorded} unrecorded messages before each block instead of {UNRECORDED}"
        if spec.messages is None and result.count == most_messages(spec):
            notes["blocks"] = f"a block ends after {result.count} messages, sooner than its time"
        measured = result.ping_pong_ns >= 0
        if not measured:
            notes["ping_pong_ns"] = (
                "the line transfer before a block took too long"
                if self._ping_pong
                else "measured only between two CPUs that the threads are bound to"
            )
        return Measured(
            digest=found,
            usage={name: usage_of(result.usage[i]) for i, name in enumerate(self._names)},
            core_hz=int(result.core_hz) or None,
            ping_pong_ns=round(result.ping_pong_ns, 3) if measured else None,
            blocked_publishes=int(result.blocked),
            notes=notes,
        )

    def close(self) -> None:
        lib.jw_ring_free(self._ring)
        self._ring = ffi.NULL


class Spin:
    """Run one thread that reads the clock without pause, or for a share of the time (``duty``)."""

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        shortest_ns = shortest_gap_ns(clock)
        if spec.threshold_ns < shortest_ns:
            raise UsageError(
                f"a threshold of {spec.threshold_ns} ns is too close to one reading of the clock "
                f"({clock.cost_ns:.1f} ns)",
                f"choose at least {shortest_ns} ns",
            )
        self._spec, self._clock = spec, clock
        config = ffi.new("jw_spin_config *")
        config.clock = clock.native[0]
        self._small = min(max(1, clock.ticks(min(spec.threshold_ns, _SMALL_GAP_NS))), _LARGEST_TABLE)
        config.small_ticks = self._small
        config.most_gaps = _MOST_GAPS
        place = spec.placement.sampler
        config.cpu = -1 if place is None else place
        config.fifo_priority = spec.sched_priority
        if spec.duty < 100:
            busy_ns, pause_ns = DUTY_PATTERNS_NS[spec.duty]
            config.busy_ticks = clock.ticks(busy_ns)
            config.period_ticks = clock.ticks(busy_ns + pause_ns)
            config.pause_busily = int(spec.pause == "busy")
        error = ffi.new("int *")
        self._spin = lib.jw_spin_new(config, error)
        if self._spin == ffi.NULL:
            raise HostError("there is not enough memory for the log of gaps")
        status = lib.jw_spin_start(self._spin)
        if status != 0:
            lib.jw_spin_free(self._spin)
            raise refused(-status, "sampler", place, spec.sched_priority)
        self.tids = {"sampler": int(lib.jw_spin_tid(self._spin))}

    def lock(self) -> bool:
        return bool(lib.jw_spin_lock_arrays(self._spin) == 0)

    def measure(self, index: int) -> Any:
        readings = messages_of_block(self._spec, index)
        duration = 0 if readings else self._clock.ticks(self._spec.block_ns)
        result = ffi.new("jw_spin_result *")
        if lib.jw_spin_block(self._spin, readings, duration, result) != 0:
            raise MeasureError("the sampling thread was stopped during a block")
        return result

    def digest(self, index: int, result: Any) -> Measured:
        spec = self._spec
        found = digest.spin_block(
            self._clock.native,
            index,
            spec.threshold_ns,
            spec.duty,
            result,
            lib.jw_spin_table(self._spin),
            self._small,
            lib.jw_spin_gaps(self._spin),
            lib.jw_spin_readings_by_cpu(self._spin),
            spec.listed_stalls,
        )
        notes = {"blocked_publishes": "a sampler publishes nothing", "ping_pong_ns": "one thread has no partner"}
        if result.gaps + 64 > _MOST_GAPS:
            notes["blocks"] = f"a block ends after {result.gaps} gaps over the threshold, sooner than its time"
        if found.duty < 100:
            notes["duty"] = duty_note(found.duty, spec.pause)
        return Measured(
            digest=found,
            usage={"sampler": usage_of(result.usage)},
            core_hz=int(result.core_hz) or None,
            ping_pong_ns=None,
            blocked_publishes=None,
            notes=notes,
        )

    def close(self) -> None:
        lib.jw_spin_free(self._spin)
        self._spin = ffi.NULL


def duty_note(duty: int, pause: Pause) -> str:
    """Describe the pauses of a run's sampler for its reader."""
    busy_ms, pause_ms = (ns / 1e6 for ns in DUTY_PATTERNS_NS[duty])
    if pause == "busy":
        rest = f"kept the CPU without sampling for {pause_ms:g} ms, over and over (these pauses are no gaps)"
    else:
        rest = f"slept for {pause_ms:g} ms, over and over (its own sleeps are no gaps but voluntary switches)"
    return (
        f"the sampler sampled for {busy_ms:g} ms, then {rest}; stalls during a pause are not seen, and rates are of "
        "the sampled time"
    )


def _scratch(spec: RunSpec, size: int, what: str) -> mmap.mmap:
    """Return a mapped file without a name, its blocks allocated now: a full disk must not end a block by SIGBUS. Raise
    HostError."""
    try:
        with tempfile.TemporaryFile(dir=spec.scratch_dir, prefix="jitter-workshop-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    except OSError as error:
        raise HostError(
            f"{what} could not be put into {spec.scratch_dir}: {error.strerror or error}",
            "free some space there, or set TMPDIR to a folder that has some",
        ) from error
