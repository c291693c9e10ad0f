"""Read this process's limits for locked memory and real-time scheduling (getrlimit(2))."""

from __future__ import annotations

import contextlib
import resource

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

_CAP_IPC_LOCK = 14
_CAP_SYS_NICE = 23
"""linux/capability.h"""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold soft limits, and the hard ones up to which a process may raise them.

    None = unlimited, or unknown where ``reason`` says why. ``rttime_us``: CPU time that a real-time thread may take
    without sleeping. ``may_lock`` and ``may_schedule``: the capabilities that lift the first two (CAP_IPC_LOCK,
    CAP_SYS_NICE; root in a container often lacks them).
    """

    memlock_bytes: int | None
    rtprio: int | None
    may_lock: bool
    may_schedule: bool
    reason: str = ""
    memlock_hard_bytes: int | None = None
    rtprio_hard: int | None = None
    rttime_us: int | None = None


def read_limits(root: HostRoot) -> Limits:
    """Read this process's limits; in a recorded tree they are unknown, because another process made the recording."""
    if root.recorded:
        return Limits(None, None, False, False, "a recorded host: the limits of its users were not recorded")
    memlock, memlock_hard = _limit(resource.RLIMIT_MEMLOCK)
    rtprio, rtprio_hard = _limit(resource.RLIMIT_RTPRIO)
    return Limits(
        memlock_bytes=memlock,
        rtprio=rtprio,
        may_lock=_capable(root, _CAP_IPC_LOCK),
        may_schedule=_capable(root, _CAP_SYS_NICE),
        memlock_hard_bytes=memlock_hard,
        rtprio_hard=rtprio_hard,
        rttime_us=_limit(resource.RLIMIT_RTTIME)[0],
    )


def _capable(root: HostRoot, number: int) -> bool:
    """Return True if this process has a capability in effect (proc_pid_status(5): CapEff)."""
    for line in (root.text("/proc/self/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name == "CapEff":
            with contextlib.suppress(ValueError):
                return bool(int(value, 16) >> number & 1)
    return False


def _limit(which: int) -> tuple[int | None, int | None]:
    soft, hard = (None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(which))
    return soft, hard
