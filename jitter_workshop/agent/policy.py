"""What a caller may ask for. Nothing here believes that the caller is this program: a class's student may be.

The paths and values of a write always come from the tunables of this tree; a caller chooses among ids, values that the
tunable checks, and hot CPUs. On top of that no plan may take the machine away from those who look after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.errors import HostError, UsageError
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import Change, Refused
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import owned
from jitter_workshop.tuning.tunables.registry import find

ISOLATING = ("isolation", "isolcpus", "nohz-full")
_CPU = "/sys/devices/system/cpu/"
_WORKQUEUES = "/sys/devices/virtual/workqueue/"


def host_for(root: HostRoot, cpus: str) -> Host:
    """This host with the hot CPUs of a request. Raises UsageError for what is no list, HostError for CPUs that are not
    online."""
    try:
        hot = CpuSet.parse_list(cpus)
    except ValueError:
        raise UsageError("the hot CPUs are no list of CPUs") from None
    if not hot:
        raise UsageError("no hot CPU is named")
    topology = read_topology(root)
    missing = hot - topology.online
    if missing:
        raise HostError(f"CPU {missing} is not online", f"CPUs online: {topology.online}")
    return Host(root, hot, topology)


def permitted(host: Host, changes: Sequence[Change]) -> tuple[list[Change], list[Refused]]:
    """The changes that may be made, and the others with the reason.

    At least one CPU that is not hot stays online, outside every isolated set, and open to every interrupt and workqueue
    that is moved; a sibling of a hot CPU will do, for on a small host there may be no other (``Host.crowded``).
    """
    allowed: list[Change] = []
    refused: list[Refused] = []
    offline = CpuSet()
    for change in changes:
        why = "" if owned(find(change.tunable), change.path) else f"it is not among the files of {change.tunable}"
        going = _taken_offline(host, change)
        if not why and going and not host.not_hot - offline - going:
            why = "it would take the last housekeeping CPU offline"
        why = why or _takes_away(host, change, host.not_hot - offline)
        if why:
            refused.append(Refused(change.tunable, change.path, f"{why}: not allowed"))
        else:
            offline |= going
            allowed.append(change)
    return allowed, refused


def _taken_offline(host: Host, change: Change) -> CpuSet:
    """The CPUs that a change takes offline, for a moment or for good."""
    if not change.path.startswith(_CPU):
        return CpuSet()
    name = change.path.removeprefix(_CPU)
    if name == "smt/control" and change.after.strip() in ("off", "forceoff"):
        return _second_threads(host)
    folder, _, file = name.partition("/")
    number = folder.removeprefix("cpu")
    if file == "online" and number.isascii() and number.isdigit() and change.after.strip().startswith("0"):
        return CpuSet.of([int(number)]) & host.online
    return CpuSet()


def _second_threads(host: Host) -> CpuSet:
    """All threads of a core but its first, which are what the kernel takes offline (Documentation/ABI/testing/
    sysfs-devices-system-cpu, ``smt/control``)."""
    return CpuSet.of(
        cpu.id
        for cpu in host.topology.cpus
        if cpu.id in host.online and cpu.smt_siblings and cpu.id != min(cpu.smt_siblings)
    )


def _takes_away(host: Host, change: Change, housekeeping: CpuSet) -> str:
    """Why the CPUs that a change names may not be named so, "" where they may. ``housekeeping``: those that are not hot
    and stay online."""
    if change.tunable in ISOLATING and not housekeeping:
        return "no housekeeping CPU would be left outside the isolated ones"
    last = change.path.rpartition("/")[2]
    if change.tunable == "isolation" and last == "cpuset.cpus" and not housekeeping - _cpus(change):
        return "no housekeeping CPU would be left outside the isolated ones"
    if change.path.startswith(("/proc/irq/", _WORKQUEUES)) and not _cpus(change) & housekeeping:
        return "no housekeeping CPU would be left for it"
    return ""


def _cpus(change: Change) -> CpuSet:
    """The CPUs that a change writes as a list or a mask; none where it is neither, which refuses the change."""
    try:
        if change.kind in ("cpu-mask", "workqueue-mask"):
            return CpuSet.parse_mask(change.after)
        return CpuSet.parse_list(change.after)
    except ValueError:
        return CpuSet()
