"""Read the state of SMT (Documentation/ABI/testing/sysfs-devices-system-cpu: smt/control, smt/active)."""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

CONTROL = f"{CPU_DIR}/smt/control"
ACTIVE = f"{CPU_DIR}/smt/active"

WRITABLE = ("on", "off")
"""States of ``control`` from which it can be changed; a number (threads a core, from 6.6) can be changed too."""


@dataclass(frozen=True, slots=True)
class Smt:
    """Hold the state of SMT.

    ``control``: on, off, forceoff, notsupported, notimplemented, or the number of threads a core. ``active``: True if
    any core runs more than one thread now. None where not shown (``reason``).
    """

    control: str | None
    active: bool | None
    reason: str = ""

    @property
    def can_change(self) -> bool:
        """Return True if the kernel accepts a new state without a reboot."""
        return self.control in WRITABLE or (self.control or "").isdigit()


def read_smt(root: HostRoot) -> Smt:
    """Read both files."""
    control = root.reading(CONTROL)
    active = root.integer(ACTIVE)
    reason = f"{CONTROL}: {control.reason or 'is empty'}" if not control.text else ""
    return Smt(printable(control.text or "", 20) or None, None if active is None else active != 0, reason)
