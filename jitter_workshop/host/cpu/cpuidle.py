"""Read the idle driver, idle states, and the latency limit of one CPU.

An idle state determines how deep a CPU sleeps and how long the CPU takes to wake. Sources:
Documentation/admin-guide/pm/cpuidle.rst, Documentation/ABI/testing/sysfs-devices-power.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

IDLE_DIR = f"{CPU_DIR}/cpuidle"


@dataclass(frozen=True, slots=True)
class ResumeLatency:
    """Hold the limit on the wake-up time of one CPU. ``text``: the file's text. ``limit_us``: 0 if no latency at all is
    accepted (the file has ``n/a``); None if there is no limit (the file has 0) or no file. ``reason``: why ``text`` is
    None."""

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


def read_exit_latencies(root: HostRoot, cpus: Iterable[int]) -> dict[str, int] | None:
    """Return the exit latency in µs that each idle state of these CPUs promises, by the state's folder; None where one
    of the CPUs shows no idle state. A latency that cannot be read counts as 0. Latencies do not change."""
    folders: dict[str, int] = {}
    for cpu in cpus:
        states = state_folders(root, cpu)
        if not states:
            return None
        folders |= {folder: root.integer(f"{folder}/latency") or 0 for _, folder in states}
    return folders


def read_idle_use(root: HostRoot, latencies: Mapping[str, int]) -> tuple[int, int]:
    """Return how often the idle states in these folders were entered since boot, and the sum of the exit latencies that
    they promise, in µs. A state that cannot be read counts as never entered. ``latencies``: folder → µs."""
    used = {folder: root.integer(f"{folder}/usage") or 0 for folder in latencies}
    return sum(used.values()), sum(times * latencies[folder] for folder, times in used.items())


def parse_disable(value: int | None) -> bool | None:
    """Return True if the user disabled an idle state (bit 0 of its file; bit 1 means that the driver disabled it)."""
    return None if value is None else value & 1 == 1


def resume_latency_path(cpu: int) -> str:
    """Return the file that limits how long one CPU may take to wake."""
    return f"{CPU_DIR}/cpu{cpu}/power/pm_qos_resume_latency_us"


def read_resume_latency(root: HostRoot, cpu: int) -> ResumeLatency:
    """Read the limit on one CPU's wake-up time, in µs. In the file ``0`` means no limit; with ``n/a`` the CPU never
    sleeps."""
    reading = root.reading(resume_latency_path(cpu))
    if reading.text is None:
        return ResumeLatency(None, None, reading.reason)
    if reading.text == "n/a":
        return ResumeLatency("n/a", 0)
    if not (reading.text.isascii() and reading.text.isdigit() and len(reading.text) <= 10):
        return ResumeLatency(None, None, "the file does not hold a latency")
    return ResumeLatency(reading.text, int(reading.text) or None)
