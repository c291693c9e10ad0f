"""Prepare a matrix for a chart: choose the shades, and make fewer, larger cells if there is no room for all CPUs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.matrix import Matrix
from jitter_workshop.model.record import dataclass

LEAST_RATIO = 1.5
"""The least ratio between the times of the darkest and the lightest shade. It keeps differences by luck alone from
being drawn as structure."""


@dataclass(frozen=True, slots=True)
class CpuBin:
    """Hold neighbouring CPUs that share one row and one column. ``measured``: the measured CPUs whose times are in the
    row. ``stands_for``: all CPUs that the row's label names; some of them may not be measured.
    """

    measured: tuple[int, ...]
    stands_for: CpuSet


@dataclass(frozen=True, slots=True)
class Grid:
    """Hold the cells of a matrix. A cell has the median time, in ns, of the CPU pairs that it covers. It is None if
    none of these pairs was measured."""

    bins: tuple[CpuBin, ...]
    cells: tuple[tuple[float | None, ...], ...]

    @property
    def single(self) -> bool:
        """Return True if each row is one CPU that stands for itself alone."""
        return all(len(one.stands_for) == 1 for one in self.bins)

    @property
    def ends(self) -> tuple[float, float]:
        """Return the times in ns of the lightest shade and of the darkest shade."""
        values = [ns for row in self.cells for ns in row if ns is not None] or [1.0]
        return min(values), max(max(values), min(values) * LEAST_RATIO)


def matrix_grid(matrix: Matrix, most: int) -> Grid:
    """Return a matrix with at most ``most`` rows and columns. CPUs of one group are side by side. If there are at most
    ``most`` CPUs, each row is one CPU. If there are more CPUs, each row is a group or a part of a group. If there are
    more than ``most`` groups, each row is several neighbouring groups."""
    bins = tuple(_bins(matrix, max(most, 1)))
    place = {cpu: number for number, one in enumerate(bins) for cpu in one.measured}
    found: dict[tuple[int, int], list[float]] = {}
    for (a, b), ns in matrix.lines.ns.items():
        row, column = sorted((place[a], place[b]))
        found.setdefault((row, column), []).append(ns)
    middle = {where: statistics.median(values) for where, values in found.items()}
    numbers = range(len(bins))
    return Grid(bins, tuple(tuple(middle.get((min(r, c), max(r, c))) for c in numbers) for r in numbers))


def _bins(matrix: Matrix, most: int) -> Iterator[CpuBin]:
    groups = [
        (tuple(cpu for cpu in group.cpus if cpu in set(matrix.cpus)), CpuSet(group.cpus)) for group in matrix.groups
    ]
    groups = [(measured, everyone) for measured, everyone in groups if measured]
    grouped = {cpu for measured, _ in groups for cpu in measured}
    # A file may be edited: a CPU without a group is a group of its own.
    groups += [((cpu,), CpuSet((cpu,))) for cpu in matrix.cpus if cpu not in grouped]
    if len(matrix.cpus) <= most:
        for measured, everyone in groups:
            alone = len(measured) == 1
            yield from (CpuBin((cpu,), everyone if alone and matrix.sampled else CpuSet((cpu,))) for cpu in measured)
        return
    if len(groups) > most:
        each = math.ceil(len(groups) / most)
        for start in range(0, len(groups), each):
            some = groups[start : start + each]
            everyone = CpuSet.of(cpu for _, cpus in some for cpu in cpus)
            yield CpuBin(tuple(cpu for measured, _ in some for cpu in measured), everyone)
        return
    parts = most // len(groups)
    for measured, everyone in groups:
        count = min(parts, len(measured))
        for number in range(count):
            part = measured[number * len(measured) // count : (number + 1) * len(measured) // count]
            yield CpuBin(part, everyone if count == 1 else CpuSet(part))


def shade_of_time(ns: float, ends: tuple[float, float], levels: int) -> int:
    """Return the number of the shade of a time: 1 for the shortest times, ``levels`` for the longest. The shades are
    logarithmic: the same ratio of two times is always the same number of shades. ``ends``: the times of the first and
    the last shade.
    """
    low, high = ends
    place = math.log(max(ns, low) / low) / math.log(high / low)
    return min(1 + math.floor(place * levels), levels)


def shortest_times(ends: tuple[float, float], levels: int) -> tuple[float, ...]:
    """Return the shortest time of each shade."""
    low, high = ends
    return tuple(low * (high / low) ** (number / levels) for number in range(levels))
