"""Define the kinds for settings of one task.

A path names a task by its number and its start time (field 22 of ``stat``, clock ticks since boot; proc_pid_stat(5)).
So a later task that gets the same number is never changed.
"""

from __future__ import annotations

import errno
from collections.abc import Collection
from typing import TYPE_CHECKING

from jitter_workshop.host.kernel.release import version_of
from jitter_workshop.host.root import HostRoot, TextReading, is_count
from jitter_workshop.host.tasks.listing import parse_allowed, parse_task_stat, read_task
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.text import LABEL
from jitter_workshop.tuning.setting_types.kinds import CpuList, Kind, cpu_lists, offline_among

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched
    from jitter_workshop.tuning.writer import HostWriter

GONE = "no such file"
"""Reason for a setting that no longer exists (as ``HostRoot`` gives it)."""

NODE_THREADS = ("kswapd", "kcompactd")
"""Kernel threads that the kernel binds to their memory node's CPUs, and binds again whenever one of these CPUs returns.
"""

_STAT_BYTES = 4_096
_STATUS_BYTES = 16_384


def affinity_call(tid: int, start_ticks: int) -> str:
    """Return the ``path`` of a task's affinity, such as ``sched_setaffinity(812@5501)``: the task's number and its
    start time."""
    return f"sched_setaffinity({tid}@{start_ticks})"


def remembers_wishes(root: HostRoot) -> bool:
    """Return True if the kernel remembers the affinity that a user requested, besides the affinity in force.

    Kernels from 6.2 on remember the requested affinity (``user_cpus_ptr``, kernel/sched/core.c). Earlier kernels lose
    it when a partition is made or removed.
    """
    return version_of(root.text("/proc/sys/kernel/osrelease") or "") >= (6, 2)


def cgroup_call(tid: int, start_ticks: int) -> str:
    """Return the ``path`` of a task's version 1 cpuset, such as ``cgroup(812@5501)``: the task's number and its start
    time."""
    return f"cgroup({tid}@{start_ticks})"


def parse_call(path: str, call: str) -> tuple[int, int]:
    """Return the task's number and start time in a path ``CALL(TID@START)``. Raise ValueError if the path has another
    form."""
    inside = path.removeprefix(f"{call}(").removesuffix(")")
    tid, at, start = inside.partition("@")
    if path != f"{call}({inside})" or not at or not all(map(is_count, (tid, start))) or int(tid) < 1:
        raise ValueError(f"not a task's {call}: {path[:LABEL]!r}")
    return int(tid), int(start)


def same_task(root: HostRoot, tid: int, start_ticks: int) -> bool:
    """Return True if task ``tid`` still exists and is the task that began at ``start_ticks``.

    Return False for a zombie: a task that has ended, but whose parent has not waited for it. The kernel accepts writes
    to a zombie's settings, but they have no effect.
    """
    task = parse_task_stat(root.text(f"/proc/{tid}/stat", _STAT_BYTES))
    return task is not None and task.start_ticks == start_ticks and not task.ended


def task_name(root: HostRoot, path: str) -> str:
    """Return the name of the task in a path ``CALL(TID@START)``. Return "" if the path has another form or the task has
    ended."""
    try:
        tid, start = parse_call(path, path.partition("(")[0])
    except ValueError:
        return ""
    task = read_task(root, tid)
    return task.name if task is not None and task.start_ticks == start and not task.ended else ""


class _OfTask(Kind):
    """Handle a setting of one task. The setting is read and written only while the path names a living task."""

    of_task = True
    call = ""

    def read(self, root: HostRoot, path: str) -> TextReading:
        try:
            tid, start = parse_call(path, self.call)
        except ValueError as error:
            return TextReading(None, str(error))
        if not same_task(root, tid, start):
            return TextReading(None, GONE)
        return self._read(root, tid)

    def write(self, writer: HostWriter, path: str, value: str) -> None:
        try:
            tid, start = parse_call(path, self.call)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None
        if not same_task(writer.reader, tid, start):
            raise ProcessLookupError(errno.ESRCH, "the task has ended")
        self._write(writer, tid, value)

    def exists(self, root: HostRoot, path: str) -> bool:
        try:
            return same_task(root, *parse_call(path, self.call))
        except ValueError:
            return True

    def _read(self, root: HostRoot, tid: int) -> TextReading:
        raise NotImplementedError

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        raise NotImplementedError


class Affinity(_OfTask, CpuList):
    """Handle the CPUs that a task may use, as a list (``sched_setaffinity(2)``)."""

    name = "affinity"
    call = "sched_setaffinity"

    def _read(self, root: HostRoot, tid: int) -> TextReading:
        reading = root.reading(f"/proc/{tid}/status", _STATUS_BYTES)
        if reading.text is None:
            return reading
        allowed = parse_allowed(reading.text)
        return TextReading(str(allowed)) if allowed is not None else TextReading(None, "the task shows no affinity")

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        try:
            cpus = CpuSet.parse_list(value)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None
        writer.set_affinity(tid, cpus)

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        values = cpu_lists(known)
        try:
            now, (tid, _) = CpuSet.parse_list(found), parse_call(path, self.call)
        except ValueError:
            return False
        online = root.cpu_list("/sys/devices/system/cpu/online")
        if online and any(now == value & online for value in values):
            return True  # a kernel before 6.2 makes this of a mask with offline CPUs
        if not switched:
            return False
        nodes: tuple[CpuSet, ...] = ()
        if switched.cpus and (task := read_task(root, tid)) is not None:
            from jitter_workshop.tuning.switched import node_cpus

            nodes = node_cpus(root) if task.kernel and task.name.startswith(NODE_THREADS) else ()
        return now in switched.masks(values, nodes)

    def waits_for(self, root: HostRoot, path: str, value: str) -> str:
        from jitter_workshop.host.tasks.cpusets import find_cpusets, isolated_at_run_time, limited_by

        try:
            wanted, (tid, _) = CpuSet.parse_list(value), parse_call(path, self.call)
        except ValueError:
            return ""
        away = offline_among(root, [wanted])
        sets = None if away else find_cpusets(root)
        group = None if sets is None else limited_by(root, sets, tid)
        if group is not None and wanted - group.effective:
            return f"the task's control group '{group.name}' has only CPU {group.effective or group.cpus}"
        held = isolated_at_run_time(root, sets) if sets is not None and sets.version == 2 else CpuSet()
        inside = wanted & held
        return away or (f"CPU {inside} {'are' if len(inside) > 1 else 'is'} in an isolated cpuset" if inside else "")


class AffinityAcross(Affinity):
    """Handle an affinity that the kernel overwrites because of another write of the plan. The plan records the
    affinity before the other write, and writes it again afterwards.

    When a partition is made or removed, kernels before 6.2 replace the affinity of every task outside the partition.
    Newer kernels keep an affinity that a program has requested, and replace all others (kernel/cgroup/cpuset.c,
    ``update_tasks_cpumask``).
    """

    name = "affinity-across"
    always = True


class IrqThread(AffinityAcross):
    """Handle the affinity of an interrupt's thread, which the kernel resets when the interrupt moves.

    A restore writes the affinity, but the kernel may reset it later. Source: kernel/irq/manage.c,
    ``irq_thread_check_affinity``.
    """

    name = "irq-thread"
    self_moving = True

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        """Write the affinity of an interrupt's thread. Do not write if the interrupt's own affinity lacks a CPU of
        ``value``. The kernel lets the thread use only the CPUs of its interrupt.
        """
        task = read_task(writer.reader, tid)
        number = "" if task is None else task.name.removeprefix("irq/").partition("-")[0]
        interrupt = writer.reader.cpu_list(f"/proc/irq/{number}/smp_affinity_list") if number.isdecimal() else None
        if interrupt is None or not CpuSet.parse_list(value) - interrupt:
            super()._write(writer, tid, value)


class TaskCgroup(_OfTask):
    """Handle the version 1 cpuset of a task. The value is ``/`` or ``/name``
    (Documentation/admin-guide/cgroup-v1/cpusets.rst)."""

    name = "task-cgroup"
    call = "cgroup"

    def _read(self, root: HostRoot, tid: int) -> TextReading:
        from jitter_workshop.host.tasks.cgroup import parse_memberships

        reading = root.reading(f"/proc/{tid}/cgroup")
        for member in parse_memberships(reading.text or ""):
            if "cpuset" in member.controllers:
                return TextReading(member.path)
        return TextReading(None, reading.reason or "the task is in no version 1 cpuset")

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        from jitter_workshop.host.tasks.cpusets import find_cpusets

        found = find_cpusets(writer.reader)
        if found is None or found.version != 1:
            raise OSError(errno.ENODEV, "no version 1 cpuset is mounted")
        writer.write(f"{found.where}{value.rstrip('/')}/tasks", str(tid))

    def by_kernel(self, root: HostRoot, path: str, found: str, known: Collection[str], switched: Switched) -> bool:
        """Return True if the task is in one of our own cpusets, which this tool fills and empties."""
        return found.startswith("/jitter-workshop")
