"""Define the matrix of a host: the time that a cache line takes from each CPU to each other CPU."""

from __future__ import annotations

from typing import Any

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Clock
from jitter_workshop.model.text import day

FORMAT_VERSION = 1

CpuPair = tuple[int, int]
"""Two CPUs, the lower number first."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hold the measured pairs of CPUs that are equally near in the topology. ``name``: the relation of the two CPUs of
    a pair in the topology, such as "same core" or "other node". ``pairs``: the number of pairs."""

    name: str
    pairs: int
    median_ns: float
    min_ns: float
    max_ns: float


@dataclass(frozen=True, slots=True)
class CpuGroup:
    """Hold the CPUs that share a last-level cache, including CPUs that were not measured."""

    cpus: tuple[int, ...]
    package: int
    node: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """Hold the median times in ns in which a cache line gets from one CPU to another.

    - ``cpus``: the measured CPUs, in ascending order.
    - ``one_way_ns``: a row for each measured CPU, with a value for each measured CPU. Each pair of CPUs is measured
      only once, and has the same value in both directions. The value is None if both CPUs are the same, or if the pair
      was not measured.
    - ``complete``: False if a pair was not measured.
    - ``clusters``: the measured pairs by nearness, the nearest first.
    - ``groups``: the CPUs of each last-level cache, measured or not.
    - ``sampled``: True if only a sample of the host's CPUs was measured.
    - ``topology``: an id of this host's CPUs. A matrix is used only on a host with the same id.
    """

    format_version: int
    id: str
    label: str
    started_at: str
    duration_s: float
    clock: Clock
    cpus: tuple[int, ...]
    one_way_ns: tuple[tuple[float | None, ...], ...]
    clusters: tuple[Cluster, ...]
    groups: tuple[CpuGroup, ...]
    sampled: bool
    complete: bool
    topology: str
    host: dict[str, Any]
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, ...]:
        """Return the measured CPUs, ordered so that CPUs with the same last-level cache are neighbours."""
        measured = set(self.cpus)
        known = [cpu for group in self.groups for cpu in group.cpus if cpu in measured]
        return (*known, *(cpu for cpu in self.cpus if cpu not in set(known)))

    @property
    def lines(self) -> PairTimes:
        """Return the measured time in ns of each pair of CPUs, with the day of the measurement."""
        return PairTimes(
            day(self.started_at),
            {
                (a, b): ns
                for a, row in zip(self.cpus, self.one_way_ns, strict=True)
                for b, ns in zip(self.cpus, row, strict=True)
                if ns is not None and a < b
            },
        )


@dataclass(frozen=True, slots=True)
class PairTimes:
    """Hold a time in ns for each pair of CPUs. ``measured``: the day of the measurement, as YYYY-MM-DD."""

    measured: str
    ns: dict[CpuPair, float]
