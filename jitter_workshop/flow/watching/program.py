"""Watch a user's program for hours. A stall is a time in which a thread of the program could run and did not.

The kernel sums up how long each thread waits for a CPU (``/proc/PID/task/TID/schedstat``). These sums are read four
times a second. The trace is read only if the sum of a thread has grown by at least the threshold. Sometimes neither the
trace nor the sums show whether there was a stall. The time between the two readings is then reported as undecided.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from jitter_workshop.bench.cancel import CancelToken
from jitter_workshop.errors import HostError, WorkshopError
from jitter_workshop.evidence.explain import nothing_cyclic
from jitter_workshop.evidence.program import explain_program
from jitter_workshop.flow.programs.observing import CLOCK, Ends, HeldCommand, itself
from jitter_workshop.flow.programs.targets import Found, not_ours, threads_of
from jitter_workshop.flow.watching.log import MOST_LINES, Log
from jitter_workshop.flow.watching.spinning import WatchLimits
from jitter_workshop.host.cpu.stat import read_stat, steal_between
from jitter_workshop.host.kernel.hypervisor import read_hypervisor
from jitter_workshop.host.root import HostRoot, is_count
from jitter_workshop.model.program import HoldUp, TimeTaken
from jitter_workshop.model.trace import TraceInfo, TraceRead, unpack_fields
from jitter_workshop.model.watch import READING, STEAL, KeptStall
from jitter_workshop.session.traces import RunTrace, TracedBlock

LOOK_S = 0.25
"""Seconds between two readings of the times for which the program's threads waited for a CPU. The pause is longer if
one reading takes long.
"""
LOOK_SHARE = 0.02
"""The largest share of a CPU that the readings of the threads' waiting times may take."""
BEFORE_NS = 20_000_000
"""The trace that is read for a wait begins this long before the wait, in ns."""
MOST_STALLS = 1_000
COMMAND_ENDS_S = 10.0
"""Greatest number of seconds until an ended command and all processes that it started are gone."""
NICE = 5
"""The nice value of the watch. The scheduler prefers the program, but on a busy host the watch can still read the
buffers before they are overwritten."""
UNDECIDED = "not decided: the trace does not show it"
"""A reason of time that was not watched, beside those of ``model.watch``: the waits of a thread in this time were
together at least as long as the threshold. It is not known if one of them alone was so long."""


class OverwritingTracer(Protocol):
    """Follow a program's trace in overwriting buffers (see ``agent.client.AgentClient``). All methods raise HostError
    on failure."""

    pid: int | None

    def evidence_follow(self, pids: Sequence[int], cpus: str, clock: str, *, overwrite: bool = False) -> TraceInfo: ...
    def evidence_start(self) -> None: ...
    def evidence_read(self, since: int = 0) -> TraceRead: ...
    def evidence_end(self) -> None: ...


class Kept(HeldCommand, Protocol):
    """Define a command that ends with the watch, together with its child processes. ``kept.KeptCommand`` is such a
    command."""

    @property
    def trouble(self) -> str: ...


class Waited(NamedTuple):
    """Hold the kernel's sums for one thread. ``ns``: how long the thread has waited for a CPU. ``times``: how often it
    got a CPU."""

    ns: int
    times: int


class Grown(NamedTuple):
    """Hold the growth of one thread's sums since they were last read. ``ns``: the waiting time. ``times``: how often
    the thread got a CPU."""

    tid: int
    ns: int
    times: int


def watch_program(
    root: HostRoot,
    found: Found,
    log: Log,
    limits: WatchLimits,
    cancel: CancelToken,
    *,
    tracer: Callable[[], OverwritingTracer],
    command: Kept | None = None,
    progress: Callable[[Log], None] = lambda log: None,
) -> tuple[int, str]:
    """Watch a program until it ends, a limit is reached, or ``cancel`` is set. Return the time when the watch ended, in
    ns of the monotonic clock, and the reason for its end. The reason is "" if a limit ended the watch. ``command``: a
    waiting command, which this function releases. Raise HostError if the program cannot be followed."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, NICE)  # what is watched comes first; the agent inherits it
    watcher = _Watcher(root, found, log)
    with contextlib.closing(watcher), Ends(root, found) as ends:
        watcher.begin(tracer, command)
        pause_s = LOOK_S
        while True:
            over = ends.within(0) or _waits(ends, cancel, pause_s)
            before = time.thread_time()
            watcher.look()
            took_s = time.thread_time() - before
            progress(log)
            now = time.monotonic_ns()
            pause_s = max(LOOK_S, took_s / LOOK_SHARE if not watcher.just_read else LOOK_S)
            if limits.until_ns is not None:
                pause_s = min(pause_s, max((log.start_ns + limits.until_ns - now) / 1e9, 0.001))
            if over:
                return now, _why(command) if cancel.reason is None else "a signal"
            if limits.until_ns is not None and now - log.start_ns >= limits.until_ns:
                return now, ""
            if limits.watched_ns is not None and log.tally.watched_ns >= limits.watched_ns:
                return now, ""


def _why(command: Kept | None) -> str:
    """Return the reason why the program has ended."""
    if command is not None:
        command.wait(COMMAND_ENDS_S)
        if command.trouble:
            return f"the end of the program: {command.trouble}"
    return "the end of the program"


def _waits(ends: Ends, cancel: CancelToken, seconds: float) -> bool:
    """Wait at most ``seconds`` until the program has ended or ``cancel`` is set. Return True if one of these has
    happened.
    """
    until = time.monotonic() + seconds
    while (rest := until - time.monotonic()) > 0:
        if cancel.wait(0) or ends.within(min(rest, LOOK_S)):
            return True
    return cancel.reason is not None


class _Watcher:
    def __init__(self, root: HostRoot, found: Found, log: Log) -> None:
        self._root, self._found, self._log = root, found, log
        self._tracer: OverwritingTracer | None = None
        self._info: TraceInfo | None = None
        self._recording = False
        self._sums: dict[tuple[int, int], Waited] = {}
        self._guest = read_hypervisor(root).guest
        self._stat = read_stat(root, self._guest)
        self._looked_ns = self._traced_since_ns = 0
        self._cut: frozenset[int] = frozenset()
        self.just_read = False

    def begin(self, tracer: Callable[[], OverwritingTracer], command: Kept | None = None) -> None:
        """Begin to record the kernel's trace, then let ``command`` begin. Raise HostError if the program cannot be
        followed.
        """
        log = self._log
        log.subject.clock = CLOCK
        self._sums = dict(self._read_sums())
        if not self._sums:
            raise HostError("this kernel does not count how long threads wait (CONFIG_SCHED_INFO)")
        online = self._root.cpu_list("/sys/devices/system/cpu/online")
        with self._failing():
            if why := not_ours(self._root, self._found):
                raise HostError(why)
            self._tracer = tracer()
            self._info = self._tracer.evidence_follow(self._found.pids, str(online), CLOCK, overwrite=True)
            log.subject.missing |= self._info.missing
            self._start()
        self._stat = read_stat(self._root, self._guest)
        self._looked_ns = time.monotonic_ns()
        if command is not None:
            command.release()  # one that cannot be started is never watched
        log.begin(self._looked_ns)

    def look(self) -> None:
        """Read how long each thread has waited for a CPU. Freeze the trace if one of these times grew by the
        threshold."""
        log, tally = self._log, self._log.tally
        sums = dict(self._read_sums())
        now = time.monotonic_ns()
        grown = [Grown(key[0], *_difference(self._sums.get(key), one)) for key, one in sums.items()]
        self._sums = sums
        length, since = now - self._looked_ns, self._looked_ns
        self._looked_ns, self.just_read = now, False
        stat = read_stat(self._root, self._guest)
        steal = min(steal_between(self._stat, stat) or 0, length)
        self._stat = stat
        tally.watched_ns += length - steal
        tally.allowance.watched(length)
        if steal:
            log.not_watched(since, {STEAL: steal})
        late = [one for one in grown if one.ns >= tally.threshold_ns]
        if late:
            self._freeze(late, since, now)
        log.tick()

    def close(self) -> None:
        """Remove what the watch made in the kernel."""
        if self._tracer is not None and self._info is not None:
            self._info = None
            with contextlib.suppress(WorkshopError):
                self._tracer.evidence_end()

    def _freeze(self, late: list[Grown], since: int, now: int) -> None:
        log, tally = self._log, self._log.tally
        longest = max(one.ns for one in late)
        began = time.monotonic_ns()
        read = self._read(min(since, now - longest) - BEFORE_NS, longest)
        if read is None:
            self._by_sums(late, since, now)
            return
        self.just_read = True
        start = max(since - longest, read.whole_from, self._traced_since_ns)
        with self._failing():
            self._start()
        self._tell(read, start, began, late, since)
        # The sums' growth meanwhile is not looked at: this time is not watched.
        self._sums |= dict(self._read_sums())
        self._looked_ns = self._traced_since_ns = time.monotonic_ns()
        took = self._looked_ns - now
        tally.froze(took)
        log.not_watched(now, {READING: took})

    def _read(self, since: int, longest_ns: int) -> TraceRead | None:
        if self._tracer is None or not self._recording:
            return None
        if not self._log.tally.may_read(longest_ns):
            return None
        with self._failing():
            self._recording = False
            return self._tracer.evidence_read(max(since, 1))
        return None

    def _tell(self, read: TraceRead, start: int, end: int, late: list[Grown], since: int) -> None:
        """Find the stalls in a frozen trace, and record them with their causes. ``start``, ``end``: beginning and end
        of the trace. ``late``: the threads whose waiting time grew by the threshold. ``since``: the time when the sums
        were last read."""
        log, tally = self._log, self._log.tally
        if start >= end or self._info is None:
            self._by_sums(late, since, end)
            return
        events = [event for event in unpack_fields(read.events, read.strings) if event[0] >= read.whole_from]
        with nothing_cyclic():
            told = explain_program(
                events,
                self._info.cpus,
                {tid: "" for tid, _ in self._sums},
                start,
                end,
                children=self._found.children,
                itself=self._itself(),
                top=MOST_STALLS,
            )
        long = [one for one in told.worst if one.duration_ns >= tally.threshold_ns]
        # A wait that the last freeze cut is already counted; one that this freeze cuts is counted as it stands.
        long = [one for one in long if not (one.at_ns == 0 and one.tid in self._cut)]
        self._cut = frozenset(one.tid for one in long if start + one.at_ns + one.duration_ns >= end)
        if not long and start > since:
            self._by_sums(late, since, end)
        if start > since and long:
            self._undecided(since, start)
        if not long:
            return
        tally.count_lengths(one.duration_ns for one in long)
        tally.add_causes(_parts(long))
        tally.named += len(long)
        file, at_ns = log.new_file(), start - log.start_ns
        kept = [self._kept(one, at_ns, file, end - start) for one in long]
        lasted = at_ns, at_ns + end - start
        block = TracedBlock(0, *lasted, start, end, (), {}, read.events, whole_from=read.whole_from)
        tids = {str(tid): tid for tid, _ in self._sums}
        itself = tuple(sorted(self._itself()))
        trace = RunTrace(self._info, tids, read.strings, (block,), itself, self._found.children)
        log.froze(kept[: max(MOST_LINES, tally.keep)], len(long), trace)

    def _kept(self, one: HoldUp, at_ns: int, file: str, window_ns: int) -> KeptStall:
        cut = one.at_ns + one.duration_ns >= window_ns
        return KeptStall(
            at_ns=at_ns + one.at_ns,
            at=self._log.wall(at_ns + one.at_ns),
            duration_ns=one.duration_ns,
            cpu=one.cpu,
            thread=f"{one.thread} ({one.tid})",
            parts=one.parts,
            notes=("the stall had not ended when the trace was frozen: it lasted at least this long",) if cut else (),
            file=file,
        )

    def _by_sums(self, late: list[Grown], since: int, now: int) -> None:
        """Count the stalls that the kernel's sums prove without a trace. A thread surely had a stall if the mean of the
        thread's waits is at least the threshold. Otherwise the time since the last reading counts as undecided."""
        log, tally = self._log, self._log.tally
        sure = [one for one in late if one.ns >= tally.threshold_ns * max(one.times, 1)]
        why = log.subject.notes.get("trace", "the trace was not read, or its events were overwritten")
        stalls = []
        for one in sorted(sure, key=lambda one: -one.ns):
            least = one.ns // max(one.times, 1)
            at_ns = max(since - log.start_ns, 0)
            words = f"the kernel's counters show only that the stall was at least this long: {why}"
            stalls.append(KeptStall(at_ns, log.wall(at_ns), least, None, f"thread {one.tid}", None, why_no_parts=words))
        tally.count_lengths(one.duration_ns for one in stalls)
        if len(sure) < len(late):
            self._undecided(since, now)
        if stalls:
            log.froze(stalls[: max(MOST_LINES, tally.keep)], len(stalls), None)

    def _undecided(self, since: int, until: int) -> None:
        """Count a time as not watched. Threads waited in this time, but no trace shows how long each wait was.
        ``since``, ``until``: beginning and end of this time in ns."""
        ns = max(until - since, 0)
        self._log.tally.watched_ns = max(self._log.tally.watched_ns - ns, 0)
        self._log.not_watched(since, {UNDECIDED: ns})

    def _start(self) -> None:
        if self._tracer is not None and self._info is not None:
            self._tracer.evidence_start()
            self._recording = True
            self._traced_since_ns = time.monotonic_ns()

    def _read_sums(self) -> Iterator[tuple[tuple[int, int], Waited]]:
        """Yield (thread id, start time) and the waiting sums for each watched thread. The start time distinguishes
        threads that use the same id one after the other."""
        for pid in self._found.pids:
            for task in threads_of(self._root, pid):
                if self._found.only and task.tid not in self._found.only:
                    continue
                words = (self._root.text(f"/proc/{pid}/task/{task.tid}/schedstat") or "").split()
                if len(words) == 3 and all(map(is_count, words)):
                    yield (task.tid, task.start_ticks), Waited(int(words[1]), int(words[2]))

    def _itself(self) -> dict[int, str]:
        return itself(self._root, self._tracer.pid if self._tracer is not None else None)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except WorkshopError as error:
            self._recording = False
            self._log.trace_ended(error.message)


def _difference(before: Waited | None, now: Waited) -> Waited:
    """Return the growth of a thread's sums. The sums of a new thread began at 0."""
    before = before or Waited(0, 0)
    return Waited(max(now.ns - before.ns, 0), max(now.times - before.times, 0))


def _parts(stalls: Sequence[HoldUp]) -> list[TimeTaken]:
    """Return the count, total time and longest time of each cause of the hold-ups."""
    count: Counter[tuple[str, str]] = Counter()
    total: Counter[tuple[str, str]] = Counter()
    worst: dict[tuple[str, str], int] = {}
    for stall in stalls:
        for part in stall.parts:
            key = part.kind, part.name
            count[key] += 1
            total[key] += part.ns
            worst[key] = max(worst.get(key, 0), part.ns)
    return [TimeTaken(*key, count[key], total[key], worst[key]) for key in count]
