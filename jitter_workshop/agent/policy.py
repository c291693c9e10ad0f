"""Check what a caller may ask for. The caller need not be this program: it may be a student's own.

The paths and values of a write always come from the tunables of this tree. A caller chooses only ids, values that the
tunable checks, and hot CPUs. In addition, no plan may take the last housekeeping CPU away from the administrators.
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
    """Return this host with the hot CPUs of a request. Raises UsageError if they are not a list, HostError if they are
    not online."""
    try:
        hot = CpuSet.parse_list(cpus)
    except ValueError:
        raise UsageError("the hot CPUs are not a list of CPUs") from None
    if not hot:
        raise UsageError("no hot CPU is named")
    topology = read_topology(root)
    missing = hot - topology.online
    if missing:
        raise HostError(f"CPU {missing} is not online", f"CPUs online: {topology.online}")
    return Host(root, hot, topology)


def permitted(host: Host, changes: Sequence[Change]) -> tuple[list[Change], list[Refused]]:
    """Return the changes that may be made, and the refused ones with the reason.

    At least one CPU that is not hot stays online, outside every isolated set, and open to every interrupt and workqueue
    that is moved. It may be a sibling of a hot CPU, because a small host may have no other (``Host.crowded``).
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
    """Return the CPUs that a change takes offline, for a moment or for good."""
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
    """Return all threads of each core except the first: those that the kernel takes offline
    (Documentation/ABI/testing/sysfs-devices-system-cpu, ``smt/control``)."""
    return CpuSet.of(
        cpu.id
        for cpu in host.topology.cpus
        if cpu.id in host.online and cpu.smt_siblings and cpu.id != min(cpu.smt_siblings)
    )


def _takes_away(host: Host, change: Change, housekeeping: CpuSet) -> str:
    """Return why the CPUs that a change names are not allowed, "" if they are.

    ``housekeeping``: the CPUs that are not hot and stay online.
    """
    if change.tunable in ISOLATING and not housekeeping:
        return "no housekeeping CPU would be left outside the isolated ones"
    last = change.path.rpartition("/")[2]
    if change.tunable == "isolation" and last == "cpuset.cpus" and not housekeeping - _cpus(change):
        return "no housekeeping CPU would be left outside the isolated ones"
    if change.path.startswith(("/proc/irq/", _WORKQUEUES)) and not _cpus(change) & housekeeping:
        return "no housekeeping CPU would be left for it"
    return ""


def _cpus(change: Change) -> CpuSet:
    """Return the CPUs that a change writes as a list or a mask; an empty set, which refuses the change, if it is
    neither."""
    try:
        if change.kind in ("cpu-mask", "workqueue-mask"):
            return CpuSet.parse_mask(change.after)
        return CpuSet.parse_list(change.after)
    except ValueError:
        return CpuSet()
