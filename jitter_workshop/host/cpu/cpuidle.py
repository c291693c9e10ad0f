"""Read the idle driver, idle states, and the latency limit of one CPU.

An idle state tells how deep a CPU sleeps and how long it takes to wake. Sources:
Documentation/admin-guide/pm/cpuidle.rst, Documentation/ABI/testing/sysfs-devices-power.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

IDLE_DIR = f"{CPU_DIR}/cpuidle"


@dataclass(frozen=True, slots=True)
class ResumeLatency:
    """Hold the longest wake-up time that one CPU's users accept.

    ``text``: as in the file. ``limit_us``: 0 where no latency at all is accepted (the file says ``n/a``), None where
    there is no limit (it says 0) or no file.
    """

    text: str | None
    limit_us: int | None
    reason: str = ""


def read_idle_driver(root: HostRoot) -> str | None:
    """Return the idle driver; None where the kernel has no cpuidle or uses no driver."""
    name = root.word(f"{IDLE_DIR}/current_driver")
    return None if name == "none" else name


def state_folders(root: HostRoot, cpu: int) -> tuple[tuple[int, str], ...]:
    """Return the folders of a CPU's idle states, shallowest first, as (index, path)."""
    return root.numbered(f"{CPU_DIR}/cpu{cpu}/cpuidle", "state")


def parse_disable(value: int | None) -> bool | None:
    """Return bit 0, which is the user's; bit 1 says that the driver itself left the state off."""
    return None if value is None else value & 1 == 1


def resume_latency_path(cpu: int) -> str:
    """Return the file that limits how long one CPU may take to wake."""
    return f"{CPU_DIR}/cpu{cpu}/power/pm_qos_resume_latency_us"


def read_resume_latency(root: HostRoot, cpu: int) -> ResumeLatency:
    """Return the limit of one CPU: ``n/a`` accepts no latency (the CPU polls), ``0`` means no limit, a number is in
    µs."""
    reading = root.reading(resume_latency_path(cpu))
    if reading.text is None:
        return ResumeLatency(None, None, reading.reason)
    if reading.text == "n/a":
        return ResumeLatency("n/a", 0)
    if not (reading.text.isascii() and reading.text.isdigit() and len(reading.text) <= 10):
        return ResumeLatency(None, None, "does not hold a latency")
    return ResumeLatency(reading.text, int(reading.text) or None)
