"""Find other tasks that used the hot CPUs during a run. psutil reads the processes before and after the run, never
during a block."""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass, field

from jitter_workshop.host.cpu.stat import read_stat
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.run import ForeignLoad
from jitter_workshop.model.spec import MEASURED_THREADS
from jitter_workshop.model.text import ID, clean

NOTICED_PERCENT = 1.0
"""A task is named only if it used a hot CPU for at least this share of the run."""

NOTICED_S = 0.03
"""A task is named only if it used at least this much CPU time, because the kernel may count time in ticks of 10 ms."""

UNNAMED_PERCENT = 2.0
UNNAMED_S = 0.1
"""The least CPU time, in seconds, of tasks without a name that is reported. Their share of the time must be above
UNNAMED_PERCENT, too. Less time may come from the kernel's counting in ticks."""

_NAMED = 10


@dataclass(frozen=True, slots=True)
class ProcessTimes:
    """Hold the CPU times of all processes at one moment.

    - ``at_s``: the moment, by CLOCK_MONOTONIC.
    - ``cpu_seconds``: (pid, start time) of a process → its CPU seconds.
    - ``busy_s``: CPU → seconds spent on tasks since boot.
    - ``own_s``: the CPU seconds of this process and its ended children.
    """

    at_s: float
    cpu_seconds: dict[tuple[int, float], float]
    busy_s: dict[int, float] = field(default_factory=dict)
    own_s: float = 0.0


@dataclass(frozen=True, slots=True)
class ForeignActivity:
    """Hold the CPU use of other tasks during a run.

    ``loads``: the tasks that still exist and have names. ``unnamed_percent``: the time that ended tasks took from the
    hot CPUs, in percent of one CPU. This value is a lower bound; None if it is unknown.
    """

    loads: tuple[ForeignLoad, ...]
    unnamed_percent: float | None = None


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """Hold the CPU time that one process used since an earlier reading.

    - ``started_s``: the start of the process, in seconds since the epoch.
    - ``cpu``: the CPU on which the process ran last.
    - ``used_s``: the CPU seconds of all its threads.
    - ``cpu_percent``: ``used_s`` as a percentage of one CPU's time since then.
    - ``ours``: True for this process and its descendants.
    """

    pid: int
    started_s: float
    name: str
    cpu: int | None
    used_s: float
    cpu_percent: float
    ours: bool


def process_times() -> ProcessTimes:
    """Return the CPU times of all processes now. A process that cannot be read, or that ends meanwhile, is left out."""
    # Ours first and the CPUs last, the other way round afterwards: so the error only makes the unnamed rest smaller.
    own_s = own_seconds()
    at_s = time.monotonic()
    return ProcessTimes(at_s, {key: seconds for key, seconds, _, _, _ in _processes()}, _busy_seconds(), own_s)


def activity_since(before: ProcessTimes, hot: Collection[int], *, whole: bool = True) -> ForeignActivity:
    """Return the other tasks that used CPU time since ``before``. The busiest task comes first.

    This process and its children are left out. A task counts if it last ran on one of the CPUs ``hot``. An empty
    ``hot`` means all CPUs. A task that used ``hot`` and then moved to another CPU is not found. ``cpu_percent`` is in
    percent of one CPU.

    Ended tasks have no names, and only their total time is computed. This total is the time of all tasks on the hot
    CPUs, minus the time of known processes. Known processes are those that still exist, and this process with its
    children. The time of known processes on other CPUs is also subtracted, so the total may be too small. ``whole``:
    False if the process of a measured thread was killed, and is no longer below this process. The total is then
    unknown, because it has the time of that process.
    """
    busy_s = _busy_seconds()
    elapsed_s = time.monotonic() - before.at_s
    if elapsed_s <= 0:
        return ForeignActivity(())
    found: list[ForeignLoad] = []
    known_s = 0.0
    for one in uses(before, elapsed_s):
        on_hot = not hot or one.cpu is None or one.cpu in hot
        if one.pid != os.getpid() and (one.ours or on_hot):
            known_s += max(one.used_s, 0.0)
        ours = one.ours or (not whole and one.name in MEASURED_THREADS)
        if not ours and on_hot and one.used_s >= NOTICED_S and one.cpu_percent >= NOTICED_PERCENT:
            found.append(ForeignLoad(one.pid, clean(one.name, ID), one.cpu, round(one.cpu_percent, 1)))
    loads = tuple(sorted(found, key=lambda load: -load.cpu_percent)[:_NAMED])
    if not whole or not hot or any(cpu not in busy_s or cpu not in before.busy_s for cpu in hot):
        return ForeignActivity(loads)
    spent_s = sum(busy_s[cpu] - before.busy_s[cpu] for cpu in hot)
    unnamed_s = spent_s - known_s - (own_seconds() - before.own_s)
    percent = 100 * unnamed_s / elapsed_s
    worth_telling = unnamed_s >= UNNAMED_S and percent > UNNAMED_PERCENT
    return ForeignActivity(loads, round(percent, 1) if worth_telling else 0.0)


def uses(before: ProcessTimes, elapsed_s: float) -> list[ProcessUse]:
    """Return the CPU time that each present process used since ``before``.

    ``elapsed_s``: the seconds since ``before``, for the percentages. For a new process, all its CPU time counts.
    """
    rows = list(_processes())
    ours = _family({key[0]: parent for key, _, _, _, parent in rows})
    found = []
    for key, seconds, cpu, name, _ in rows:
        used_s = seconds - before.cpu_seconds.get(key, 0.0)
        found.append(ProcessUse(key[0], key[1], name, cpu, used_s, 100 * used_s / elapsed_s, key[0] in ours))
    return found


def _busy_seconds() -> dict[int, float]:
    """Return the seconds that each CPU spent on tasks since boot. Interrupts and steal are not included."""
    stat = read_stat(HostRoot())
    return {cpu: t.tasks / stat.ticks_per_second for cpu, t in stat.per_cpu.items()}


def own_seconds() -> float:
    """Return the CPU time of this process and of all its children that have ended and were waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _processes() -> list[tuple[tuple[int, float], float, int | None, str, int]]:
    """Return one row for every process: (pid, start time), CPU seconds, last CPU, name, parent's pid."""
    import psutil

    rows = []
    for process in psutil.process_iter(["pid", "ppid", "create_time", "cpu_times", "cpu_num", "name"]):
        info = process.info
        times = info["cpu_times"]
        if times is not None and info["create_time"] is not None:
            key = (info["pid"], info["create_time"])
            rows.append((key, times.user + times.system, info["cpu_num"], info["name"] or "", info["ppid"] or 0))
    return rows


def _family(parents: dict[int, int]) -> set[int]:
    """Return the process ids of this process and of all its descendants. ``parents``: process id → its parent's id."""
    ours = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in ours} - ours
        ours |= more
        grown = bool(more)
    return ours
