"""Read the watchdogs that look for hanging CPUs: a timer on each watched CPU, and a counter that ends in an NMI.

Sources: Documentation/admin-guide/lockup-watchdogs.rst, sysctl/kernel.rst.
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass, field

PATHS = {
    "enabled": "/proc/sys/kernel/watchdog",
    "nmi": "/proc/sys/kernel/nmi_watchdog",
    "soft": "/proc/sys/kernel/soft_watchdog",
    "threshold_s": "/proc/sys/kernel/watchdog_thresh",
    "cpus": "/proc/sys/kernel/watchdog_cpumask",
    "hung_task_timeout_s": "/proc/sys/kernel/hung_task_timeout_secs",
}


@dataclass(frozen=True, slots=True)
class Watchdogs:
    """Hold the watchdogs' settings.

    ``enabled``: both of them; ``nmi`` and ``soft`` one each. ``threshold_s``: a soft lockup is twice as long, and the
    timer fires five times in that; 0 is off. ``cpus``: the watched CPUs, a list although the file's name says mask.
    None where not shown (``reasons``).
    """

    enabled: bool | None
    nmi: bool | None
    soft: bool | None
    threshold_s: int | None
    cpus: CpuSet | None
    hung_task_timeout_s: int | None
    reasons: dict[str, str] = field(default_factory=dict)

    @property
    def watched(self) -> CpuSet | None:
        """Return the CPUs on which a watchdog runs now; None where unknown."""
        if self.enabled is False or self.threshold_s == 0 or (self.soft is False and self.nmi is False):
            return CpuSet()
        return self.cpus if self.enabled else None

    @property
    def timer_period_s(self) -> float | None:
        """Return the period of the timer on a watched CPU, in seconds."""
        return None if self.threshold_s is None or self.threshold_s == 0 else self.threshold_s * 2 / 5


def read_watchdogs(root: HostRoot) -> Watchdogs:
    """Read the six settings."""
    fields = Fields(root, PATHS)
    return Watchdogs(
        enabled=fields.switch("enabled"),
        nmi=fields.switch("nmi"),
        soft=fields.switch("soft"),
        threshold_s=fields.integer("threshold_s", 0),
        cpus=fields.cpu_list("cpus"),
        hung_task_timeout_s=fields.integer("hung_task_timeout_s", 0),
        reasons=fields.reasons,
    )
