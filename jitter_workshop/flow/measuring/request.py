"""Hold what a user asks of a run, before the host's limits are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jitter_workshop.bench.placement import Wish
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.spec import Pacing, Pause, Placement, WorkloadName


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Hold what a user asks for, before the host's limits are known. None = the default of preset, workload or host.

    ``placement``: auto | none; explicit CPUs win. ``sched_priority`` 0 = SCHED_OTHER. ``wait_s``: how long to queue
    while another program measures on this host. ``evidence``: record the kernel's trace beside the run. ``hunted``: a
    hidden noise goes on beside it. ``settle_s``: seconds at its start that are not recorded, because the host was just
    changed; ``proof``: the proof that it is made for. ``noise_period_ns``: about how long from burst to burst.
    """

    workload: WorkloadName = "ring"
    label: str = ""
    preset: str = "quick"
    messages: int | None = None
    duration_s: float | None = None
    interval_ns: int | None = None
    pacing: Pacing | None = None
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
    evidence: bool = False
    pause: Pause = "sleep"
    hunted: bool = False
    settle_s: float = 0.0
    proof: str | None = None
    noise_period_ns: int | None = None

    def wish(self, within: CpuSet | None = None) -> Wish:
        """Return what is asked of the placement. ``within``: see ``bench.placement.Wish``."""
        return Wish(
            workload=self.workload,
            mode=self.placement,
            producer=self.producer_cpu,
            accumulator=self.accumulator_cpu,
            journaller=self.journaller_cpu,
            no_journaller=self.no_journaller,
            cpu=self.cpu,
            within=within,
        )

    def on(self, placement: Placement) -> MeasureRequest:
        """Return the same measurement on the CPUs of a placement."""
        return replace(
            self,
            producer_cpu=placement.producer,
            accumulator_cpu=placement.accumulator,
            journaller_cpu=placement.journaller,
            cpu=placement.sampler,
        )
