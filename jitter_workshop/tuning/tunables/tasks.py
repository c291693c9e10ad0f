"""Define tunables that move tasks off the hot CPUs. One is for kernel threads, one for all other tasks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from jitter_workshop.host.tasks.listing import Task, read_allowed_cpus
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Observed, Setting, Settings, Unavailable, Write, left_for_the_rest
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.tasks import affinity_call

_SHOWN_NAMES = 5
_PER_NODE = r"(?:kswapd|kcompactd)(\d{1,4})"


class KernelThreads(Settings):
    id = "kernel-threads"
    title = "Kernel threads"
    why = (
        "Kernel threads for memory reclaim, RCU callbacks (rcuo), compaction and other work run on any CPU of "
        "their mask. Threads that are not bound to one CPU can be kept off the hot CPUs."
    )
    danger = "the other CPUs do the work of these threads"
    document = "Documentation/admin-guide/kernel-per-CPU-kthreads.rst"
    owns = ("sched_setaffinity(*)",)
    rewritten_by = ("tuned",)
    good = "every kernel thread that can be moved stays off the hot CPUs"
    shown_paths = 0

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        left_for_the_rest(host)
        tasks = [task for task in host.processes if task.kernel]
        if not tasks:
            raise Unavailable("no kernel thread is visible here (a container does not see kernel threads)")
        found = []
        for task in tasks:
            if task.fixed or task.worker or task.name.startswith("irq/"):
                continue  # bound by the kernel, by its workqueue, or by its interrupt
            allowed = read_allowed_cpus(host.root, task)
            if allowed is None:
                continue
            wanted = host.instead_of(allowed) if allowed & host.kept_clear else allowed
            path = affinity_call(task.tid, task.start_ticks)
            found.append(Setting(path, str(allowed), str(wanted), "affinity"))
        return found

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        names = {affinity_call(task.tid, task.start_ticks): task.name for task in host.processes if task.kernel}
        found = super().writes(host, value)
        return [Write(w.path, w.before, w.after, w.kind, why=_whose(names[w.path], w.after, host)) for w in found]

    def judge(self, host: Host) -> Assessment:
        settings = self.settings(host, None)
        off = sum(1 for s in settings if s.current != s.wanted)
        value, wanted = f"{off} may use {host.clear_words}", "none"
        if off:
            reason = f"{off} of {len(settings)} movable kernel threads may still run on CPU {host.kept_clear}"
            return self.answer("improve", value, reason, wanted=wanted)
        return self.answer("ok", value, self.good, wanted=wanted)


def _whose(name: str, after: str, host: Host) -> str:
    """Return a sentence that names a kernel thread. For a thread of a memory node, the sentence also tells the effect
    of the change.

    The kernel binds the thread of a memory node to the CPUs of this node. The kernel binds it again whenever one of
    these CPUs comes online. The functions are ``kswapd_cpu_online`` and ``kcompactd_cpu_online``, in newer kernels
    ``kthreads_online_cpu``. If all CPUs of the node are kept free of other work, the change moves the thread to another
    node's CPUs.
    """
    found = re.fullmatch(_PER_NODE, name)
    home = host.nodes.get(int(found[1])) if found is not None else None
    if home is None or len(host.nodes) < 2:
        return f"The kernel thread '{name}'."
    where = (
        ("the thread stays on its memory node")
        if CpuSet.parse_list(after) & home
        else "all CPUs of its memory node are hot, so it uses another node"
    )
    return (
        f"The kernel thread '{name}': {where}. When a CPU of its node comes online, the kernel moves the thread back "
        "to this node."
    )


class UserTasks(Observed):
    id = "user-tasks"
    title = "Other tasks"
    why = (
        "If a task becomes ready on a hot CPU, the task and the hot thread take turns of a few milliseconds. This "
        "check names such tasks. The tunable isolation keeps all tasks off the hot CPUs."
    )
    document = "Documentation/scheduler/sched-design-CFS.rst"

    def judge(self, host: Host) -> Assessment:
        if not host.hot:
            raise Unavailable("no CPU is chosen as hot: choose with --cpus", info=True)
        here: list[Task] = []
        seen = 0
        for task in host.processes:
            if task.kernel:
                continue
            seen += 1
            allowed = read_allowed_cpus(host.root, task)
            if allowed is not None and allowed & host.kept_clear:
                here.append(task)
        if not seen:
            raise Unavailable("no process is visible here")
        if not here:
            return self.answer("ok", "0", f"none of {seen} processes may run on CPU {host.kept_clear}", wanted="0")
        names = Counter(task.name for task in here)
        # most_common(n) would load heapq.
        most = names.most_common()[:_SHOWN_NAMES]
        shown = ", ".join(f"{name} ({n})" if n > 1 else name for name, n in most)
        more = f" and {len(names) - _SHOWN_NAMES} more names" if len(names) > _SHOWN_NAMES else ""
        realtime = sum(1 for task in here if task.rt_priority)
        urgent = f"; {realtime} with real-time priority" if realtime else ""
        reason = f"{len(here)} of {seen} processes may run on CPU {host.kept_clear}: {shown}{more}{urgent}"
        return self.answer("info", str(len(here)), reason, fix="jitter-workshop apply isolation")
