"""Read how often and how long heat slowed the processor down.

Source: thermal_throttle in ABI/testing/sysfs-devices-system-cpu. Intel processors count it; AMD, ARM and guests show
nothing.
"""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass


@dataclass(frozen=True, slots=True)
class Throttling:
    """Hold the counts since boot, each core and each package counted once.

    ``core_ms`` / ``package_ms``: time spent throttled, None where the kernel (before 5.6) does not count it.
    """

    core_events: int
    package_events: int
    core_ms: int | None = None
    package_ms: int | None = None

    @property
    def events(self) -> int:
        return self.core_events + self.package_events


@dataclass(slots=True)
class _Group:
    """Hold the largest count among the threads of one core, or of one package: all of them count the same event."""

    events: int = 0
    milliseconds: int | None = None


def read_throttling(root: HostRoot, cpus: CpuSet | None = None) -> Throttling | None:
    """Return the counters of ``cpus``, or of all; None where none of them counts any.

    This reads two files a CPU, more only for those that throttled.
    """
    cores: dict[str, _Group] = {}
    packages: dict[str, _Group] = {}
    folders = root.numbered(CPU_DIR, "cpu") if cpus is None else [(cpu, f"{CPU_DIR}/cpu{cpu}") for cpu in cpus]
    for number, folder in folders:
        counts = f"{folder}/thermal_throttle"
        # A CPU that counts anything counts its core's events, so without that file the others need not be read.
        if _note(root, cores, f"{counts}/core", f"{folder}/topology/thread_siblings_list", number):
            _note(root, packages, f"{counts}/package", f"{folder}/topology/core_siblings_list", number)
    if not cores:
        return None
    return Throttling(
        sum(g.events for g in cores.values()),
        sum(g.events for g in packages.values()),
        _total_ms(cores),
        _total_ms(packages),
    )


def _note(root: HostRoot, groups: dict[str, _Group], prefix: str, siblings: str, number: int) -> bool:
    count = root.integer(f"{prefix}_throttle_count")
    if count is None or count < 0:
        return False
    if count == 0:
        # A count of 0 adds nothing, so its core or package need not be known.
        groups.setdefault("", _Group())
        return True
    group = groups.setdefault(root.text(siblings) or f"cpu{number}", _Group())
    group.events = max(group.events, count)
    milliseconds = root.integer(f"{prefix}_throttle_total_time_ms")
    if milliseconds is not None and milliseconds >= 0:
        group.milliseconds = max(group.milliseconds or 0, milliseconds)
    return True


def _total_ms(groups: dict[str, _Group]) -> int | None:
    throttled = [g for g in groups.values() if g.events]
    known = [g.milliseconds for g in throttled if g.milliseconds is not None]
    return sum(known) if known or not throttled else None
