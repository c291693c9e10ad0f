"""Take the hot CPUs out of the scheduler's load balancing while the host runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import parse_memberships
from jitter_workshop.host.tasks.cpusets import (
    CpusetGroup,
    Cpusets,
    find_cpusets,
    isolated_at_run_time,
    limited_by,
    read_group,
    read_groups,
)
from jitter_workshop.host.tasks.listing import Task, each_thread, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet, PartitionState
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Tunable, Unavailable, Write, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.cpu import BOUND, governor_threads
from jitter_workshop.tuning.setting_types.kinds import kind_of
from jitter_workshop.tuning.setting_types.tasks import affinity_call, cgroup_call, remembers_wishes

if TYPE_CHECKING:
    from jitter_workshop.tuning.switched import Switched

GROUP = "jitter-workshop"
"""The name of our version 2 group. Version 1 has two cpusets with this name and the suffixes ``-hot`` and ``-rest``."""

_PLACES = ("/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/cpuset")
"""Mount points of the cgroup hierarchies on known distributions. This tool writes to no hierarchy in another place."""

_KTHREADD = 2


class Isolation(Tunable):
    id = "isolation"
    title = "Scheduler isolation"
    why = (
        "The load balancer puts tasks on any CPU that looks idle. A CPU also looks idle while its thread waits for "
        "the next message. An isolated CPU runs only tasks that were placed on this CPU."
    )
    danger = "the other CPUs do all other work; each thread that should run on an isolated CPU must be pinned"
    risk = "medium"
    document = "Documentation/admin-guide/cgroup-v2.rst; version 1: Documentation/admin-guide/cgroup-v1/cpusets.rst"
    owns = (
        *(f"{place}/{GROUP}" for place in _PLACES[:2]),
        *(f"{place}/{GROUP}/cpuset.cpus" for place in _PLACES[:2]),
        *(f"{place}/{GROUP}/cpuset.cpus.partition" for place in _PLACES[:2]),
        *(f"{place}/cgroup.subtree_control" for place in _PLACES[:2]),
        f"{_PLACES[2]}/{GROUP}-hot",
        f"{_PLACES[2]}/{GROUP}-rest",
        f"{_PLACES[2]}/{GROUP}-hot/cpuset.sched_load_balance",
        f"{_PLACES[2]}/cpuset.sched_load_balance",
        "sched_setaffinity(*)",
        "cgroup(*)",
        "sugov(*)",
    )

    def judge(self, host: Host) -> Assessment:
        boot = host.isolation.boot or CpuSet()
        sets = find_cpusets(host.root)
        running = isolated_at_run_time(host.root, sets)
        isolated = boot | running
        left_for_the_rest(host)
        missing, clear = host.kept_clear - isolated, host.kept_clear
        if missing & host.hot:
            self._check(host, sets)
        elif missing and (obstacle := self._obstacle(host, sets)):
            reason = f"the hot CPUs are isolated, but {_siblings(missing)} cannot be isolated: {obstacle}"
            return self.answer("info", isolated.named, reason, wanted=clear.named)
        if not missing and clear - boot and _all_unbalanced(host, sets):
            reason = (
                "the hot CPUs are isolated, but the kernel balances no tasks between the other CPUs, because no "
                "version 1 cpuset with load balancing contains them"
            )
            fix = "restore the isolation, then apply it again: jitter-workshop restore isolation"
            return self.answer("improve", isolated.named, reason, wanted=clear.named, fix=fix)
        if not missing:
            how = "since boot (isolcpus)" if not clear - boot else "at run time (cpuset)"
            whose = "the hot CPUs and their siblings" if host.clear_siblings else "the hot CPUs"
            return self.answer("ok", isolated.named, f"{whose} are isolated {how}", wanted=clear.named)
        beside = missing - host.hot
        besides = f"; a task on {_siblings(beside)} slows a hot CPU down" if beside else ""
        return self.answer(
            "improve",
            isolated.named if isolated else "none",
            f"the load balancer may put any task on CPU {missing}{besides}",
            wanted=clear.named,
            paths=(sets.where,) if sets else (),
        )

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        left_for_the_rest(host)
        sets = find_cpusets(host.root)
        boot = host.isolation.boot or CpuSet()
        if not host.kept_clear - boot - isolated_at_run_time(host.root, sets):
            return ()
        found = self._check(host, sets)
        return self._partition(host, found) if found.version == 2 else self._sets(host, found)

    # Obstacles ----------------------------------------------------------------------------------------------------

    def _check(self, host: Host, sets: Cpusets | None) -> Cpusets:
        """Return the cgroup hierarchy in which the CPUs can be isolated.

        Raise Unavailable if there is no usable hierarchy, or if another program's group prevents the isolation.
        """
        if sets is None:
            raise Unavailable(
                "no cgroup hierarchy with the cpuset controller is visible here; the boot parameter isolcpus= works "
                "without such a hierarchy"
            )
        if sets.top != "/":
            raise Unavailable(
                "this program runs in a container and sees only the container's control groups: isolate the CPUs on "
                "the host",
                only_host=True,
            )
        if sets.where not in (_PLACES[:2] if sets.version == 2 else _PLACES[2:]):
            raise Unavailable(f"this tool does not write to {sets.where}, where the control groups are mounted")
        for group in read_groups(host.root, sets):
            if not group.name.startswith(GROUP) and (reason := _in_the_way(group, host.kept_clear, sets.version)):
                raise Unavailable(reason)
        return sets

    def _obstacle(self, host: Host, sets: Cpusets | None) -> str:
        """Return the reason why :meth:`_check` raises Unavailable; "" if it does not."""
        try:
            self._check(host, sets)
        except Unavailable as refusal:
            return refusal.reason
        return ""

    # Version 2 ----------------------------------------------------------------------------------------------------

    def _partition(self, host: Host, sets: Cpusets) -> list[Write]:
        """Return the writes that make an exclusive partition. A restore removes the partition's group."""
        root, folder = host.root, f"{sets.where}/{GROUP}"
        return [
            _write(root, f"{sets.where}/cgroup.subtree_control", "cpuset", "controllers"),
            _write(root, folder, "present", "cgroup"),
            _write(root, f"{folder}/cpuset.cpus", str(host.kept_clear), "cgroup-cpus"),
            _write(root, f"{folder}/cpuset.cpus.partition", "isolated", "partition", new="member"),
            *_kept(_narrow(host), host),
            *_governor_threads(host),
        ]

    # Version 1 ----------------------------------------------------------------------------------------------------

    def _sets(self, host: Host, sets: Cpusets) -> list[Write]:
        """Return the writes that make two cpusets and move every movable task into the second.

        The first cpuset has the hot CPUs and their siblings, the second has all others. The last write switches off
        load balancing in the top cpuset. A restore first switches load balancing on again. Without it, tasks that are
        in neither cpuset would stay on their present CPUs.
        """
        root, where = host.root, sets.where
        hot, rest = f"{where}/{GROUP}-hot", f"{where}/{GROUP}-rest"
        mems = str(root.cpu_list(f"{where}/cpuset.mems") or "0")
        threads = list(_movable_threads(root))
        online = root.cpu_list(f"{CPU_DIR}/online") or host.online
        narrow = [(t, a) for t, _ in threads if (a := read_allowed_cpus(root, t)) and online - a]
        why = "The task '{}' is moved off the hot CPUs. So are all other tasks that can be moved."
        to_move = [task for task, place in threads if place == "/"]
        moves = [(cgroup_call(task.tid, task.start_ticks), why.format(task.name)) for task in to_move]
        return [
            _write(root, hot, f"cpus {host.kept_clear} mems {mems}", "cpuset"),
            _write(root, rest, f"cpus {host.housekeeping} mems {mems}", "cpuset"),
            *(Write(call, "/", f"/{GROUP}-rest", "task-cgroup", why) for call, why in moves),
            *_kept(narrow, host),
            _write(root, f"{hot}/cpuset.sched_load_balance", "0", "number", new="1"),
            _write(root, f"{where}/cpuset.sched_load_balance", "0", "number", new="1"),
        ]


def _siblings(cpus: CpuSet) -> str:
    """Return a name for CPUs that share cores with hot ones, such as "CPU 5, a sibling,"."""
    return f"CPU {cpus}, {'a sibling' if len(cpus) == 1 else 'siblings'} of hot CPUs,"


def _in_the_way(group: CpusetGroup, hot: CpuSet, version: int) -> str:
    """Return the reason why another program's group prevents the isolation of the CPUs ``hot``. Return "" if the group
    does not prevent it. ``version``: the cgroup version, 1 or 2."""
    named = f"the control group '{group.name}'"
    if version == 1:
        if group.balanced and group.effective & hot:
            return (
                f"{named} has CPU {group.effective & hot} too, so the load balancer still puts tasks on these CPUs: "
                "take them out of the group first"
            )
        return ""
    if group.partition is not None and group.partition.kind != "member" and group.cpus & hot:
        return f"{named} has a partition of its own with CPU {group.cpus & hot}"
    if group.cpus & hot and not group.exclusive_file:
        return (
            f"{named} also lists CPU {group.cpus & hot}, and this kernel isolates a CPU only if no other group lists "
            "this CPU"
        )
    return ""


def _all_unbalanced(host: Host, sets: Cpusets | None) -> bool:
    """Return True if no version 1 cpuset balances load between the housekeeping CPUs.

    This means that load balancing is off in the top cpuset and in every cpuset with housekeeping CPUs. Return False if
    there is only one housekeeping CPU.
    """
    if sets is None or sets.version != 1 or host.root.integer(f"{sets.where}/cpuset.sched_load_balance") != 0:
        return False
    balanced = CpuSet.of(c for group in read_groups(host.root, sets) if group.balanced for c in group.effective)
    return len(host.housekeeping) > 1 and not balanced & host.housekeeping


def own_group(root: HostRoot, sets: Cpusets) -> CpusetGroup | None:
    """Return the group in which this tool has isolated CPUs. Return None if there is no such group, or if it isolates
    no CPUs."""
    folder = f"{sets.where}/{GROUP}" if sets.version == 2 else f"{sets.where}/{GROUP}-hot"
    if folder.rpartition("/")[0] not in (_PLACES[:2] if sets.version == 2 else _PLACES[2:]):
        return None
    group = read_group(root, sets, folder)
    if group is None or not group.effective:
        return None
    holds = group.partition == PartitionState("isolated") if sets.version == 2 else not group.balanced
    return group if holds else None


def _narrow(host: Host) -> Iterable[tuple[Task, CpuSet]]:
    """Yield each thread whose affinity the kernel overwrites when a partition is made or removed. Each item is a pair
    of a thread and its affinity.

    Usually these are the threads whose affinity lacks an online CPU. But if a CPU is offline, kernels before 6.2
    overwrite every thread's affinity with the online CPUs. Threads that cannot be bound are left out.
    """
    # CPUs that the same plan takes offline leave after the partition is made.
    online = host.root.cpu_list(f"{CPU_DIR}/online") or host.online
    present = host.root.cpu_list(f"{CPU_DIR}/present") or online
    old = not remembers_wishes(host.root)
    for task in each_thread(host.root):
        if task.fixed:
            continue
        allowed = read_allowed_cpus(host.root, task)
        if allowed and (online - allowed or (old and allowed & present != online)):
            yield task, allowed


def _movable_threads(root: HostRoot) -> Iterable[tuple[Task, str]]:
    """Yield each thread that can be moved to an inner cpuset, with its current cpuset.

    The kernel does not let its own threads be moved if they are bound to a CPU. It does not let kthreadd be moved,
    either: all new kernel threads would start in that cpuset (kernel/cgroup/cgroup.c).
    """
    for task in each_thread(root):
        if task.fixed or task.tid == _KTHREADD:
            continue
        for member in parse_memberships(root.text(f"{task.folder}/cgroup") or ""):
            if "cpuset" in member.controllers:
                yield task, member.path


def _kept(threads: Iterable[tuple[Task, CpuSet]], host: Host) -> list[Write]:
    """Return a write for each affinity that the kernel will overwrite. After the kernel has overwritten the affinity,
    this write sets it again, to housekeeping CPUs only. A restore writes the old affinity.
    """
    found = []
    for task, allowed in threads:
        kind = "irq-thread" if task.kernel and task.name.startswith("irq/") else "affinity-across"
        why = f"Making the cpuset overwrites the affinity of '{task.name}'."
        call = affinity_call(task.tid, task.start_ticks)
        found.append(Write(call, str(allowed), str(host.instead_of(allowed)), kind, why))
    return found


def _governor_threads(host: Host) -> list[Write]:
    """Return writes that bind schedutil threads to their CPUs again.

    Kernels before 6.2 unbind these threads when a partition is made or removed. For later kernels, return no writes.
    """
    if remembers_wishes(host.root):
        return []
    kind = kind_of("governor-thread")
    return [
        Write(
            path,
            BOUND,
            BOUND,
            "governor-thread",
            why="The kernel unbinds this thread. To bind the thread again, this tool sets the governor again.",
        )
        for path in governor_threads(host.root)
        if kind.read(host.root, path).text == BOUND
    ]


def lost_to_others(root: HostRoot, switched: Switched, returning: CpuSet) -> list[tuple[Task, CpuSet, CpuSet]]:
    """Return threads that lack CPUs because another program's partition changed while we had CPUs offline.

    Each item is a triple: the thread, the mask that it should have, and its current mask. ``returning``: CPUs that are
    brought online. A thread is returned if its current mask is exactly the CPUs of the top group. With kernels from 6.2
    on, no thread loses CPUs in this way.
    """
    if not (switched.others or switched.gone) or not returning or remembers_wishes(root):
        return []
    sets = find_cpusets(root)
    isolated = isolated_at_run_time(root, sets) | switched.others
    has = (root.cpu_list(f"{CPU_DIR}/online") or CpuSet()) - isolated
    wanted = (has | returning) - isolated
    free = (t for t in each_thread(root) if not t.fixed and sets and not limited_by(root, sets, t.tid))
    return [(task, wanted, has) for task in free if wanted != has == read_allowed_cpus(root, task)]


def lost_at_the_end(root: HostRoot, switched: Switched, returning: CpuSet) -> list[tuple[Task, CpuSet, CpuSet]]:
    """Return threads whose affinity the kernel overwrites when a partition ends.

    Each item is a triple: the thread, the affinity that it should have, and the kernel's new affinity. These threads
    got a narrower affinity after the partition was made. Kernels before 6.2 also overwrite affinities that contain a
    CPU which is offline when the partition ends.

    ``switched``: our changes to CPUs and cpusets. ``returning``: CPUs that are brought online before the partition
    ends.
    """
    online = (root.cpu_list(f"{CPU_DIR}/online") or CpuSet()) | returning
    present = root.cpu_list(f"{CPU_DIR}/present") or online
    opened = switched.outside()
    old = not remembers_wishes(root)
    found = []
    for task in each_thread(root):
        allowed = None if task.fixed or _inside(root, task) else read_allowed_cpus(root, task)
        if not allowed:
            continue
        # A mask that the kernel itself may have given does not count as set by somebody.
        if allowed in opened or not (online - switched.isolated) - allowed:
            sets = find_cpusets(root) if old and present - online else None
            if sets is not None and not limited_by(root, sets, task.tid):
                found.append((task, present - switched.others, online))
        else:
            found.append((task, allowed, online))
    return found


def _inside(root: HostRoot, task: Task) -> bool:
    """Return True if a task is in this tool's group of the isolated CPUs."""
    places = parse_memberships(root.text(f"/proc/{task.tid}/cgroup") or "")
    return any(member.path.strip("/") in (GROUP, f"{GROUP}-hot") for member in places)


def _write(root: HostRoot, path: str, after: str, kind: str, new: str = "") -> Write:
    """Return a write of the value ``after`` to a setting. ``new``: the text to record as the old value (``before``) if
    the setting is empty or does not exist yet.
    """
    return Write(path, kind_of(kind).read(root, path).text or new, after, kind)
