"""Define the parts of a timeline: the activity of each CPU and the state of each measured thread. All times are
ticks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jitter_workshop.model.evidence import Rate

MOST_UNREPORTED = 8
"""The most tasks whose unreported switches a report names."""
TASK, IRQ, SOFTIRQ, TIMER, VECTOR, WORKQUEUE = "task", "irq", "softirq", "timer", "vector", "workqueue"
UNKNOWN = "unknown"
"""The kind of a segment with unknown activity; its name is the reason (``model.evidence.LOST`` or ``MISSING``)."""

RUNS, READY, ASLEEP, MOVING, ELSEWHERE, UNSEEN = "runs", "ready", "asleep", "moving", "elsewhere", "unseen"
"""States of a measured thread. RUNS: it has its CPU (an interrupt may run there). READY: it could run, but another task
runs. ASLEEP: it waits for something. MOVING: it has left one CPU and has not run on the next CPU yet. ELSEWHERE: it is
on a CPU that is not traced. UNSEEN: the trace has not shown the thread yet."""

WOKEN = "woken"


class Segment(NamedTuple):
    """Hold what a CPU did from ``start`` to before ``end``. ``kind``, ``name``: the innermost activity, such as an
    interrupt. ``pid``: the task that ran or was interrupted.

    ``serial``: a number for one stay of a task on the CPU, or for one execution of a handler. If the stay or the
    execution is interrupted, all its segments have the same number.
    """

    start: int
    end: int
    kind: str
    name: str
    pid: int
    serial: int


class Stretch(NamedTuple):
    """Hold the state of a thread from ``start`` to before ``end``. ``cpu``: the CPU on which the thread runs or waits,
    or to which it moves; -1 if unknown. ``detail``: for a moved thread, the task that ran when the scheduler moved the
    thread. For a ready thread, ``detail`` is WOKEN if the thread has not run since its wake-up.
    """

    start: int
    end: int
    state: str
    cpu: int
    detail: str


@dataclass(slots=True)
class CpuTrack:
    """Hold the segments of one CPU in order, without gaps and overlaps. ``starts``: their starts, for bisection."""

    segments: list[Segment]
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [segment[0] for segment in self.segments]

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that overlap the time from ``start`` to before ``end``. Segments at the limits are not
        cut."""
        first = max(bisect_right(self.starts, start) - 1, 0)
        found = self.segments[first : bisect_left(self.starts, end)]
        return found if not found or found[0].end > start else found[1:]

    def cut(self, start: int, end: int) -> list[Segment]:
        """Return the segments that overlap the time from ``start`` to before ``end``, cut at these limits."""
        found = self.between(start, end)
        if found:
            found[0] = found[0]._replace(start=max(found[0].start, start))
            found[-1] = found[-1]._replace(end=min(found[-1].end, end))
        return found

    def before(self, moment: int) -> Iterator[Segment]:
        """Yield the segments that end at ``moment`` or earlier, the last one first."""
        for index in range(bisect_right(self.starts, moment) - 1, -1, -1):
            if self.segments[index].end <= moment:
                yield self.segments[index]


@dataclass(slots=True)
class ThreadTrack:
    """Hold the states of one thread as stretches in order of time, without gaps. ``faults``: the times of its page
    faults. ``kinds``: the mode of each page fault (``user`` or ``kernel``)."""

    name: str
    tid: int
    stretches: list[Stretch]
    faults: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [stretch[0] for stretch in self.stretches]

    def between(self, start: int, end: int) -> list[Stretch]:
        first = max(bisect_right(self.starts, start) - 1, 0)
        found = self.stretches[first : bisect_left(self.starts, end)]
        return found if not found or found[0].end > start else found[1:]

    def fault(self, start: int, end: int) -> tuple[int, str] | None:
        """Return the time and mode of the thread's first page fault from ``start`` to before ``end``; None if there is
        no fault."""
        place = bisect_left(self.faults, start)
        if place == len(self.faults) or self.faults[place] >= end:
            return None
        return self.faults[place], self.kinds[place]


class Sent(NamedTuple):
    """Hold one action of a CPU on another CPU or on a measured thread. ``what``: ``ipi``, ``move`` or ``wake`` (see
    ``model.evidence.RemoteAction``). ``who``: the task that ran on the acting CPU. ``of``: the thread, or the function
    of an IPI. ``cpu``: the target CPU. ``by``: the acting CPU."""

    ts: int
    what: str
    who: str
    of: str
    cpu: int
    by: int


@dataclass(slots=True)
class Timeline:
    """Hold all activity from ``start`` to ``end`` (ticks).

    - ``cpus``: the CPUs with events. A traced CPU whose events were all lost is included.
    - ``traced``: all traced CPUs.
    - ``frequencies``: (ts, cpu, kHz).
    - ``stacks``: cpu → [(ts, event, functions)].
    - ``unbalanced``: the number of events that contradict others, or whose beginning or end is missing.
    - ``lost``: CPU → the number of lost events.
    - ``unreported``: task → how often it left its CPU without a switch event in the trace.
    - ``callers``: serial of a segment → the (kind, name) that called it (``evidence.states.CpuState``).
    """

    start: int
    end: int
    rate: Rate
    traced: frozenset[int]
    cpus: dict[int, CpuTrack]
    threads: dict[str, ThreadTrack]
    deeds: list[Sent]
    frequencies: list[tuple[int, int, int]]
    ticks_kept: dict[tuple[int, str], int]
    stacks: dict[int, list[tuple[int, str, str]]]
    lost: dict[int, int]
    events: int = 0
    unbalanced: int = 0
    unreported: Counter[str] = field(default_factory=Counter)
    callers: dict[int, tuple[str, str]] = field(default_factory=dict)
