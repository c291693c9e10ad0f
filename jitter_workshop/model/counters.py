"""Define the report of a run without a trace: ``explain --json`` with ``"evidence": "counters"``.

The fields that DESIGN §9 names are those of ``model.evidence.EvidenceReport``. Counters name no cause, so ``causes``,
``lost_events`` and the ``parts`` of each stall are null, with the reason in ``notes``. An empty list would mean that
nothing took the time.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Counter, CpuCounters, ForeignLoad, ThreadRecord
from jitter_workshop.model.version import FORMAT_VERSION as FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class CountedStall:
    """Hold a stall that only the benchmark saw. ``at_ns``: since the run began. ``parts`` is always null."""

    at_ns: int
    duration_ns: int
    cpu: int | None
    thread: str
    messages: int
    block: int
    parts: None = None


@dataclass(frozen=True, slots=True)
class CounterReport:
    """Hold the result of ``explain RUN`` without a trace. ``clock``: the run's. ``stalls``: all distinct stalls that
    the benchmark counted; they took ``stalled_ns`` of the blocks' ``measured_ns``. ``worst``: the longest ones that it
    listed. ``causes`` and ``lost_events`` are always null.

    ``waited_ns``: the sum over the measured ``threads`` of their time in a run queue, runnable but not running; None
    where the kernel does not count it. It belongs to threads, not to stalls: short waits are in it, too. ``interrupts``
    and ``softirqs``: on the CPUs of ``cpus`` only, in ``counted_s``. ``steal_ns``: within the blocks. ``disturbed``:
    other tasks seen on those CPUs. ``notes``: field → why it is null, and ``trace``: why there is none.
    """

    format_version: int
    run: str
    evidence: str
    threshold_ns: int
    clock: str
    stalls: int
    lost_events: None
    causes: None
    worst: tuple[CountedStall, ...]
    measured_ns: int
    stalled_ns: int
    waited_ns: int | None
    threads: tuple[ThreadRecord, ...]
    cpus: tuple[CpuCounters, ...]
    cpus_counted_ns: int
    interrupts: dict[str, Counter] | None
    softirqs: dict[str, Counter] | None
    counted_s: float | None
    steal_ns: int | None
    disturbed: tuple[ForeignLoad, ...]
    perf_event_paranoid: int | None
    notes: dict[str, str] = field(default_factory=dict)
