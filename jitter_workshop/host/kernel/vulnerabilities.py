"""Read the kernel's mitigations of processor flaws. They are reported, never changed.

Sources: ABI/testing/sysfs-devices-system-cpu (/sys/devices/system/cpu/vulnerabilities),
Documentation/admin-guide/hw-vuln.
"""

from __future__ import annotations

from typing import Literal

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

State = Literal["not affected", "mitigated", "vulnerable", "unknown"]

_FOLDER = f"{CPU_DIR}/vulnerabilities"
_BEGINNINGS: tuple[tuple[str, State], ...] = (
    ("Not affected", "not affected"),
    ("Mitigation", "mitigated"),
    ("KVM: Mitigation", "mitigated"),
    ("Vulnerable", "vulnerable"),
    ("KVM: Vulnerable", "vulnerable"),
    ("Processor vulnerable", "vulnerable"),
)


@dataclass(frozen=True, slots=True)
class Vulnerability:
    """Hold one flaw. ``text``: the kernel's own words, on one line."""

    name: str
    state: State
    text: str


def read_vulnerabilities(root: HostRoot) -> tuple[Vulnerability, ...]:
    """Return all flaws that the kernel knows of, by name; () where it does not show them."""
    found: list[Vulnerability] = []
    for name in root.list_dir(_FOLDER)[:128]:
        text = root.text(f"{_FOLDER}/{name}")
        if text is not None:
            line = printable(text, 300)
            found.append(Vulnerability(printable(name, 60), classify(line), line))
    return tuple(found)


def classify(text: str) -> State:
    """Return the state that the kernel's words begin with; its own ``Unknown:`` and anything else are ``unknown``."""
    return next((state for beginning, state in _BEGINNINGS if text.startswith(beginning)), "unknown")
