"""Define the shapes of a timeline: the activity of each CPU and the state of each measured thread. All times are
ticks."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from jitter_workshop.model.evidence import Rate

TASK, IRQ, SOFTIRQ, TIMER, VECTOR, WORKQUEUE = "task", "irq", "softirq", "timer", "vector", "workqueue"
UNKNOWN = "unknown"
"""The kind of a segment with unknown activity; its name is the reason (``model.evidence.LOST`` or ``MISSING``)."""

RUNS, READY, ASLEEP, MOVING, ELSEWHERE, UNSEEN = "runs", "ready", "asleep", "moving", "elsewhere", "unseen"
"""States of a measured thread. RUNS: it has its CPU (an interrupt may run there). READY: it could run, but another task
does. ASLEEP: it waits for something. MOVING: it was taken off one CPU and has not run on the next. ELSEWHERE: it is on
a CPU that is not traced. UNSEEN: the trace has not shown it yet."""

WOKEN = "woken"


class Segment(NamedTuple):
    """Hold [start, end) of one CPU: the innermost activity, in the context of task ``pid``. ``serial``: the same number
    for all pieces of one stay (of a task) or one execution (of a handler), interrupted or not."""

    start: int
    end: int
    kind: str
    name: str
    pid: int
    serial: int


class Stretch(NamedTuple):
    """Hold [start, end) of one thread in one state. ``cpu``: where it is, waits or goes; -1 where not known.
    ``detail``: the task that moved it, or WOKEN where it is ready because it was woken and has not run since."""

    start: int
    end: int
    state: str
    cpu: int
    detail: str


@dataclass(slots=True)
class CpuTrack:
    """Hold segments in order, touching each other, none overlapping. ``starts`` are their starts, for bisection."""

    segments: list[Segment]
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [segment[0] for segment in self.segments]

    def between(self, start: int, end: int) -> list[Segment]:
        """Return the segments that overlap [start, end), not cut."""
        first = max(bisect_right(self.starts, start) - 1, 0)
        found = self.segments[first : bisect_left(self.starts, end)]
        return found if not found or found[0].end > start else found[1:]

    def cut(self, start: int, end: int) -> list[Segment]:
        """Return the segments that overlap [start, end), cut there."""
        found = self.between(start, end)
        if found:
            found[0] = found[0]._replace(start=max(found[0].start, start))
            found[-1] = found[-1]._replace(end=min(found[-1].end, end))
        return found

    def before(self, moment: int) -> Iterator[Segment]:
        """Yield the segments that end at ``moment`` or before it, the last one first."""
        for index in range(bisect_right(self.starts, moment) - 1, -1, -1):
            if self.segments[index].end <= moment:
                yield self.segments[index]


@dataclass(slots=True)
class ThreadTrack:
    """Hold stretches in order, touching each other. ``faults``: times of its page faults. ``kinds``: its mode then
    (``user`` or ``kernel``)."""

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
        """Return the thread's first fault in [start, end) with its mode; None without one."""
        place = bisect_left(self.faults, start)
        if place == len(self.faults) or self.faults[place] >= end:
            return None
        return self.faults[place], self.kinds[place]


class Sent(NamedTuple):
    """Hold an action on another CPU or a measured thread at ``ts``. ``what``: ipi, move or wake (see
    ``model.evidence.RemoteAction``). ``cpu``: the target's. ``by``: the CPU that acted."""

    ts: int
    what: str
    who: str
    of: str
    cpu: int
    by: int


@dataclass(slots=True)
class Timeline:
    """Hold all activity from ``start`` to ``end`` (ticks). ``cpus``: traced ones that had an event, or lost some.
    ``traced``: all traced ones. ``frequencies``: (ts, cpu, kHz). ``stacks``: cpu → [(ts, event, functions)].

    ``unbalanced``: events whose beginning or end is missing, and events that contradict earlier ones. ``lost``: CPU →
    events for which the trace had no room.
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
