"""Define the workloads of the measuring child: the parameters and the block results of each."""

from __future__ import annotations

import errno
import math
import mmap
import os
import random
import tempfile
from dataclasses import replace
from typing import Any

from jitter_workshop.bench import block_analysis
from jitter_workshop.bench.native import NS_PER_S, OFFSET_ROUNDS, TickClock, ffi, lib
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.bench.workload import Workload, most_messages
from jitter_workshop.errors import HostError, MeasureError, UsageError, WorkshopError
from jitter_workshop.host.cpu.cpuidle import ResumeLatency, read_resume_latency
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.spec import (
    CHASE_BYTES,
    DUTY_PATTERNS_NS,
    STALL_DECADES_NS,
    Pause,
    RunSpec,
    WorkloadName,
)

LOOPBACK_DOWN = "this host's loopback device (lo) is not up"
UNRECORDED = 1_000
_UNRECORDED_NS = NS_PER_S
_RECORDS = 4_096
_JOURNAL_RECORDS = 65_536
_MOST_GAPS = 1 << 18
_SMALL_GAP_NS = 1_000
_LARGEST_TABLE = 1 << 20
_RESOLVABLE = 8
_KEEPS = {"ready": "JW_KEEP_READY", "fresh": "JW_KEEP_FRESH", "huge": "JW_KEEP_HUGE", "file": "JW_KEEP_FILE"}
"""Use of memory by the ring's accumulator → the native constant."""
_IN_MEMORY = ("ready", "fresh", "huge")
"""Uses of memory with which the copies go into memory of the accumulator's own."""
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.ENOSYS)
_NO_LOOPBACK = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.ENETDOWN, errno.EHOSTUNREACH)


def shortest_gap_ns(clock: TickClock) -> int:
    """Return the shortest gap in ns that shows an interruption of the loop. A shorter gap may be only the time that one
    reading of the clock takes.
    """
    return math.ceil(_RESOLVABLE * max(clock.cost_ns, clock.resolution_ns))


def fit_threshold(spec: RunSpec, clock: TickClock) -> RunSpec:
    """Return the spec with a threshold of stalls that this clock can measure.

    The threshold is raised only for ``spin``, and only if the user did not choose it. This happens with slow clocks,
    such as hpet or those of emulated machines.
    """
    if spec.workload != "spin" or not spec.threshold_gives_way:
        return spec
    shortest_ns = shortest_gap_ns(clock)
    longer = (t for t in (spec.threshold_ns, *STALL_DECADES_NS) if t >= max(shortest_ns, spec.threshold_ns))
    return replace(spec, threshold_ns=next(longer, shortest_ns))


def start_workload(spec: RunSpec, clock: TickClock) -> Workload:
    """Start the threads of the workload that the spec names, and return the running workload. Raise UsageError,
    HostError or MeasureError if this workload cannot be measured here."""
    return WORKLOADS[spec.workload](spec, clock)


class Ring(Workload):
    """Run a producer, an accumulator that reads its messages, and perhaps a journaller that writes them to a file."""

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        if spec.interval_ns < clock.cost_ns:
            raise UsageError(
                f"the interval of {spec.interval_ns} ns is shorter than one reading of the clock on this host "
                f"({clock.cost_ns:.1f} ns)",
                "choose a longer --interval-us",
            )
        self._unrecorded = max(2, min(UNRECORDED, _UNRECORDED_NS // spec.interval_ns))
        pair = spec.placement.producer, spec.placement.accumulator
        self._ping_pong = None not in pair and pair[0] != pair[1]
        super().__init__(spec, clock)

    def _new(self, config: Any, error: Any) -> Any:
        spec = self._spec
        # Native code reads and writes both files until the workload is closed.
        self._records = _scratch(spec, _RECORDS * lib.JW_RECORD_BYTES, "the records to send")
        self._records[:] = random.Random(spec.ring_slots).randbytes(len(self._records))
        self._journal = _scratch(spec, _JOURNAL_RECORDS * lib.JW_JOURNAL_BYTES, "the journal")
        # Written once, because populating a shared mapping in advance does not make its pages writable.
        self._journal[:] = bytes(len(self._journal))
        options = ffi.new("jw_ring_options *")
        options.slots = spec.ring_slots
        options.journaller = int(spec.placement.journaller_on)
        if spec.memory in _KEEPS:
            options.keep = getattr(lib, _KEEPS[spec.memory])
        options.pacing = lib.JW_PACING_SCHEDULE if spec.pacing == "schedule" else lib.JW_PACING_SPIN
        options.records = self._records_view = ffi.from_buffer(self._records)
        options.record_count = _RECORDS
        options.journal = self._journal_view = ffi.from_buffer(self._journal, require_writable=True)
        options.journal_count = _JOURNAL_RECORDS
        return lib.jw_ring_new(config, options, error)

    def _not_made(self, number: int) -> WorkshopError:
        if number == errno.EINVAL:
            return UsageError(
                f"a ring of {self._spec.ring_slots} slots cannot be made", "use a power of two, at least 16"
            )
        if number == errno.EFBIG:
            return HostError("the limit of a file's size is too small for the file in memory", "raise it: ulimit -f")
        if self._spec.memory == "file" and number in _FORBIDDEN:
            return HostError(
                f"this host forbids the file in memory (memfd_create): {os.strerror(number)}",
                "a filter of system calls (seccomp), as containers have it, or a security module may be the reason",
            )
        return super()._not_made(number)

    def _request(self, index: int) -> Any:
        request = super()._request(index)
        request.unrecorded = self._unrecorded
        request.ping_pong = int(self._ping_pong)
        return request

    def clock_offset(self) -> Any:
        request = ffi.new("jw_block_request *")
        request.count, request.offset_rounds = 1, OFFSET_ROUNDS
        found = self._block(request).ring.offset
        return None if found.bound_ticks < 0 else ffi.new("jw_offset *", found)

    def _analyse(self, index: int, result: Any) -> BlockDone:
        spec, ring = self._spec, result.ring
        for i, name in enumerate(self.threads):
            if ring.payload_sum[i] != ring.payload_sum[0]:
                raise MeasureError(f"the {name} received other messages than the producer sent")
        stamps = {name: self._stamps(i) for i, name in enumerate(self.threads)}
        producer = stamps.pop("producer")
        ready = lib.jw_workload_stamps(self._native, lib.JW_READY)
        found = block_analysis.ring_block(self._clock.native, spec, index, int(result.count), ready, producer, stamps)
        notes: dict[str, str] = {}
        if self._unrecorded < UNRECORDED:
            notes["unrecorded"] = (
                f"each block began with {self._unrecorded} unrecorded messages; the usual number is {UNRECORDED}"
            )
        if spec.messages is None and result.count == most_messages(spec):
            notes["blocks"] = f"a block ended after {result.count} messages, before its time was over"
        begins = self._new_pages(int(result.count))
        huge_pages = self._huge_pages() if spec.memory == "huge" else None
        if spec.memory == "huge" and (short := huge_pages_note(huge_pages, len(begins))):
            notes["huge_pages"] = short
        measured = ring.ping_pong_ns >= 0
        if not measured:
            notes["ping_pong_ns"] = (
                "before the block, a cache line took too long from one CPU to the other"
                if self._ping_pong
                else "this time is measured only if both threads are bound to different CPUs"
            )
        return replace(
            found,
            first_writes_ns=self._times_ns(begins) if spec.memory in _IN_MEMORY else None,
            huge_pages=huge_pages,
            blocked_publishes=int(ring.blocked),
            ping_pong_ns=round(ring.ping_pong_ns, 3) if measured else None,
            notes=notes,
        )

    def _huge_pages(self) -> int | None:
        """Return how many huge pages the copies of the last block got; None if the kernel does not show it."""
        found = int(lib.jw_ring_huge_pages(self._native))
        return None if found < 0 else found

    def _new_pages(self, count: int) -> range:
        """Return the entries whose copies begin a new 2 MiB of memory. ``count``: the messages of the block."""
        first = int(lib.jw_ring_first_new_page(self._native))
        return range(first, count + 1, lib.JW_COPIES_OF_HUGE_PAGE)

    def _times_ns(self, entries: range) -> tuple[int, ...]:
        """Return the time in ns that the accumulator took for the message of each entry.

        The time begins when the message is published, or when the message before it was read, whichever is later. It
        ends when the message is read and its copy is written.
        """
        published = self._stamps(lib.JW_PRODUCER).times
        read = self._stamps(lib.JW_ACCUMULATOR).times
        return tuple(self._clock.ns(max(0, read[at] - max(published[at], read[at - 1] if at else 0))) for at in entries)


class Spin(Workload):
    """Run one thread that reads the clock without pause, or for a share of the time (``duty``)."""

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        shortest_ns = shortest_gap_ns(clock)
        if spec.threshold_ns < shortest_ns:
            raise UsageError(
                f"the threshold of {spec.threshold_ns} ns is too close to the time of one reading of the clock "
                f"({clock.cost_ns:.1f} ns)",
                f"choose at least {shortest_ns} ns",
            )
        self._small = min(max(1, clock.ticks(min(spec.threshold_ns, _SMALL_GAP_NS))), _LARGEST_TABLE)
        super().__init__(spec, clock)

    def _most(self) -> int:
        return _MOST_GAPS

    def _new(self, config: Any, error: Any) -> Any:
        spec, clock = self._spec, self._clock
        options = ffi.new("jw_spin_options *")
        options.small_ticks = self._small
        if spec.duty < 100:
            busy_ns, pause_ns = DUTY_PATTERNS_NS[spec.duty]
            options.busy_ticks = clock.ticks(busy_ns)
            options.period_ticks = clock.ticks(busy_ns + pause_ns)
            options.pause_busily = int(spec.pause == "busy")
        if spec.memory in CHASE_BYTES:
            options.chase_bytes = CHASE_BYTES[spec.memory]
        if spec.tail_ns is not None:
            options.stop_ticks = clock.ticks(spec.threshold_ns)
            options.tail_ticks = clock.ticks(spec.tail_ns)
        return lib.jw_spin_new(config, options, error)

    def _not_made(self, number: int) -> WorkshopError:
        return HostError("there is not enough memory for the log of gaps")

    def _analyse(self, index: int, result: Any) -> BlockDone:
        spec = self._spec
        found = block_analysis.spin_block(
            self._clock.native,
            spec,
            index,
            result.spin,
            lib.jw_spin_table(self._native),
            self._small,
            lib.jw_spin_gaps(self._native),
            lib.jw_spin_readings_by_cpu(self._native),
        )
        notes = {
            "blocked_publishes": "a sampler sends no messages",
            "ping_pong_ns": "a single thread passes no cache line to another thread",
        }
        if result.spin.gaps + 64 > _MOST_GAPS:
            notes["blocks"] = (
                f"a block ended after {result.spin.gaps} gaps over the threshold, before its time was over"
            )
        if spec.duty < 100:
            notes["duty"] = duty_note(spec.duty, spec.pause)
        return replace(found, notes=notes)


class Wakeup(Workload):
    """Run one thread that sleeps until a planned time, again and again (``clock_nanosleep``, CLOCK_MONOTONIC,
    absolute).

    The delay until the thread reads the clock is recorded. With a lock, the thread first takes the lock. The thread's
    timer slack is set to 1 ns, because the kernel's default of 50 µs would add to the delay (prctl(2)). Timers of
    real-time threads have no slack.
    """

    def __init__(self, spec: RunSpec, clock: TickClock) -> None:
        super().__init__(spec, clock)
        place = spec.placement.sampler
        self._limit = "" if place is None else idle_limit(place, read_resume_latency(HostRoot(), place))

    def _new(self, config: Any, error: Any) -> Any:
        return lib.jw_wakeup_new(config, getattr(lib, f"JW_LOCK_{self._spec.lock.upper()}"), error)

    def _not_made(self, number: int) -> WorkshopError:
        if number == errno.ENOTSUP:
            return HostError("this kernel lends no priorities to the holder of a lock (CONFIG_FUTEX_PI)")
        return super()._not_made(number)

    def _analyse(self, index: int, result: Any) -> BlockDone:
        due, woken = self._stamps(lib.JW_DUE), self._stamps(lib.JW_WOKEN)
        found = block_analysis.wakeup_block(self._clock.native, self._spec, index, int(result.count), due, woken)
        notes = {
            "blocked_publishes": "a sleeper sends no messages",
            "ping_pong_ns": "a single thread passes no cache line to another thread",
            "timer_slack": slack_note(int(result.wakeup.slack_ns), self._spec.sched_priority),
        }
        if self._limit:
            notes["pm_qos"] = self._limit
        return replace(found, missed_wakeups=int(result.wakeup.missed), notes=notes)

    def _lost(self) -> str:
        return "the call that puts the thread to sleep failed"


class Ack(Workload):
    """Run a sender and a receiver on one TCP connection over 127.0.0.1.

    The sender sends 64 bytes at every planned interval. The receiver sleeps in recv(2), reads the bytes, stamps the
    time and answers with eight bytes. The interval between two stamps is recorded.

    The receiver takes the stamp just before it answers, as in a study (Fixstars, lightning-kit). Each stamp has the
    time of the run's own clock, and the receiver's CPU. The other methods that need no special rights are worse:

    - SOF_TIMESTAMPING_TX_ACK stamps TCP's own ACK, by CLOCK_REALTIME and on the sender's CPU
      (Documentation/networking/timestamping.rst). It also needs a read of the error queue for each segment.
    - Polling TCP_INFO or SIOCOUTQ is only as exact as the time of a system call.
    """

    def _new(self, config: Any, error: Any) -> Any:
        return lib.jw_ack_new(config, error)

    def _not_made(self, number: int) -> WorkshopError:
        if number in (errno.ENOMEM, errno.EINVAL):
            return super()._not_made(number)
        if number in _NO_LOOPBACK:
            return HostError(LOOPBACK_DOWN, "start this device with: ip link set lo up")
        return HostError(f"there is no TCP connection over the loopback device: {os.strerror(number)}")

    def _analyse(self, index: int, result: Any) -> BlockDone:
        sent, answered = int(result.count), int(result.ack.answered)
        sender, receiver = self._stamps(lib.JW_ACK_SENDER), self._stamps(lib.JW_ACK_RECEIVER)
        found = block_analysis.ack_block(self._clock.native, self._spec, index, sent, answered, sender, receiver)
        notes = {"ping_pong_ns": "segments go through the kernel, not through a cache line that two CPUs share"}
        return replace(found, blocked_publishes=int(result.ack.blocked), notes=notes)

    def _lost(self) -> str:
        return "the connection over the loopback device was closed"


WORKLOADS: dict[WorkloadName, type[Workload]] = {"ring": Ring, "spin": Spin, "wakeup": Wakeup, "ack": Ack}


def duty_note(duty: int, pause: Pause) -> str:
    """Return the sentence that describes the sampler's pauses to the reader of a run."""
    busy_ms, pause_ms = (ns / 1e6 for ns in DUTY_PATTERNS_NS[duty])
    if pause == "busy":
        rest = f"used the CPU for {pause_ms:g} ms without sampling, again and again (these pauses do not count as gaps)"
    else:
        rest = (
            f"slept for {pause_ms:g} ms, again and again (these sleeps count as voluntary context switches, not as "
            "gaps)"
        )
    return (
        f"the sampler sampled for {busy_ms:g} ms, then {rest}. The sampler sees no stalls during a pause. Rates are "
        "per second of sampled time"
    )


def huge_pages_note(got: int | None, wanted: int) -> str:
    """Return the note for a block whose copies are not all in huge pages; "" if they are. ``got``: the number of huge
    pages that the block got; None if it is not known. ``wanted``: the number of pieces of 2 MiB that it began."""
    if got is None:
        return "the kernel does not show which pages are huge (AnonHugePages in /proc/self/smaps)"
    if got >= wanted:
        return ""
    return (
        f"in a block only {got} of {wanted} pages were huge, and the other copies went into small pages. The host or a "
        "parent process has switched huge pages off (/sys/kernel/mm/transparent_hugepage/enabled is never, or prctl "
        "PR_SET_THP_DISABLE), or no piece of free memory is long enough"
    )


def slack_note(slack_ns: int, priority: int) -> str:
    """Describe the slack of the thread's timer, for the reader of a run. ``slack_ns`` < 0: the slack is not known."""
    if priority:
        return "a real-time thread's timers have no slack"
    if slack_ns < 0:
        return "the kernel does not show how much slack the thread's timers have (its default is 50 µs)"
    return f"the slack of the thread's timers is {slack_ns:,} ns (the thread asked for 1 ns; the default is 50 µs)"


def idle_limit(cpu: int, limit: ResumeLatency) -> str:
    """Describe the limit on a CPU's idle states; "" if the host does not show the limit.

    The limit is pm_qos_resume_latency_us (Documentation/admin-guide/pm/cpuidle.rst).
    """
    if limit.text is None:
        return ""
    what = {"n/a": "n/a: the CPU polls instead of idling", "0": "0: no limit for this CPU alone"}
    return f"pm_qos_resume_latency_us of CPU {cpu} is {what.get(limit.text, f'{limit.text} µs')}"


def _scratch(spec: RunSpec, size: int, what: str) -> mmap.mmap:
    """Return a mapped file of ``size`` bytes that has no name. Raise HostError if the file cannot be made.

    Its disk blocks are allocated now. Otherwise the disk could become full during a block, and SIGBUS would end the
    child.
    """
    try:
        with tempfile.TemporaryFile(dir=spec.scratch_dir, prefix="jitter-workshop-") as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return mmap.mmap(file.fileno(), size, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
    except OSError as error:
        raise HostError(
            f"{what} could not be stored in {spec.scratch_dir}: {error.strerror or error}",
            "free some space there, or set TMPDIR to a folder that has some",
        ) from error
