"""Watch one CPU for hours. A sampler on this CPU reads the clock in a loop, and each stall freezes the kernel's trace.

The sampler works in blocks. The trace is recorded during all blocks without a break, and new events overwrite the
oldest events. Soon after a stall, the sampler ends its block. The trace is then stopped, read, and started again. The
time between two blocks is not watched; the report states this time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.bench.lock import host_turn
from jitter_workshop.bench.protocol import BlockDone
from jitter_workshop.bench.runner import Cancelled
from jitter_workshop.errors import HostError, MeasureError, WorkshopError
from jitter_workshop.evidence.explain import explain_block, nothing_cyclic, windows_of
from jitter_workshop.evidence.summary import summarise_run
from jitter_workshop.flow.measuring import background_gate
from jitter_workshop.flow.measuring.isolated_set import PutInside, not_used
from jitter_workshop.flow.measuring.measure import ChosenCpus, TakeTurn, TurnGuard
from jitter_workshop.flow.measuring.request import MeasureRequest, check_request
from jitter_workshop.flow.measuring.trace_recorder import CLOCKS, own_threads
from jitter_workshop.flow.watching.log import MOST_LINES, Log
from jitter_workshop.flow.watching.tally import as_kept
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import BlockSpan
from jitter_workshop.model.run import Clock, RunObserver, SilentObserver, Stall
from jitter_workshop.model.spec import KINDS, RunSpec
from jitter_workshop.model.trace import TraceInfo, TraceRead, unpack_fields
from jitter_workshop.model.watch import BETWEEN, READING, SUSPENDED, KeptStall
from jitter_workshop.session.traces import RunTrace, TracedBlock

BLOCK_NS = 30_000_000_000
"""The length of a block without a stall, in ns. The longer the blocks are, the less time lies between them."""
TAIL_NS = 500_000_000
"""The time in ns from the first stall of a block to the end of this block. In this way a group of stalls is in one
block."""
BEFORE_NS = 100_000_000
"""The trace that is read for a stall begins this long before the first stall of the block, in ns."""
SHORTEST_BLOCK_NS = 250_000_000
LEG_S = 3600.0
"""Seconds after which a new process takes over as the sampler, so that its clock is calibrated again and memory is
freed."""
MOST_DEATHS = 5
_SAMPLER = KINDS["spin"].rated[0]


class FlightTracer(Protocol):
    """Record a trace in overwriting buffers through the agent (see ``agent.client.AgentClient``). All methods raise
    HostError on failure."""

    def evidence_begin(
        self,
        pid: int,
        tids: Sequence[int],
        cpus: str,
        clock: str,
        stacks: bool,
        buffer_kb: int | None = None,
        *,
        overwrite: bool = False,
    ) -> TraceInfo: ...
    def evidence_start(self) -> None: ...
    def evidence_read(self, since: int = 0) -> TraceRead: ...
    def evidence_end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """Hold the limits of a watch; None means no limit. ``until_ns``: the longest total duration. ``watched_ns``: the
    longest watched time, without the gaps between blocks.
    """

    until_ns: int | None = None
    watched_ns: int | None = None

    def block_ns(self) -> int:
        """Return the length of a block in ns. A short watch has shorter blocks, so that it has several blocks."""
        shortest = min((ns for ns in (self.until_ns, self.watched_ns) if ns is not None), default=8 * BLOCK_NS)
        return min(max(shortest // 8, SHORTEST_BLOCK_NS), BLOCK_NS)


class FlightRecorder:
    """Record the trace of a watch, and count its stalls. ``bench.runner`` calls this object before and after each
    block.

    - ``tracer``: records the trace; None if there can be no trace.
    - ``why_not``: the reason why ``tracer`` is None.
    - ``progress``: is called after each block.
    - ``end_ns``: the end of the last block.
    """

    def __init__(
        self,
        log: Log,
        tracer: FlightTracer | None,
        why_not: str,
        limits: WatchLimits,
        cancel: CancelToken,
        progress: Callable[[Log], None] = lambda log: None,
    ) -> None:
        self._log, self._tracer, self._limits, self._cancel, self._progress = log, tracer, limits, cancel, progress
        self._info: TraceInfo | None = None
        self._tids: dict[str, int] = {}
        self._own: frozenset[int] = frozenset()
        self._cpus = CpuSet(())
        self._on = self._recording = False
        self._reading_ns = 0
        self._away = False
        self.end_ns: int | None = None
        self.done = False
        if tracer is None:
            self._without(why_not)

    def of(self, spec: RunSpec) -> FlightRecorder:
        """Prepare this recorder for the next measuring process of the watch, and return this recorder. ``spec``: the
        specification of this process's run."""
        self._cpus = CpuSet.of(spec.placement.cpus)
        self._log.subject.cpu = spec.placement.sampler
        return self

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        self._log.subject.clock = clock.source
        if self._tracer is None:
            return
        wanted = CLOCKS.get(clock.source)
        if wanted is None:
            self._without(f"the kernel's trace has no clock that equals {clock.source}")
            return
        self._tids, self._own = dict(tids), frozenset(own_threads(HostRoot()))
        with self._failing():
            cpus = str(self._cpus or read_topology(HostRoot()).allowed)
            self._info = self._tracer.evidence_begin(pid, list(tids.values()), cpus, wanted, True, overwrite=True)
            self._log.subject.missing |= self._info.missing
            self._on, self._recording = True, False

    def before_block(self) -> None:
        if self._tracer is not None and self._on and not self._recording:
            with self._failing():
                self._tracer.evidence_start()
                self._recording = True

    def after_block(self, block: BlockDone | None) -> None:
        """Count a finished block, and freeze the trace if the block has a stall. ``block``: None if the host was
        suspended during the block."""
        if block is None:
            self._away = True
            return
        log, tally = self._log, self._log.tally
        if self.end_ns is None:
            log.begin(block.start_ns)
        else:
            gap = max(block.start_ns - self.end_ns, 0)
            reading = min(self._reading_ns, gap)
            log.not_watched(self.end_ns, {READING: reading, SUSPENDED if self._away else BETWEEN: gap - reading})
        self._reading_ns, self._away = 0, False
        self.end_ns = block.end_ns
        tally.watched_ns += block.end_ns - block.start_ns
        tally.allowance.watched(block.end_ns - block.start_ns)
        for total in block.stall_totals:
            tally.counts[total.threshold_ns] += total.count
        if block.stalls:
            began = time.monotonic_ns()
            frozen = self._freeze(block)
            if frozen:
                self._reading_ns = time.monotonic_ns() - began
                tally.froze(self._reading_ns)
        log.tick()
        self._progress(log)
        limits, lasted = self._limits, time.monotonic_ns() - log.start_ns
        over = limits.until_ns is not None and lasted >= limits.until_ns
        if over or (limits.watched_ns is not None and tally.watched_ns >= limits.watched_ns):
            self.done = True
            self._cancel.cancel("done")

    def leg_ends(self) -> None:
        """Remove the trace that the kernel recorded for a measuring process. This process has ended."""
        self._away = True
        if self._tracer is not None and self._info is not None:
            with contextlib.suppress(WorkshopError):
                self._tracer.evidence_end()
        self._info = None
        self._on = self._recording = False

    def _freeze(self, block: BlockDone) -> bool:
        """Record the stalls of a block, with their causes if the trace shows them. Return True if the trace could be
        read.
        """
        log = self._log
        at_ns = block.start_ns - log.start_ns
        stalls = [
            Stall(0, s.thread, s.cpu, s.start_ns + at_ns, s.end_ns + at_ns, s.messages)
            for s in sorted(block.stalls, key=lambda s: -s.duration_ns)
        ]
        count = len(stalls) + block.unlisted
        read, why = self._read(block, stalls[0].duration_ns)
        if read is None or self._info is None:
            some = stalls[: max(MOST_LINES, log.tally.keep)]
            log.froze([self._unnamed(one, why) for one in some], count, None)
            return False
        named, rest, file = list[Stall](), list[Stall](), log.new_file()
        for one in stalls:
            (named if self._whole(one, block, read) else rest).append(one)
        kept = [
            self._unnamed(one, "the trace's buffer was full, so the events of this stall were overwritten")
            for one in rest
        ]
        kept += self._explained(block, at_ns, named, read, file)
        kept.sort(key=lambda one: (-one.duration_ns, one.at_ns))
        log.froze(kept[: max(MOST_LINES, log.tally.keep)], count, self._trace(block, at_ns, stalls, read))
        return True

    def _read(self, block: BlockDone, longest_ns: int) -> tuple[TraceRead | None, str]:
        """Freeze the trace, read it, and return it with "". Return None and the reason if no trace can be read."""
        if self._tracer is None or not self._on or not self._recording:
            return None, self._log.subject.notes.get("trace", "there is no trace of this time")
        if not self._log.tally.may_read(longest_ns):
            return None, "this trace was not read, because reading traces had already taken a fifth of the time"
        with self._failing():
            self._recording = False
            return self._tracer.evidence_read(self._since(block)), ""
        return None, self._log.subject.notes.get("trace", "")

    def _since(self, block: BlockDone) -> int:
        """Return a time in clock ticks. Only events after this time can explain the block's stalls."""
        first = min(stall.start_ns for stall in block.stalls)
        return block.start_ticks + self._span(block).rate.to_ticks(max(first - BEFORE_NS, 0))

    def _whole(self, stall: Stall, block: BlockDone, read: TraceRead) -> bool:
        span = self._span(block)
        offset = stall.start_ns - span.start_ns
        return span.start + span.rate.to_ticks(offset) >= read.whole_from

    def _span(self, block: BlockDone) -> BlockSpan:
        return BlockSpan(
            *(block.index, block.start_ticks, block.end_ticks, block.start_ns - self._log.start_ns),
            block.end_ns - block.start_ns,
        )

    def _explained(
        self, block: BlockDone, at_ns: int, stalls: Sequence[Stall], read: TraceRead, file: str
    ) -> list[KeptStall]:
        log, info, span = self._log, self._info, self._span(block)
        if not stalls or info is None:
            return []
        events = (e for e in unpack_fields(read.events, read.strings) if e[0] >= read.whole_from)
        try:
            with nothing_cyclic():
                explained = explain_block(
                    span, windows_of(stalls, span, "spin"), events, info.cpus, self._tids, {}, self._own
                )
                told = summarise_run(
                    [explained],
                    run=log.subject.id,
                    threshold_ns=log.tally.threshold_ns,
                    clock=info.clock,
                    main_thread=_SAMPLER,
                    top=max(log.tally.keep, MOST_LINES),
                )
        except ValueError as error:
            raise HostError(f"the agent sent a trace that cannot be read: {error}") from error
        log.tally.add_causes(told.causes)
        log.tally.named += told.stalls
        return [as_kept(one, log.wall(one.at_ns), file) for one in told.worst]

    def _unnamed(self, stall: Stall, why: str) -> KeptStall:
        at = self._log.wall(stall.start_ns)
        return KeptStall(stall.start_ns, at, stall.duration_ns, stall.cpu, stall.thread, None, why_no_parts=why)

    def _trace(self, block: BlockDone, at_ns: int, stalls: Sequence[Stall], read: TraceRead) -> RunTrace:
        assert self._info is not None
        frozen = TracedBlock(
            *(0, at_ns, at_ns + block.end_ns - block.start_ns, block.start_ticks, block.end_ticks),
            *(tuple(sorted(stalls, key=lambda s: s.start_ns)), {}, read.events),
            whole_from=max(read.whole_from, self._since(block)),
        )
        return RunTrace(self._info, self._tids, read.strings, (frozen,), tuple(sorted(self._own)))

    def _without(self, why: str) -> None:
        self._on = False
        self._log.subject.evidence = "counters"
        self._log.subject.notes["trace"] = why

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except WorkshopError as error:
            self._on = self._recording = False
            self._log.trace_ended(error.message)


def watch_cpu(
    request: MeasureRequest,
    log: Log,
    limits: WatchLimits,
    cancel: CancelToken,
    *,
    tracer: Callable[[], FlightTracer],
    place: PutInside | None = None,
    turn: TakeTurn | None = None,
    queued: Callable[[str], None] = lambda sentence: None,
    progress: Callable[[Log], None] = lambda log: None,
) -> int:
    """Watch a CPU until a limit is reached or ``cancel`` is pressed. Return the end of the watch in ns of the monotonic
    clock. Other arguments are as in ``flow.measuring.measure``. Raise MeasureError if no block was finished. Also raise
    the UsageError, HostError and BusyError of ``measure``."""
    check_request(request)
    flight: FlightTracer | None = None
    why_not = ""
    try:
        flight = tracer()
    except HostError as error:
        why_not = error.message
    recorder = FlightRecorder(log, flight, why_not, limits, cancel, progress)
    request = replace(request, duration_s=LEG_S, block_ns=limits.block_ns(), tail_ns=TAIL_NS, evidence=True)
    observer: RunObserver = SilentObserver()
    deaths = 0
    with contextlib.ExitStack() as turns:
        if turn is not None:
            still = turns.enter_context(turn(request.wait_s, cancel, queued))
            if still is not None:
                observer = TurnGuard(observer, still)
            else:
                turns.enter_context(host_turn(request.wait_s, cancel, queued))
        else:
            turns.enter_context(host_turn(request.wait_s, cancel, queued))
        turns.enter_context(background_gate.HERE.measuring())
        root = HostRoot()
        while cancel.reason is None:
            places = ChosenCpus(request, root, read_topology(root), place)
            failure: MeasureError | None = None
            try:
                failure = places.run(observer, cancel, recorder.of).failure
            except Cancelled:
                break
            except MeasureError as error:
                failure = error
            finally:
                recorder.leg_ends()
                if places.why_outside:
                    log.subject.notes["placement"] = not_used(places.why_outside)
            if failure is not None:
                deaths += 1
                if recorder.end_ns is None or deaths > MOST_DEATHS:
                    raise failure
                log.note("measuring", f"the measuring process had to be started again: {failure.message}")
    return recorder.end_ns if recorder.end_ns is not None else time.monotonic_ns()
