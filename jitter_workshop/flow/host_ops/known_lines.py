"""Find the newest matrix of this host: the times in which a cache line gets from one CPU to another. The choice of CPUs
uses these times."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jitter_workshop import paths
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.host import Topology

if TYPE_CHECKING:
    from jitter_workshop.model.matrix import PairTimes


def known_lines(root: HostRoot, topology: Topology) -> PairTimes | None:
    """Return the times of the newest complete matrix in this user's sessions. Return None on a recorded host, or if no
    matrix was measured with the present CPUs of this host."""
    if root.recorded or not _any(paths.sessions_place()):
        return None
    from jitter_workshop.bench.pairs import fingerprint
    from jitter_workshop.host.kernel.release import read_kernel
    from jitter_workshop.session.matrices import newest_lines

    return newest_lines(paths.sessions_dir(), fingerprint(read_kernel(root).hostname, topology))


def _any(sessions: str) -> bool:
    """Return True if at least one session has a folder for matrices. The modules for matrices are loaded only in this
    case."""
    try:
        with os.scandir(sessions) as entries:
            return any(os.path.isdir(f"{entry.path}/matrices") for entry in entries)  # noqa: PTH112 - quick
    except OSError:
        return False
