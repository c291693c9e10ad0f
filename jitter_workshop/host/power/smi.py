"""Check if system management interrupts can be counted: firmware that stops every CPU, unseen by the kernel.

Their number is in a processor register (MSR 0x34, MSR_SMI_COUNT). Reading it interrupts that CPU and needs the ``msr``
module, so this is not done here. Instead this reads if the kernel's own counter of them can be used (``perf stat -e
msr/smi/``) and if performance counters stop in them (``freeze_on_smi``).
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

_EVENT = "/sys/bus/event_source/devices/msr/events/smi"


@dataclass(frozen=True, slots=True)
class SmiSupport:
    """Hold how SMIs can be counted.

    ``event``: perf's description of the counter (``event=0x04``), None where there is none. ``frozen``: True if
    performance counters stop in an SMI, None where the processor does not show it. ``reason``: why there is no counter.
    """

    event: str | None
    frozen: bool | None
    reason: str = ""


def read_smi_support(root: HostRoot) -> SmiSupport:
    """Read if SMIs can be counted here; the count itself is not read."""
    reading = root.reading(_EVENT)
    event = printable(reading.text or "", 40) or None
    frozen = root.integer("/sys/devices/cpu/freeze_on_smi")
    if frozen is None:
        frozen = root.integer("/sys/devices/cpu_core/freeze_on_smi")
    reason = "" if event else f"this processor and kernel count no SMIs ({_EVENT}: {reading.reason or 'empty'})"
    return SmiSupport(event, None if frozen is None else frozen != 0, reason)
