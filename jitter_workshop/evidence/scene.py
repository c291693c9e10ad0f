"""Arrange a traced time in tracks, for trace viewers. The tracks show the states of threads, the tasks on each CPU,
interrupts, wake-ups, and stalls with their parts. The slices of a cause sum exactly to the time of this cause in the
report."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from jitter_workshop.evidence.attribution import OWN, by_state
from jitter_workshop.evidence.explain import ExplainedBlock
from jitter_workshop.evidence.tracks import ASLEEP, RUNS, TASK, UNKNOWN, CpuTrack, Timeline
from jitter_workshop.model.evidence import Part
from jitter_workshop.model.program import Waker
from jitter_workshop.model.text import PATH, called, clean
from jitter_workshop.stats.scale import nice_ns

WORST, STALLS, THREADS, CPUS = "Worst stalls", "Stalls", "Threads", "CPUs"
GROUPS = (WORST, STALLS, THREADS, CPUS)
"""The groups of tracks, in the order in which they are shown."""

RAN, WAITING, INTERRUPTED, SLEEPING, BLOCKED = "running", "waiting", "interrupted", "sleeping", "blocked"
UNSURE = "unknown"
"""The states of a thread's slices. WAITING: it could run and did not. INTERRUPTED: it had its CPU, and an interrupt or
the like took the time. UNSURE: the trace does not show the state."""
HELD_UP = "held up"
"""The state of the outer slice of one hold-up of a program's thread; the slices of its causes lie inside."""
STALL, PART = "stall", "part"
"""The states of slices of a stall's track. STALL: the slice of the whole stall. PART: a slice of one of its parts,
inside the stall's slice."""
ON_CPU, TAKEN = "on CPU", "interrupt"
"""The states of a task that has a CPU, and of an interrupt or kernel work that takes the task's time."""

_WORDS = {
    WAITING: "waits: ",
    INTERRUPTED: "interrupted: ",
    SLEEPING: "sleeps: ",
    BLOCKED: "blocked: ",
    UNSURE: "unknown: ",
}


class Label(NamedTuple):
    """Hold the texts of a slice or a moment: its name, and further facts as (key, value). All texts are clean."""

    name: str
    more: tuple[tuple[str, str | int], ...] = ()


class TrackSlice(NamedTuple):
    """Hold one slice of a track, from ``start`` to before ``end`` (ns of the scene's clock). ``flow``: the number of
    the wake-up that began this slice, 0 for none."""

    start: int
    end: int
    label: Label
    flow: int = 0


class Moment(NamedTuple):
    """Hold one moment of a track. ``flow``: the number of the wake-up that this moment shows, 0 for none."""

    at: int
    label: Label
    flow: int = 0


@dataclass(slots=True)
class Track:
    """Hold one track of the viewer. Its slices follow each other or are nested. In the list, an outer slice comes
    before the slices inside it. ``order``: the position in the group ``group``.
    """

    group: str
    name: str
    order: int = 0
    slices: list[TrackSlice] = field(default_factory=list)
    moments: list[Moment] = field(default_factory=list)


Key = tuple[str, int | str, int]
"""The key of a track: its group, and two values that identify the track in this group."""

Rename = Callable[[str, str], str]
"""The type of a function that takes a cause's kind and name, and returns the name to show."""


def as_it_is(kind: str, name: str) -> str:
    return name


class Scene:
    """Hold the tracks of a traced time.

    - ``rename``: a function that returns the name to show for a cause.
    - ``mark``: ``emulated`` for times of an emulated machine, ``guest`` for times of a guest, else ""
      (``model.host.mark_of``). The labels of the worst stalls show this word.
    """

    def __init__(self, rename: Rename = as_it_is) -> None:
        self.mark = ""
        self.tracks: dict[Key, Track] = {}
        self._flow = 0
        self._rename = rename
        self.label = cache(self._label)
        """Return the label of a slice for three texts: a state, and the kind and name of its cause. Equal labels are
        the same object."""
        self.deed = cache(self._deed)

    def named(self, kind: str, name: str) -> str:
        """Return the cleaned name to show for a cause. ``kind``, ``name``: the cause, as the trace names it."""
        return clean(self._rename(kind, name))

    def task(self, name: str) -> str:
        return called(self._rename(TASK, name))

    def _label(self, state: str, kind: str = "", name: str = "", *more: tuple[str, str | int]) -> Label:
        shown = self.named(kind, name)
        cause = f"around {shown}" if kind == "around" else shown or kind.replace("_", " ")
        text = f"{_WORDS.get(state, '')}{cause}" if kind else state
        said = (("state", state), *((("kind", kind), ("cause", shown)) if kind else ()), *more)
        return Label(text, said)

    def _deed(self, who: str, verb: str, whom: str, cpu: int) -> Label:
        """Return the label of a moment, such as ``A wakes B``.

        - ``who``: the task that acts (A).
        - ``verb``: ``wakes`` or ``moves``.
        - ``whom``: the cleaned name of the thread that is woken or moved (B).
        - ``cpu``: the CPU to which B goes, -1 to show no CPU.
        """
        shown = self.task(who)
        return Label(f"{shown} {verb} {whom}", (("by", shown), *((("cpu", cpu),) if cpu >= 0 else ())))

    def track(self, group: str, one: int | str, two: int = 0, *, name: str = "", order: int = 0) -> Track:
        """Return a track by its key; make the track at the first call. ``group``, ``one``, ``two``: the key."""
        key = (group, one, two)
        if key not in self.tracks:
            self.tracks[key] = Track(group, clean(name), order)
        return self.tracks[key]

    def cpu(self, cpu: int) -> Track:
        return self.track(CPUS, cpu, name=f"CPU {cpu}", order=2 * cpu)

    def new_flow(self) -> int:
        self._flow += 1
        return self._flow

    def add_cpus(self, timeline: Timeline, ns: Callable[[int], int]) -> None:
        """Add the tasks and interrupts on each CPU of a timeline. ``ns``: converts ticks to ns of the scene."""
        for cpu in sorted(timeline.cpus):
            self.cpu(cpu).slices += self._stays(timeline.cpus[cpu], timeline, ns)
            taken = self._taken(timeline.cpus[cpu], timeline, ns)
            self.track(CPUS, cpu, 1, name=f"CPU {cpu} interrupts", order=2 * cpu + 1).slices += taken

    def _stays(self, track: CpuTrack, timeline: Timeline, ns: Callable[[int], int]) -> Iterator[TrackSlice]:
        """Yield a slice for each interval in which one task had the CPU. Interrupts during this interval are part of
        the slice. The idle task has no slices.
        """
        start = end = 0
        label: Label | None = None
        segments = track.cut(timeline.start, timeline.end)
        names = {segment.pid: segment.name for segment in segments if segment.kind == TASK}
        for segment in segments:
            if segment.kind == UNKNOWN:
                now: Label | None = self.label(UNSURE, "no_event", segment.name)
            elif segment.pid in (0, -1):
                now = None
            else:
                name = names.get(segment.pid) or f"thread {segment.pid}"
                now = self.label(ON_CPU, TASK, name, ("tid", segment.pid))
            if now is not label or segment.start != end:
                if label is not None and ns(end) > ns(start):
                    yield TrackSlice(ns(start), ns(end), label)
                start, label = segment.start, now
            end = segment.end
        if label is not None and ns(end) > ns(start):
            yield TrackSlice(ns(start), ns(end), label)

    def _taken(self, track: CpuTrack, timeline: Timeline, ns: Callable[[int], int]) -> Iterator[TrackSlice]:
        """Yield a slice for each time in which an interrupt or kernel work stopped a task. The slice has the name of
        the innermost activity: a handler, softirq, timer or work function."""
        label = self.label
        for segment in track.cut(timeline.start, timeline.end):
            if segment.kind not in (TASK, UNKNOWN):
                start, end = ns(segment.start), ns(segment.end)
                if end > start:
                    yield TrackSlice(start, end, label(TAKEN, segment.kind, segment.name))

    def mark_worst(
        self, rank: int, at: int, duration_ns: int, thread: str, cpu: int | None, parts: Sequence[Part]
    ) -> None:
        """Mark one of the longest stalls, with its rank, thread, CPU and largest cause. ``at``: its start in ns of the
        scene. ``parts``: its causes, the largest first."""
        who = self.task(thread)
        where = f" on CPU {cpu}" if cpu is not None else ""
        cause = f"{parts[0].kind} {self.named(parts[0].kind, parts[0].name)}".strip() if parts else ""
        name = clean(
            f"#{rank}: {nice_ns(duration_ns)}{f' ({self.mark})' if self.mark else ''} of {who}{where}"
            + (f", most of it {cause}" if cause else ""),
            PATH,
        )
        placed = (("cpu", cpu),) if cpu is not None else ()
        marked = (("mark", self.mark),) if self.mark else ()
        label = Label(name, (("rank", rank), ("ns", duration_ns), ("thread", who), *placed, ("cause", cause), *marked))
        self.track(WORST, "", name=WORST).moments.append(Moment(at, label))


def of_block(scene: Scene, block: ExplainedBlock, zero_ns: int) -> None:
    """Add one block of a run to a scene. ``zero_ns``: the scene's time at which the run began."""
    span, timeline = block.span, block.timeline
    began, tick, rate = zero_ns + span.start_ns, span.start, timeline.rate
    per_ns, per_tick = rate.ns, rate.ticks

    def ns(ticks: int) -> int:
        return began + (ticks - tick) * per_ns // per_tick

    scene.add_cpus(timeline, ns)
    for place, (name, thread) in enumerate(timeline.threads.items()):
        track = scene.track(THREADS, name, name=scene.task(name), order=place)
        first = len(track.slices)
        for state, piece in by_state(thread, timeline, timeline.start, timeline.end):
            start, end = ns(piece.start), ns(piece.end)
            if end > start:
                track.slices.append(TrackSlice(start, end, scene.label(*_told(state, piece.kind, piece.name))))
        wakes = {stretch.end for stretch in thread.stretches if stretch.state == ASLEEP}
        _mark_deeds(scene, timeline, name, track.slices, first, wakes, ns)
    for stall in block.stalls:
        start = began + stall.offset_ns
        if stall.duration_ns <= 0:
            continue
        window = stall.window
        label = scene.label(STALL, "", "", ("messages", window.messages))
        name = f"Stalls of {scene.task(window.thread)}"
        slices = scene.track(STALLS, window.thread, name=name).slices
        slices.append(TrackSlice(start, start + stall.duration_ns, label))
        for piece, (low, high) in zip(stall.pieces, pairwise(stall.edges_ns), strict=True):
            if high > low:
                slices.append(TrackSlice(start + low, start + high, scene.label(PART, piece.kind, piece.name)))


def _told(state: str, kind: str, name: str) -> tuple[str, ...]:
    """Return the texts for a piece's label: the thread's state, and the cause's kind and name. For a thread that sleeps
    or runs, return only the state."""
    if state == ASLEEP:
        return (SLEEPING,)
    if kind == OWN:
        return (RAN,)
    if kind == "no_event":
        return UNSURE, kind, name
    return (INTERRUPTED if state == RUNS else WAITING), kind, name


def _mark_deeds(
    scene: Scene,
    timeline: Timeline,
    thread: str,
    slices: list[TrackSlice],
    first: int,
    wakes: set[int],
    ns: Callable[[int], int],
) -> None:
    """Mark each wake-up and move of a thread, on the track of the causing CPU. If a wake-up ended a sleep, an arrow
    (flow) leads to the thread's next slice. ``slices``: the thread's slices. ``first``: the index of the first new
    slice. ``wakes``: the times at which sleeps of the thread ended.
    """
    starts = [one.start for one in slices[first:]]
    whom = scene.task(thread)
    for deed in timeline.deeds:
        if deed.of != thread or deed.what == "ipi" or not timeline.start <= deed.ts < timeline.end:
            continue
        at, flow = ns(deed.ts), 0
        if deed.what == "wake" and deed.ts in wakes:
            place = first + bisect_left(starts, at)
            if place < len(slices) and not slices[place].flow:
                flow = scene.new_flow()
                slices[place] = slices[place]._replace(flow=flow)
        verb = "wakes" if deed.what == "wake" else "moves"
        label = scene.deed(deed.who, verb, whom, deed.cpu)
        scene.cpu(deed.by).moments.append(Moment(at, label, flow))


class ProgramScene(Scene):
    """Hold the tracks of a program's time.

    ``evidence.program`` adds the threads one by one. A thread may be observed several times. ``joined``: True if
    several observations of a thread share one track. Observations share a track only if the thread has the same name in
    all of them.
    """

    def __init__(self, rename: Rename = as_it_is, *, joined: bool = False) -> None:
        super().__init__(rename)
        self._joined = joined
        self._of_threads: dict[tuple[int, int], Track] = {}
        self._lives: defaultdict[int, list[tuple[int, int, Track]]] = defaultdict(list)

    def begin(self, tid: int, start: int, end: int, name: str) -> None:
        """Prepare the track of a thread that is observed from ``start`` to ``end``. If ``joined`` is True, an earlier
        track of this thread is used again. The kernel may later give the id ``tid`` to another thread."""
        shown = clean(f"{self.task(name)} {tid}")
        before = [life[2] for life in self._lives.get(tid, ()) if self._joined and life[2].name == shown]
        track = before[0] if before else self.track(THREADS, tid, start, name=shown, order=len(self._lives))
        self._of_threads[tid, start] = track
        self._lives[tid].append((start, end, track))

    def thread(self, tid: int, start: int) -> ThreadScene:
        return ThreadScene(self, self._of_threads[tid, start])

    def of_waker(self, tid: int, cpu: int, at: int) -> Track:
        """Return the track on which a wake-up is marked. If the waking thread ``tid`` belongs to the program, this is
        the thread's track. For any other thread, and for an interrupt (``tid`` is -1), it is the track of the CPU.
        """
        for start, end, track in self._lives.get(tid, ()):
            if start <= at <= end:
                return track
        return self.cpu(cpu)


@dataclass(slots=True)
class ThreadScene:
    """Add the slices of one thread of a program to its track, in order of time."""

    _scene: ProgramScene
    _track: Track
    _flow: int = 0

    def add(self, state: str, start: int, end: int, kind: str = "", name: str = "") -> None:
        flow, self._flow = self._flow, 0
        self._track.slices.append(TrackSlice(start, end, self._scene.label(state, kind, name), flow))

    def slept(self, start: int, end: int, kind: str, name: str, wakers: Sequence[Waker]) -> None:
        """Add a sleep, or a wait in which the thread was blocked, with the chain of its wakers."""
        chain = " < ".join(self._scene.named(one.kind, one.name) or one.kind for one in wakers)
        state = SLEEPING if kind == "sleep" else BLOCKED
        label = self._scene.label(state, kind, name, *((("wakers", chain),) if chain else ()))
        self._track.slices.append(TrackSlice(start, end, label))

    def woken(self, at: int, tid: int, cpu: int, name: str) -> None:
        """Mark that this thread was woken at ``at``. The thread ``tid``, named ``name``, woke it on CPU ``cpu``. An
        arrow (flow) leads from the mark to the slice that is added next."""
        self._flow = self._scene.new_flow()
        label = self._scene.deed(name, "wakes", self._track.name, -1)
        self._scene.of_waker(tid, cpu, at).moments.append(Moment(at, label, self._flow))
