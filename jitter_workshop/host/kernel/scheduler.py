"""Read the scheduler's own settings.

Sources: Documentation/scheduler/sched-rt-group.rst, sched-deadline.rst, sched-debug.rst,
Documentation/admin-guide/sysctl/kernel.rst.
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass, field

DEBUGFS = "/sys/kernel/debug"
DEBUG = f"{DEBUGFS}/sched"

PATHS = {
    "rt_runtime_us": "/proc/sys/kernel/sched_rt_runtime_us",
    "rt_period_us": "/proc/sys/kernel/sched_rt_period_us",
    "timer_migration": "/proc/sys/kernel/timer_migration",
    "autogroup": "/proc/sys/kernel/sched_autogroup_enabled",
    "preempt": f"{DEBUG}/preempt",
    "uclamp_min": "/proc/sys/kernel/sched_util_clamp_min",
    "uclamp_max": "/proc/sys/kernel/sched_util_clamp_max",
    "uclamp_min_rt": "/proc/sys/kernel/sched_util_clamp_min_rt_default",
}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Hold the scheduler's settings.

    ``rt_runtime_us``: the time that real-time threads may take of each ``rt_period_us``, −1 for all of it. ``preempt``:
    none, voluntary, full or lazy as chosen now (debugfs, often for root alone). ``uclamp_*``: limits of the utilisation
    that the frequency follows, 0 to 1,024. None where not shown (``reasons``).
    """

    rt_runtime_us: int | None
    rt_period_us: int | None
    timer_migration: bool | None
    autogroup: bool | None
    preempt: str | None
    uclamp_min: int | None
    uclamp_max: int | None
    uclamp_min_rt: int | None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadlineServer:
    """Hold the time that the deadline server takes of one CPU for ordinary tasks.

    It does so where real-time tasks never let go (from 6.12): ``runtime_ns`` of each ``period_ns``; runtime 0 is off.
    Both are None where not shown (``reason``).
    """

    cpu: int
    runtime_ns: int | None
    period_ns: int | None
    reason: str = ""


def read_scheduler(root: HostRoot) -> Scheduler:
    """Read the settings for all CPUs."""
    fields = Fields(root, PATHS)
    preempt = _preempt(fields)
    _explain_debugfs(fields, "preempt")
    return Scheduler(
        rt_runtime_us=fields.integer("rt_runtime_us", -1),
        rt_period_us=fields.integer("rt_period_us", 0),
        timer_migration=fields.switch("timer_migration"),
        autogroup=fields.switch("autogroup"),
        preempt=preempt,
        uclamp_min=fields.integer("uclamp_min", 0),
        uclamp_max=fields.integer("uclamp_max", 0),
        uclamp_min_rt=fields.integer("uclamp_min_rt", 0),
        reasons=fields.reasons,
    )


def fair_server_path(cpu: int, name: str) -> str:
    """Return the path of ``runtime`` or ``period`` of one CPU's deadline server."""
    return f"{DEBUG}/fair_server/cpu{cpu}/{name}"


def read_fair_server(root: HostRoot, cpu: int) -> DeadlineServer:
    """Read one CPU's deadline server; even root may be refused its files where the kernel is locked down."""
    fields = Fields(root, {name: fair_server_path(cpu, name) for name in ("runtime", "period")})
    runtime, period = fields.integer("runtime", 0), fields.integer("period", 0)
    _explain_debugfs(fields, "runtime", "period")
    return DeadlineServer(cpu, runtime, period, next(iter(fields.reasons.values()), ""))


def _explain_debugfs(fields: Fields, *names: str) -> None:
    """Give a missing file another reason where debugfs is not mounted: this says nothing about the kernel."""
    for name in names:
        if fields.reasons.get(name, "").endswith(": no such file") and not fields.root.list_dir(DEBUGFS):
            fields.refuse(name, f"{DEBUGFS} shows nothing: debugfs is not mounted")


def _preempt(fields: Fields) -> str | None:
    """Parse ``none voluntary (full) lazy``: round brackets here, square ones in the rest of the kernel."""
    text = fields.text("preempt")
    if text is None:
        return None
    marked = [word[1:-1] for word in text.split()[:16] if word.startswith("(") and word.endswith(")")]
    if len(marked) != 1 or not (marked[0].isascii() and marked[0].isalpha()):
        fields.refuse("preempt", "marks no choice")
        return None
    return marked[0]
