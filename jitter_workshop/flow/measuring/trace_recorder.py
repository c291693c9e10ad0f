"""Record the kernel's trace of a run through the agent, or count without root's rights.

The agent records the trace block by block, and all blocks become one trace. The trace's buffer is not read during a
block: the agent reads and decodes it in the pause after the block. If there is no trace, the evidence is the counters
that any user can read.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from jitter_workshop.bench.protocol import BlockDone, RunRecorder
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.flow.programs.targets import children_of, threads_of
from jitter_workshop.host.cpu.stat import (
    CpuSchedstats,
    CpuStat,
    cpu_schedstats,
    read_stat,
    schedstat_between,
    steal_between,
)
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.run import Clock, Counters, CpuCounters, Stall
from jitter_workshop.model.spec import RunSpec
from jitter_workshop.model.trace import TraceInfo, TraceRead
from jitter_workshop.session.traces import MOST_BYTES, RunTrace, TracedBlock

_PARANOID = "/proc/sys/kernel/perf_event_paranoid"

CLOCKS = {"tsc": "x86-tsc", "clock_monotonic": "mono"}
"""The workload's clock → the trace's clock that has the same ticks, so that no time has to be converted."""


def own_threads(root: HostRoot) -> set[int]:
    """Return the thread ids of this process and of all processes below it."""
    found, waiting = set[int](), [os.getpid()]
    while waiting:
        pid = waiting.pop()
        for task in threads_of(root, pid):
            found.add(task.tid)
            waiting += children_of(root, pid, task.tid)
    return found


class Tracer(Protocol):
    """Record a trace through the agent (see ``agent.client.AgentClient``). All methods raise HostError on failure."""

    def evidence_begin(self, pid: int, tids: Sequence[int], cpus: str, clock: str, stacks: bool) -> TraceInfo: ...
    def evidence_start(self) -> None: ...
    def evidence_read(self) -> TraceRead: ...
    def evidence_end(self) -> None: ...


class TraceRecorder:
    """Record one run's trace and counters for ``bench.runner``. If the trace is not available or ends early, the run
    goes on without it.

    - ``tracer``: records the trace; None if there can be no trace.
    - ``cpus``: the CPUs on which the measured threads may run.
    - ``why_not``: the reason why the trace is missing or incomplete, or "".
    - ``counting``: reads the counters.
    """

    def __init__(self, tracer: Tracer | None, cpus: CpuSet, why_not: str = "") -> None:
        self.counting = CpuCounting(HostRoot(), cpus)
        self._tracer = tracer
        self._cpus = cpus
        self._info: TraceInfo | None = None
        self._tids: dict[str, int] = {}
        self._own: set[int] = set()
        self._strings: tuple[str, ...] = ("",)
        self._blocks: list[TracedBlock] = []
        self._base_ns: int | None = None
        self._bytes = 0
        self._left_out = 0
        self._on = False
        self.why_not = why_not

    def begin(self, pid: int, tids: dict[str, int], clock: Clock) -> None:
        self.counting.begin()
        if self._tracer is None:
            return
        wanted = CLOCKS.get(clock.source)
        if wanted is None:
            self.why_not = f"the kernel's trace has no clock that equals {clock.source}"
            return
        self._tids = dict(tids)
        self._own |= own_threads(HostRoot())
        with self._failing():
            self._info = self._tracer.evidence_begin(pid, list(tids.values()), str(self._cpus), wanted, True)
            self._on = True

    def before_block(self) -> None:
        if self._tracer is not None and self._on:
            with self._failing():
                self._tracer.evidence_start()

    def after_block(self, block: BlockDone | None) -> None:
        if self._tracer is None or not self._on:
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
        """Read the counters again at the end of the run, and end the kernel's trace."""
        self.counting.end()
        if self._tracer is not None and self._info is not None:
            self._own |= own_threads(HostRoot())
            with self._failing():
                self._tracer.evidence_end()
        self._on = False

    def trace(self) -> RunTrace | None:
        """Return the recorded trace; None if no block was recorded."""
        if self._info is None or not self._blocks:
            return None
        return RunTrace(self._info, self._tids, self._strings, tuple(self._blocks), tuple(sorted(self._own)))

    def notes(self) -> dict[str, str]:
        """Return a note with the reason if the run's trace is missing or incomplete, else {}."""
        if self.why_not:
            count = len(self._blocks)
            kept = f" after {count} block{'' if count == 1 else 's'}" if count else ""
            return {"evidence": f"no trace{kept}: {self.why_not}"}
        if self._left_out:
            last = "last block" if self._left_out == 1 else f"last {self._left_out} blocks"
            return {"evidence": f"there was no room for the trace of the run's {last}"}
        return {}


@dataclass(frozen=True, slots=True)
class _Look:
    at_ns: int
    schedstats: CpuSchedstats
    stat: CpuStat


class CpuCounting:
    """Read the counters of ``cpus`` at the start and at the end of a run. The counters of threads are read by the
    measuring child itself (``bench.worker``)."""

    def __init__(self, root: HostRoot, cpus: CpuSet) -> None:
        self._root = root
        self._cpus = cpus
        self._guest = read_hypervisor(root).guest
        self._before: _Look | None = None
        self._after: _Look | None = None

    def begin(self) -> None:
        self._before = self._look()

    def end(self) -> None:
        """Read the counters again at the end of the run. Do nothing if ``begin`` was not called."""
        if self._before is not None:
            self._after = self._look()

    def counters(self, why_no_trace: str) -> Counters | None:
        """Return the growth of the counters during the run; None without a measured block. ``why_no_trace``: the reason
        why the run has no trace. The result contains this reason."""
        before, after = self._before, self._after
        if before is None or after is None:
            return None
        return Counters(
            why_no_trace=why_no_trace,
            counted_ns=after.at_ns - before.at_ns,
            cpus=tuple(self._per_cpu(before, after)),
            perf_event_paranoid=self._root.integer(_PARANOID),
        )

    def _look(self) -> _Look:
        return _Look(time.monotonic_ns(), cpu_schedstats(self._root), read_stat(self._root, self._guest))

    def _per_cpu(self, before: _Look, after: _Look) -> Iterator[CpuCounters]:
        for cpu in self._cpus:
            tasks = schedstat_between(before.schedstats.per_cpu.get(cpu), after.schedstats.per_cpu.get(cpu))
            steal_ns = steal_between(before.stat, after.stat, (cpu,))
            if tasks is None:
                yield CpuCounters(cpu, None, None, None, steal_ns)
            else:
                yield CpuCounters(cpu, tasks.ran_ns, tasks.waited_ns, tasks.timeslices, steal_ns)

    def notes(self) -> dict[str, str]:
        """Return path → reason for each counter of the run that is null."""
        before, after = self._before, self._after
        found: dict[str, str] = {}
        if before is None or after is None:
            return found
        if any(cpu not in look.schedstats.per_cpu for cpu in self._cpus for look in (before, after)):
            reason = after.schedstats.reason or "/proc/schedstat does not have this CPU"
            found["counters.cpus.ran_ns"] = f"{reason} (CONFIG_SCHEDSTATS)"
            found["counters.cpus.waited_ns"] = found["counters.cpus.timeslices"] = "see counters.cpus.ran_ns"
        if any(steal_between(before.stat, after.stat, (cpu,)) is None for cpu in self._cpus):
            found["counters.cpus.steal_ns"] = after.stat.why_no_steal
        paranoid = self._root.reading(_PARANOID)
        if parse_integer(paranoid.text) is None:
            reason = paranoid.reason or "the file does not hold a whole number"
            found["counters.perf_event_paranoid"] = f"{_PARANOID}: {reason}"
        return found


class RunEvidence:
    """Collect the evidence of one run, if it is wanted. Evidence is the trace or, without a trace, the counters that
    need no rights."""

    def __init__(self, wanted: bool, tracer: Callable[[], Tracer] | None, topology: Topology) -> None:
        self._wanted = wanted
        self._allowed = topology.allowed
        self._recorder: TraceRecorder | None = None
        self._tracer: Tracer | None = None
        self._why_not = self._refusal = ""
        if wanted:
            try:
                if tracer is None:
                    raise HostError("no agent is there to ask the kernel for the trace")
                self._tracer = tracer()
            except HostError as error:
                self._why_not = error.sentence()
                # A report on counters has advice of its own.
                self._refusal = error.message

    def recorder(self, spec: RunSpec) -> RunRecorder | None:
        """Return the recorder that ``bench.runner`` calls during this run; None if no evidence is wanted."""
        if self._wanted:
            cpus = CpuSet.of(spec.placement.cpus) or self._allowed
            self._recorder = TraceRecorder(self._tracer, cpus, self._why_not)
        return self._recorder

    def end(self) -> None:
        if self._recorder is not None:
            self._recorder.end()

    def trace(self) -> RunTrace | None:
        return self._recorder.trace() if self._recorder is not None else None

    def counters(self) -> Counters | None:
        """Return the counters of a run that has no trace. Return None if the run has a trace, or if no evidence is
        wanted."""
        recorder = self._recorder
        if recorder is None or recorder.trace() is not None:
            return None
        return recorder.counting.counters(self._refusal or recorder.why_not or "the trace recorded nothing")

    def notes(self) -> dict[str, str]:
        recorder = self._recorder
        if recorder is None:
            return {}
        return recorder.notes() | (recorder.counting.notes() if recorder.trace() is None else {})
