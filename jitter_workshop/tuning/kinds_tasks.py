"""Kinds for what belongs to one task. A task is named by its number and its start time (field 22 of ``stat``, clock
ticks since boot), so that a number that was given away again is never touched (proc_pid_stat(5))."""

from __future__ import annotations

import errno

from jitter_workshop.host.root import HostRoot, TextReading
from jitter_workshop.host.tasks import parse_allowed, parse_stat
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.kinds import CpuList, Kind
from jitter_workshop.tuning.writer import HostWriter

GONE = "no such file"
"""The reason that stands for what is not there any more (as ``HostRoot`` says it)."""

_STAT_BYTES = 4_096
_STATUS_BYTES = 16_384


def affinity_call(tid: int, start_ticks: int) -> str:
    """The ``path`` of a task's affinity."""
    return f"sched_setaffinity({tid}@{start_ticks})"


def cgroup_call(tid: int, start_ticks: int) -> str:
    """The ``path`` of a task's place among the version 1 cpusets."""
    return f"cgroup({tid}@{start_ticks})"


def parse_call(path: str, call: str) -> tuple[int, int]:
    """Number and start time of ``CALL(TID@START)``. Raises ValueError for anything else."""
    inside = path.removeprefix(f"{call}(").removesuffix(")")
    tid, at, start = inside.partition("@")
    if path != f"{call}({inside})" or not at or not all(_is_number(word) for word in (tid, start)) or int(tid) < 1:
        raise ValueError(f"not a task's {call}: {path[:60]!r}")
    return int(tid), int(start)


def same_task(root: HostRoot, tid: int, start_ticks: int) -> bool:
    """Whether the task of this number is still the one that began then. One that has ended, and that nobody has asked
    for, is none: the kernel takes writes for it and does nothing."""
    task = parse_stat(root.text(f"/proc/{tid}/stat", _STAT_BYTES))
    return task is not None and task.start_ticks == start_ticks and not task.ended


class _OfTask(Kind):
    """Reads and writes only while the task is still the same."""

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
    """The CPUs that a task may use, as a list (``sched_setaffinity(2)``)."""

    name = "affinity"
    call = "sched_setaffinity"

    def _read(self, root: HostRoot, tid: int) -> TextReading:
        reading = root.reading(f"/proc/{tid}/status", _STATUS_BYTES)
        if reading.text is None:
            return reading
        allowed = parse_allowed(reading.text)
        return TextReading(str(allowed)) if allowed is not None else TextReading(None, "it shows no affinity")

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        try:
            cpus = CpuSet.parse_list(value)
        except ValueError as error:
            raise OSError(errno.EINVAL, str(error)) from None
        writer.set_affinity(tid, cpus)


class AffinityAcross(Affinity):
    """An affinity that a cpuset is about to overwrite: kernels before 6.2 replace every task's mask when a partition is
    made or dissolved, newer ones those that no user set (kernel/cgroup/cpuset.c, ``update_tasks_cpumask``).

    Noted before the cpuset changes and therefore given back after it is gone. ``after`` is what is written, and what
    the kernel may make of it while and after the partition stands: ``0 or 0-2 or 0-3``.
    """

    name = "affinity-across"
    always = True

    def same(self, a: str, b: str) -> bool:
        try:
            return not alternatives(a).isdisjoint(alternatives(b))
        except ValueError:
            return super().same(a, b)

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        super()._write(writer, tid, value.partition(" or ")[0])


def alternatives(text: str) -> set[CpuSet]:
    """``0 or 0-2`` as two sets. Raises ValueError where one is no list."""
    return {CpuSet.parse_list(part) for part in text.split(" or ")}


class TaskCgroup(_OfTask):
    """The version 1 cpuset that a task is in: ``/`` or ``/name`` (Documentation/admin-guide/cgroup-v1/cpusets.rst)."""

    name = "task-cgroup"
    call = "cgroup"

    def _read(self, root: HostRoot, tid: int) -> TextReading:
        from jitter_workshop.host.cgroup import parse_memberships

        reading = root.reading(f"/proc/{tid}/cgroup")
        for member in parse_memberships(reading.text or ""):
            if "cpuset" in member.controllers:
                return TextReading(member.path)
        return TextReading(None, reading.reason or "it is in no version 1 cpuset")

    def _write(self, writer: HostWriter, tid: int, value: str) -> None:
        from jitter_workshop.host.cpusets import find_cpusets

        found = find_cpusets(writer.reader)
        if found is None or found.version != 1:
            raise OSError(errno.ENODEV, "no version 1 cpuset is mounted")
        writer.write(f"{found.where}{value.rstrip('/')}/tasks", str(tid))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20


KINDS: tuple[Kind, ...] = (Affinity(), AffinityAcross(), TaskCgroup())
