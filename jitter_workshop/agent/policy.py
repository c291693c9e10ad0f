"""Check the requests of a caller. On a class host, also check the requests against the rules of the class. The caller
may be any program, such as a student's own.

The paths and values of a write always come from the tunables of this tool. A caller chooses only three things: the ids
of tunables, their values, and the hot CPUs. Each tunable checks its value. In addition, no plan may take the last
housekeeping CPU away from the administrators.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from jitter_workshop.errors import HostError, UsageError, WorkshopError
from jitter_workshop.host.classfile import ANY, ClassFile
from jitter_workshop.host.cpu.topology import CPU_DIR, read_topology
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.change import IRQ_HERE, Change, Refused, Wanted
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.planning import owned
from jitter_workshop.tuning.switched import cpu_of
from jitter_workshop.tuning.tunables.registry import find_tunable

NO_BOOT_CHANGES = "only an instructor may make boot changes"
ISOLATING = ("isolation", "isolcpus", "nohz-full")
_WORKQUEUES = "/sys/devices/virtual/workqueue/"


@dataclass(frozen=True, slots=True)
class Member:
    """Describe a person in a class (a course). ``may_apply``: the ids of the tunables that a student may apply; ``*``
    means all."""

    uid: int
    user: str
    instructor: bool
    may_apply: tuple[str, ...]
    described: ClassFile


def host_for(root: HostRoot, cpus: str) -> Host:
    """Return this host with the hot CPUs of a request. Raise UsageError if ``cpus`` is not a list of CPUs. Raise
    HostError if a CPU is not online."""
    hot = _parsed(cpus)
    if not hot:
        raise UsageError("no CPU is chosen as hot: choose with --cpus")
    topology = read_topology(root)
    missing = hot - topology.online
    if missing:
        raise HostError(f"CPU {missing} is not online", f"CPUs online: {topology.online}")
    return Host(root, hot, topology)


def _parsed(cpus: str) -> CpuSet:
    parsed = CpuSet.if_list(cpus)
    if parsed is None:
        raise UsageError("the hot CPUs must be a list such as 2-3")
    return parsed


def check_cpus(who: Member, cpus: str) -> None:
    """Raise HostError if ``who`` is a student and ``cpus`` are not the class's hot CPUs. Raise UsageError if ``cpus``
    is not a list of CPUs."""
    hot = who.described.hot_cpus
    if not who.instructor and (asked := _parsed(cpus)) != hot:
        raise HostError(f"the hot CPUs of this class are {hot}, not {asked or 'none'}")


def check_follows(who: Member) -> None:
    """Raise HostError if ``who`` is a student. Students may trace only this tool's own programs.

    The trace of another program shows the activity of all tasks on all CPUs.
    """
    if not who.instructor:
        raise HostError("in this class only an instructor may trace a program that is not part of this tool")


def check_asked(who: Member, wanted: tuple[Wanted, ...], cpus: str) -> None:
    """Raise HostError if a student asks for hot CPUs that are not the class's, or for tunables that the class does not
    let the student apply.

    Raise UsageError if ``cpus`` is not a list of CPUs.
    """
    check_cpus(who, cpus)
    if who.instructor:
        return
    for one in wanted:
        if one.id == IRQ_HERE:
            raise HostError(f"only an instructor may apply {one.id}")
        if find_tunable(one.id).when == "boot":
            raise HostError(f"{one.id} takes effect at the next boot: {NO_BOOT_CHANGES}")
        if ANY not in who.may_apply and one.id not in who.may_apply:
            raise HostError(f"you may not apply {one.id} in this class", "ask the instructor to allow it")


def housekeeping(root: HostRoot, described: ClassFile) -> CpuSet:
    """Return the CPUs of this class that are not hot. Raise HostError if a hot CPU is not online."""
    return host_for(root, str(described.hot_cpus)).housekeeping


def keep_to_housekeeping(root: HostRoot, described: ClassFile) -> None:
    """Move this process to the housekeeping CPUs of the class, if that is possible. The process's caller may have
    started it on any CPU."""
    with contextlib.suppress(WorkshopError, OSError):
        os.sched_setaffinity(0, set(housekeeping(root, described)))


def permitted(host: Host, changes: Sequence[Change], who: Member | None = None) -> tuple[list[Change], list[Refused]]:
    """Return a pair: the allowed changes, and a Refused with the reason for each other change.

    A change must not take the last housekeeping CPU offline, or isolate it. An interrupt or a workqueue must still be
    able to use a housekeeping CPU, except an interrupt that ``irq-here`` sends to a hot CPU. Siblings of hot CPUs count
    as housekeeping CPUs here. ``who``: the caller as a member of the class; None outside a class.
    """
    allowed: list[Change] = []
    refused: list[Refused] = []
    offline = CpuSet()
    for change in changes:
        why = "" if owned(find_tunable(change.tunable), change.path) else f"{change.tunable} may not write this path"
        going = _taken_offline(host, change)
        if not why and going and not host.not_hot - offline - going:
            why = "the change would take the last housekeeping CPU offline"
        why = why or _takes_away(change, host.not_hot - offline)
        if why:
            refused.append(Refused(change.tunable, change.path, f"{why}: not allowed"))
        else:
            offline |= going
            if who is not None and (not_theirs := _not_for(who, change)):
                refused.append(Refused(change.tunable, change.path, not_theirs))
            else:
                allowed.append(change)
    return allowed, refused


def _taken_offline(host: Host, change: Change) -> CpuSet:
    """Return the CPUs that a change takes offline. Include a CPU that the same change puts online again immediately."""
    if change.path == f"{CPU_DIR}/smt/control":
        return host.second_threads if change.after.strip() in ("off", "forceoff") else CpuSet()
    cpu = cpu_of(change.path)
    if cpu is not None and change.path.endswith("/online") and change.after.strip().startswith("0"):
        return CpuSet((cpu,)) & host.online
    return CpuSet()


def _takes_away(change: Change, housekeeping: CpuSet) -> str:
    """Return the reason if a change would leave no housekeeping CPU for other work.

    Return "" if a housekeeping CPU remains. ``housekeeping``: the CPUs that are not hot and stay online.
    """
    if change.tunable in ISOLATING and not housekeeping:
        return "the change would isolate every housekeeping CPU"
    last = change.path.rpartition("/")[2]
    if change.tunable == "isolation" and last == "cpuset.cpus" and not housekeeping - _cpus(change):
        return "the change would isolate every housekeeping CPU"
    moved = change.path.startswith(("/proc/irq/", _WORKQUEUES)) and change.tunable != IRQ_HERE
    if moved and not _cpus(change) & housekeeping:
        return "the change would leave an interrupt or a workqueue without a housekeeping CPU"
    return ""


def _cpus(change: Change) -> CpuSet:
    """Return the CPUs in a change's new value. Return an empty set if the value is not a CPU list or mask."""
    try:
        if change.kind in ("cpu-mask", "workqueue-mask"):
            return CpuSet.parse_mask(change.after)
        return CpuSet.parse_list(change.after)
    except ValueError:
        return CpuSet()


def _not_for(who: Member, change: Change) -> str:
    """Return the reason why the member ``who`` may not make a change; "" if the change is allowed."""
    if who.instructor:
        return ""
    if change.when not in ("run", "runtime"):
        return NO_BOOT_CHANGES
    if change.risk == "high" and change.tunable not in who.may_apply:
        return "the class file does not allow you this high-risk change: ask the instructor"
    return ""
