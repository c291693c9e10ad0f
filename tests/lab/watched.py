"""Everything in the guest that the tool may write, as one dict by path: to be equal before and after.

Runs inside the guest: standard library only, one file. Left out, because the kernel changes it by itself or because it
is only a consequence: ``effective_affinity*`` of interrupts (follows the mask), ``scaling_cur_freq`` (the present
frequency), counters, and threads that began after the first look or have ended since (kworkers come and go). The clock
source is compared only if the kernel offered the same ones both times: a kernel that finds the TSC unstable under load
takes another and no longer offers the TSC (kernel/time/clocksource.c). A thread
is given with the CPUs on which it may run now, with its raw mask (which has offline CPUs too, and is told without those
that this machine does not have), with its policy, priority and nice value, and with its control groups.
``scaling_max_freq`` is in it, and throttling changes it: do not compare while the zone is hot.
"""

from __future__ import annotations

import glob
import os

CPU = "/sys/devices/system/cpu"
PATTERNS = (
    f"{CPU}/cpu*/online",
    f"{CPU}/smt/control",
    f"{CPU}/cpufreq/boost",
    f"{CPU}/cpufreq/policy*/scaling_governor",
    f"{CPU}/cpufreq/policy*/scaling_min_freq",
    f"{CPU}/cpufreq/policy*/scaling_max_freq",
    f"{CPU}/cpufreq/policy*/energy_performance_preference",
    f"{CPU}/cpufreq/policy*/boost",
    f"{CPU}/intel_pstate/*",
    f"{CPU}/cpu*/power/energy_perf_bias",
    f"{CPU}/cpu*/power/pm_qos_resume_latency_us",
    f"{CPU}/cpu*/cpuidle/state*/disable",
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/sys/devices/virtual/workqueue/cpumask",
    "/sys/devices/virtual/workqueue/cpumask_requested",
    "/sys/devices/virtual/workqueue/*/cpumask",
    "/sys/devices/virtual/workqueue/*/affinity_scope",
    "/proc/sys/kernel/sched_rt_*",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/watchdog*",
    "/proc/sys/kernel/*_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/vm/stat_interval",
    "/proc/sys/vm/dirty_*",
    "/proc/sys/vm/swappiness",
    "/proc/sys/vm/compaction_proactiveness",
    "/proc/sys/vm/zone_reclaim_mode",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/mm/transparent_hugepage/defrag",
    "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
    "/sys/kernel/mm/ksm/run",
    "/sys/kernel/rcu_expedited",
    "/sys/kernel/rcu_normal",
    "/sys/devices/system/machinecheck/machinecheck*/check_interval",
    "/sys/devices/system/machinecheck/machinecheck*/ignore_ce",
    "/sys/class/net/*/queues/*/rps_cpus",
    "/sys/class/net/*/queues/*/xps_cpus",
    "/sys/kernel/debug/sched/fair_server/cpu*/runtime",
    "/sys/kernel/debug/sched/fair_server/cpu*/period",
    "/sys/kernel/tracing/tracing_on",
    "/sys/kernel/tracing/current_tracer",
    "/sys/module/pcie_aspm/parameters/policy",
    "/sys/module/haltpoll/parameters/*",
    "/etc/default/grub",
    "/etc/default/grub.d/*",
    "/boot/grub/grub.cfg",
    "/etc/sysctl.d/*",
    "/etc/systemd/system/*",
    "/etc/tuned/*",
)
PF_WQ_WORKER = 0x20
POLICIES = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle", 6: "deadline", 7: "ext"}
CLOCK = "/sys/devices/system/clocksource/clocksource0"
CGROUP = "/sys/fs/cgroup"
CGROUP_FILES = ("cgroup.subtree_control", "cgroup.type", "cpu.max", "cpuset.cpus", "cpuset.cpus.exclusive")
CGROUP_FILES += ("cpuset.cpus.partition", "cpuset.mems", "cpuset.cpu_exclusive", "cpuset.sched_load_balance")


def watched_tree() -> dict[str, str]:
    """Path → content (or "refused: reason"); cgroup folders, each task's affinity and what a cgroup holds likewise."""
    tree: dict[str, str] = {}
    for pattern in PATTERNS:
        for path in glob.glob(pattern):
            if not os.path.isdir(path):
                tree[path] = _text(path)
    tree[f"clock of {_text(f'{CLOCK}/available_clocksource')}"] = _text(f"{CLOCK}/current_clocksource")
    for folder, _, files in os.walk(CGROUP):
        tree[folder + "/"] = "a cgroup"
        for name in CGROUP_FILES:
            if name in files:
                tree[f"{folder}/{name}"] = _text(f"{folder}/{name}")
    present = _cpus(_text(f"{CPU}/present"))
    for pid in os.listdir("/proc"):
        if pid.isdigit() and int(pid) != os.getpid():
            tree.update(_tasks(pid, present))
    return tree


def _tasks(pid: str, present: set[int]) -> dict[str, str]:
    """Each thread of a process, under a name that no later thread with the same number gets."""
    found = {}
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for tid in threads:
        try:
            stat = _text(f"/proc/{pid}/task/{tid}/stat")
            name, rest = stat[stat.index("(") + 1 : stat.rindex(")")], stat[stat.rindex(")") + 2 :].split()
            began = rest[19]
            cpus = f"{_listed(os.sched_getaffinity(int(tid)))} of {_listed(_raw_mask(pid, tid) & present)}"
            # A worker of one CPU is bound to it ("kworker/2:1"); the others ("kworker/u8:0") follow their workqueue.
            if int(rest[6]) & PF_WQ_WORKER and not name.partition("/")[2][:1].isdigit():
                cpus = "as its workqueue says"
            if name.startswith("irq/") and _raw_mask(pid, tid) <= _of_interrupt(name):
                # The kernel puts it where its interrupt arrives, on any one of the CPUs that the interrupt may use.
                cpus = "among its interrupt's"
            policy = POLICIES.get(int(rest[38]), f"policy {rest[38]}")
            groups = "+".join(line.split(":", 1)[1] for line in _text(f"/proc/{pid}/task/{tid}/cgroup").splitlines())
        except (OSError, ValueError, IndexError):
            continue
        # A worker renames itself with what it works on, so only the number and the start identify it.
        label = "kworker" if name.startswith("kworker") else name
        found[f"task {tid} {label} began {began}"] = f"cpus {cpus}, {policy} {rest[37]} nice {rest[16]}, in {groups}"
    return found


def _of_interrupt(name: str) -> set[int]:
    """The CPUs that the interrupt of a thread ("irq/25-eth0") may use."""
    number = name.removeprefix("irq/").partition("-")[0]
    return _cpus(_text(f"/proc/irq/{number}/smp_affinity_list"))


def _raw_mask(pid: str, tid: str) -> set[int]:
    """The mask as the kernel keeps it: sched_getaffinity leaves out CPUs that are offline."""
    for line in _text(f"/proc/{pid}/task/{tid}/status").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return _cpus(line.split(":", 1)[1].strip())
    raise ValueError(tid)


def _cpus(text: str) -> set[int]:
    """The CPUs of a list such as 0-1,3."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def _listed(cpus: set[int]) -> str:
    """A list such as 0-1,3."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65536).strip()
    except OSError as error:
        return f"refused: {error.strerror}"


def differences(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """One line for each difference; threads that began or ended in between are none, nor is a clock source of another
    offer."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        passing = path.startswith(("task ", "clock of ")) and not (path in before and path in after)
        if before.get(path) == after.get(path) or passing:
            continue
        lines.append(f"{path}: {before.get(path, '(was not there)')!r} -> {after.get(path, '(is gone)')!r}")
    return lines
