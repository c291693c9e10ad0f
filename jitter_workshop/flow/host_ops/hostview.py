"""Read the facts of the host that a chapter shows. Each topic has its own function, which reads a few files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from jitter_workshop.host.cpu.topology import read_isolation
from jitter_workshop.host.kernel.release import read_tick_hz
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.summary import steal_words
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary, Topology
from jitter_workshop.model.text import CELL, ID, MOST_ENTRIES, SHORT, WORD, clean, many
from jitter_workshop.model.walk import Fact

_CLOCKS_OF_GUESTS = ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")
"""Clocks of guests that the vDSO can read without a system call (vdso_clock_mode pvclock and hvclock)."""
_MOST_CACHES = 4
"""The largest number of shared caches whose CPUs are listed."""
_MOST_OF_A_SIZE = 2
"""The largest number of caches of one level and size whose CPUs are listed."""
_FEW_TASKS = 0.1
"""The load average of one CPU from which on its tasks are not called few. The kernel counts tasks that run, that wait
for a CPU or that wait for a disk (kernel/sched/loadavg.c)."""
_OF_BOOT = "/sys/devices/system/cpu/isolated, nohz_full"
"""The files of the CPUs that were isolated at boot. They do not list those that a cpuset isolates at run time."""
_GIVEN = {
    "always": "each program gets huge pages, without asking",
    "madvise": "a program gets huge pages if it asks for them",
    "never": "no program gets transparent huge pages",
}
_NO_CACHES = "this host does not show it"
_CACHE_FILES = "/sys/devices/system/cpu/cpu*/cache"


@dataclass(frozen=True, slots=True)
class HostView:
    """Hold the data for the functions of the topics: the host's files, its summary and its CPUs."""

    root: HostRoot
    host: HostSummary
    topology: Topology


def topic_facts(view: HostView, topics: tuple[str, ...]) -> tuple[Fact, ...]:
    """Return one fact for each topic, in order. A topic that does not concern this host gives no fact."""
    found = (TOPICS[topic](view) for topic in topics if topic in TOPICS)
    return tuple(fact for fact in found if fact is not None)


def _system(view: HostView) -> Fact:
    host = view.host
    where = "on bare metal" if host.hypervisor is None else f"a guest of {clean(host.hypervisor, SHORT)}"
    if host.hypervisor is None and host.notes.get("hypervisor", "").startswith("cannot"):
        where = "bare metal or guest: unknown"
    flavour = " (PREEMPT_RT)" if host.realtime_kernel else ""
    value = f"Linux {clean(host.kernel, ID)}{flavour}, {clean(host.architecture, WORD)}, {where}"
    if host.hypervisor is not None:
        meaning = "the hypervisor can take CPU time, and the guest's counters may not show it"
    elif host.realtime_kernel:
        meaning = "PREEMPT_RT: most interrupt work runs in threads that can be preempted"
    else:
        meaning = "only this kernel, its tasks, firmware and hardware can take time here"
    return Fact("System", value, meaning, "uname, /proc/cpuinfo")


def _cpus(view: HostView) -> Fact:
    topology = view.topology
    cores = {(c.package, c.core) for c in topology.cpus if c.online}
    packages = {c.package for c in topology.cpus if c.online}
    online = len(topology.online)
    value = f"{online} online ({topology.online})" if online > 1 else "1 online"
    extra = []
    if len(cores) < online:
        extra.append(f"{len(cores)} cores with SMT")
    if len(packages) > 1:
        extra.append(f"{len(packages)} packages")
    if len({c.core_type for c in topology.cpus if c.online and c.core_type}) > 1:
        extra.append("fast and efficient cores")
    if extra:
        value += ", " + ", ".join(extra)
    meaning = "each measured thread runs all the time and needs a CPU of its own"
    if online == 1:
        meaning = "every other task takes its time from the measured threads"
    elif online == 2:
        meaning = (
            "with one measured thread, one CPU is left for all other tasks; with two measured threads, none is left"
        )
    return Fact("CPUs", value, meaning, "/sys/devices/system/cpu")


def _allowed(view: HostView) -> Fact:
    allowed = view.topology.allowed
    barred = view.topology.online - allowed
    value = f"any of {allowed}"
    balanced = allowed - CpuSet(view.host.isolated)
    meaning = f"the scheduler may move an unpinned thread between CPUs {balanced} at any time"
    if len(allowed) == 1:
        value, meaning = f"only {allowed}", "on one CPU no thread can migrate"
    elif len(balanced) < 2:
        meaning = "between isolated CPUs no thread migrates by itself"
    if barred and len(allowed) > 1:
        meaning += f"; {barred} {'is' if len(barred) == 1 else 'are'} outside our mask"
    return Fact("May run on", value, meaning, "/proc/self/status: Cpus_allowed_list")


def _caches(view: HostView) -> Fact | None:
    groups: dict[tuple[int, ...], int] = {}
    for cpu in view.topology.allowed:
        cache = view.topology.last_level_cache(cpu)
        if cache is not None:
            groups[cache.cpus.cpus] = cache.level
    if not groups:
        return Fact("Shared cache", _NO_CACHES, "the cost of a move between CPUs cannot be known in advance")
    shown = [f"L{level} of CPUs {CpuSet(cpus)}" for cpus, level in sorted(groups.items())[:_MOST_CACHES]]
    if len(groups) > _MOST_CACHES:
        shown.append(f"{len(groups) - _MOST_CACHES} more")
    meaning = "a message takes about 50 to 150 ns inside one cache, and up to several hundred ns between two caches"
    return Fact("Shared cache", "; ".join(shown), f"{meaning}{_as_the_guest_sees(view)}", _CACHE_FILES)


def _cache_sizes(view: HostView) -> Fact:
    """Return the caches of each level with their sizes. The CPUs of each cache stand in brackets. Caches of
    instructions are left out."""
    allowed = frozenset(view.topology.allowed)
    sorts: dict[tuple[int, str, int], list[tuple[int, ...]]] = {}
    for cache in view.topology.caches:
        if cache.kind != "Instruction" and not allowed.isdisjoint(cache.cpus):
            kind = "" if cache.kind == "Unified" else f" {clean(cache.kind.lower(), WORD)}"
            sorts.setdefault((cache.level, kind, cache.size_bytes or 0), []).append(cache.cpus.cpus)
    if not sorts:
        return Fact("Caches", _NO_CACHES, "sizes of memory cannot be compared with the sizes of the caches")
    shown = []
    for (level, kind, size), found in sorted(sorts.items()):
        sets = [f"CPU{'' if len(cpus) == 1 else 's'} {CpuSet(cpus)}" for cpus in sorted(found)[:_MOST_OF_A_SIZE]]
        sets += [f"{len(found) - _MOST_OF_A_SIZE} more"] if len(found) > _MOST_OF_A_SIZE else []
        shown.append(f"L{level}{kind} {_size(size)} ({', '.join(sets)})")
    meaning = f"data can stay in a cache only if the cache is larger than the data{_as_the_guest_sees(view)}"
    return Fact("Caches", "; ".join(shown), meaning, _CACHE_FILES)


def _size(size_bytes: int) -> str:
    """Return a cache's size in words. ``size_bytes``: 0 if the size is not known."""
    if not size_bytes:
        return "of unknown size"
    mib = size_bytes / (1 << 20)
    return f"{mib:g} MiB" if mib >= 1 else f"{size_bytes / 1024:g} KiB"


def _as_the_guest_sees(view: HostView) -> str:
    return "; a guest sees only what its hypervisor shows" if view.host.hypervisor is not None else ""


def _clock(view: HostView) -> Fact:
    source = view.host.clocksource
    if source is None:
        return Fact("Clock", "not known", view.host.notes.get("clocksource", ""))
    quick = source in ("tsc", "arch_sys_counter")
    if quick:
        meaning = "the CPU's own counter: one reading takes about 10 to 25 ns"
    elif source in _CLOCKS_OF_GUESTS:
        meaning = "the CPU's counter with the hypervisor's figures: usually read without entering the kernel"
    else:
        meaning = "a slow clock: each reading is a system call"
    where = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
    return Fact("Clock", clean(source, SHORT), meaning, where)


def _frequency(view: HostView) -> Fact:
    where = "/sys/devices/system/cpu/cpufreq"
    governors = view.host.governors
    if not governors:
        meaning = (
            "the hypervisor sets the speed" if view.host.hypervisor else "the firmware sets the speed, or it is fixed"
        )
        return Fact("CPU frequency", "this kernel has no cpufreq", meaning, where)
    value = "governor " + ", ".join(clean(g, WORD) for g in governors[:MOST_ENTRIES])
    meaning = "the clock mostly follows the load: an idle CPU starts slowly"
    if set(governors) == {"performance"}:
        meaning = "the governor asks for full speed all the time"
    elif "performance" in governors:
        meaning = (
            "the governor 'performance' asks for full speed all the time; with others the clock mostly follows the load"
        )
    return Fact("CPU frequency", value, meaning, where)


def _idle(view: HostView) -> Fact:
    where = "/sys/devices/system/cpu/cpuidle"
    driver = view.host.cpuidle_driver
    if driver is None or driver == "none":
        return Fact(
            "Idle states",
            "no cpuidle driver",
            "an idle CPU halts; in a guest this mostly means an exit to the hypervisor",
            where,
        )
    meaning = "a CPU with a spinning thread never idles; an idle CPU needs time to wake"
    return Fact("Idle states", clean(driver, SHORT), meaning, where)


def _steal(view: HostView) -> Fact | None:
    if view.host.hypervisor is None:
        return None
    percent = view.host.steal_percent
    if percent is None:
        meaning = "if the hypervisor takes a CPU away, this counter does not show it"
        return Fact("Steal", "this host shows no steal clock", meaning, "/proc/stat")
    meaning = "the share of CPU time since boot that the hypervisor gave to others"
    return Fact("Steal", steal_words(percent), meaning, "/proc/stat")


def _load(view: HostView) -> Fact | None:
    words = (view.root.text("/proc/loadavg") or "").split()
    if len(words) < 4:
        return None
    value = f"{clean(words[0], CELL)} over the last minute"
    try:
        average = float(words[0])
    except ValueError:
        return None
    cpus = max(len(view.topology.online), 1)
    meaning = "few tasks ran or waited; interrupts and short tasks remain"
    if average >= _FEW_TASKS * cpus:
        on = many(cpus, "CPU")
        meaning = (
            f"on average {average:g} tasks ran or waited on {on}, our runs included: expect other tasks beside ours"
        )
    return Fact("Load", value, meaning, "/proc/loadavg")


def _tick(view: HostView) -> Fact | None:
    hz, where = read_tick_hz(view.root, view.host.kernel)
    if hz is None:
        meaning = "the step 'explain' counts the timer interrupts of your own run"
        return Fact("Tick", "this host does not show CONFIG_HZ", meaning, clean(where))
    meaning = "timer interrupts a second on each busy CPU, unless nohz_full stops them"
    return Fact("Tick", f"{hz} Hz", meaning, clean(where))


def _limit(view: HostView) -> Fact | None:
    quota, period = view.host.cpu_max_quota_us, view.host.cpu_max_period_us
    if quota is None or not period:
        return None
    meaning = "a group that has used its time waits for the next period: this wait looks like a huge stall"
    return Fact("CPU limit", f"{quota} µs in every {period} µs", meaning, "cgroup cpu.max")


def _isolation(view: HostView) -> Fact:
    isolated, full = CpuSet(view.host.isolated), CpuSet(view.host.nohz_full)
    found = read_isolation(view.root)
    where = _OF_BOOT
    if found.partitions:
        where = f"cpuset, {_OF_BOOT}" if found.boot or full else "cpuset (a cgroup)"
    if not isolated and not full:
        return Fact("Isolated CPUs", "none", "every task may use every CPU, as far as this host shows", where)
    parts = [f"isolated {isolated}"] if isolated else []
    if full:
        parts.append(f"tickless {full}")
    meaning = "a tickless CPU has no tick while only one task runs there, but the load balancer still uses it"
    if isolated:
        meaning = "the load balancer leaves isolated CPUs alone"
    return Fact("Isolated CPUs", ", ".join(parts), meaning, where)


def _neighbours(view: HostView) -> Fact | None:
    words = (view.root.text("/proc/loadavg") or "").split()
    running, slash, total = words[3].partition("/") if len(words) > 3 else ("", "", "")
    if not slash or not running.isdigit() or not total.isdigit():
        return None
    meaning = "each task that wakes, also a kernel thread, may take the CPU from a measured thread"
    return Fact("Tasks", f"{int(total)} exist, {int(running)} can run now", meaning, "/proc/loadavg")


def _huge_pages(view: HostView) -> Fact:
    where = "/sys/kernel/mm/transparent_hugepage/enabled"
    found = re.search(r"\[(\w+)\]", view.root.text(where) or "")
    value = found[1] if found else ""
    if value not in _GIVEN:
        return Fact("Huge pages", "this host does not show them", "the kernel may lack transparent huge pages", where)
    return Fact("Huge pages", value, _GIVEN[value], where)


def _memlock(view: HostView) -> Fact | None:
    limit = view.host.memlock_limit_bytes
    if limit is None or limit >= 64 << 20 or read_limits(view.root).may_lock:
        return None  # CAP_IPC_LOCK lifts the limit
    meaning = "the measured threads cannot lock more memory than this, so a page fault can show as a stall"
    return Fact("Locked memory", f"at most {limit // 1024} KiB", meaning, "ulimit -l")


def _realtime(view: HostView) -> Fact | None:
    runtime, period = (view.root.integer(f"/proc/sys/kernel/sched_rt_{name}_us") for name in ("runtime", "period"))
    if runtime is None or not period:
        return None
    where = "/proc/sys/kernel/sched_rt_runtime_us, sched_rt_period_us"
    if runtime < 0:
        return Fact("Real-time limit", "none (-1)", "a real-time thread that spins can keep its CPU for ever", where)
    meaning = "if this kernel throttles real-time tasks, ordinary tasks get the rest of each period"
    return Fact("Real-time limit", f"{runtime:,} µs in every {period:,} µs", meaning, where)


TOPICS: dict[str, Callable[[HostView], Fact | None]] = {
    "system": _system,
    "cpus": _cpus,
    "allowed": _allowed,
    "caches": _caches,
    "cache-sizes": _cache_sizes,
    "clock": _clock,
    "frequency": _frequency,
    "idle": _idle,
    "steal": _steal,
    "load": _load,
    "tick": _tick,
    "limit": _limit,
    "isolation": _isolation,
    "neighbours": _neighbours,
    "memlock": _memlock,
    "huge-pages": _huge_pages,
    "realtime": _realtime,
}
"""One function for each name of ``model.course.LOOK_TOPICS`` (a test compares the two)."""
