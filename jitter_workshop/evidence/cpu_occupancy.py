"""Find the CPUs on which the measured threads ran, from the trace of a run's blocks. Also find the other tasks and the
interrupts that ran on these CPUs."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jitter_workshop.evidence.seconds import Seconds
from jitter_workshop.evidence.tracks import (
    MOVING,
    READY,
    RUNS,
    TASK,
    UNKNOWN,
    UNSEEN,
    WORKQUEUE,
    Segment,
    ThreadTrack,
    Timeline,
)
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import (
    FrequencySeen,
    InterferingTask,
    QuietCpus,
    RemoteAction,
    Residence,
    ThreadOnCpu,
    TickKept,
)
from jitter_workshop.stats.scale import nice_ns
from jitter_workshop.stats.stalls import union

_TASKS = (TASK, WORKQUEUE)
_VECTORS = "irq_vectors:"
_MOST_ROWS = 1_000
_Key = TypeVar("_Key", bound=tuple[Any, ...])


@dataclass(slots=True)
class _Visits:
    """Hold how often and how long a task or an interrupt had a CPU. ``tids``: the thread ids, for a task. ``callers``:
    (kind, name) → how often this one called it."""

    count: int = 0
    total_ns: int = 0
    worst_ns: int = 0
    tids: set[int] = field(default_factory=set)
    callers: Counter[tuple[str, str]] = field(default_factory=Counter)


@dataclass(slots=True)
class _Stay:
    ran_ns: int = 0
    waited_ns: int = 0
    preempted: int = 0


class Presence:
    """Add up what ran on the traced CPUs, and for how long, over a run's blocks. ``placed``: thread → the CPU to which
    it was pinned. A thread without an event in the trace counts as running on this CPU. ``helpers``: the names of the
    run's threads that are not measured (``model.spec.helper_threads``); they are no other tasks."""

    def __init__(self, placed: Mapping[str, int] | None = None, helpers: Collection[str] = ()) -> None:
        self._placed = dict(placed or {})
        self._helpers = frozenset(helpers)
        self._visits: defaultdict[tuple[int, str, str], _Visits] = defaultdict(_Visits)
        self._stays: defaultdict[tuple[str, int], _Stay] = defaultdict(_Stay)
        self._frequencies: dict[int, FrequencySeen] = {}
        self._deeds: Counter[tuple[str, str, str, int]] = Counter()
        self._kept: Counter[tuple[int, str]] = Counter()
        self._seconds = Seconds(self._helpers)
        self._cpus: set[int] = set()
        self._gaps = False
        self.unknown_ns = 0
        """The time in which the trace does not show what ran on at least one of the CPUs."""
        self._empty = 0

    def add(self, timeline: Timeline, at_ns: int = 0) -> None:
        """Add the timeline of one block that began ``at_ns`` after the run's start. Only the time from the block's
        start to its end counts."""
        self._seconds.add(timeline, at_ns)
        start, end = timeline.start, timeline.end
        self._cpus |= timeline.traced
        self._gaps = self._gaps or bool(timeline.lost or timeline.unbalanced)
        # Each block begins with a wake-up, so a trace without any event did not record the block.
        self._empty += timeline.events == 0
        self._add_visits(timeline)
        for name, thread in timeline.threads.items():
            self._add_stays(timeline, name, thread)
        add_frequencies(self._frequencies, timeline)
        for deed in timeline.deeds:
            if start <= deed.ts < end:
                self._deeds[deed.what, deed.who, deed.of, deed.cpu] += 1
        self._kept.update(timeline.ticks_kept)

    def residence(self, measured_ns: int, missing: Collection[str] = ()) -> Residence:
        """Return the sums over all blocks. ``measured_ns``: the total length of the blocks. ``missing``: the trace
        events (``system:name``) that this kernel does not have."""
        visits = sorted(self._visits.items(), key=lambda item: (-item[1].total_ns, item[0]))
        visitors = tuple(
            InterferingTask(*key, v.count, v.total_ns, v.worst_ns, max(len(v.tids), 1), *self._called(key, v))
            for key, v in visits
        )
        return Residence(
            threads=tuple(
                ThreadOnCpu(name, cpu, stay.ran_ns, stay.waited_ns, stay.preempted)
                for (name, cpu), stay in sorted(self._stays.items())
            ),
            visitors=visitors,
            frequencies=tuple(self._frequencies[cpu] for cpu in sorted(self._frequencies)),
            deeds=tuple(RemoteAction(*key, n) for key, n in _most(self._deeds)),
            ticks_kept=tuple(TickKept(*key, n) for key, n in _most(self._kept)),
            proof=_proof(CpuSet.of(self._cpus), visitors, measured_ns, self._doubts(missing), self._ours),
            second=self._seconds.busiest(),
        )

    def _called(self, key: tuple[int, str, str], visits: _Visits) -> tuple[int, str, str]:
        """Return how often a listed task or event called this one, and the kind and name of the one that called it
        most often: (0, "", "") if none did. ``key``: the CPU, kind and name of this one."""
        cpu, *own = key
        known = Counter(
            {one: n for one, n in visits.callers.items() if one != tuple(own) and (cpu, *one) in self._visits}
        )
        if not known:
            return 0, "", ""
        ((kind, name), _) = min(known.items(), key=lambda item: (-item[1], item[0]))
        return known.total(), kind, name

    @property
    def _ours(self) -> str:
        """Return the words for the run's own threads."""
        return f"the measured threads{' and the helpers of their lock' if self._helpers else ''}"

    def _doubts(self, missing: Collection[str]) -> tuple[str, ...]:
        """Return the reasons why the trace may not show all that ran, such as ``lacks events``. ``missing``: the trace
        events that this kernel does not have."""
        blind = _unseen(missing)
        return (
            *((f"lacks {nice_ns(self.unknown_ns)}" if self.unknown_ns else "lacks events",) if self._gaps else ()),
            *((f"is empty in {self._empty:,} block{'' if self._empty == 1 else 's'}",) if self._empty else ()),
            *((f"is without {blind}",) if blind else ()),
        )

    def threads(self) -> dict[str, int]:
        """Return task name → number of tasks with this name. Names that only one task has are left out."""
        tids: dict[str, set[int]] = {}
        for (_, kind, name), visits in self._visits.items():
            if kind == TASK:
                tids.setdefault(name, set()).update(visits.tids)
        return {name: len(every) for name, every in tids.items() if len(every) > 1}

    def _add_visits(self, timeline: Timeline) -> None:
        """Add how often and how long other tasks and interrupts had each CPU in a timeline. Leave out the measured
        threads, their helpers, the idle task and unknown time."""
        start, end, rate = timeline.start, timeline.end, timeline.rate
        quiet = {thread.tid for thread in timeline.threads.values()} | {0}
        unknown: list[tuple[int, int]] = []
        for cpu, track in timeline.cpus.items():
            ticks: Counter[int] = Counter()
            # The same times since our thread last had the CPU: two stalls of it are none that is as long as both.
            stretch: Counter[int] = Counter()
            longest: Counter[int] = Counter()
            first: dict[int, Segment] = {}
            for piece in track.cut(start, end):
                if piece.kind == UNKNOWN:
                    unknown.append((piece.start, piece.end))
                    continue
                if piece.kind == TASK and (piece.pid in quiet or piece.name in self._helpers):
                    stretch.clear()
                    continue
                ticks[piece.serial] += piece.end - piece.start
                stretch[piece.serial] += piece.end - piece.start
                longest[piece.serial] = max(longest[piece.serial], stretch[piece.serial])
                first.setdefault(piece.serial, piece)
            for serial, piece in first.items():
                visits = self._visits[cpu, piece.kind, piece.name]
                ns = rate.to_ns(ticks[serial])
                visits.count += 1
                visits.total_ns += ns
                visits.worst_ns = max(visits.worst_ns, rate.to_ns(longest[serial]))
                if piece.kind == TASK:
                    visits.tids.add(piece.pid)
                elif (caller := timeline.callers.get(serial)) is not None:
                    visits.callers[caller] += 1
        self.unknown_ns += rate.to_ns(covered(unknown))

    def _add_stays(self, timeline: Timeline, name: str, thread: ThreadTrack) -> None:
        start, end, rate = timeline.start, timeline.end, timeline.rate
        before = UNSEEN
        for stretch in thread.between(start, end):
            state, cpu = stretch.state, stretch.cpu
            low, high = max(stretch.start, start), min(stretch.end, end)
            if state == UNSEEN and name in self._placed and self._placed[name] not in timeline.lost:
                state, cpu = RUNS, self._placed[name]
            if cpu >= 0 and state in (RUNS, READY, MOVING):
                stay = self._stays[name, cpu]
                if state == RUNS:
                    stay.ran_ns += rate.to_ns(_plain(timeline, cpu, low, high))
                else:
                    stay.waited_ns += rate.to_ns(high - low)
                    stay.preempted += state == READY and before == RUNS
            before = state


def covered(stretches: Iterable[tuple[int, int]]) -> int:
    """Return the total time of the intervals (start, end). Time that lies in several intervals counts once."""
    return sum(end - start for start, end in union(stretches))


def add_frequencies(seen: dict[int, FrequencySeen], timeline: Timeline) -> None:
    """Add the frequency changes of a timeline to ``seen``: CPU → its changes so far."""
    for ts, cpu, khz in timeline.frequencies:
        if timeline.start <= ts < timeline.end:
            one = seen.get(cpu, FrequencySeen(cpu, 0, khz, khz))
            low, high = min(one.lowest_khz, khz), max(one.highest_khz, khz)
            seen[cpu] = FrequencySeen(cpu, one.changes + 1, low, high)


def _most(counts: Mapping[_Key, int]) -> list[tuple[_Key, int]]:
    """Return the entries with the largest counts, at most _MOST_ROWS, the largest first. Without this limit, there
    could be as many entries as trace events."""
    return heapq.nsmallest(_MOST_ROWS, counts.items(), key=lambda item: (-item[1], item[0]))


def _plain(timeline: Timeline, cpu: int, low: int, high: int) -> int:
    """Return the ticks from ``low`` to ``high`` in which a task had the CPU and was not interrupted."""
    track = timeline.cpus.get(cpu)
    taken = 0
    for segment in track.between(low, high) if track is not None else ():
        if segment.kind != TASK:
            taken += min(segment.end, high) - max(segment.start, low)
    return high - low - taken


def _unseen(missing: Collection[str]) -> str:
    """Return the first event in ``missing`` that would show an interruption, or "" if there is none."""
    without_vectors = f"{_VECTORS}*" in missing  # not x86: timers come as interrupts there, and NMIs are no events
    systems = ("irq:",) if without_vectors else ("irq:", _VECTORS, "nmi:")
    return min((title for title in missing if title.startswith(systems)), default="")


def _proof(
    cpus: CpuSet, visitors: Sequence[InterferingTask], measured_ns: int, doubts: Sequence[str], ours: str
) -> QuietCpus:
    """Return what the trace proves about ``cpus``. There are three results: other tasks or interrupts ran there, none
    ran there, or the trace cannot show this. ``visitors``: the other tasks and interrupts in the trace. ``doubts``: the
    reasons why the trace may be incomplete, such as ``lacks events``. ``ours``: the words for the run's own threads.
    """
    nested = sum(visitor.nested for visitor in visitors)
    tasks = sum(visitor.count - visitor.nested for visitor in visitors if visitor.kind in _TASKS)
    rest = sum(visitor.count for visitor in visitors) - nested - tasks
    taken = sum(visitor.total_ns for visitor in visitors)
    where = f"CPU{'' if len(cpus) == 1 else 's'} {cpus}"
    stretch = f"In {nice_ns(measured_ns)}"
    said = " and ".join(doubts)
    clean: bool | None
    if not cpus:
        clean, sentence = None, "Nothing was traced."
    elif visitors:
        clean = False
        often = {1: "once", 2: "twice"}.get(tasks, f"{tasks:,} times")
        other = f"other tasks ran {often}" if tasks else "no other task ran"
        were, broke = ("was", "1 interruption") if rest == 1 else ("were", f"{rest:,} interruptions")
        sentence = f"{stretch} {other} on {where}, and there {were} {broke}."
        sentence += f" {'It' if tasks + rest == 1 else 'Together they'} took {nice_ns(taken)} of CPU time."
        if doubts:
            sentence += f" The trace {said}, so the true numbers may be higher."
    elif doubts:
        clean, sentence = None, f"{stretch} the trace of {where} {said}, so nothing is known about other tasks there."
    else:
        clean, sentence = True, f"{stretch} nothing but {ours} ran on {where}."
    return QuietCpus(tuple(cpus), measured_ns, clean, tasks, rest, taken, sentence, nested)
