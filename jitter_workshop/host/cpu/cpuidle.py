"""Read the host's idle driver, and one CPU's idle states and wake-up limit.

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
    """Hold the limit on the wake-up time of one CPU.

    - ``text``: the text of the kernel's file, None if it cannot be read.
    - ``limit_us``: the limit in µs. The text ``n/a`` means that the CPU may take no time to wake: the limit is 0. The
      text ``0`` means no limit: ``limit_us`` is None. ``limit_us`` is also None if ``text`` is None.
    - ``reason``: the reason why ``text`` is None.
    """

    text: str | None
    limit_us: int | None
    reason: str = ""


def read_idle_driver(root: HostRoot) -> str | None:
    """Return the name of the idle driver; None if the kernel has no cpuidle or uses no driver."""
    name = root.word(f"{IDLE_DIR}/current_driver")
    return None if name == "none" else name


def state_folders(root: HostRoot, cpu: int) -> tuple[tuple[int, str], ...]:
    """Return the folders of a CPU's idle states as (index, path), the shallowest state first."""
    return root.numbered(f"{CPU_DIR}/cpu{cpu}/cpuidle", "state")


def read_exit_latencies(root: HostRoot, cpus: Iterable[int]) -> dict[str, int] | None:
    """Return folder of an idle state → its exit latency in µs, for these CPUs.

    Return None if one of the CPUs shows no idle state. A latency that cannot be read counts as 0. Latencies do not
    change while the host runs.
    """
    folders: dict[str, int] = {}
    for cpu in cpus:
        states = state_folders(root, cpu)
        if not states:
            return None
        folders |= {folder: root.integer(f"{folder}/latency") or 0 for _, folder in states}
    return folders


def read_idle_use(root: HostRoot, latencies: Mapping[str, int]) -> tuple[int, int]:
    """Return two numbers since boot: how often idle states were entered, and the sum of their exit latencies in µs. The
    sum contains a state's exit latency once for each time that the state was entered.

    ``latencies``: folder of an idle state → its exit latency in µs. A state whose counter cannot be read counts as
    never entered.
    """
    used = {folder: root.integer(f"{folder}/usage") or 0 for folder in latencies}
    return sum(used.values()), sum(times * latencies[folder] for folder, times in used.items())


def parse_disable(value: int | None) -> bool | None:
    """Return True if the user disabled an idle state. ``value``: the number in the state's file ``disable``. Bit 0
    means that the user disabled the state, bit 1 that the driver disabled the state. Return None if ``value`` is
    None."""
    return None if value is None else value & 1 == 1


def resume_latency_path(cpu: int) -> str:
    """Return the path of the file that limits how long one CPU may take to wake."""
    return f"{CPU_DIR}/cpu{cpu}/power/pm_qos_resume_latency_us"


def read_resume_latency(root: HostRoot, cpu: int) -> ResumeLatency:
    """Return the limit on one CPU's wake-up time. The kernel's file contains µs; ``0`` means no limit, and ``n/a``
    means a limit of 0 µs."""
    reading = root.reading(resume_latency_path(cpu))
    if reading.text is None:
        return ResumeLatency(None, None, reading.reason)
    if reading.text == "n/a":
        return ResumeLatency("n/a", 0)
    if not (reading.text.isascii() and reading.text.isdigit() and len(reading.text) <= 10):
        return ResumeLatency(None, None, "the file does not hold a latency")
    return ResumeLatency(reading.text, int(reading.text) or None)
