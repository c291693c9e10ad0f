"""Record a host: read all files that any verb would read, then write copies into a folder."""

from __future__ import annotations

import contextlib
import time
from fnmatch import fnmatchcase
from pathlib import Path

from jitter_workshop import __version__
from jitter_workshop.errors import WorkshopError
from jitter_workshop.flow.host_ops.hostview import TOPICS, HostView, topic_facts
from jitter_workshop.host.cpu.topology import read_topology
from jitter_workshop.host.irq.interrupts import read_softirqs
from jitter_workshop.host.irq.irq_affinity import read_effective, read_irqs, read_movable
from jitter_workshop.host.kernel.release import read_kernel
from jitter_workshop.host.recording.recorder import RecordingReport, RecordingRoot, write_recording
from jitter_workshop.host.recording.recording_filter import Scrubber
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import summarise_host
from jitter_workshop.host.tasks.listing import each_thread, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.tuning.base import Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.registry import tunables


def record(root: Path, target: Path, *, with_hostname: bool = False, note: str = "") -> RecordingReport:
    """Record the host below ``root`` into the folder ``target``. Raise HostError if ``target`` cannot be used or
    nothing can be read. After an error, the unfinished recording is removed."""
    place = RecordingRoot(root)
    read_every_file(place)
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


def read_every_file(place: HostRoot) -> None:
    """Read all files of a host that any verb reads without measuring."""
    topology = read_topology(place)
    topic_facts(HostView(place, summarise_host(place, topology), topology), tuple(TOPICS))
    _check_everything(place, topology)
    _read_owned(place)
    # The checks read other tasks and interrupts if a plan takes CPUs offline, so the record has all of them.
    for task in each_thread(place):
        read_allowed_cpus(place, task)
    for irq in read_irqs(place):
        read_effective(place, irq.number)
        read_movable(place, irq.number)
    read_softirqs(place)


def _check_everything(place: HostRoot, topology: Topology) -> None:
    """Read all files that ``status`` and ``plan`` can read, whichever CPUs are hot. Many checks read only hot CPUs, and
    some need a housekeeping CPU. So each check is made twice. First all CPUs except one are hot, then this one alone is
    hot."""
    first = CpuSet(topology.online.cpus[:1])
    for hot in (topology.online - first, first):
        if not hot:
            continue
        host = Host(place, hot, topology)
        for tunable in tunables():
            tunable.assess(host)
            if tunable.changes_host:
                with contextlib.suppress(Unavailable, WorkshopError):
                    tunable.writes(host, None)


def _read_owned(place: HostRoot) -> None:
    """Read each file of the kernel that a tunable may write. The command ``plan ID=VALUE`` can need any of these files.
    Files of control groups are not read here: the checks have already read the files of control groups that a plan
    needs."""
    for tunable in tunables():
        for pattern in tunable.owns:
            if not pattern.startswith(("/proc/", "/sys/")) or pattern.startswith("/sys/fs/"):
                continue
            for path in _matching(place, pattern):
                place.text(path)
                if path.endswith("_ratio"):
                    # A limit for dirty pages is in one of two files.
                    place.text(f"{path.removesuffix('_ratio')}_bytes")


def _matching(place: HostRoot, pattern: str) -> list[str]:
    """Return the paths that match ``pattern``. A ``*`` matches inside one part of a path."""
    found = [""]
    for part in pattern.split("/")[1:]:
        if "*" in part:
            listed = ((folder, name) for folder in found for name in place.list_dir(folder))
            found = [f"{folder}/{name}" for folder, name in listed if fnmatchcase(name, part)]
        else:
            found = [f"{folder}/{part}" for folder in found]
    return found
