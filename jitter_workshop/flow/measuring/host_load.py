"""Measure load that would disturb every lesson: other tasks on the CPUs, and steal.

The load is measured for a second or two, while the first pages are shown. If a run begins meanwhile, the measurement of
the load ends early.
"""

from __future__ import annotations

import os
import threading

from jitter_workshop.bench import foreign_activity
from jitter_workshop.flow.measuring.background_gate import HERE
from jitter_workshop.host.cpu.stat import CpuStat, read_stat, steal_between
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host_load import HostLoad
from jitter_workshop.model.run import ForeignLoad

VARIABLE = "JITTER_WORKSHOP_LOAD"
"""The name of an environment variable. If its value is ``off``, the host's load is not looked at."""

WINDOW_S = 1.5
"""Seconds of the look at the start. Most kernels count a task's time in 10-ms ticks, so shares are known to about 1
%."""

DROWNS_BUSY_PERCENT = 25.0
"""From this busy share on, other tasks hide a lesson's effect: a quarter of the time of all CPUs. On two CPUs this is
one task that takes half of a CPU, and the two measured threads cannot avoid it. On a large host many tasks are needed,
because a placed run has free CPUs there."""

DROWNS_STEAL_PERCENT = 1.0
"""From this share of steal on, a hundredth of the time, steal alone decides the p99, whatever a lesson changes."""

NAMED_PERCENT = 10.0
"""A task is named if it takes at least this part of one CPU. Every desktop has tasks that take less."""

_MOST_NAMED = 8


def at_start() -> HostLoad | None:
    """Measure this host's load for WINDOW_S seconds. Return None if the load cannot be read, or if the user has
    switched off this check. Also return None if a run begins meanwhile: each run looks for other tasks itself."""
    if os.environ.get(VARIABLE) == "off":
        return None
    stop, root = threading.Event(), HostRoot()
    with HERE.beside(stop.set):
        before, earlier = foreign_activity.process_times(), read_stat(root)
        stop.wait(WINDOW_S)
        later, activity = read_stat(root), foreign_activity.activity_since(before, ())
        own_s = foreign_activity.own_seconds() - before.own_s
    return None if stop.is_set() else load_between(_average(root), earlier, later, activity.loads, own_s)


def load_between(
    average: float | None, earlier: CpuStat, later: CpuStat, tasks: tuple[ForeignLoad, ...], own_s: float
) -> HostLoad | None:
    """Return the load between two readings of /proc/stat; None if no CPU time passed. ``tasks``: other tasks that ran
    meanwhile. ``own_s``: the CPU seconds of this process, which are not load."""
    cpus = [cpu for cpu in later.per_cpu if cpu in earlier.per_cpu]
    whole = sum(later.per_cpu[cpu].total - earlier.per_cpu[cpu].total for cpu in cpus)
    if whole <= 0:
        return None
    busy = sum(later.per_cpu[cpu].tasks - earlier.per_cpu[cpu].tasks for cpu in cpus) - own_s * later.ticks_per_second
    busy_percent = min(max(100 * busy / whole, 0.0), 100.0)
    steal_ns = steal_between(earlier, later, cpus)
    steal_percent = None if steal_ns is None else 100 * steal_ns / (whole * later.tick_ns)
    return HostLoad(
        average,
        len(cpus),
        round(busy_percent, 1),
        None if steal_percent is None else round(steal_percent, 1),
        tuple(task for task in tasks if task.cpu_percent >= NAMED_PERCENT)[:_MOST_NAMED],
        busy_percent >= DROWNS_BUSY_PERCENT or (steal_percent or 0) >= DROWNS_STEAL_PERCENT,
    )


def _average(root: HostRoot) -> float | None:
    """Return the first figure of /proc/loadavg (proc(5)); None if it is not a number."""
    first = (root.text("/proc/loadavg") or "").partition(" ")[0]
    try:
        return float(first) if first.replace(".", "", 1).isdigit() else None
    except ValueError:
        return None
