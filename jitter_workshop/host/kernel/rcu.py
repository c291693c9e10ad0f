"""Read how RCU ends its grace periods.

Source: Documentation/admin-guide/kernel-parameters.txt (rcupdate.rcu_expedited, rcupdate.rcu_normal,
rcutree.kthread_prio, rcutree.rcu_nocb_gp_stride).
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass, field

PATHS = {
    "expedited": "/sys/kernel/rcu_expedited",
    "normal": "/sys/kernel/rcu_normal",
    "kthread_priority": "/sys/module/rcutree/parameters/kthread_prio",
    "nocb_gp_stride": "/sys/module/rcutree/parameters/rcu_nocb_gp_stride",
}


@dataclass(frozen=True, slots=True)
class Rcu:
    """Hold the RCU settings.

    ``expedited``: grace periods end at once, by interrupting every CPU that is not idle. ``normal``: they never do,
    even where requested (it wins over ``expedited``). Both count requests: above 0 is on. ``kthread_priority``:
    real-time priority of RCU's threads. None where not shown (``reasons``).
    """

    expedited: bool | None
    normal: bool | None
    kthread_priority: int | None
    nocb_gp_stride: int | None
    reasons: dict[str, str] = field(default_factory=dict)


def read_rcu(root: HostRoot) -> Rcu:
    """Read the four settings."""
    fields = Fields(root, PATHS)
    expedited, normal = fields.integer("expedited", 0), fields.integer("normal", 0)
    return Rcu(
        expedited=None if expedited is None else expedited > 0,
        normal=None if normal is None else normal > 0,
        kthread_priority=fields.integer("kthread_priority", 0),
        nocb_gp_stride=fields.integer("nocb_gp_stride"),
        reasons=fields.reasons,
    )
