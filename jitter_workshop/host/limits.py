"""What this process may lock and how it may be scheduled (getrlimit(2))."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

from jitter_workshop.host.root import HostRoot


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft limits; None = unlimited, or unknown where ``reason`` says why. ``is_root``: effective user id 0."""

    memlock_bytes: int | None
    rtprio: int | None
    is_root: bool
    reason: str = ""


def read_limits(root: HostRoot) -> Limits:
    """This process's limits; a recorded tree is read by somebody else than who recorded it, so nothing is claimed."""
    if root.recorded:
        return Limits(None, None, False, "a recorded host: the limits of its users were not recorded")
    return Limits(_soft(resource.RLIMIT_MEMLOCK), _soft(resource.RLIMIT_RTPRIO), os.geteuid() == 0)


def _soft(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft
