"""Read safety features that a latency check reports and never changes: address randomisation and auditing.

Source: Documentation/admin-guide/sysctl/kernel.rst (randomize_va_space, split_lock_mitigate).
"""

from __future__ import annotations

from jitter_workshop.host.boot.cmdline import CommandLine
from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass, field

PATHS = {
    "aslr": "/proc/sys/kernel/randomize_va_space",
    "split_lock_mitigate": "/proc/sys/kernel/split_lock_mitigate",
}


@dataclass(frozen=True, slots=True)
class Security:
    """Hold the safety settings.

    ``aslr``: 0 off, 1 without the heap, 2 full. ``split_lock_mitigate``: a process that locks across two cache lines is
    slowed down. ``split_lock_detect``: the boot parameter, None where it was not given. ``audit``: likewise; loaded
    rules cannot be read. The others are None where not shown (``reasons``).
    """

    aslr: int | None
    split_lock_mitigate: bool | None
    split_lock_detect: str | None
    audit: bool | None
    reasons: dict[str, str] = field(default_factory=dict)


def read_security(root: HostRoot, line: CommandLine) -> Security:
    """Read the settings; ``line``: the boot parameters."""
    fields = Fields(root, PATHS)
    audit = {"0": False, "off": False, "1": True, "on": True}.get(line.value("audit") or "")
    return Security(
        aslr=fields.integer("aslr", 0),
        split_lock_mitigate=fields.switch("split_lock_mitigate"),
        split_lock_detect=line.value("split_lock_detect"),
        audit=audit,
        reasons=fields.reasons,
    )
