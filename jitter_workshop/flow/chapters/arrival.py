"""Have the interrupt of a chapter's load arrive on the measured CPU during a first run.

Where an interrupt arrives after a boot is chance. A chapter on interrupts shows its effect only if the interrupt of its
load arrives on the measured CPU. So before a first run, the agent writes this CPU to the interrupt's affinity
(the tunable ``irq-here``). The affinity is restored after the run. On x86 the kernel then leaves the interrupt there,
because the restored affinity contains the CPU (arch/x86/kernel/apic/vector.c, assign_vector_locked).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.company import movable_irq
from jitter_workshop.flow.measuring.placement_plan import placed_on
from jitter_workshop.flow.measuring.request import MeasureRequest
from jitter_workshop.host.irq.irq_affinity import irq_number, read_effective
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import IRQ_HERE, Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.text import cleaned_sentence
from jitter_workshop.model.walk import PlanView
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes

STAYS_THERE = "On x86 the interrupt then still arrives there until something moves it."
_BY_KERNEL = ("EIO", "EPERM")
"""The errors of a kernel that does not let anyone move the interrupt (kernel/irq/proc.c)."""


class InterruptStays(HostError):
    """Report that the kernel refused to send the interrupt of a noise to another CPU."""


def arrival(root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet) -> Change | None:
    """Return the write that has the interrupt of the request's noise arrive on the measured CPU.

    Return None if no such write is needed or possible: the noise has no interrupt that can be moved, the interrupt
    arrives on this CPU already, or its affinity does not contain this CPU.
    """
    irq = movable_irq(root, request.noise) if request.noise is not None else None
    if irq is None or irq.affinity is None:
        return None
    try:
        placement, _ = placed_on(root, topology, request, isolated)
    except (HostError, UsageError):
        return None
    cpu = placement.accumulator if placement.sampler is None else placement.sampler
    if cpu is None or cpu not in irq.affinity or read_effective(root, irq.number) == CpuSet((cpu,)):
        return None
    with contextlib.suppress(HostError, UsageError):
        plan = plan_changes(Host(root, CpuSet((cpu,)), topology), (Wanted(IRQ_HERE, str(irq.number)),))
        return next(iter(plan.changes), None)
    return None


def arrival_plan(change: Change) -> PlanView:
    """Return the write of :func:`arrival` as a plan."""
    text = "The interrupt of the load arrives on the measured CPU. After the run the old value is restored. "
    text += STAYS_THERE
    return PlanView((change,), 1, text, (f"{IRQ_HERE}={irq_number(change.path)}",))


@contextlib.contextmanager
def arriving(connection: AgentConnection, request: MeasureRequest, tell: Callable[[str], None]) -> Iterator[None]:
    """Make the write ``request.arrival`` before the ``with`` block, and restore the old value after it. Do nothing if
    the request has no such write. ``tell``: receives a sentence if the restore fails. Raise InterruptStays if the
    kernel refuses the write, HostError if it is refused for another reason: a run without the interrupt would show
    nothing."""
    change = request.arrival
    if change is None:
        yield
        return
    number, words = irq_number(change.path), arrival_plan(change).words
    made = connection.apply(words, CpuSet.parse_list(change.after), (change,))
    if made.refused:
        why = made.refused[0].reason
        said = f"interrupt {number} was not sent to CPU {change.after}: {why}"
        if any(name in why for name in _BY_KERNEL):
            raise InterruptStays(said, "open the chapter again: it then has another load, or a run without this write")
        raise HostError(said, "measure without the chapter's load (w)")
    try:
        yield
    finally:
        try:
            connection.restore((IRQ_HERE,))
        except WorkshopError as error:
            tell(f"The affinity of interrupt {number} is not restored yet: {cleaned_sentence(error.sentence())}")
