"""Add up the time of a program's threads, state by state and cause by cause, from the kernel's trace. For any trace,
the parts of a thread's time sum exactly to its observed time."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import NamedTuple

from jitter_workshop.evidence.attribution import OWN, Piece, by_state
from jitter_workshop.evidence.cpu_occupancy import add_frequencies
from jitter_workshop.evidence.lives import FORKED, RUNNING, SWITCHED_IN, WAKING, Life, Story, follow
from jitter_workshop.evidence.quota import Stops
from jitter_workshop.evidence.scene import HELD_UP, INTERRUPTED, RAN, UNSURE, WAITING, ProgramScene
from jitter_workshop.evidence.timeline import build_timeline
from jitter_workshop.evidence.tracks import (
    ASLEEP,
    MOST_UNREPORTED,
    READY,
    RUNS,
    TASK,
    UNKNOWN,
    UNSEEN,
    WOKEN,
    Stretch,
    ThreadTrack,
    Timeline,
)
from jitter_workshop.model import evidence as words
from jitter_workshop.model.evidence import FrequencySeen, Part
from jitter_workshop.model.program import (
    CALLS_THAT_WAIT,
    NOT_WOKEN,
    REAL_TIME_THROTTLED,
    FaultTimes,
    HoldUp,
    ThreadTimes,
    Times,
    TimeTaken,
    Wait,
    Waker,
)
from jitter_workshop.model.trace import EventFields

THRESHOLD_NS = 1_000
"""The least length of a hold-up that counts as a stall."""
TOP = 10
MOST_THREADS = 1_000
"""The largest number of threads that the report lists. The times of further threads count only in the sums."""
MOST_WAITS = 1_000
ORDINARY = 100
"""The least priority of an ordinary task; real-time threads are below (``MAX_RT_PRIO``)."""
OUTRANKED_NS = 1_000_000
"""The longest time for which an ordinary task keeps a real-time thread's CPU before the scheduler takes it away."""
FAULT_NS = 100_000
"""The longest time from a page fault to the sleep in which the thread waits for the page. A later sleep has another
reason."""
AT_ONCE_NS = 20_000
"""The longest time between two page faults that still counts as the length of the first fault."""
LEAST_FAULTS = 20
MOST_FAULTS = 200_000
"""The least and the largest number of pairs of page faults from which the length of a fault is computed."""
DEPTH = 3
"""The largest number of wakers in the chain that is listed for one wait."""
LEAVES_IDLE_NS = 1_000_000
"""The longest time that a woken thread's free CPU needs to leave idle. Where the program's group is throttled, a longer
wait on a free CPU counts as throttled."""

_KIND_OF_CALL = {call: kind for kind, calls in CALLS_THAT_WAIT.items() for call in calls}
_STOPPED, _DEEP = ("T", "t"), "D"
"""The kernel's letters for a stopped thread, and for a thread whose sleep no signal ends."""


@dataclass(frozen=True, slots=True)
class ProgramTimes:
    """Hold a trace's facts about a program. ``threads``: the listed threads. The thread with the largest sum of run
    time and time held up comes first.
    """

    threads: tuple[ThreadTimes, ...]
    left_out: int
    all_threads: Times
    causes: tuple[TimeTaken, ...]
    stalls: int
    worst: tuple[HoldUp, ...]
    frequencies: tuple[FrequencySeen, ...]
    unbalanced: int
    unreported: dict[str, int]
    cut: bool
    faults: FaultTimes
    own_events: int
    tool_ran_ns: int


@dataclass(frozen=True, slots=True)
class StealTimes:
    """Hold the time that the hypervisor took from each CPU: CPU → ns. The times cover ``window_ns``, which is longer
    than the observation. Each time is a multiple of ``tick_ns``."""

    per_cpu: Mapping[int, int]
    tick_ns: int
    window_ns: int

    def of(self, ran: Mapping[int, int]) -> tuple[int, int]:
        """Return the least and the most time in ns that the hypervisor took from a thread.

        The trace does not show at which moments a CPU lost time. The least time assumes that each CPU lost as much as
        possible while not running the thread. An idle CPU can lose time, too: a CPU that wakes may have to wait for the
        hypervisor.

        ``ran``: CPU → time in ns for which the thread ran there.
        """
        least = most = 0
        for cpu, ns in ran.items():
            steal = self.per_cpu.get(cpu, 0)
            if steal:
                least += max(0, steal - self.tick_ns - max(0, self.window_ns - ns))
                most += min(steal + self.tick_ns, ns)
        return min(least, most), most


def explain_program(
    events: Iterable[EventFields],
    cpus: Iterable[int],
    tids: Mapping[int, str],
    start: int,
    end: int,
    *,
    lost: Mapping[int, int] | None = None,
    children: bool = True,
    itself: Mapping[int, str] | None = None,
    quota: tuple[int, int] | None = None,
    calls: bool = True,
    command: int | None = None,
    in_futex: Iterable[int] = (),
    steal: StealTimes | None = None,
    scene: ProgramScene | None = None,
    top: int = TOP,
) -> ProgramTimes:
    """Return where the time of a program went, from ``start`` to before ``end``. Times are ns of the trace's clock
    ``mono``.

    ``events``: the events of all CPUs, in any order. ``tids``: id of each thread at ``start`` → the kernel's letter for
    the thread's state. ``lost``: see ``timeline.build_timeline``. ``children``, ``command``, ``in_futex``: see
    ``lives.follow``. ``itself``: pid of each process of jitter-workshop → the name to show for the process. ``quota``:
    quota and period in ns if the program's control groups used up their CPU quota, else None. ``calls``: True if the
    trace has system calls. ``steal``: None without a steal clock. ``scene``: receives the threads' time as tracks.
    ``top``: the number of longest hold-ups to list.
    """
    found = _named(sorted(events, key=lambda event: event[0]), itself or {})
    story = follow(found, tids, start, end, children=children, command=command, in_futex=in_futex)
    every = {str(tid): tid for tid in dict.fromkeys(life.tid for life in story.lives)}
    timeline = build_timeline(found, cpus, every, start, end, lost=lost)
    lives = []
    for life in story.lives:
        began = tids.get(life.tid, "") if not life.forked else ""
        lives.append((life, began, _with_beginning(timeline.threads[str(life.tid)], story, life, began, timeline)))
    once = {life.tid: track for life, _, track in lives}
    stops = Stops(found, once.values(), quota) if quota is not None else None
    tally = _Tally(start, top)
    if scene is not None:
        scene.add_cpus(timeline, int)
        for life in story.lives:
            scene.begin(life.tid, life.start, life.end, _name(story, life.tid))
    for life, began, track in lives:
        tally.add(_Thread(life, track, story, timeline, stops, calls, began, steal, scene, top))
    own = {life.tid for life in story.lives}
    tally.own_events = sum(
        event[3] in own or (event[2] == "switch" and event[4] in own) for event in found if start <= event[0] < end
    )
    tally.tool_ran = _ran_of(timeline, itself or {})
    told = tally.result(timeline, story.cut)
    if scene is not None:
        for rank, one in enumerate(told.worst, 1):
            scene.mark_worst(rank, start + one.at_ns, one.duration_ns, one.thread, one.cpu, one.parts)
    return told


def _name(story: Story, tid: int) -> str:
    return story.names.get(tid) or f"thread {tid}"


def _ran_of(timeline: Timeline, itself: Mapping[int, str]) -> int:
    """Return the time for which the workshop's own processes, the keys of ``itself``, had a CPU."""
    return sum(
        segment.end - segment.start
        for track in timeline.cpus.values()
        for segment in track.segments
        if segment.pid in itself and segment.kind != UNKNOWN
    )


def _named(events: list[EventFields], itself: Mapping[int, str]) -> list[EventFields]:
    """Return the events with another name for some processes. ``itself``: process id → the new name."""
    if not itself:
        return events
    return [
        (*event[:7], itself.get(event[4], event[7]), itself.get(event[3], event[8]), event[9])
        if event[2] == "switch" and (event[3] in itself or event[4] in itself)
        else event
        for event in events
    ]


def _with_beginning(track: ThreadTrack, story: Story, life: Life, letter: str, timeline: Timeline) -> ThreadTrack:
    """Return a thread's track with the state that the thread had before its first event.

    The first event shows this state. For example, if the first event is a wake-up, the thread slept before. A thread
    without an event had one state during the whole trace, and ``letter`` shows this state. If events were lost, return
    the track unchanged.
    """
    if not track.stretches or track.stretches[0].state != UNSEEN or timeline.lost:
        return track
    unseen, rest = track.stretches[0], track.stretches[1:]
    begin, until = unseen.start, unseen.end
    kind, at, there = story.first.get(life.tid, ("", until, -1))
    cpu = rest[0].cpu if rest else there
    if not kind:
        state = ASLEEP if letter and letter != "R" else UNSEEN
        before = [unseen._replace(state=state)]
    elif kind == WAKING and begin < at <= until:
        before = [Stretch(begin, at, ASLEEP, cpu, ""), Stretch(at, until, READY, cpu, WOKEN)]
    elif kind == RUNNING:
        before = [unseen._replace(state=RUNS, cpu=cpu)]
    elif kind == SWITCHED_IN:
        before = [unseen._replace(state=READY, cpu=cpu)]
    else:
        # A new thread waits for its first turn from the moment at which it was started.
        before = [unseen._replace(state=READY, cpu=cpu, detail=WOKEN)] if kind == FORKED else [unseen]
    kept = [stretch for stretch in before if stretch.end > stretch.start]
    return ThreadTrack(track.name, track.tid, [*kept, *rest], track.faults, track.kinds)


@dataclass(slots=True)
class _Taken:
    count: int = 0
    total: int = 0
    worst: int = 0

    def add(self, ns: int) -> None:
        self.join(1, ns, ns)

    def join(self, count: int, total: int, worst: int) -> None:
        self.count += count
        self.total += total
        self.worst = max(self.worst, worst)


_Key = tuple[str, str]
_WaitKey = tuple[str, str, tuple[Waker, ...]]


class _Longest(NamedTuple):
    """Hold one of a thread's longest hold-ups: its length, its negated start, and its causes.

    A heap orders these objects by length. If two hold-ups have equal lengths, the earlier one is greater, because its
    negated start is greater.
    """

    ns: int
    earlier: int
    sums: dict[_Key, int]


class _Thread:
    """Add up the times of one thread while it is observed. ``began``: the kernel's letter for its state at the
    beginning."""

    def __init__(
        self,
        life: Life,
        track: ThreadTrack,
        story: Story,
        timeline: Timeline,
        stops: Stops | None,
        calls: bool,
        began: str,
        steal: StealTimes | None,
        scene: ProgramScene | None = None,
        top: int = TOP,
    ) -> None:
        self._top = top
        self._scene = scene.thread(life.tid, life.start) if scene is not None else None
        self.life, self._track, self._story, self._timeline = life, track, story, timeline
        self._stops, self._calls, self._began, self._steal = stops, calls, began, steal
        self.ran = self.waited = self.slept = self.blocked = self.unknown = self.interrupted = self.preempted = 0
        self.causes: defaultdict[_Key, _Taken] = defaultdict(_Taken)
        self.unknown_in: defaultdict[_Key, _Taken] = defaultdict(_Taken)
        self.slept_in: defaultdict[_WaitKey, _Taken] = defaultdict(_Taken)
        self.blocked_on: defaultdict[_WaitKey, _Taken] = defaultdict(_Taken)
        self._longest: list[_Longest] = []
        self.stalls = 0
        self._ran_from = life.start
        self._sleep: tuple[int, int] | None = None
        self._held: list[tuple[str, Piece]] = []
        self._comes_on = [stretch.start for stretch in track.stretches if stretch.state == RUNS]
        self._run()

    @property
    def name(self) -> str:
        return _name(self._story, self.life.tid)

    @property
    def faults(self) -> int:
        times = self._track.faults
        return bisect_right(times, self.life.end - 1) - bisect_right(times, self.life.start - 1)

    def faults_at_once(self) -> Iterator[int]:
        """Yield estimates of the length of one page fault, in ns.

        The trace does not show when a fault ends. So an estimate is the time from one page fault to the next. This time
        is left out in three cases:

        - It is above AT_ONCE_NS.
        - The thread lost its CPU in this time.
        - The second fault does not come from the program's own code.
        """
        times, kinds, starts = self._track.faults, self._track.kinds, self._track.starts
        for place in range(bisect_right(times, self.life.start - 1), bisect_right(times, self.life.end - 1) - 1):
            gap = times[place + 1] - times[place]
            same = bisect_right(starts, times[place]) == bisect_right(starts, times[place + 1])
            if gap <= AT_ONCE_NS and kinds[place + 1] == "user" and same:
                yield gap

    def _steal_from(self) -> tuple[int, int] | None:
        if self._steal is None:
            return None
        ran: Counter[int] = Counter()
        for stretch in self._track.between(self.life.start, self.life.end):
            if stretch.state == RUNS:
                ran[stretch.cpu] += min(stretch.end, self.life.end) - max(stretch.start, self.life.start)
        least, most = self._steal.of(ran)
        return min(least, self.ran), min(most, self.ran)

    def _run(self) -> None:
        before = UNSEEN
        for state, piece in by_state(self._track, self._timeline, self.life.start, self.life.end):
            self.preempted += state == READY and before == RUNS
            if state == ASLEEP:
                self._end_holdup()
                self._sleep = (self._sleep[0] if self._sleep is not None else piece.start, piece.end)
            else:
                self._end_sleep()
                if state == RUNS and before != RUNS:
                    self._ran_from = piece.start
                self._awake(state, piece)
            before = state
        self._end_sleep()
        self._end_holdup()

    def _awake(self, state: str, piece: Piece) -> None:
        ns = piece.ticks
        if piece.kind == OWN:
            self._end_holdup()
            self.ran += ns
            if self._scene is not None:
                self._scene.add(RAN, piece.start, piece.end)
        elif piece.kind == "no_event":
            self._end_holdup()
            self.unknown += ns
            self.unknown_in[piece.kind, piece.name].add(ns)
            if self._scene is not None:
                self._scene.add(UNSURE, piece.start, piece.end, piece.kind, piece.name)
        else:
            if state == READY and piece.kind == TASK and ns > OUTRANKED_NS and self._outranks(piece):
                piece = piece._replace(name=REAL_TIME_THROTTLED)
            self.waited += ns
            self.interrupted += ns if state == RUNS else 0
            self._held.append((state, piece))

    def _outranks(self, piece: Piece) -> bool:
        """Return True if this real-time thread waited for an ordinary task or an idle CPU. Return False if this thread
        is not real-time. ``piece``: a part of the wait."""
        mine = self._story.priorities.get(self.life.tid, ORDINARY)
        there = self._track.between(piece.start, piece.start + 1)
        track = self._timeline.cpus.get(there[0].cpu) if there and mine < ORDINARY else None
        for segment in track.between(piece.start, piece.start + 1) if track is not None else ():
            return not segment.pid or self._story.priorities.get(segment.pid, 0) >= ORDINARY
        return False

    def _end_holdup(self) -> None:
        """Add the hold-up that has ended to the sums. A hold-up is time in which the thread could have run and did
        not."""
        waits, self._held = self._held, []
        if not waits:
            return
        held = waits if self._stops is None else list(_with_stops(waits, self._stops, self._comes_on))
        sums: Counter[_Key] = Counter()
        for _, piece in held:
            sums[piece.kind, piece.name] += piece.ticks
        for key, ns in sums.items():
            self.causes[key].add(ns)
        start, end = held[0][1].start, held[-1][1].end
        if self._scene is not None:
            if end - start >= THRESHOLD_NS:
                self._scene.add(HELD_UP, start, end)
            for state, piece in held:
                self._scene.add(INTERRUPTED if state == RUNS else WAITING, piece.start, piece.end, *piece[:2])
        if end - start < THRESHOLD_NS:
            return
        self.stalls += 1
        one = _Longest(end - start, -start, sums)
        if len(self._longest) < self._top:
            heapq.heappush(self._longest, one)
        elif self._longest and one.ns > self._longest[0].ns:
            heapq.heapreplace(self._longest, one)

    def _end_sleep(self) -> None:
        """Add the sleep that has ended to the sums."""
        if self._sleep is None:
            return
        (start, end), self._sleep = self._sleep, None
        kind, name = self._asleep_in(start, end)
        wakers = self._wakers(start, end) if end < self.life.end else ()
        if self._scene is not None:
            self._scene.slept(start, end, kind, name, wakers)
            woke = self._story.woke(self.life.tid, start, end + 1) if wakers else None
            if woke is not None:
                at, by = woke
                self._scene.woken(at, by.by if wakers[0].kind == TASK else -1, by.cpu, wakers[0].name)
        sleeps = self.slept_in if kind == "sleep" else self.blocked_on
        sleeps[kind, name, wakers].add(end - start)
        if kind == "sleep":
            self.slept += end - start
        else:
            self.blocked += end - start

    def _asleep_in(self, start: int, end: int) -> tuple[str, str]:
        """Return the cause of a thread's sleep, as kind and name of a ``Wait``."""
        tid, since_before = self.life.tid, start <= self.life.start
        letter = self._story.letter(tid, start) or (self._began if since_before else "")
        if letter in _STOPPED:
            return "stopped", ""
        call = self._story.call(tid, start)
        if call:
            return _KIND_OF_CALL[call], call
        if letter == _DEEP:
            fault = self._track.fault(max(self._ran_from, start - FAULT_NS), start)
            return ("page_fault", fault[1]) if fault is not None else ("kernel", "")
        if since_before and end >= self.life.end:
            return "sleep", NOT_WOKEN
        return ("kernel", "") if self._calls else ("sleep", "")

    def _wakers(self, start: int, end: int) -> tuple[Waker, ...]:
        """Return a chain of at most DEPTH wakers. The first waker woke the thread at the end of its sleep. The second
        waker woke the first waker during this sleep, and so on.
        """
        found: list[Waker] = []
        tid, high = self.life.tid, end + 1
        while len(found) < DEPTH:
            woke = self._story.woke(tid, start, high)
            if woke is None:
                break
            at, by = woke
            waker = self._waker(at, by.by, by.cpu, bool(by.flags))
            found.append(waker)
            if waker.kind != TASK or not by.by:
                break
            tid, high = by.by, at
        return tuple(found)

    def _waker(self, at: int, pid: int, cpu: int, interrupt: bool) -> Waker:
        track = self._timeline.cpus.get(cpu)
        if interrupt and track is not None:
            for segment in track.between(at, at + 1):
                if segment.kind not in (TASK, UNKNOWN):
                    return Waker(segment.kind, segment.name)
        if not pid:
            return Waker(TASK, words.IDLE)
        return Waker(TASK, _name(self._story, pid))

    def told(self, start: int) -> ThreadTimes:
        life = self.life
        return ThreadTimes(
            tid=life.tid,
            name=self.name,
            began_ns=life.start - start,
            observed_ns=life.end - life.start,
            ran_ns=self.ran,
            waited_ns=self.waited,
            slept_ns=self.slept,
            blocked_ns=self.blocked,
            unknown_ns=self.unknown,
            interrupted_ns=self.interrupted,
            preempted=self.preempted,
            page_faults=self.faults,
            causes=_taken(self.causes),
            blocked_on=_waits(self.blocked_on),
            slept_in=_waits(self.slept_in),
            unknown_in=_taken(self.unknown_in),
            slept_times=sum(one.count for sums in (self.slept_in, self.blocked_on) for one in sums.values()),
            stolen_ns=self._steal_from(),
        )

    def holdups(self, start: int) -> Iterator[HoldUp]:
        """Yield the thread's longest hold-ups, not sorted. ``start``: the time at which the observation began."""
        for ns, earlier, sums in self._longest:
            there = self._track.between(-earlier, 1 - earlier)
            cpu = there[0].cpu if there and there[0].cpu >= 0 else None
            parts = sorted((Part(*key, took) for key, took in sums.items()), key=lambda p: (-p.ns, p.kind, p.name))
            yield HoldUp(-earlier - start, ns, cpu, self.name, self.life.tid, tuple(parts))


def _with_stops(waits: list[tuple[str, Piece]], stops: Stops, comes_on: list[int]) -> Iterator[tuple[str, Piece]]:
    """Yield the pieces of a hold-up, and name time without CPU quota ``throttled``.

    In this time the thread's control group was stopped, because its quota was used up. ``comes_on``: the times at which
    the thread began to run on a CPU. A wait for a CPU ends at the first of these times after the wait began. The wait
    may end after the last piece of ``waits``.
    """
    for on_cpu, group in groupby(waits, key=lambda wait: wait[0] == RUNS):
        parts = list(group)
        pieces = [piece for _, piece in parts]
        place = bisect_right(comes_on, pieces[0].start)
        end = comes_on[place] if place < len(comes_on) else pieces[-1].end
        until = None if on_cpu else stops.until(pieces[0].start, end)
        for state, piece in parts:
            at = piece.start if until is None else min(max(until, piece.start), piece.end)
            if at > piece.start:
                yield state, Piece(TASK, words.THROTTLED, piece.start, at)
            if at < piece.end:
                free = not on_cpu and piece.kind == TASK and piece.name == words.IDLE
                kept = free and piece.end - at > LEAVES_IDLE_NS
                yield state, piece._replace(start=at, name=words.THROTTLED if kept else piece.name)


class _Tally:
    """Add up the times of a program's threads, and keep the threads that ran or were held up longest."""

    def __init__(self, start: int, top: int) -> None:
        self._start, self._top = start, top
        self._listed: list[ThreadTimes] = []
        self._count = 0
        self._sums: Counter[str] = Counter()
        self._causes: defaultdict[_Key, _Taken] = defaultdict(_Taken)
        self._worst: list[HoldUp] = []
        self._stalls = 0
        self._faults = self._faults_waited = self._faults_waited_ns = 0
        self._at_once: list[int] = []
        self.own_events = self.tool_ran = 0

    def add(self, thread: _Thread) -> None:
        told = thread.told(self._start)
        self._count += 1
        for name in _SUMMED:
            self._sums[name] += getattr(told, name)
        for key, taken in thread.causes.items():
            self._causes[key].join(taken.count, taken.total, taken.worst)
        self._stalls += thread.stalls
        self._faults += thread.faults
        for (kind, _, _), taken in thread.blocked_on.items():
            if kind == "page_fault":
                self._faults_waited += taken.count
                self._faults_waited_ns += taken.total
        self._at_once += islice(thread.faults_at_once(), MOST_FAULTS - len(self._at_once))
        self._worst += thread.holdups(self._start)
        self._listed.append(told)
        if len(self._listed) > 2 * MOST_THREADS:
            self._shorten()

    def _shorten(self) -> None:
        self._listed = heapq.nsmallest(MOST_THREADS, self._listed, key=_busiest_first)
        self._worst = heapq.nsmallest(self._top, self._worst, key=lambda one: (-one.duration_ns, one.at_ns, one.tid))

    def result(self, timeline: Timeline, cut: bool) -> ProgramTimes:
        self._shorten()
        seen: dict[int, FrequencySeen] = {}
        add_frequencies(seen, timeline)
        return ProgramTimes(
            threads=tuple(self._listed),
            left_out=self._count - len(self._listed),
            all_threads=Times(**{name: self._sums[name] for name in _SUMMED}),
            causes=_taken(self._causes),
            stalls=self._stalls,
            worst=tuple(self._worst),
            frequencies=tuple(seen[cpu] for cpu in sorted(seen)),
            unbalanced=timeline.unbalanced,
            unreported=dict(timeline.unreported.most_common(MOST_UNREPORTED)),
            cut=cut,
            faults=self._fault_times(),
            own_events=self.own_events,
            tool_ran_ns=self.tool_ran,
        )

    def _fault_times(self) -> FaultTimes:
        sampled, typical, ran = len(self._at_once), None, None
        if sampled >= LEAST_FAULTS:
            typical = sorted(self._at_once)[sampled // 2]
            # One that is interrupted looks long, but all of them took no longer than the threads ran.
            ran = min(typical * max(self._faults - self._faults_waited, 0), self._sums["ran_ns"])
        return FaultTimes(self._faults, self._faults_waited, self._faults_waited_ns, sampled, typical, ran)


_SUMMED = (
    *("observed_ns", "ran_ns", "waited_ns", "slept_ns", "blocked_ns", "unknown_ns", "interrupted_ns"),
    "preempted",
)


def _busiest_first(one: ThreadTimes) -> tuple[int, int, int, int]:
    return -((one.ran_ns or 0) + (one.waited_ns or 0)), -(one.blocked_ns or 0), one.began_ns, one.tid


def _taken(sums: Mapping[_Key, _Taken]) -> tuple[TimeTaken, ...]:
    found = (TimeTaken(*key, one.count, one.total, one.worst) for key, one in sums.items())
    return tuple(sorted(found, key=lambda one: (-one.total_ns, one.kind, one.name)))


def _waits(sums: Mapping[_WaitKey, _Taken]) -> tuple[Wait, ...]:
    """Return the waits of a program, the longest total time first. After the first MOST_WAITS, waits of the same kind
    and name are added up, without their wakers."""
    found = sorted(
        (Wait(*key, one.count, one.total, one.worst) for key, one in sums.items()),
        key=lambda one: (-one.total_ns, one.kind, one.name, [(w.kind, w.name) for w in one.wakers]),
    )
    rest: defaultdict[_WaitKey, _Taken] = defaultdict(_Taken)
    for one in found[MOST_WAITS:]:
        rest[one.kind, one.name, ()].join(one.count, one.total_ns, one.worst_ns)
    return (*found[:MOST_WAITS], *(Wait(*key, one.count, one.total, one.worst) for key, one in rest.items()))
