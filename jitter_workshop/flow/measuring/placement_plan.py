"""Plan the changes of a chapter on placement. Each change sets the CPU affinity of a measured thread; no file of the
host changes."""

from __future__ import annotations

import dataclasses

from jitter_workshop.bench.noiseorder import order_for
from jitter_workshop.bench.placement import choose_cpus
from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.flow.host_ops.known_lines import known_lines
from jitter_workshop.flow.measuring.isolated_set import own_cpus
from jitter_workshop.flow.measuring.request import MeasureRequest, resolve
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change
from jitter_workshop.model.course import Measurement
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.record import dataclass, made_of
from jitter_workshop.model.run import Run
from jitter_workshop.model.session import ALONE
from jitter_workshop.model.spec import KINDS, TWO_THREADS, Placement, WorkloadName
from jitter_workshop.model.walk import PlanView
from jitter_workshop.tuning.planning import digest

_WHY = {
    "producer": "it stamps and publishes messages; the next messages wait while it pauses",
    "accumulator": "it waits for each message; the latency is read on this CPU",
    "journaller": "it is the second consumer; it does not disturb the other two threads",
    "sampler": "it reads the clock without pause; every gap is time that something else took",
    "sleeper": "it sleeps until a set time; its lateness is read when it wakes on this CPU",
    "sender": "it sends a segment at each set time; the kernel receives the segment on this CPU, too",
    "receiver": "it sleeps until a segment comes, stamps the segment and answers; the time between answers is measured",
}

_CALL = "sched_setaffinity({})"
"""The path of a change that binds a thread."""

WAIT_S = 600.0
"""Seconds that a chapter's run waits for other measurements; the learner can end the wait at any time."""


def request_of(
    measurement: Measurement,
    noise: str | None,
    chosen: dict[str, int],
    cpus: int,
    beside: Run | None = None,
    evidence: bool = False,
) -> MeasureRequest:
    """Return the request for a lesson's measurement on a host.

    - ``noise``: the noise that the learner added; None for the lesson's own choice, ALONE for no noise at all.
    - ``chosen``: thread → the CPU that the learner chose; {} for an automatic placement.
    - ``cpus``: the number of CPUs that a run may use.
    - ``beside``: the run with which this run will be compared.
    - ``evidence``: record the kernel's trace.

    A workload of two threads is replaced by the workload ``spin`` if a run may use only one CPU. It is also replaced if
    the run ``beside`` had the workload ``spin``.
    """
    workload: WorkloadName = measurement.workload  # type: ignore[assignment]  # the loader checked it
    if workload in TWO_THREADS and (cpus < 2 or (beside is not None and beside.workload == "spin")):
        workload = "spin"
    request = made_of(
        MeasureRequest,
        measurement,
        workload=workload,
        noise=None if noise == ALONE else measurement.noise or noise,
        duty=measurement.duty if workload == "spin" else 100,
        memory=measurement.memory if workload == measurement.workload else "none",
        wait_s=WAIT_S,
        evidence=evidence,
    )
    if not chosen:
        return request
    if workload not in TWO_THREADS:
        return dataclasses.replace(request, cpu=next(iter(chosen.values())))
    producer, accumulator, journaller = (chosen.get(thread) for thread in KINDS["ring"].threads)
    return request.on(Placement("chosen", producer, accumulator, journaller))


@dataclass(frozen=True, slots=True)
class PlannedCpus:
    """Hold the CPUs that a run will use.

    - ``inside``: the CPUs that this tool has isolated, if the run will use them; else None. The run will not if too few
      CPUs are isolated, if its real-time threads would leave no CPU to the measuring process, or if the scheduler
      places its threads.
    - ``why_outside``: the reason why the isolated CPUs are not used; "" if they are, or if there are none.
    """

    placement: Placement
    inside: CpuSet | None
    why_outside: str = ""


def placed_on(root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet) -> PlannedCpus:
    """Return the CPUs that a run will use, by the rules of the run itself (``flow.measuring.measure.ChosenCpus``).
    Raise the errors of ``bench.placement.choose_cpus``."""
    own, lines = CpuSet() if root.recorded else own_cpus(root), known_lines(root, topology)
    why_outside = ""
    if own and request.placement != "none":
        try:
            return PlannedCpus(resolve(request, topology, isolated, "", own, lines=lines).placement, own)
        except HostError as refusal:
            why_outside = refusal.message
        except UsageError:
            pass  # A run is refused for it; its CPUs are planned all the same.
    return PlannedCpus(choose_cpus(topology, request.wish(), isolated, lines), None, why_outside)


def noise_refused(root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet) -> str:
    """Return the reason why the noise of a request cannot run beside the measured threads. Return "" if the noise can
    run there, or if the request has no noise. Also return "" if the measured threads cannot be placed, even without the
    noise."""
    if request.noise is None:
        return ""
    try:
        planned = placed_on(root, topology, request, isolated)
    except (HostError, UsageError):
        return ""
    try:
        # A process of ours outside of the isolated set makes the noise.
        order_for(request.noise, planned.placement, topology.allowed - (planned.inside or CpuSet()), 1)
    except HostError as error:
        return error.message
    return ""


def plan_on(root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet) -> PlanView:
    """Return the placement of :func:`placed_on` as a plan. Raise the errors of ``bench.placement.choose_cpus``."""
    planned = placed_on(root, topology, request, isolated)
    if planned.inside is None:
        return placement_plan(planned.placement, topology.allowed, request.workload)
    plan = placement_plan(planned.placement, topology.allowed | planned.inside, request.workload)
    return dataclasses.replace(
        plan, text=f"{plan.text} Root's rights are needed only to move threads to the isolated CPUs."
    )


def placed_threads(placement: Placement, workload: str) -> list[tuple[str, int]]:
    """Return (thread, CPU) for each measured thread that a placement binds."""
    fields = KINDS[workload].threads.items()
    return [(name, cpu) for name, field in fields if (cpu := getattr(placement, field)) is not None]


def placement_plan(placement: Placement, allowed: CpuSet, workload: str = "ring") -> PlanView:
    """Return a plan with one change for each thread; the placement ``none`` has no changes."""
    changes = tuple(
        Change(
            n=n,
            tunable="placement",
            path=_CALL.format(name),
            before=f"any ({allowed})",
            after=str(cpu),
            when="run",
            risk="low",
            why=_WHY[name],
        )
        for n, (name, cpu) in enumerate(placed_threads(placement, workload), start=1)
    )
    if not changes:
        return PlanView((), 0, "Nothing is changed.")
    text = (
        f"{placement.why} When a thread starts, it sets its own affinity, and the setting "
        "ends with the thread. No file of this host is written, and no special rights are needed."
    )
    return PlanView(changes, 0, text)


def bound(plan: PlanView) -> tuple[tuple[str, int], ...]:
    """Return (thread, CPU) for each thread that a plan of :func:`placement_plan` binds."""
    names = {_CALL.format(name): name for kind in KINDS.values() for name in kind.threads}
    return tuple((names[one.path], int(one.after or 0)) for one in plan.changes if one.path in names)


def same_writes(now: PlanView, shown: PlanView | None) -> bool:
    """Return True if the plan ``now`` makes the same writes as the plan ``shown``. If not, the user has not agreed to
    the writes of ``now``. Return False if ``shown`` is None, because the user has seen no plan."""
    return shown is not None and [digest(one) for one in now.changes] == [digest(one) for one in shown.changes]
