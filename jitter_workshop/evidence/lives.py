"""Follow a program's threads through a trace: the begin and end of each thread, its system calls, and its wakers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, TypeVar

from jitter_workshop.model.program import FUTEX
from jitter_workshop.model.trace import EventFields

MOST_LIVES = 20_000
"""The largest number of threads that are followed. A program that starts threads without end is not followed
further."""

T = TypeVar("T")

WAKING, SWITCHED_IN, RUNNING, FORKED = "waking", "switched in", "running", "forked"


class Life(NamedTuple):
    """Hold the time for which one thread is observed, from ``start`` to before ``end`` (ticks). ``forked``: True if
    another thread started it in this time."""

    tid: int
    start: int
    end: int
    forked: bool


class Woke(NamedTuple):
    """Hold how a thread was woken.

    - ``cpu``: the CPU from which the thread was woken.
    - ``by``: the thread that ran on this CPU at that time.
    - ``flags``: not 0 if an interrupt or a softirq on this CPU woke the thread.
    """

    by: int
    cpu: int
    flags: int


@dataclass(slots=True)
class _Timed(Generic[T]):
    """Hold values in order of time, for bisection."""

    at: list[int] = field(default_factory=list)
    what: list[T] = field(default_factory=list)

    def add(self, ts: int, what: T) -> None:
        self.at.append(ts)
        self.what.append(what)

    def until(self, moment: int) -> T | None:
        """Return the last value that came at ``moment`` or before it. Return None if there is none."""
        place = bisect_right(self.at, moment) - 1
        return self.what[place] if place >= 0 else None


@dataclass(slots=True)
class Story:
    """Hold what a trace shows about threads. ``lives``: when each thread of the program was observed, in order of time.
    ``names``, ``priorities``: the last name and priority of each thread; a priority below 100 is real-time. ``first``:
    the first event of each followed thread, as (kind, time, CPU). ``cut``: True if there were too many threads to
    follow all."""

    lives: list[Life] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    priorities: dict[int, int] = field(default_factory=dict)
    first: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    cut: bool = False
    _left: defaultdict[int, _Timed[str]] = field(default_factory=lambda: defaultdict(_Timed))
    _calls: defaultdict[int, _Timed[str]] = field(default_factory=lambda: defaultdict(_Timed))
    _woken: defaultdict[int, _Timed[Woke]] = field(default_factory=lambda: defaultdict(_Timed))
    _ended: dict[int, str] = field(default_factory=dict)

    def letter(self, tid: int, moment: int) -> str:
        """Return the kernel's letter of a thread's last sleep, such as S or D. Return "" if the letter is unknown. This
        is the last sleep that began at ``moment`` or before.
        """
        left = self._left.get(tid)
        return (left.until(moment) if left is not None else None) or ""

    def call(self, tid: int, moment: int) -> str | None:
        """Return the name of the system call in which a thread was at ``moment``. Return "" if it was in no traced
        call, and None if the trace does not show this."""
        calls = self._calls.get(tid)
        if calls is None:
            return None
        call = calls.until(moment)
        # If the thread entered the call before the trace began, the end of the call names it.
        return call if call is not None else self._ended.get(tid)

    def woke(self, tid: int, low: int, high: int) -> tuple[int, Woke] | None:
        """Return the last waking of the thread ``tid`` at or after ``low`` and before ``high``, as (time, waker).
        Return None if the thread was not woken."""
        wakings = self._woken.get(tid)
        if wakings is None:
            return None
        place = bisect_left(wakings.at, high) - 1
        return (wakings.at[place], wakings.what[place]) if place >= 0 and wakings.at[place] >= low else None


def follow(
    events: Iterable[EventFields],
    tids: Iterable[int],
    start: int,
    end: int,
    *,
    children: bool = True,
    command: int | None = None,
    in_futex: Iterable[int] = (),
) -> Story:
    """Return what a trace shows about the threads ``tids``, from ``start`` to ``end``.

    ``events``: the events of all CPUs, in order of time. ``tids``: the ids of threads that exist at ``start``.
    ``children``: True to follow also threads and processes that a followed thread starts. ``command``: the id of a
    thread that will execute the user's command. The time of this thread counts only from ``exec`` on. ``in_futex``: the
    threads inside the system call ``futex`` at ``start``.

    The trace shows the end of every traced system call except ``futex``, which is too frequent. A thread is assumed to
    have left ``futex`` when it runs again after a sleep. A page fault in user code also shows that the thread has left
    ``futex``.
    """
    return _Follower(tids, start, end, children, command, in_futex).run(events)


class _Follower:
    def __init__(
        self, tids: Iterable[int], start: int, end: int, children: bool, command: int | None, in_futex: Iterable[int]
    ) -> None:
        self._command, self._in_futex = command, in_futex
        self._start, self._end, self._children = start, max(end, start), children
        self._story = Story()
        self._alive: dict[int, tuple[int, bool]] = {}
        self._ending: set[int] = set()
        self._known: set[int] = set()
        for tid in tids:
            self._begin(tid, start, forked=False)
        if command is not None:
            self._alive.pop(command, None)

    def run(self, events: Iterable[EventFields]) -> Story:
        story, known = self._story, self._known
        priorities = story.priorities
        names, first, left, calls, woken = story.names, story.first, story._left, story._calls, story._woken
        called = dict.fromkeys(self._in_futex, FUTEX)
        slept = set(called)
        for tid in called:
            calls[tid].add(0, FUTEX)
        for ts, cpu, kind, pid, a, b, c, name, other, flags in events:
            if pid in known and pid not in first:
                first[pid] = (RUNNING, ts, cpu)
            if kind == "switch":
                names[a] = name
                priorities[a] = c >> 8 & 0xFF
                if c >> 16:
                    priorities[pid] = c >> 16 & 0xFF
                if other:
                    names[pid] = other
                if a in known:
                    if a not in first:
                        first[a] = (SWITCHED_IN, ts, cpu)
                    if a in slept:
                        slept.discard(a)
                        if called.get(a) == FUTEX:
                            called[a] = ""
                            calls[a].add(ts, "")
                if pid in known and not b:
                    left[pid].add(ts, chr(c & 0xFF) if 32 < c & 0xFF < 127 else "")
                    if called.get(pid) == FUTEX:
                        slept.add(pid)
                    if pid in self._ending and pid in self._alive:
                        self._finish(pid, ts)
            elif kind == "waking":
                woken[a].add(ts, Woke(pid, cpu, flags))
                if a in known and a not in first:
                    first[a] = (WAKING, ts, b)
            elif kind == "fork":
                names[a] = name
                if self._children and (pid in self._alive) and ts < self._end:
                    self._forked(a, ts, cpu)
            elif pid in known:
                if kind == "call":
                    called[pid] = name
                    calls[pid].add(ts, name)
                elif kind == "fault" and a == 1 and called.get(pid) == FUTEX:
                    called[pid] = ""
                    calls[pid].add(ts, "")  # a fault of the program's own code
                elif kind == "call_end":
                    if pid not in calls:
                        story._ended[pid] = name
                    called[pid] = ""
                    calls[pid].add(ts, "")
                elif kind == "exec" and pid == self._command:
                    self._command = None
                    self._begin(pid, max(ts, self._start), forked=False)
                elif kind == "exit":
                    self._ending.add(pid)
        for tid in list(self._alive):
            self._finish(tid, self._end)
        story.lives.sort()
        story.lives.sort(key=lambda life: life.start)
        return story

    def _begin(self, tid: int, start: int, forked: bool) -> None:
        if len(self._story.lives) + len(self._alive) >= MOST_LIVES:
            self._story.cut = True
            return
        self._alive[tid] = (start, forked)
        self._known.add(tid)

    def _forked(self, tid: int, ts: int, cpu: int) -> None:
        """Begin to follow a thread that a followed thread started. The id ``tid`` may have belonged to an earlier
        thread that has ended."""
        if tid in self._alive:
            if ts <= self._start or tid not in self._story.first:
                return  # it was started while the list of threads was read, which has it already
            self._finish(tid, ts)
        self._begin(tid, max(ts, self._start), forked=ts > self._start)
        if tid in self._alive:
            self._story.first[tid] = (FORKED, ts, cpu)

    def _finish(self, tid: int, ts: int) -> None:
        start, forked = self._alive.pop(tid)
        self._ending.discard(tid)
        end = min(ts, self._end)
        if end > start:
            self._story.lives.append(Life(tid, start, end, forked))
