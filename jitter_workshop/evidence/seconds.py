"""Find the busiest second of a run in its trace. In this second, other tasks and interrupts took the most time from one
measured CPU."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from jitter_workshop.evidence.tracks import TASK, UNKNOWN, CpuTrack, Timeline
from jitter_workshop.model.evidence import CpuLane, CpuSecond, InterferingTask

SECOND_NS = 1_000_000_000
CELLS = 50
"""The number of equal parts of a second whose times are kept."""
MOST_LANES = 8
_CELL_NS = SECOND_NS // CELLS


@dataclass(slots=True)
class _Lane:
    count: int = 0
    total_ns: int = 0
    worst_ns: int = 0
    tids: set[int] = field(default_factory=set)
    cells: Counter[int] = field(default_factory=Counter)


class Seconds:
    """Add up blocks, second by second since the run began. A task or handler that runs across the end of a second
    counts once in each of the two seconds. ``helpers``: the names of the run's threads that are not measured. They have
    lanes, but take no time from the run."""

    def __init__(self, helpers: Collection[str] = ()) -> None:
        self._helpers = frozenset(helpers)
        self._lanes: defaultdict[tuple[int, int], defaultdict[tuple[str, str], _Lane]] = defaultdict(
            lambda: defaultdict(_Lane)
        )
        self._ours: defaultdict[int, Counter[int]] = defaultdict(Counter)
        self._traced: Counter[int] = Counter()

    def add(self, timeline: Timeline, at_ns: int) -> None:
        """Add one block that began ``at_ns`` after the run's start."""
        for cell, ns in _spread(at_ns, at_ns + timeline.rate.to_ns(timeline.end - timeline.start)):
            self._traced[cell // CELLS] += ns
        ours = {thread.tid for thread in timeline.threads.values()}
        for cpu, track in timeline.cpus.items():
            self._add_track(timeline, cpu, track, at_ns, ours)

    def _add_track(self, timeline: Timeline, cpu: int, track: CpuTrack, at_ns: int, ours: set[int]) -> None:
        start, rate = timeline.start, timeline.rate
        lengths: Counter[tuple[int, int]] = Counter()
        for piece in track.cut(start, timeline.end):
            if piece.kind == UNKNOWN or (piece.kind == TASK and piece.pid == 0):
                continue
            low, high = at_ns + rate.to_ns(piece.start - start), at_ns + rate.to_ns(piece.end - start)
            mine = piece.kind == TASK and piece.pid in ours
            for cell, ns in _spread(low, high):
                if mine:
                    self._ours[cpu][cell] += ns
                    continue
                second = cell // CELLS
                lane = self._lanes[cpu, second][piece.kind, piece.name]
                lane.count += (second, piece.serial) not in lengths
                lengths[second, piece.serial] += ns
                lane.total_ns += ns
                lane.worst_ns = max(lane.worst_ns, lengths[second, piece.serial])
                lane.cells[cell] += ns
                if piece.kind == TASK:
                    lane.tids.add(piece.pid)

    def busiest(self) -> CpuSecond | None:
        """Return the second on one CPU in which other tasks and interrupts took most time.

        Other tasks are all except the measured threads, their helpers and the idle task. If several seconds are equal,
        return the earliest. If several CPUs are equal in this second, return the CPU with the lowest number. Return
        None if no other task and no interrupt ran.
        """
        others = {
            key: [lane.total_ns for (kind, name), lane in lanes.items() if kind != TASK or name not in self._helpers]
            for key, lanes in self._lanes.items()
        }
        taken = {key: sum(times) for key, times in others.items() if times}
        if not taken:
            return None
        cpu, second = min(taken, key=lambda key: (-taken[key], key[1], key[0]))
        cells = range(second * CELLS, (second + 1) * CELLS)
        most = sorted(self._lanes[cpu, second].items(), key=lambda item: (-item[1].total_ns, item[0]))[:MOST_LANES]
        return CpuSecond(
            cpu=cpu,
            at_ns=second * SECOND_NS,
            traced_ns=self._traced[second],
            taken_ns=taken[cpu, second],
            lanes=tuple(
                CpuLane(
                    InterferingTask(cpu, *key, one.count, one.total_ns, one.worst_ns, max(len(one.tids), 1)),
                    tuple(one.cells[cell] for cell in cells),
                )
                for key, one in most
            ),
            ours=tuple(self._ours[cpu][cell] for cell in cells),
        )


def _spread(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Divide the interval [low, high) into cells. Yield (cell, ns) for each cell that has a part of the interval; cells
    are counted from 0."""
    while low < high:
        cell = low // _CELL_NS
        end = min(high, (cell + 1) * _CELL_NS)
        yield cell, end - low
        low = end
