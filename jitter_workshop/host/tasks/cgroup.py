"""Read the bandwidth limit, throttling count and cpuset of this process's control group.

A limit on a parent group applies, too, so every level up to the mount point is read. Inside a container, the levels
above the mount point cannot be seen.

Sources: Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/cpusets.rst, Documentation/scheduler/sched-bwc.rst.
"""

from __future__ import annotations

import posixpath
import re

from jitter_workshop.host.root import HostRoot, is_count, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class Cgroup:
    """Hold the CPU limits of this process's control group.

    - ``version``: the version (1 or 2) of the cgroup hierarchy that has the cpu controller.
    - ``quota_us``, ``period_us``: the strictest bandwidth limit of the group and its parents; both fields are None if
      there is no limit.
    - ``nr_throttled``: how often the group and its parents were throttled since they were made; None if not shown.
    - ``cpuset``: the CPUs that the group may use; None if no cpuset controller shows them.
    - ``stat_paths``: the files that ``read_throttled`` reads again.
    - ``reason``: the reason why nothing could be read.
    """

    version: int | None
    quota_us: int | None = None
    period_us: int | None = None
    nr_throttled: int | None = None
    cpuset: CpuSet | None = None
    stat_paths: tuple[str, ...] = ()
    reason: str = ""

    @property
    def cpu_limit(self) -> float | None:
        """Return the bandwidth limit as a number of CPUs, such as 1.5 for one and a half; None if there is no limit."""
        if self.quota_us is None or not self.period_us:
            return None
        return self.quota_us / self.period_us


@dataclass(frozen=True, slots=True)
class Membership:
    """Hold one line of /proc/self/cgroup. ``controllers``: the controllers of a hierarchy; () for version 2. ``path``:
    the path of this process's group in the hierarchy."""

    controllers: tuple[str, ...]
    path: str


@dataclass(frozen=True, slots=True)
class Mount:
    """Hold one mount of a cgroup hierarchy.

    - ``where``: the mount point.
    - ``controllers``: the hierarchy's controllers; () for version 2.
    - ``top``: the folder inside the hierarchy that the mount point shows.
    """

    version: int
    where: str
    controllers: tuple[str, ...]
    top: str


def read_cgroup(root: HostRoot) -> Cgroup:
    """Return the CPU limits of the calling process. In a recorded tree, return the CPU limits of the process that made
    the recording."""
    own = root.reading("/proc/self/cgroup")
    if own.text is None:
        return Cgroup(None, reason=f"/proc/self/cgroup: {own.reason}")
    memberships = parse_memberships(own.text)
    mounts = parse_mounts(root.text("/proc/self/mountinfo", 16 << 20) or "")
    cpu = _levels("cpu", memberships, mounts)
    cpuset = _cpuset(root, _levels("cpuset", memberships, mounts))
    if cpu is None:
        return Cgroup(None, cpuset=cpuset, reason="no cgroup hierarchy with a cpu controller is mounted")
    version, levels = cpu
    limit = read_limit(root, version, levels)
    stops = {f"{level}/cpu.stat": read_stops(root, level) for level in levels}
    shown = {path: found[0] for path, found in stops.items() if found is not None}
    return Cgroup(
        version=version,
        quota_us=limit[0] if limit else None,
        period_us=limit[1] if limit else None,
        nr_throttled=sum(shown.values()) if shown else None,
        cpuset=cpuset,
        stat_paths=tuple(shown),
    )


def read_throttled(root: HostRoot, cgroup: Cgroup) -> int | None:
    """Return the present sum of ``nr_throttled`` over the group and its parents. One small file is read for each of
    them. Return None if the kernel does not show it."""
    stops = (read_stops(root, path.removesuffix("/cpu.stat")) for path in cgroup.stat_paths)
    counts = [found[0] for found in stops if found is not None]
    return sum(counts) if counts else None


def cpu_groups(root: HostRoot, pid: int) -> tuple[int, tuple[str, ...]] | None:
    """Return a process's groups in the cgroup hierarchy that has the cpu controller. The result is (the hierarchy's
    version, the groups).

    The groups are folders: first the process's own group, then all groups above it. Return None if the groups cannot be
    read.
    """
    memberships = parse_memberships(root.text(f"/proc/{pid}/cgroup") or "")
    return _levels("cpu", memberships, parse_mounts(root.text("/proc/self/mountinfo", 16 << 20) or ""))


def read_limit(root: HostRoot, version: int, levels: tuple[str, ...]) -> tuple[int, int] | None:
    """Return the tightest bandwidth limit of the groups ``levels``, as (quota, period) in µs; None if no group has a
    limit."""
    limits = [found for level in levels if (found := _limit(root, version, level))]
    return min(limits, default=None, key=lambda one: one[0] / one[1])


def read_stops(root: HostRoot, folder: str) -> tuple[int, int | None] | None:
    """Return how often a group was throttled since it was made, and for how many ns. The number of ns is None if the
    kernel does not show it. Return None if the group has no such counters."""
    lines = (line.partition(" ") for line in (root.text(f"{folder}/cpu.stat") or "").split("\n"))
    found: dict[str, int] = {}
    for key, _, number in lines:
        if is_count(number.strip()):
            found.setdefault(key, int(number))
    if "nr_throttled" not in found:
        return None
    # In version 2 the time is in µs, in version 1 in ns.
    times = (found[key] * scale for key, scale in (("throttled_usec", 1000), ("throttled_time", 1)) if key in found)
    return found["nr_throttled"], next(times, None)


def parse_memberships(text: str) -> tuple[Membership, ...]:
    """Return the memberships in the text of /proc/self/cgroup, which has lines ``ID:CONTROLLERS:PATH``."""
    found: list[Membership] = []
    for line in text.split("\n"):
        parts = line.split(":", 2)
        if len(parts) == 3 and parse_integer(parts[0]) is not None and parts[2].startswith("/"):
            found.append(Membership(tuple(c for c in parts[1].split(",") if c), parts[2]))
    return tuple(found)


def parse_mounts(text: str) -> tuple[Mount, ...]:
    """Return the cgroup mounts in the text of /proc/self/mountinfo (proc_pid_mountinfo(5)). A later mount hides an
    earlier one at the same place."""
    found: dict[str, Mount] = {}
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        fields, source = left.split(" "), right.split(" ")
        if not dash or len(fields) < 6 or len(source) < 3 or source[0] not in ("cgroup", "cgroup2"):
            continue
        where = _unescape(fields[4])
        if where.startswith("/"):
            controllers = tuple(source[2].split(",")) if source[0] == "cgroup" else ()
            version = 1 if source[0] == "cgroup" else 2
            found[where] = Mount(version, where, controllers, _unescape(fields[3]))
    return tuple(found.values())


def parse_cpu_max(text: str | None) -> tuple[int, int] | None:
    """Return (quota, period) from the text of ``cpu.max`` in version 2: ``QUOTA|max PERIOD``, both in µs. Return None
    if there is no limit."""
    words = (text or "").split()
    if not 1 <= len(words) <= 2:
        return None
    return _positive(parse_integer(words[0]), parse_integer(words[1]) if len(words) == 2 else 100_000)


def _levels(
    controller: str, memberships: tuple[Membership, ...], mounts: tuple[Mount, ...]
) -> tuple[int, tuple[str, ...]] | None:
    """Return a cgroup hierarchy's version, and the folders of this process's groups in the hierarchy.

    The hierarchy is the one with ``controller``. The process's own group comes first, the mount point last. Return None
    if no hierarchy has the controller.
    """
    for member in memberships:
        if controller not in member.controllers:
            continue
        for mount in mounts:
            if mount.version == 1 and controller in mount.controllers:
                return 1, _way_up(mount, member.path)
    unified = next((m for m in memberships if not m.controllers), None)
    mount2 = next((m for m in mounts if m.version == 2), None)
    if unified is None or mount2 is None or any(controller in m.controllers for m in memberships):
        return None
    return 2, _way_up(mount2, unified.path)


def _way_up(mount: Mount, path: str) -> tuple[str, ...]:
    """Return the folders from ``path`` up to the mount point, the folder of ``path`` first.

    Return only the mount point if ``path`` is outside the mounted part of the hierarchy. This happens if the process of
    ``path`` is in another cgroup namespace.
    """
    top = mount.top.rstrip("/")
    inside = path.removeprefix(top) if path == top or path.startswith(top + "/") else ""
    if ".." in inside.split("/"):
        inside = ""
    names = [name for name in inside.split("/") if name]
    if len(names) > _MAX_DEPTH:
        names = []
    return tuple(posixpath.join(mount.where, *names[:depth]) for depth in range(len(names), -1, -1))


def _limit(root: HostRoot, version: int, level: str) -> tuple[int, int] | None:
    if version == 2:
        return parse_cpu_max(root.text(f"{level}/cpu.max"))
    return _positive(root.integer(f"{level}/cpu.cfs_quota_us"), root.integer(f"{level}/cpu.cfs_period_us"))


def _positive(quota: int | None, period: int | None) -> tuple[int, int] | None:
    """Return (quota, period) if both are positive. Else return None: the kernel's ``max`` and −1 mean that there is no
    limit."""
    return (quota, period) if quota is not None and period is not None and quota > 0 and period > 0 else None


def _cpuset(root: HostRoot, levels: tuple[int, tuple[str, ...]] | None) -> CpuSet | None:
    """Return the effective CPUs of the first group in ``levels`` that shows them. Return None if no group shows them.
    ``levels``: version of the hierarchy, and folders of the process's groups."""
    if levels is None:
        return None
    names = ("cpuset.cpus.effective",) if levels[0] == 2 else ("cpuset.effective_cpus", "cpuset.cpus")
    for level in levels[1]:
        for name in names:
            cpus = root.cpu_list(f"{level}/{name}")
            if cpus is not None and len(cpus):
                return cpus
    return None


def _unescape(text: str) -> str:
    """Decode the octal numbers that mountinfo writes for space, tab, newline and backslash."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda m: chr(int(m.group(1), 8)), text) if "\\" in text else text
