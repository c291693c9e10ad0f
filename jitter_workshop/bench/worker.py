"""Run the measuring child: ``python -I -m jitter_workshop.bench.worker``.

The child writes only protocol lines (``protocol.py``) to stdout. Its main thread sleeps in native code while a block
runs. A second thread waits for the parent's messages (``parent.py``). When stdin is closed, this second thread ends the
child at once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import time
from dataclasses import dataclass, replace
from typing import Any

from jitter_workshop.bench import launch, workloads
from jitter_workshop.bench.native import TickClock, calibrate, lock_memory
from jitter_workshop.bench.noise import NoiseAtWork, noise_inside, plain_log
from jitter_workshop.bench.parent import PATIENCE_S, Parent, serve_parent
from jitter_workshop.bench.protocol import BlockDone, MoveInside, Ready
from jitter_workshop.bench.workload import messages_of_block
from jitter_workshop.errors import UsageError
from jitter_workshop.host.cpu.cpufreq import read_current_hz
from jitter_workshop.host.cpu.cpuidle import read_exit_latencies, read_idle_use
from jitter_workshop.host.cpu.stat import CpuStat, read_stat, steal_between
from jitter_workshop.host.irq.interrupts import CounterTable, read_interrupts, read_softirqs
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import read_cgroup, read_throttled
from jitter_workshop.host.tasks.listing import context_switches, migrations
from jitter_workshop.model.codec import CodecError
from jitter_workshop.model.run import Clock, Counter
from jitter_workshop.model.spec import DUTIES, LOCK_PRIORITY, MEMORY_OF, Placement, RunSpec

SETTLE_S = 0.050
LONGEST_SETTLE_S = 60.0
HIGHEST_PRIORITY = 49
MOST_LISTED = 100_000
_RT_MARGIN_S = PATIENCE_S + 15


@dataclass(frozen=True, slots=True)
class CounterReading:
    """Hold the values of the kernel's counters, read within a short time.

    ``at_ns``: the time at which the first counter was read (CLOCK_MONOTONIC).
    """

    at_ns: int
    interrupts: CounterTable
    softirqs: CounterTable
    stat: CpuStat
    throttled: int | None
    parent_switches: int | None
    migrations: dict[str, int | None]
    idle: tuple[int, int] | None


class BlockCounters:
    """Read the kernel's counters just before and just after a block.

    The counters are always read in the same order. So the time between the two readings is about the same for each
    counter.
    """

    def __init__(self, root: HostRoot, placement: Placement, tids: dict[str, int]) -> None:
        self._root = root
        self._tids = tids
        self._parent = os.getppid()
        self._cgroup = read_cgroup(root)
        self._guest = read_hypervisor(root).guest
        self._cpus = tuple(sorted(set(placement.cpus))) or None
        self._latencies = read_exit_latencies(root, self._cpus) if self._cpus else None

    def look(self) -> CounterReading:
        root = self._root
        return CounterReading(
            at_ns=time.monotonic_ns(),
            interrupts=read_interrupts(root),
            softirqs=read_softirqs(root),
            stat=read_stat(root, self._guest),
            throttled=read_throttled(root, self._cgroup),
            parent_switches=context_switches(root, self._parent),
            migrations={name: migrations(root, tid) for name, tid in self._tids.items()},
            idle=read_idle_use(root, self._latencies) if self._latencies else None,
        )

    def fields(self, before: CounterReading, after: CounterReading, notes: dict[str, str]) -> dict[str, Any]:
        """Return the fields of a block that come from the kernel's counters.

        ``before``, ``after``: the readings before and after the block. A counter that the kernel does not show is None;
        ``notes`` gets the reason.
        """
        found = {
            "interrupts": _grown(before.interrupts, after.interrupts, "interrupts", notes),
            "softirqs": _grown(before.softirqs, after.softirqs, "softirqs", notes),
            "steal_ns": steal_between(before.stat, after.stat, self._cpus),
            "throttled_periods": difference(before.throttled, after.throttled),
            "parent_switches": difference(before.parent_switches, after.parent_switches),
            "counted_ns": after.at_ns - before.at_ns,
            "cpu_hz": _mean_hz(self._root, self._cpus or ()),
        }
        if before.idle is not None and after.idle is not None:
            found["idle_entries"] = difference(before.idle[0], after.idle[0])
            found["idle_exit_us"] = difference(before.idle[1], after.idle[1])
        if found["steal_ns"] is None:
            notes["steal_ns"] = after.stat.why_no_steal
        if found["throttled_periods"] is None:
            notes["throttled_periods"] = self._cgroup.reason or "this process's cgroup does not count throttling"
        if found["parent_switches"] is None:
            notes["parent_switches"] = "the context switches of the controlling process cannot be read in /proc"
        return found

    def migrations(self, name: str, before: CounterReading, after: CounterReading, notes: dict[str, str]) -> int | None:
        moved = difference(before.migrations[name], after.migrations[name])
        if moved is None:
            notes["migrations"] = (
                "this kernel does not count migrations of a thread (se.nr_migrations in /proc/PID/sched)"
            )
        return moved


def _mean_hz(root: HostRoot, cpus: tuple[int, ...]) -> int | None:
    """Return the mean frequency of these CPUs as the kernel knows it now; None if it is not known for all of them."""
    known = [hz for cpu in cpus if (hz := read_current_hz(root, cpu)) is not None]
    return round(sum(known) / len(known)) if known and len(known) == len(cpus) else None


def difference(before: int | None, after: int | None) -> int | None:
    """Return the growth of a counter; None if one of its readings is missing."""
    return None if before is None or after is None else max(0, after - before)


def _grown(before: CounterTable, after: CounterTable, name: str, notes: dict[str, str]) -> dict[str, Counter] | None:
    if not len(before) or not len(after):
        notes[name] = before.reason or after.reason
        return None
    return dict(after.minus(before))


class Worker:
    """Measure one run in this process."""

    def __init__(self, parent: Parent, spec: RunSpec) -> None:
        validate(spec)
        self._parent = parent
        self._root = HostRoot()
        allowed = os.sched_getaffinity(0)
        leave_hot_cpus(spec.placement)
        if spec.sched_priority:
            bound_realtime(spec)
        self._settle_s = max(SETTLE_S, spec.settle_s)
        self._clock: TickClock = calibrate(self._root, spec.traced)
        split = bool(spec.placement.inside)
        # From outside of the isolated set, only the thread that is put inside reaches the CPU there.
        clock = None if split else self._clock.describe(spec.placement.producer, spec.placement.accumulator)
        asked_ns = spec.threshold_ns
        spec = workloads.fit_threshold(spec, self._clock)
        # Before the measured threads start, because it first measures how much time it takes of their CPU.
        self._noise: NoiseAtWork | None = noise_inside(spec, allowed, self._clock)
        self._workload = workloads.start_workload(spec, self._clock)
        try:
            self._begin(spec, clock, asked_ns)
        except BaseException:
            self._workload.close()
            raise

    def _begin(self, spec: RunSpec, clock: Clock | None, asked_ns: int) -> None:
        """Let the measured threads settle on their CPUs, and say to the parent that they are ready. ``clock``: None if
        the threads must first be put into the isolated set. ``asked_ns``: the requested threshold of stalls, in ns."""
        split = clock is None
        if clock is None:
            self._enter(spec.placement)
            clock = self._clock.with_offset(self._workload.clock_offset())
        self._counters = BlockCounters(self._root, spec.placement, self._workload.tids)
        notes: dict[str, str] = {}
        mlocked, reason = lock_memory()
        if not mlocked:
            part = (
                "the memory that the measured threads touch is locked"
                if self._workload.lock()
                else "not all memory that the measured threads touch is locked"
            )
            notes["mlocked"] = f"{reason}; {part}"
        if clock.offset_ns is None:
            notes["clock.offset_ns"] = (
                "no thread could compare the clocks of the isolated CPUs and of the other CPUs"
                if split
                else "the offset is measured only if both threads are bound to different CPUs"
            )
        threshold_ns = None
        if spec.threshold_ns != asked_ns:
            threshold_ns = spec.threshold_ns
            notes["stalls"] = (
                f"the threshold of gaps is {threshold_ns} ns instead of {asked_ns} ns, because one reading of "
                f"this clock takes {clock.cost_ns:.0f} ns"
            )
        sched = f"fifo:{spec.sched_priority}" if spec.sched_priority else "other"
        # No garbage collection may run during a block, and all present objects will stay.
        gc.collect()
        gc.freeze()
        gc.disable()
        self._parent.say("ready", Ready(clock, self._workload.tids, mlocked, sched, notes, threshold_ns))

    def _enter(self, placement: Placement) -> None:
        """Let the parent move threads into the isolated set, then bind all threads to their CPUs."""
        self._parent.say("inside", MoveInside(self._workload.tids_inside))
        kind, _ = self._parent.hear()
        if kind != "placed":
            raise CodecError(f"the message '{kind}' came instead of 'placed'")
        self._workload.settle_inside()
        leave_hot_cpus(placement)

    def run(self) -> None:
        """Measure block by block until the parent sends ``end``. In any case, the measured threads end before this call
        does: they use memory that Python frees afterwards."""
        try:
            self._serve()
        finally:
            self._workload.close()

    def _serve(self) -> None:
        index = 0
        while True:
            kind, _ = self._parent.hear()
            if kind == "end":
                return
            if kind == "noise" and self._noise is not None:
                self._parent.say("noise", plain_log(self._noise.stop()))
                self._noise = None
                continue
            if kind != "go":
                raise CodecError(f"'{kind}' is not a message that the measuring process knows")
            self._parent.say("block", self._block(index))
            index += 1

    def _block(self, index: int) -> BlockDone:
        # The time before the first block lets effects of a change of the host die away, hot threads running.
        time.sleep(SETTLE_S if index else self._settle_s)
        before = self._counters.look()
        result = self._workload.measure(index)
        after = self._counters.look()
        # Only now, so that the cost of the analysis is outside the block.
        done = self._workload.analyse(index, result)
        notes = dict(done.notes)
        threads = tuple(
            replace(thread, migrations=self._counters.migrations(thread.name, before, after, notes))
            for thread in done.threads
        )
        fields = self._counters.fields(before, after, notes)
        return replace(done, threads=threads, notes=notes, **fields)


def validate(spec: RunSpec) -> None:
    """Raise UsageError if ``spec`` describes an impossible run. The child does not rely on the parent's checks."""
    if not 0 < spec.blocks <= 1_000_000 or not 0 < spec.block_ns <= 3_600 * 10**9:
        raise UsageError("a run has at least one block, and a block takes at most an hour")
    if spec.messages is not None and spec.messages < 1:
        raise UsageError("a run has at least one message")
    if not 0 < spec.interval_ns <= 60 * 10**9:
        raise UsageError("the interval between messages must be above 0 and at most a minute")
    if not 0 <= spec.listed_stalls <= MOST_LISTED:
        raise UsageError(f"at most {MOST_LISTED} stalls of a block are listed")
    if not 0 <= spec.settle_s <= LONGEST_SETTLE_S:
        raise UsageError(f"a run settles for at most {LONGEST_SETTLE_S:.0f} s before its first block")
    if spec.threshold_ns < 1:
        raise UsageError("the threshold of a stall must be above 0")
    if spec.duty not in (DUTIES if spec.workload == "spin" else (100,)):
        raise UsageError(f"the duty must be one of {', '.join(map(str, DUTIES))} % (for spin), not {spec.duty} %")
    if spec.tail_ns is not None and (spec.workload != "spin" or spec.tail_ns < 0):
        raise UsageError("only a block of the workload spin can end after its first stall")
    if spec.pause != "sleep" and spec.duty == 100:
        raise UsageError("a sampler has a pause only if its duty is below 100 %")
    if spec.memory != "none" and MEMORY_OF.get(spec.memory) != spec.workload:
        raise UsageError(f"the workload {spec.workload} has no memory '{spec.memory}'")
    if spec.lock != "none" and (spec.workload != "wakeup" or spec.sched_priority < LOCK_PRIORITY):
        raise UsageError(f"only the workload wakeup takes a lock, from SCHED_FIFO priority {LOCK_PRIORITY} on")
    if not 0 <= spec.sched_priority <= HIGHEST_PRIORITY:
        raise UsageError(f"the priority for SCHED_FIFO must be from 1 to {HIGHEST_PRIORITY}")


def leave_hot_cpus(placement: Placement) -> None:
    """Move the calling thread away from the hot CPUs. Threads that the calling thread starts later also stay away from
    the hot CPUs.

    Change nothing if the placement's mode is ``none``, because the scheduler must be free to place the measured
    threads.
    """
    if placement.mode == "none":
        return
    allowed = os.sched_getaffinity(0)
    for wanted in (allowed & set(placement.housekeeping), allowed - set(placement.hot)):
        if wanted:
            # A CPU may go offline at any moment: then the scheduler's choice is good enough.
            with contextlib.suppress(OSError):
                os.sched_setaffinity(0, wanted)
            return


def bound_realtime(spec: RunSpec) -> None:
    """Limit the CPU time that a real-time thread may use without sleeping (RLIMIT_RTTIME).

    The limit is longer than the sum of two times: one block, and the longest wait for a message of the parent.
    """
    block_ns = spec.block_ns
    if spec.messages is not None:
        block_ns = messages_of_block(spec, 0) * spec.interval_ns * 2
    limit_us = block_ns // 1_000 + _RT_MARGIN_S * 1_000_000
    _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    if hard != resource.RLIM_INFINITY:
        limit_us = min(limit_us, hard)
    resource.setrlimit(resource.RLIMIT_RTTIME, (limit_us, limit_us))


def main() -> None:
    serve_parent(launch.MEASURING, "spec", RunSpec, lambda parent, spec: Worker(parent, spec).run())


if __name__ == "__main__":
    main()
