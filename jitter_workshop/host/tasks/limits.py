"""Read this process's limits for locked memory and real-time scheduling (getrlimit(2))."""

from __future__ import annotations

import contextlib
import resource

from jitter_workshop.host.root import HostRoot, line_value
from jitter_workshop.model.record import dataclass

_CAP_IPC_LOCK = 14
_CAP_SYS_NICE = 23
"""The number of the capability CAP_SYS_NICE (linux/capability.h)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Hold soft limits of this process. A limit of None means that there is no limit. If ``reason`` is not "", it means
    that the limit is unknown.

    - ``may_lock``: True if the process has CAP_IPC_LOCK, which lifts the limit on locked memory.
    - ``may_schedule``: True if the process has CAP_SYS_NICE, which lifts the limit on real-time priority.
    - ``reason``: the reason why the limits could not be read, or "".

    Root in a container often has neither capability.
    """

    memlock_bytes: int | None
    rtprio: int | None
    may_lock: bool
    may_schedule: bool
    reason: str = ""


def read_limits(root: HostRoot) -> Limits:
    """Return the limits of this process. In a recorded tree they are unknown, because another process made the
    recording."""
    if root.recorded:
        return Limits(None, None, False, False, "this is a recorded host: the limits of its users were not recorded")
    return Limits(
        memlock_bytes=_limit(resource.RLIMIT_MEMLOCK),
        rtprio=_limit(resource.RLIMIT_RTPRIO),
        may_lock=_capable(root, _CAP_IPC_LOCK),
        may_schedule=_capable(root, _CAP_SYS_NICE),
    )


def _capable(root: HostRoot, number: int) -> bool:
    """Return True if this process has the capability ``number`` in its effective set (proc_pid_status(5): CapEff)."""
    with contextlib.suppress(ValueError):
        return bool(int(line_value(root.text("/proc/self/status"), "CapEff"), 16) >> number & 1)
    return False


def _limit(which: int) -> int | None:
    soft = resource.getrlimit(which)[0]
    return None if soft == resource.RLIM_INFINITY else soft
