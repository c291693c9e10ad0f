"""Summarise a host as a ``HostSummary``, which is stored with each run. Also summarise the host as one line for the
screen."""

from __future__ import annotations

import os
import re

from jitter_workshop.host.cpu.cpufreq import read_governors
from jitter_workshop.host.cpu.cpuidle import read_idle_driver
from jitter_workshop.host.cpu.cpuinfo import read_clocksource, read_cpu_identity
from jitter_workshop.host.cpu.stat import CpuStat, read_stat
from jitter_workshop.host.cpu.topology import read_isolation, read_topology
from jitter_workshop.host.kernel.hypervisor import Hypervisor, read_hypervisor
from jitter_workshop.host.kernel.release import read_kernel
from jitter_workshop.host.power import Thermal, read_on_battery, read_thermal
from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.tasks.cgroup import Cgroup, read_cgroup
from jitter_workshop.host.tasks.limits import Limits, read_limits
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import HostSummary, Topology

_TRADE_MARKS = r"(?i)\((?:R|TM|C)\)"
_SALES_TALK = r"\s+(?:@.*|\d+-Core Processor.*|with .*Graphics.*|Processor)$|(?<!Virtual) CPU\b"
"""Expression for the parts of a processor's name that say nothing, such as its clock rate. It is compiled when a
processor's name is first shown; a guest shows no processor's name."""


def summarise_host(root: HostRoot, topology: Topology | None = None) -> HostSummary:
    """Return the summary of a host. Do not call this function during a block of a run, because it reads temperature
    sensors.

    The field ``notes`` has the reason for each field that is None, and for some fields that are empty lists.
    ``topology``: the host's CPUs, if the caller knows them; None: read them.
    """
    identity = read_cpu_identity(root)
    hypervisor = read_hypervisor(root, identity)
    kernel = read_kernel(root, identity)
    machine = topology if topology is not None else read_topology(root)
    isolation = read_isolation(root)
    clock = read_clocksource(root, identity)
    thermal = read_thermal(root)
    stat = read_stat(root, hypervisor.guest)
    cgroup = read_cgroup(root)
    limits = read_limits(root)
    summary = HostSummary(
        name=kernel.hostname,
        kernel=kernel.release,
        architecture=kernel.architecture,
        cpu_model=identity.model,
        hypervisor=hypervisor.name,
        cpus_online=machine.online.cpus,
        cpus_allowed=machine.allowed.cpus,
        isolated=isolation.isolated.cpus,
        nohz_full=isolation.nohz_full.cpus if isolation.nohz_full is not None else (),
        governors=read_governors(root),
        cpuidle_driver=read_idle_driver(root),
        clocksource=clock.current,
        thermal_zones=len(thermal.zones),
        realtime_kernel=kernel.realtime,
        steal_percent=stat.steal_percent,
        cpu_max_quota_us=cgroup.quota_us,
        cpu_max_period_us=cgroup.period_us,
        on_battery=read_on_battery(root),
        memlock_limit_bytes=limits.memlock_bytes,
        is_root=not root.recorded and os.geteuid() == 0,
        boot_id=kernel.boot_id,
        packages=len({c.package for c in machine.cpus if c.online}) or None,
        smt=_smt(machine),
        hottest_celsius=thermal.hottest_celsius,
        recorded=root.recorded,
        emulated=hypervisor.emulated,
        accelerator=hypervisor.accelerator or None,
    )
    summary.notes.update(_notes(summary, root, hypervisor, stat, cgroup, thermal, limits))
    if isolation.nohz_full is None:
        summary.notes["nohz_full"] = "this kernel cannot make CPUs tickless (CONFIG_NO_HZ_FULL is off)"
    return summary


def host_line(summary: HostSummary, hot: tuple[int, ...] = ()) -> str:
    """Return one line that describes the host, with the most important facts first. Unknown facts are left out.
    ``hot``: the CPUs of the measured threads, () if none are chosen yet."""
    return " · ".join(part for part in _line_parts(summary, hot) if part)


def short_cpu_name(model: str) -> str:
    """Return a processor's name without trade marks, clock rate and advertising: ``Intel Xeon Gold 6130``."""
    plain = " ".join(re.sub(_TRADE_MARKS, " ", model).split())
    return re.sub(_SALES_TALK, "", plain) or plain


def steal_words(percent: float) -> str:
    """Return a percentage of steal as text. Values below 0.01 % become ``under 0.01 %``, so a small steal is
    never shown as 0. The check ``steal`` calls a steal of 0.01 % or more bad."""
    return "under 0.01 %" if percent < 0.01 else f"{percent:.2f} %" if percent < 0.1 else f"{percent:.1f} %"


def _line_parts(summary: HostSummary, hot: tuple[int, ...]) -> list[str]:
    guest = summary.hypervisor is not None
    who = f"{summary.hypervisor} guest" if guest else short_cpu_name(summary.cpu_model or summary.architecture)
    who = f"emulated machine ({summary.hypervisor})" if summary.emulated else who
    parts = [who, _cpus(summary, hot)]
    if summary.on_battery:
        parts.append("on battery")
    if summary.cpu_max_quota_us and summary.cpu_max_period_us:
        parts.append(f"limited to {summary.cpu_max_quota_us / summary.cpu_max_period_us:.3g} CPUs by its cgroup")
    if not summary.governors:
        parts.append("no cpufreq")
    else:
        parts.append(f"governor{'s' if len(summary.governors) > 1 else ''} {', '.join(summary.governors)}")
    if summary.isolated:
        parts.append(f"isolated {CpuSet.of(summary.isolated)}")
    if summary.realtime_kernel:
        parts.append("PREEMPT_RT")
    if summary.steal_percent is not None:
        parts.append(f"steal {steal_words(summary.steal_percent)}")
    if summary.hottest_celsius is not None:
        parts.append(f"{summary.hottest_celsius:.0f} °C")
    parts.append("recorded" if summary.recorded else "root" if summary.is_root else "not root")
    return parts


def _cpus(summary: HostSummary, hot: tuple[int, ...]) -> str:
    count, allowed = len(summary.cpus_online), len(summary.cpus_allowed)
    text = f"{count} CPU" if count == 1 else f"{count} CPUs"
    if allowed != count:
        text = f"may run on {allowed} of {text}"
    shape = [f"{summary.packages} packages"] if summary.packages and summary.packages > 1 else []
    shape += ["SMT"] if summary.smt else []
    text += f" ({', '.join(shape)})" if shape else ""
    return f"{text}, hot (to keep free): {CpuSet.of(hot)}" if hot else text


def _smt(machine: Topology) -> bool | None:
    online = machine.online
    if not len(online):
        return None
    return any(len(c.smt_siblings & online) > 1 for c in machine.cpus if c.online)


def _notes(
    summary: HostSummary,
    root: HostRoot,
    hypervisor: Hypervisor,
    stat: CpuStat,
    cgroup: Cgroup,
    thermal: Thermal,
    limits: Limits,
) -> dict[str, str]:
    """Return the reason for each field of the summary that is None or empty: field → reason."""
    notes: dict[str, str] = {}
    if summary.hypervisor is None:
        known = "not a virtual machine" if hypervisor.guest is False else "not known whether this is a virtual machine"
        notes["hypervisor"] = f"{known}: {hypervisor.source}"
    elif hypervisor.doubt:
        notes["hypervisor"] = hypervisor.doubt
    if summary.steal_percent is None:
        notes["steal_percent"] = _no_steal(stat, hypervisor)
    if summary.cpu_max_quota_us is None:
        notes["cpu_max_quota_us"] = notes["cpu_max_period_us"] = cgroup.reason or "no CPU limit is set on this cgroup"
    if summary.memlock_limit_bytes is None:
        notes["memlock_limit_bytes"] = limits.reason or "unlimited"
    if summary.hottest_celsius is None:
        shown = [s for s in (*thermal.zones, *thermal.sensors) if s.reason]
        notes["hottest_celsius"] = f"no sensor can be read: {shown[0].reason}" if shown else "this host shows no sensor"
    if not summary.cpus_online:
        notes["cpus_online"] = f"no CPU is listed: {root.reading('/sys/devices/system/cpu/online').reason or 'empty'}"
    if summary.recorded:
        notes["is_root"] = notes["cpus_allowed"] = "this is a recorded host: this process does not run there"
    for field, value, reason in (
        ("cpu_model", summary.cpu_model, "/proc/cpuinfo does not name the processor"),
        ("governors", summary.governors or None, _no_cpufreq(hypervisor)),
        ("cpuidle_driver", summary.cpuidle_driver, "this kernel uses no idle driver"),
        ("clocksource", summary.clocksource, "the kernel does not show its clock source"),
        ("thermal_zones", summary.thermal_zones or None, "this host shows no thermal zone"),
        ("realtime_kernel", summary.realtime_kernel, "the kernel does not show how it was built"),
        ("on_battery", summary.on_battery, "this host shows no power supply"),
        ("boot_id", summary.boot_id, "the kernel does not show a boot id"),
        ("packages", summary.packages, "no CPU is listed"),
        ("smt", summary.smt, "no CPU is listed"),
        ("emulated", summary.emulated, hypervisor.doubt or f"not known: {hypervisor.source}"),
        ("accelerator", summary.accelerator, "this is no practice machine"),
    ):
        if value is None:
            notes[field] = reason
    return notes


def _no_cpufreq(hypervisor: Hypervisor) -> str:
    if hypervisor.guest:
        return "this guest has no cpufreq: the hypervisor's host sets the frequency"
    return "this kernel has no cpufreq driver for this processor"


def _no_steal(stat: CpuStat, hypervisor: Hypervisor) -> str:
    if stat.reason:
        return stat.reason
    if hypervisor.guest is False:
        return "this is not a virtual machine: no hypervisor can steal time"
    return (
        "0 since boot: the hypervisor took no time, or this guest has no steal clock (the kernel does not show which)"
    )
