"""What counters say of a run whose trace was not to be had: ``explain --json`` with ``"evidence": "counters"``.

The fields that DESIGN §9 names are those of ``model.evidence.EvidenceReport``. Counters name no cause, so ``causes``,
``lost_events`` and the ``parts`` of each stall are null, with the reason in ``notes``: an empty list would say that
nobody took the time, and a part would put it on somebody.
"""

from __future__ import annotations

from jitter_workshop.model.record import dataclass, field
from jitter_workshop.model.run import Counter, CpuCounters, ForeignLoad, ThreadRecord
from jitter_workshop.model.version import FORMAT_VERSION as FORMAT_VERSION


@dataclass(frozen=True, slots=True)
class CountedStall:
    """A stall of which only the benchmark knows. ``at_ns``: since the run began. ``parts`` is always null."""

    at_ns: int
    duration_ns: int
    cpu: int | None
    thread: str
    messages: int
    block: int
    parts: None = None


@dataclass(frozen=True, slots=True)
class CounterReport:
    """``explain RUN`` without a trace. ``clock``: the run's. ``stalls``: all that the benchmark counted, distinct ones,
    which took ``stalled_ns`` of the blocks' ``measured_ns``; ``worst``: the longest that it listed. ``causes`` and
    ``lost_events`` are always null.

    ``waited_ns``: what the measured ``threads`` waited in all in the queues of their CPUs while they could have run,
    None where the kernel does not count it; it is a fact about threads, not about stalls: short waits are in it, too.
    ``interrupts`` and ``softirqs``: on the CPUs of ``cpus`` only, in ``counted_s``. ``steal_ns``: within the blocks.
    ``disturbed``: others seen on those CPUs. ``notes``: field → why it is null, and ``trace``: why there is none.
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
