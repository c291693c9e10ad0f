"""Have the interrupt of a chapter's load arrive on the measured CPU during a first run.

Where an interrupt arrives after a boot is chance. A chapter on interrupts shows its effect only if the interrupt of its
load arrives on the measured CPU. So before a first run, the agent writes this CPU to the interrupt's affinity
(the tunable ``irq-here``). The affinity is restored after the run. On x86 the kernel then leaves the interrupt there,
because the restored affinity contains the CPU (arch/x86/kernel/apic/vector.c, assign_vector_locked).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.flow.host_ops.agent_connection import AgentConnection
from jitter_workshop.flow.host_ops.company import irqs_of_load
from jitter_workshop.flow.measuring.placement_plan import placed_on
from jitter_workshop.flow.measuring.request import STAYS_THERE, MeasureRequest
from jitter_workshop.host.irq.irq_affinity import Irq, irq_number, read_effective
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import IRQ_HERE, Change, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.model.text import SENTENCE, clean, cleaned_sentence
from jitter_workshop.model.walk import PlanView
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import plan_changes

_BY_KERNEL = ("EIO", "EPERM")
"""The errors of a kernel that does not let anyone move the interrupt (kernel/irq/proc.c)."""


class InterruptStays(HostError):
    """Report that the kernel refused to send the interrupt of a noise to another CPU."""


def arrival(root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet) -> Change | None:
    """Return the write that has the interrupt of the request's noise arrive on the measured CPU.

    Return None if no such write is needed or possible: the noise has no interrupt that can be moved, the interrupt
    arrives on this CPU already, or its affinity does not contain this CPU.
    """
    found = _irq_and_cpu(root, topology, request, isolated)
    if found is None or found[0].affinity is None or read_effective(root, found[0].number) == CpuSet((found[1],)):
        return None
    return _write(root, topology, *found, found[0].affinity)


def arrival_in_proof(
    root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet, changes: Sequence[Change]
) -> Change | None:
    """Return the write of :func:`arrival` for the runs of a proof without the change. Where the interrupt arrives
    before such a run is not known yet, so the write is made in any case. ``changes``: the changes of the proof; they
    are restored before the run."""
    found = _irq_and_cpu(root, topology, request, isolated)
    if found is None or found[0].affinity is None:
        return None
    restored = next((one.before for one in changes if one.path == found[0].path), str(found[0].affinity))
    with contextlib.suppress(ValueError):
        return _write(root, topology, *found, CpuSet.parse_list(restored))
    return None


def _irq_and_cpu(
    root: HostRoot, topology: Topology, request: MeasureRequest, isolated: CpuSet
) -> tuple[Irq, int] | None:
    """Return the interrupt of the request's noise and the measured CPU; None if there is no such interrupt or CPU."""
    irq = irqs_of_load(root, request.noise).movable if request.noise is not None else None
    if irq is None:
        return None
    try:
        placement = placed_on(root, topology, request, isolated).placement
    except (HostError, UsageError):
        return None
    cpu = placement.accumulator if placement.sampler is None else placement.sampler
    return (irq, cpu) if cpu is not None else None


def _write(root: HostRoot, topology: Topology, irq: Irq, cpu: int, affinity: CpuSet) -> Change | None:
    """Return the write that sends an interrupt to a CPU. ``affinity``: the interrupt's affinity before the write.
    Return None if the affinity does not contain the CPU, or if no such write is possible."""
    if cpu not in affinity:
        return None
    with contextlib.suppress(HostError, UsageError):
        plan = plan_changes(Host(root, CpuSet((cpu,)), topology), (Wanted(IRQ_HERE, str(irq.number)),))
        return next((replace(one, before=str(affinity)) for one in plan.changes), None)
    return None


def arrival_plan(change: Change) -> PlanView:
    """Return the write of :func:`arrival` as a plan."""
    text = "The interrupt of the chapter's noise arrives on the measured CPU. After the run the old value is restored. "
    text += STAYS_THERE
    return PlanView((change,), 1, text, (f"{IRQ_HERE}={irq_number(change.path)}",))


@contextlib.contextmanager
def arriving(connection: AgentConnection, request: MeasureRequest, tell: Callable[[str], None]) -> Iterator[None]:
    """Make the write ``request.arrival`` before the ``with`` block, and restore the old value after it. Do nothing if
    the request has no such write. ``tell``: receives a sentence if the old value could not be restored. Raise
    InterruptStays if the kernel refuses the write, HostError if it is not made for another reason: a run without the
    interrupt would show nothing."""
    change = request.arrival
    if change is None:
        yield
        return
    number, words = irq_number(change.path), arrival_plan(change).words
    made = connection.apply(words, CpuSet.parse_list(change.after), (change,))
    if all(one.path != change.path for one in made.applied):
        why = made.refused[0].reason if made.refused else "its affinity has changed since the write was shown"
        said = f"interrupt {number} was not sent to CPU {change.after}: {clean(why, SENTENCE)}"
        stays = any(name in why for name in _BY_KERNEL)
        raise (InterruptStays if stays else HostError)(said, "measure without the chapter's noise (w)")
    try:
        yield
    finally:
        if made.journal_id is not None:
            _restore(connection, made.journal_id, number, tell)


def _restore(connection: AgentConnection, journal_id: str, number: int, tell: Callable[[str], None]) -> None:
    """Restore the affinity of an interrupt. If another program has changed the affinity during the run, its value
    stays. ``tell``: receives a sentence if the old value was not written."""
    try:
        # A value that another program wrote belongs to that program, so the journal forgets the change.
        result = connection.restore((IRQ_HERE,), journals=(journal_id,), forget=True)
    except WorkshopError as error:
        tell(f"The affinity of interrupt {number} is not restored yet: {cleaned_sentence(error.sentence())}")
        return
    for left in result.left_alone:
        if left.tunable == IRQ_HERE:
            tell(f"The affinity of interrupt {number} was not restored: {cleaned_sentence(left.reason)}")
