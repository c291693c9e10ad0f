"""Plan extra writes for settings that the kernel changes when a CPU goes offline.

The CPU's return does not restore these settings (Documentation/core-api/cpu_hotplug.rst; kernel/irq/cpuhotplug.c,
kernel/sched/core.c, kernel/cgroup/cpuset.c):

* the affinity of interrupts that are allowed only on this CPU: the kernel sets it to all CPUs;
* the affinity of tasks that are allowed only on this CPU: the kernel sets it to all CPUs;
* the CPU lists of version 1 cpusets: the kernel removes the CPU from them.

A driver may also reset its own settings. Whenever a CPU goes offline or comes online, virtio_net assigns CPUs to its
queues again (drivers/net/virtio_net.c).

If an affinity also has other CPUs, the requested affinity is kept. The requested CPUs of version 2 cpusets are also
kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.host.irq.irq_affinity import affinity_path, read_irqs
from jitter_workshop.host.root import parse_integer, printable
from jitter_workshop.host.tasks.cpusets import find_cpusets
from jitter_workshop.host.tasks.listing import each_thread, read_allowed_cpus, read_task
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import LABEL, WORD
from jitter_workshop.tuning.base import Unavailable, Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.tasks import NODE_THREADS, affinity_call
from jitter_workshop.tuning.tunables.interrupts import refuses

_SETS = "/sys/fs/cgroup/cpuset"
_MAX_DEPTH = 6
_NET = "/sys/class/net"

OWNS = (
    "/proc/irq/*/smp_affinity_list",
    "/sys/class/net/*/queues/*/xps_cpus",
    "sched_setaffinity(*)",
    *(f"{_SETS}{'/*' * depth}/cpuset.cpus" for depth in range(1, _MAX_DEPTH + 1)),
)


def displaced(host: Host, leaving: CpuSet, stay: CpuSet) -> list[Write]:
    """Return writes for the settings that the kernel changes when ``leaving`` go offline.

    A setting that would lose all its CPUs is moved to the CPUs ``stay``. Raise Unavailable if a version 1 cpuset would
    lose its last CPU. Also raise it if this tool cannot write the cpuset's CPUs.
    """
    in_sets = list(_cpusets(host, leaving))
    known = {write.path for write in in_sets}
    tasks = [write for write in _tasks(host, leaving, stay) if write.path not in known]
    return [*_interrupts(host, leaving, stay), *_queues(host), *tasks, *in_sets]


def _interrupts(host: Host, leaving: CpuSet, stay: CpuSet) -> Iterator[Write]:
    for irq in read_irqs(host.root):
        # The kernel switches a managed interrupt off with its last CPU and on again with it: nothing is lost.
        if irq.affinity is None or not irq.name or refuses(irq):
            continue
        bound = _bound(irq.affinity, host, leaving)
        moved = irq.name.startswith("virtio") and ("-input." in irq.name or "-output." in irq.name)
        why = "may arrive only on these CPUs. Without this write the interrupt could arrive on every CPU."
        if moved:
            why = "is moved by its driver whenever a CPU goes offline or comes back."
        if moved or bound:
            kind, after = "irq-across" if moved else "cpu-list", str(stay if bound else irq.affinity)
            why = f"Interrupt {irq.number} ({irq.name}) {why}"
            yield Write(affinity_path(irq.number), str(irq.affinity), after, kind, why)


def _queues(host: Host) -> Iterator[Write]:
    """Yield a write for each send queue of virtio network cards. The write sets the mask of the CPUs that use the
    queue."""
    for device in host.root.list_dir(_NET):
        if "DRIVER=virtio_net" not in (host.root.text(f"{_NET}/{device}/device/uevent") or "").split():
            continue
        for _, folder in host.root.numbered(f"{_NET}/{device}/queues", "tx-"):
            # A card with one queue has the file, but reading it fails.
            mask = host.root.text(f"{folder}/xps_cpus")
            if mask is not None:
                driver = f"The driver of {printable(device, WORD)}"
                why = f"{driver} resets this mask whenever a CPU goes offline or comes back."
                yield Write(f"{folder}/xps_cpus", mask, mask, "mask-across", why=why)


def _tasks(host: Host, leaving: CpuSet, stay: CpuSet) -> Iterator[Write]:
    for task in each_thread(host.root):
        # The thread of an interrupt follows its interrupt.
        if task.fixed or (task.kernel and task.name.startswith("irq/")):
            continue
        allowed = read_allowed_cpus(host.root, task)
        if allowed is None:
            continue
        call = affinity_call(task.tid, task.start_ticks)
        if task.kernel and task.name.startswith(NODE_THREADS) and allowed & leaving:
            after = (allowed & host.online) - leaving or stay
            why = (
                f"Whenever a CPU of its memory node comes back, the kernel lets '{task.name}' run on all CPUs of this "
                "node."
            )
            yield Write(call, str(allowed), str(after), "affinity-across", why)
        elif _bound(allowed, host, leaving):
            why = f"'{task.name}' may run only on these CPUs. Without this write the task could run on every CPU."
            yield Write(call, str(allowed), str(stay), "affinity", why)


def _cpusets(host: Host, leaving: CpuSet) -> Iterator[Write]:
    """Yield the writes for version 1 cpusets that have a CPU in ``leaving``. Inner cpusets come before outer ones.

    When the CPUs of a cpuset are written, the kernel overwrites the affinities of some of its tasks. So writes that
    record and set these tasks' affinities come first (``setting_types.tasks.AffinityAcross``). Raise Unavailable as
    :func:`displaced`.
    """
    sets = find_cpusets(host.root)
    if sets is None or sets.version != 1:
        return
    for folder, depth in _folders(host, sets.where, 1):
        cpus = host.root.cpu_list(f"{folder}/cpuset.cpus")
        if cpus is None or not cpus & leaving:
            continue
        name = printable(folder.removeprefix(f"{sets.where}/"), LABEL)
        left = cpus - leaving
        if not left & host.online:
            raise Unavailable(
                f"the cpuset '{name}' contains no other CPU: its tasks would move to another cpuset and not come back"
            )
        if sets.where != _SETS or depth > _MAX_DEPTH:
            raise Unavailable(
                f"the cpuset '{name}' would permanently lose CPU {cpus & leaving}: first remove these CPUs from the "
                "cpuset"
            )
        for word in (host.root.text(f"{folder}/tasks") or "").split():
            tid = parse_integer(word)
            task = None if tid is None else read_task(host.root, tid)
            allowed = None if task is None else read_allowed_cpus(host.root, task)
            if task is None or allowed is None or task.fixed or task.ended or allowed == cpus:
                continue
            call, after = affinity_call(task.tid, task.start_ticks), str((allowed - leaving) or left)
            why = f"When the cpuset gets fewer CPUs, the kernel overwrites the affinity of '{task.name}'."
            yield Write(call, str(allowed), after, "affinity-across", why)
        why = f"The cpuset '{name}' would lose CPU {cpus & leaving} for good."
        yield Write(f"{folder}/cpuset.cpus", str(cpus), str(left), "cpu-list", why)


def _folders(host: Host, folder: str, depth: int) -> Iterator[tuple[str, int]]:
    """Yield every control group below ``folder`` with its depth, inner groups before outer groups."""
    for name in host.root.list_dir(folder):
        inner = f"{folder}/{name}"
        if depth <= _MAX_DEPTH + 1 and host.root.is_dir(inner):
            yield from _folders(host, inner, depth + 1)
            yield inner, depth


def _bound(allowed: CpuSet, host: Host, leaving: CpuSet) -> bool:
    """Return True if an affinity has online CPUs and all of them are in ``leaving``."""
    online = allowed & host.online
    return bool(online) and not online - leaving
