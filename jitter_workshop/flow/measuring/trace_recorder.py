"""Record the kernel's trace beside a run through the agent, block by block, and keep it as one trace.

The buffer is not read during a block. Its content is read in the pause after the block, decoded by the agent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from jitter_workshop.bench.protocol import BlockDone, Witness
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.measuring.counter_sampler import Counting
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.run import Clock, Counters, Stall
from jitter_workshop.model.spec import RunSpec
from jitter_workshop.model.topology import Topology
from jitter_workshop.model.trace import TraceInfo, TraceRead
from jitter_workshop.session.traces import MOST_BYTES, RunTrace, TracedBlock

CLOCKS = {"tsc": "x86-tsc", "clock_monotonic": "mono"}
"""The benchmark's clock → the trace's clock with the same ticks, so that nothing has to be converted."""


class Tracer(Protocol):
    """Record a trace through the agent (``agent.client.AgentClient``). All methods raise HostError."""

    def evidence_begin(self, pid: int, tids: Sequence[int], cpus: str, clock: str, stacks: bool) -> TraceInfo: ...
    def evidence_start(self) -> None: ...
    def evidence_read(self) -> TraceRead: ...
    def evidence_end(self) -> None: ...


class TraceWitness:
    """Record a run for ``bench.runner``; one for each run. ``cpus``: those on which the measured threads may run.

    A trace that cannot be had, or breaks off, does not end a run: ``why_not`` says what happened, and the run goes on
    without it.
    """

    def __init__(self, tracer: Tracer, cpus: CpuSet) -> None:
        self._tracer = tracer
        self._cpus = cpus
        self._info: TraceInfo | None = None
        self._tids: dict[str, int] = {}
        self._strings: tuple[str, ...] = ("",)
        self._blocks: list[TracedBlock] = []
        self._base_ns: int | None = None
        self._bytes = 0
        self._left_out = 0
        self._on = False
        self.why_not = ""

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        wanted = CLOCKS.get(clock.source)
        if wanted is None:
            self.why_not = f"the kernel's trace has no clock that is the same as {clock.source}"
            return
        self._tids = dict(tids)
        with self._failing():
            self._info = self._tracer.evidence_begin(pid, list(tids.values()), str(self._cpus), wanted, True)
            self._on = True

    def before_block(self) -> None:
        if self._on:
            with self._failing():
                self._tracer.evidence_start()

    def after_block(self, block: BlockDone | None) -> None:
        if not self._on:
            return
        with self._failing():
            read = self._tracer.evidence_read()
            self._strings = read.strings
            if block is not None:
                self._keep(block, read)

    def _keep(self, block: BlockDone, read: TraceRead) -> None:
        if self._base_ns is None:
            self._base_ns = block.start_ns
        if self._bytes + len(read.events) > MOST_BYTES:
            self._left_out += 1
            return
        self._bytes += len(read.events)
        start_ns = block.start_ns - self._base_ns
        index = len(self._blocks) + self._left_out
        self._blocks.append(
            TracedBlock(
                index=index,
                start_ns=start_ns,
                end_ns=block.end_ns - self._base_ns,
                start_ticks=block.start_ticks,
                end_ticks=block.end_ticks,
                stalls=tuple(
                    Stall(index, s.thread, s.cpu, s.start_ns + start_ns, s.end_ns + start_ns, s.messages)
                    for s in block.stalls
                ),
                lost={str(cpu): count for cpu, count in sorted(read.lost.items())},
                events=read.events,
                lost_elsewhere=sum(read.lost_elsewhere.values()),
                unlisted=block.unlisted,
            )
        )

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except WorkshopError as error:
            self.why_not = error.sentence()
            self._on = False

    def end(self) -> None:
        """End the kernel's trace."""
        if self._info is not None:
            with self._failing():
                self._tracer.evidence_end()
        self._on = False

    def trace(self) -> RunTrace | None:
        """Return what was recorded; None where not one block was."""
        if self._info is None or not self._blocks:
            return None
        return RunTrace(self._info, self._tids, self._strings, tuple(self._blocks))

    def notes(self) -> dict[str, str]:
        """Return a run's notes on its trace."""
        if self.why_not:
            count = len(self._blocks)
            kept = f" after {count} block{'' if count == 1 else 's'}" if count else ""
            return {"evidence": f"no trace{kept}: {self.why_not}"}
        if self._left_out:
            return {"evidence": f"no room for the trace of the last {self._left_out} of the run's blocks"}
        return {}


class Evidence:
    """Collect the evidence of one run, as its witness: the trace, where it was asked for, and counters that need no
    rights, from before the first block on. Without a trace the counters are all there is."""

    def __init__(self, wanted: bool, tracer: Callable[[], Tracer] | None, topology: Topology) -> None:
        self._wanted = wanted
        self._allowed = topology.allowed
        self._trace: TraceWitness | None = None
        self._counting: Counting | None = None
        self._tracer: Tracer | None = None
        self._why_not = ""
        self._refusal = ""
        if wanted:
            try:
                if tracer is None:
                    raise HostError("there is no agent to ask the kernel for it")
                self._tracer = tracer()
            except HostError as error:
                self._why_not = error.sentence()
                # A report on counters has advice of its own.
                self._refusal = error.message

    def witness(self, spec: RunSpec) -> Witness | None:
        """Return the witness of a run of this spec; None where no evidence is wanted."""
        if not self._wanted:
            return None
        cpus = CpuSet.of(spec.placement.cpus) or self._allowed
        self._counting = Counting(HostRoot(), cpus)
        self._trace = TraceWitness(self._tracer, cpus) if self._tracer is not None else None
        return self

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        if self._counting is not None:
            self._counting.begin()
        if self._trace is not None:
            self._trace.begin(pid, tids, clock)

    def before_block(self) -> None:
        if self._trace is not None:
            self._trace.before_block()

    def after_block(self, block: BlockDone | None) -> None:
        if self._trace is not None:
            self._trace.after_block(block)

    def end(self) -> None:
        if self._counting is not None:
            self._counting.end()
        if self._trace is not None:
            self._trace.end()

    def trace(self) -> RunTrace | None:
        return self._trace.trace() if self._trace is not None else None

    def counters(self) -> Counters | None:
        """Return the counters of a run without a trace."""
        if self._counting is None or self.trace() is not None:
            return None
        why = self._refusal or (self._trace.why_not if self._trace is not None else "")
        return self._counting.counters(why or "nothing was recorded")

    def notes(self) -> dict[str, str]:
        found = {"evidence": f"no trace: {self._why_not}"} if self._why_not else {}
        if self._trace is not None:
            found.update(self._trace.notes())
        if self._counting is not None and self.trace() is None:
            found.update(self._counting.notes())
        return found
