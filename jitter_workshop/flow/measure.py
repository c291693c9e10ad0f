"""Measure once, for every use: resolve the placement, take the host's turn, run, look around, keep the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from jitter_workshop.model.spec import Pacing, WorkloadName


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """What a person asks for, before the host had its say. None = the default of preset, workload or host.

    ``placement``: auto | none; explicit CPUs win. ``sched_priority`` 0 = SCHED_OTHER. ``wait_s``: how long to queue
    when somebody else measures on this host.
    """

    workload: WorkloadName = "ring"
    label: str = ""
    preset: str = "quick"
    messages: int | None = None
    duration_s: float | None = None
    interval_ns: int = 10_000
    pacing: Pacing = "spin"
    placement: str = "auto"
    producer_cpu: int | None = None
    accumulator_cpu: int | None = None
    journaller_cpu: int | None = None
    no_journaller: bool = False
    cpu: int | None = None
    duty: int = 100
    sched_priority: int = 0
    threshold_ns: int | None = None
    noise: str | None = None
    wait_s: float = 0.0
    applied: tuple[dict[str, str], ...] = field(default=())
