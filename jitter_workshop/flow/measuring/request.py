"""Hold a user's options for a run. Compute the run's limits, blocks and placement from these options. Each error
message is one sentence."""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, replace

from jitter_workshop.bench import placement as placing
from jitter_workshop.bench.noiseorder import check_period, known
from jitter_workshop.bench.placement import Wish
from jitter_workshop.bench.stall import SHORTEST_BLOCK_NS
from jitter_workshop.errors import UsageError
from jitter_workshop.flow.measuring.isolated_set import with_allowed
from jitter_workshop.model.change import Change
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.matrix import PairTimes
from jitter_workshop.model.record import made_of
from jitter_workshop.model.spec import (
    CHASE_BYTES,
    DUTIES,
    KINDS,
    LISTED_STALLS,
    LISTED_WITH_EVIDENCE,
    LOCK_PRIORITY,
    LOCKS,
    MEMORY_OF,
    PRESETS,
    LockUse,
    MemoryUse,
    Pacing,
    Pause,
    Placement,
    RunSpec,
    WorkloadName,
)
from jitter_workshop.model.text import LABEL, SHORT, WORD, clean


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Hold the options of a requested run, before the host's limits are known. An option that is None gets its default
    from the preset, from the workload or from the host.

    - ``placement``: "auto" or "none"; not used if the request names CPUs.
    - ``sched_priority``: the priority under SCHED_FIFO; 0 means SCHED_OTHER.
    - ``wait_s``: seconds to wait while another program measures on this host.
    - ``evidence``: record the kernel's trace during the run.
    - ``hunted``: a hidden noise is running.
    - ``settle_s``: seconds at the start that are not recorded. The host needs them to become steady after a change.
    - ``proof``: the id of the proof to which the run belongs.
    - ``noise_period_ns``: the approximate time between two bursts of the noise.
    - ``memory``: what a measured thread does with memory in addition to its work (``model.spec``).
    - ``block_ns``: the longest duration of a block.
    - ``tail_ns``: the time from the first stall in a block of ``spin`` until the block ends.
    - ``lock``: the lock that the thread of ``wakeup`` takes after each wake-up (``model.spec``).
    - ``arrival``: the write that has the noise's interrupt arrive on the measured CPU during the run; None for none.
    """

    workload: WorkloadName = "ring"
    label: str = ""
    preset: str = "quick"
    messages: int | None = None
    duration_s: float | None = None
    interval_ns: int | None = None
    pacing: Pacing | None = None
    placement: str = "auto"
    producer_cpu: int | None = None
    accumulator_cpu: int | None = None
    journaller_cpu: int | None = None
    no_journaller: bool = False
    cpu: int | None = None
    duty: int = 100
    sched_priority: int = 0
    threshold_ns: int | None = None
    noise: str | None = None
    wait_s: float = 0.0
    evidence: bool = False
    pause: Pause = "sleep"
    hunted: bool = False
    settle_s: float = 0.0
    proof: str | None = None
    noise_period_ns: int | None = None
    memory: MemoryUse = "none"
    block_ns: int | None = None
    tail_ns: int | None = None
    lock: LockUse = "none"
    arrival: Change | None = None

    def wish(self, within: CpuSet | None = None) -> Wish:
        """Return the part of the request that concerns the placement. ``within``: see ``bench.placement.Wish``."""
        return Wish(
            workload=self.workload,
            mode=self.placement,
            producer=self.producer_cpu,
            accumulator=self.accumulator_cpu,
            journaller=self.journaller_cpu,
            no_journaller=self.no_journaller,
            cpu=self.cpu,
            within=within,
        )

    def on(self, placement: Placement) -> MeasureRequest:
        """Return a copy of the request. The CPUs of ``placement`` replace the CPUs that the request names."""
        return replace(
            self,
            producer_cpu=placement.producer,
            accumulator_cpu=placement.accumulator,
            journaller_cpu=placement.journaller,
            cpu=placement.sampler,
        )


LONGEST_S = 24 * 3600
LONGEST_SETTLE_S = 60.0
SHORTEST_S = 0.01
INTERVAL_NS = (100, 1_000_000_000)
THRESHOLD_NS = (100, 10_000_000_000)
_LEAST_PER_BLOCK = 4
"""Least number of wake-ups or segments in a block: a block with only one or two would consist of its lead-in alone."""

SHORTEST_WAIT_NS = 10_000
"""Least time between wake-ups or segments: one or two system calls have to fit in."""
HIGHEST_FIFO_PRIORITY = 49

_WALKING_THRESHOLD_NS = 10_000

_MESSAGES_PER_BLOCK = 1_000_000
"""The child keeps a stamp of every message of a block in memory: at short intervals blocks become shorter."""

WORKLOADS: tuple[str, ...] = typing.get_args(WorkloadName)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Hold the blocks of a run. ``count``: the number of blocks. ``block_ns``: the longest duration of a block.
    ``messages``: the number of messages in the run; None if the request does not give it."""

    count: int
    block_ns: int
    messages: int | None
    preset: str | None


def check_request(request: MeasureRequest) -> None:
    """Raise UsageError for a request that is invalid on every host."""
    if request.workload not in WORKLOADS:
        raise UsageError(f"there is no workload '{clean(request.workload, SHORT)}'", f"use {' or '.join(WORKLOADS)}")
    if request.duty not in DUTIES:
        raise UsageError(f"the duty cannot be {request.duty} %", f"use {', '.join(map(str, DUTIES))}")
    if request.duty != 100 and request.workload != "spin":
        raise UsageError(
            f"--duty is only for spin, not for {request.workload}", "leave --duty out, or use '--workload spin'"
        )
    if request.pause not in typing.get_args(Pause):
        raise UsageError(f"there is no pause '{clean(request.pause, SHORT)}'", "use 'sleep' or 'busy'")
    if request.pause != "sleep" and request.duty == 100:
        raise UsageError(
            "--pause is only for spin with a duty below 100 %", "use '--workload spin --duty 50', or leave --pause out"
        )
    if request.memory != "none" and MEMORY_OF.get(request.memory) != request.workload:
        _no_such_memory(request)
    if request.lock != "none":
        _check_lock(request)
    if request.pacing not in (None, "spin", "schedule"):
        raise UsageError(f"there is no pacing '{clean(request.pacing or '', SHORT)}'", "use 'spin' or 'schedule'")
    if request.preset not in PRESETS:
        raise UsageError(f"there is no preset '{clean(request.preset, SHORT)}'", f"use {', '.join(PRESETS)}")
    if request.noise is not None:
        check_period(known(request.noise), request.noise_period_ns)
    elif request.noise_period_ns is not None:
        raise UsageError("a period of the noise was given, but no noise", "name a noise, or leave the period out")
    if request.messages is not None and request.duration_s is not None:
        raise UsageError("--messages and --duration contradict each other", "use only one of these options")
    if request.workload != "ring":
        _only_for_ring(request)
    if not 0 <= request.sched_priority <= HIGHEST_FIFO_PRIORITY:
        raise UsageError(
            f"the SCHED_FIFO priority must be from 1 to {HIGHEST_FIFO_PRIORITY}",
            "threads of the kernel use higher priorities",
        )
    _within("the interval", interval_ns(request), INTERVAL_NS, "0.1 µs to 1 s (--interval-us 0.1 to 1000000)")
    if KINDS[request.workload].waits and interval_ns(request) < SHORTEST_WAIT_NS:
        raise UsageError(
            f"the interval of {request.workload} must be from 10 µs to 1 s", "choose a longer --interval-us"
        )
    _within("the stall threshold", threshold_ns(request), THRESHOLD_NS, "0.1 µs to 10 s")
    if request.workload == "ack" and threshold_ns(request) <= interval_ns(request):
        raise UsageError(
            "the threshold of 'ack' must be above the interval, or every interval between ACKs would be a stall",
            "choose a longer --threshold-us, or a shorter --interval-us",
        )
    if not 0 <= request.wait_s <= LONGEST_S:
        raise UsageError("the time to wait must be from 0 to 86400 s (24 h)")
    if not 0 <= request.settle_s <= LONGEST_SETTLE_S:
        raise UsageError("a run can settle for 0 to 60 s before its first block")
    if request.noise == "stall":
        _room_for_a_stall(request)


def blocks(request: MeasureRequest) -> Blocks:
    """Return the blocks of a checked request. A run that is shorter than one block has one short block. Raise
    UsageError if a run cannot have the requested length."""
    preset = PRESETS[request.preset]
    longest_ns = request.block_ns or preset.block_ns
    if request.workload != "spin":
        longest_ns = min(longest_ns, interval_ns(request) * _MESSAGES_PER_BLOCK)
    if KINDS[request.workload].waits:
        longest_ns = max(longest_ns, interval_ns(request) * _LEAST_PER_BLOCK)
    if request.messages is not None:
        return _blocks_of_messages(request, longest_ns)
    if request.duration_s is None:
        count = math.ceil(preset.blocks * preset.block_ns / longest_ns)
        return Blocks(count, preset.blocks * preset.block_ns // count, None, preset.name)
    if not SHORTEST_S <= request.duration_s <= LONGEST_S:
        raise UsageError(f"the duration of a run must be from {SHORTEST_S:g} s to 24 h, not {request.duration_s:g} s")
    total_ns = round(request.duration_s * 1e9)
    count = max(1, math.ceil(total_ns / longest_ns - 1e-9))
    return Blocks(count, total_ns // count, None, None)


def interval_ns(request: MeasureRequest) -> int:
    """Return the time in ns between messages, wake-ups or segments: the requested one, else the workload's default."""
    return KINDS[request.workload].interval_ns if request.interval_ns is None else request.interval_ns


def pacing(request: MeasureRequest) -> Pacing:
    """Return the requested pacing, else the workload's default."""
    return request.pacing or ("schedule" if KINDS[request.workload].waits else "spin")


def threshold_ns(request: MeasureRequest) -> int:
    """Return the shortest length of a stall in ns: the requested length, else a default. The default depends on the
    workload; for ``ack`` it is normally at least five intervals. If a thread walks through memory, the default is
    longer than four loads from far memory take."""
    if request.threshold_ns is not None:
        return request.threshold_ns
    if request.memory in CHASE_BYTES:
        return _WALKING_THRESHOLD_NS
    usual = KINDS[request.workload].threshold_ns
    return min(max(usual, 5 * interval_ns(request)), THRESHOLD_NS[1]) if request.workload == "ack" else usual


def resolve(
    request: MeasureRequest,
    topology: Topology,
    isolated: CpuSet,
    scratch_dir: str,
    within: CpuSet | None = None,
    *,
    lines: PairTimes | None = None,
) -> RunSpec:
    """Return the complete specification of a run on this host.

    - ``within``: the isolated CPUs into which the measuring child, or one of its threads, will be moved; None if it is
      not moved.
    - ``lines``: as in ``bench.placement.choose_cpus``.

    Raise UsageError if the request is invalid, HostError if this host cannot run it.
    """
    check_request(request)
    if within is not None:
        topology, isolated = with_allowed(topology, within), isolated | within
    cut = blocks(request)
    placement = placing.choose_cpus(topology, request.wish(within), isolated, lines)
    spec = made_of(
        RunSpec,
        request,
        placement=placement,
        blocks=cut.count,
        block_ns=cut.block_ns,
        messages=cut.messages,
        pacing=pacing(request),
        interval_ns=interval_ns(request),
        threshold_ns=threshold_ns(request),
        threshold_gives_way=request.threshold_ns is None,
        scratch_dir=scratch_dir,
        preset=cut.preset,
        listed_stalls=LISTED_WITH_EVIDENCE if request.evidence else LISTED_STALLS,
        traced=request.evidence,
    )
    if request.sched_priority:
        placing.check_realtime(topology, placement, len(spec.threads), None if placement.inside else within)
    return spec


def _room_for_a_stall(request: MeasureRequest) -> None:
    """Raise UsageError if the blocks are too short for the noise ``stall``. After a stall, a block needs enough time to
    send the messages that were delayed."""
    cut = blocks(request)
    length_ns = cut.block_ns
    if cut.messages is not None:
        length_ns = min(length_ns, cut.messages // cut.count * interval_ns(request))
    if length_ns < SHORTEST_BLOCK_NS:
        raise UsageError(
            f"the noise 'stall' needs blocks of at least {SHORTEST_BLOCK_NS // 1_000_000} ms, but the blocks of this "
            f"run take {length_ns / 1e6:g} ms",
            "choose a longer run, or a longer --interval-us",
        )


def _check_lock(request: MeasureRequest) -> None:
    if request.lock not in LOCKS:
        raise UsageError(f"there is no lock '{clean(request.lock, SHORT)}'", f"use {', '.join(LOCKS)}")
    if request.workload != "wakeup":
        raise UsageError(
            f"--lock is only for wakeup, not for {request.workload}", "leave --lock out, or use '--workload wakeup'"
        )
    if request.sched_priority < LOCK_PRIORITY:
        raise UsageError(
            "a lock needs three priorities: of the measured thread, and of two threads below it",
            f"use '--sched fifo:{LOCK_PRIORITY}' or a higher priority",
        )
    if request.placement == "none" and request.cpu is None:
        raise UsageError("all threads of a run with a lock need the same CPU", "leave '--placement none' out")


def _no_such_memory(request: MeasureRequest) -> None:
    found = MEMORY_OF.get(request.memory)
    if found is None:
        raise UsageError(
            f"there is no kind of memory '{clean(request.memory, SHORT)}'", f"use none, {', '.join(MEMORY_OF)}"
        )
    raise UsageError(
        f"--memory {request.memory} is only for {found}, not for {request.workload}",
        f"leave --memory out, or use '--workload {found}'",
    )


def _only_for_ring(request: MeasureRequest) -> None:
    if request.messages is not None:
        raise UsageError(f"--messages is only for the ring, not for {request.workload}", "give --duration instead")
    if request.interval_ns is not None and request.workload == "spin":
        raise UsageError("--interval-us does not apply to spin, which has no interval", "leave --interval-us out")
    if request.pacing is not None:
        raise UsageError(f"--pacing is only for the ring, not for {request.workload}", "leave --pacing out")
    if request.no_journaller:
        raise UsageError(
            f"--no-journaller is only for the ring, not for {request.workload}", "leave --no-journaller out"
        )


def _within(what: str, value: int, limits: tuple[int, int], shown: str) -> None:
    if not limits[0] <= value <= limits[1]:
        raise UsageError(f"{what} must be {shown}")


def _blocks_of_messages(request: MeasureRequest, longest_ns: int) -> Blocks:
    """Return the blocks for a number of messages. A block's time limit is at least three times the time that its
    messages need. With this limit, a sender that was delayed can still send all messages of the block."""
    assert request.messages is not None
    interval = interval_ns(request)
    most = LONGEST_S * 1_000_000_000 // interval
    if not 1 <= request.messages <= most:
        raise UsageError(f"a run can send 1 to {most:,} messages at this interval (24 h), not {request.messages:,}")
    per_block = max(1, longest_ns // interval)
    count = math.ceil(request.messages / per_block)
    share = math.ceil(request.messages / count)
    return Blocks(count, 1_000_000_000 + 3 * share * (interval + 1_000), request.messages, None)


STAYS_THERE = "On x86 the interrupt then still arrives there until something moves it."
"""The effect of the write ``MeasureRequest.arrival`` that lasts after its restore (arch/x86/kernel/apic/vector.c)."""


def arrival_words(request: MeasureRequest, *, lasting: bool = True) -> str:
    """Return the write that has the noise's interrupt arrive on the measured CPU, in words; "" if there is none.
    ``lasting``: False to leave out what lasts after the restore."""
    change = request.arrival
    if change is None:
        return ""
    cpu, now = clean(change.after, WORD), clean(change.before, WORD)
    return (
        f"the workshop writes {cpu} to {clean(change.path, LABEL)} (now {now}), so that the noise's interrupt arrives "
        f"on CPU {cpu}. After the run it restores the old value.{f' {STAYS_THERE}' if lasting else ''}"
    )
