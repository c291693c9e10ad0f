"""Record a host: read all that any verb would read, then write it below a folder."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from jitter_workshop import __version__
from jitter_workshop.errors import WorkshopError
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.kernel.release import read_kernel
from jitter_workshop.host.recording.all_readers import gather
from jitter_workshop.host.recording.recorder import RecordingReport, RecordingRoot, write_recording
from jitter_workshop.host.recording.recording_filter import Scrubber
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.registry import tunables


def record(root: Path, target: Path, *, with_hostname: bool = False, note: str = "") -> RecordingReport:
    """Read the host below ``root`` and write the recording into ``target``.

    Raises HostError where ``target`` cannot be used or nothing can be read; a recording that was begun is removed.
    """
    place = RecordingRoot(root)
    gather(place)
    _check_everything(place)
    kernel = read_kernel(place)
    facts: dict[str, object] = {
        "tool_version": __version__,
        "recorded_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": kernel.release,
        "cpus": len(read_topology(place).online),
        "note": note,
    }
    cleaner = Scrubber(kernel.hostname) if with_hostname else Scrubber(secret=kernel.hostname)
    return write_recording(place, target, facts, cleaner)


def _check_everything(place: RecordingRoot) -> None:
    """Read what status and plan read, for any choice of hot CPUs. Many checks read the hot ones alone, and some read
    nothing where no housekeeping CPU is left: so all CPUs but one are hot first, and then that one."""
    topology = read_topology(place)
    online = topology.online
    first = CpuSet(online.cpus[:1])
    for hot in (online - first, first):
        if not hot:
            continue
        host = Host(place, hot, topology)
        for tunable in tunables():
            tunable.assess(host)
            if tunable.changes_host:
                with contextlib.suppress(Unavailable, WorkshopError):
                    tunable.writes(host, None)
