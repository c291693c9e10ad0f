"""Who was where: the measured threads, and whoever else ran on their CPUs, from the trace of a run's blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from jitter_workshop.evidence.tracks import MOVING, READY, RUNS, TASK, UNKNOWN, UNSEEN, WORKQUEUE, Timeline
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.evidence import (
    Deed,
    FrequencySeen,
    Proof,
    Residence,
    ThreadOnCpu,
    TickKept,
    Visitor,
)
from jitter_workshop.stats.scale import nice_ns

_TASKS = (TASK, WORKQUEUE)


@dataclass(slots=True)
class _Visits:
    count: int = 0
    total_ns: int = 0
    worst_ns: int = 0


@dataclass(slots=True)
class _Stay:
    ran_ns: int = 0
    waited_ns: int = 0
    preempted: int = 0


def residence(timelines: Sequence[Timeline], measured_ns: int, placed: Mapping[str, int] | None = None) -> Residence:
    """All of it, from the blocks of one run, which measured ``measured_ns``. ``placed``: thread → the CPU it was pinned
    to: where nothing at all happened on a CPU, the trace does not say who was there, and this does."""
    visitors = _visitors(timelines)
    return Residence(
        threads=_threads(timelines, placed or {}),
        visitors=visitors,
        frequencies=_frequencies(timelines),
        deeds=_deeds(timelines),
        ticks_kept=_ticks_kept(timelines),
        proof=_proof(timelines, visitors, measured_ns),
    )


def _visitors(timelines: Iterable[Timeline]) -> tuple[Visitor, ...]:
    """Everything but the measured threads, nobody (idle) and what is not known; the most time first."""
    found: dict[tuple[int, str, str], _Visits] = {}
    for timeline in timelines:
        start, end, rate = timeline.start, timeline.end, timeline.rate
        quiet = {thread.tid for thread in timeline.threads.values()} | {0}
        for cpu, track in timeline.cpus.items():
            stays: dict[int, list[int]] = {}
            keys: dict[int, tuple[int, str, str]] = {}
            for segment in track.between(start, end):
                if segment.kind == UNKNOWN or (segment.kind == TASK and segment.pid in quiet):
                    continue
                took = min(segment.end, end) - max(segment.start, start)
                stays.setdefault(segment.serial, [0])[0] += took
                keys.setdefault(segment.serial, (cpu, segment.kind, segment.name))
            for serial, (ticks,) in stays.items():
                visits = found.setdefault(keys[serial], _Visits())
                ns = rate.to_ns(ticks)
                visits.count += 1
                visits.total_ns += ns
                visits.worst_ns = max(visits.worst_ns, ns)
    rows = [Visitor(*key, v.count, v.total_ns, v.worst_ns) for key, v in found.items()]
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.cpu, row.kind, row.name)))


def _threads(timelines: Iterable[Timeline], placed: Mapping[str, int]) -> tuple[ThreadOnCpu, ...]:
    found: dict[tuple[str, int], _Stay] = {}
    for timeline in timelines:
        start, end, rate = timeline.start, timeline.end, timeline.rate
        for name, thread in timeline.threads.items():
            before = UNSEEN
            for stretch in thread.between(start, end):
                state, cpu = stretch.state, stretch.cpu
                low, high = max(stretch.start, start), min(stretch.end, end)
                if state == UNSEEN and name in placed and placed[name] not in timeline.lost:
                    state, cpu = RUNS, placed[name]
                if cpu >= 0 and state in (RUNS, READY, MOVING):
                    stay = found.setdefault((name, cpu), _Stay())
                    if state == RUNS:
                        stay.ran_ns += rate.to_ns(_plain(timeline, cpu, low, high))
                    else:
                        stay.waited_ns += rate.to_ns(high - low)
                        stay.preempted += state == READY and before == RUNS
                before = state
    return tuple(
        ThreadOnCpu(name, cpu, stay.ran_ns, stay.waited_ns, stay.preempted)
        for (name, cpu), stay in sorted(found.items())
    )


def _plain(timeline: Timeline, cpu: int, low: int, high: int) -> int:
    """Ticks in which a thread that has its CPU was not interrupted."""
    track = timeline.cpus.get(cpu)
    taken = 0
    for segment in track.between(low, high) if track is not None else ():
        if segment.kind != TASK:
            taken += min(segment.end, high) - max(segment.start, low)
    return high - low - taken


def _frequencies(timelines: Iterable[Timeline]) -> tuple[FrequencySeen, ...]:
    seen: dict[int, list[int]] = {}
    for timeline in timelines:
        for ts, cpu, khz in timeline.frequencies:
            if timeline.start <= ts < timeline.end:
                seen.setdefault(cpu, []).append(khz)
    return tuple(FrequencySeen(cpu, len(khz), min(khz), max(khz)) for cpu, khz in sorted(seen.items()))


def _deeds(timelines: Iterable[Timeline]) -> tuple[Deed, ...]:
    counts: Counter[tuple[str, str, str, int]] = Counter()
    for timeline in timelines:
        for deed in timeline.deeds:
            if timeline.start <= deed.ts < timeline.end:
                counts[deed.what, deed.who, deed.of, deed.cpu] += 1
    rows = [Deed(*key, number) for key, number in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.what, row.who, row.of, row.cpu)))


def _ticks_kept(timelines: Iterable[Timeline]) -> tuple[TickKept, ...]:
    counts: Counter[tuple[int, str]] = Counter()
    for timeline in timelines:
        counts.update(timeline.ticks_kept)
    rows = [TickKept(cpu, reason, number) for (cpu, reason), number in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.cpu, row.reason)))


def _proof(timelines: Sequence[Timeline], visitors: Sequence[Visitor], measured_ns: int) -> Proof:
    cpus = CpuSet.of(cpu for timeline in timelines for cpu in timeline.traced)
    tasks = sum(visitor.count for visitor in visitors if visitor.kind in _TASKS)
    rest = sum(visitor.count for visitor in visitors) - tasks
    taken = sum(visitor.total_ns for visitor in visitors)
    gaps = any(timeline.lost or timeline.unbalanced for timeline in timelines)
    where = f"CPU{'' if len(cpus) == 1 else 's'} {cpus}"
    stretch = f"In {nice_ns(measured_ns)}"
    if not timelines or not cpus:
        clean, sentence = None, "Nothing was traced."
    elif visitors:
        clean = False
        other = f"other tasks ran {_times(tasks)}" if tasks else "no other task ran"
        broke = f"{rest:,} interruption{'' if rest == 1 else 's'}"
        sentence = f"{stretch} {other} on {where}, and there were {broke}: together {nice_ns(taken)}."
    elif gaps:
        clean, sentence = None, f"{stretch} the trace of {where} has gaps: what ran in them is not known."
    else:
        clean, sentence = True, f"{stretch} nothing but the measured threads ran on {where}."
    if gaps and visitors:
        sentence += " The trace has gaps: there may be more."
    return Proof(tuple(cpus), measured_ns, clean, tasks, rest, taken, sentence)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
