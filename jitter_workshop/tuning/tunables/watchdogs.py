"""Define the tunables of periodic work on every CPU: lockup detectors, error polling, tracing, profiling."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Observed, Setting, Settings, Unavailable, only_on_x86
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import (
    OneFile,
    TradeOff,
    not_permitted,
    number_of,
    read_value,
    whole_number,
)

_SYSCTL = "/proc/sys/kernel"
_MASK = f"{_SYSCTL}/watchdog_cpumask"
_SWITCH = f"{_SYSCTL}/watchdog"
_NONE = "this kernel was built without lockup detectors"
MACHINE_CHECKS = "/sys/devices/system/machinecheck"


class Watchdogs(Settings):
    id = "watchdogs"
    title = "Lockup detectors"
    why = (
        "On each CPU the soft-lockup detector has a timer. Every four seconds this timer wakes a task of the "
        "highest priority, which takes the CPU from the running thread."
    )
    danger = "if a hot CPU hangs, the kernel no longer notices this"
    document = "Documentation/admin-guide/lockup-watchdogs.rst"
    owns = (_MASK, _SWITCH)
    default = "housekeeping"
    values = "housekeeping (hot CPUs are left out) or off"
    good = "the hot CPUs are left out"
    bad = "CPUs {current} are watched, and some are {clear}; it is enough to watch CPUs {wanted}"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        wanted = self.choose(value, ("housekeeping", "off"))
        switches = read_value(host.root, _SWITCH, "watchdog", _NONE)
        if wanted == "off":
            return [Setting(_SWITCH, switches, "soft=0 nmi=0", "watchdog")]
        mask = read_value(host.root, _MASK, "cpu-list", _NONE)
        if "1" not in switches:
            return []
        watched = CpuSet.if_list(mask)
        if watched is None:
            raise Unavailable("the setting cannot be read: the file does not hold a list of CPUs")
        if not watched & host.kept_clear:
            return [Setting(_MASK, mask, str(watched), "cpu-list")]
        if not host.housekeeping:
            raise Unavailable("every CPU is hot, so there is no CPU to watch: give watchdogs=off")
        return [Setting(_MASK, mask, str(host.instead_of(watched)), "cpu-list")]


class NmiWatchdog(OneFile):
    id = "nmi-watchdog"
    title = "Hard-lockup detector"
    why = (
        "On each watched CPU, the hard-lockup detector uses a performance counter to interrupt the CPU. No code can "
        "delay this interrupt. Meanwhile profilers cannot use this counter."
    )
    danger = "a CPU that hangs with interrupts off is no longer noticed"
    document = "Documentation/admin-guide/lockup-watchdogs.rst"
    file = f"{_SYSCTL}/nmi_watchdog"
    allowed = ("0", "1")
    values = "0 or 1"
    good = "this detector interrupts no hot CPU"
    bad = "{clear} are interrupted through a performance counter"
    absent = "this kernel has no hard-lockup detector"

    def best(self, host: Host, current: str) -> str:
        watched = host.root.cpu_list(_MASK)
        return "0" if watched is None or watched & host.kept_clear else current


class MceInterval(Settings):
    id = "mce-interval"
    title = "Polling for corrected hardware errors"
    why = (
        "By default, a timer on each CPU reads the CPU's machine-check banks every 300 s. After an error, the timer "
        "runs more often. The interval is the same for all CPUs."
    )
    danger = "the first errors of a failing memory module are reported later (with the value 0: never)"
    risk = "medium"
    document = "Documentation/arch/x86/x86_64/machinecheck.rst"
    owns = (f"{MACHINE_CHECKS}/machinecheck*/check_interval",)
    values = "seconds, 0 for never"
    default = "3600"
    good = "the kernel polls the banks at most once an hour"
    bad = "the kernel polls each CPU every {current} s; once an hour is enough"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        only_on_x86(host)
        folders = host.root.numbered(MACHINE_CHECKS, "machinecheck")
        if not folders:
            raise Unavailable(
                "the kernel polls no machine-check banks here"
                + (" (a guest seldom has such banks)" if host.guest else "")
            )
        path = f"{folders[0][1]}/check_interval"
        current = read_value(host.root, path)
        if value is not None:
            wanted = whole_number(self, value, 0, 86_400)
        else:
            wanted = current if number_of(current) == 0 or number_of(current) >= 3_600 else "3600"
        return [Setting(path, current, wanted, "number")]


class Tracing(Settings):
    id = "tracing"
    title = "Kernel tracing"
    why = (
        "A tracer or an enabled trace event costs time at every point in the kernel that it records. A function "
        "tracer makes the whole kernel slower, also on hot CPUs."
    )
    danger = "a trace that runs now gets no more records"
    document = "Documentation/trace/ftrace.rst"
    owns = tuple(
        f"{folder}/{name}"
        for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
        for name in ("current_tracer", "tracing_on", "instances/*/current_tracer", "instances/*/tracing_on")
    )
    default = "off"
    values = "off"
    good = "nothing is traced"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        self.choose(value, ("off",))
        folder = tracefs_mount(host.root)
        tracer = read_value(host.root, f"{folder}/current_tracer", "value")
        events = host.root.text(f"{folder}/events/enable") in ("1", "X")
        found = [Setting(f"{folder}/current_tracer", tracer, "nop"), *_instances(host.root, folder)]
        if tracer != "nop" or events:
            on = read_value(host.root, f"{folder}/tracing_on")
            found.append(Setting(f"{folder}/tracing_on", on, "0", "number"))
        return found


def _instances(root: HostRoot, folder: str) -> list[Setting]:
    """Return those settings of the additional trace buffers that should change.

    These settings are each active tracer, and each tracing switch that is on. A switch is returned only if its buffer
    has an active tracer or active events.
    """
    found: list[Setting] = []
    for name in root.folders(f"{folder}/instances")[:_MAX_INSTANCES]:
        place = f"{folder}/instances/{name}"
        tracer = root.text(f"{place}/current_tracer") or "nop"
        on = root.text(f"{place}/tracing_on") or "0"
        if tracer != "nop":
            found.append(Setting(f"{place}/current_tracer", tracer, "nop"))
        if on == "1" and (tracer != "nop" or root.text(f"{place}/events/enable") in ("1", "X")):
            found.append(Setting(f"{place}/tracing_on", on, "0", "number"))
    return found


_MAX_INSTANCES = 64


class PerfSampleRate(TradeOff):
    id = "perf-sample-rate"
    title = "Highest sampling rate of perf"
    untaught = "The limit has no effect on latency until somebody profiles this host."
    why = (
        "A user of perf can take up to this many samples a second. Each sample interrupts the sampled CPU. Without a "
        "profiler no samples are taken."
    )
    danger = "profiles become coarse or empty"
    document = "Documentation/admin-guide/sysctl/kernel.rst"
    file = f"{_SYSCTL}/perf_event_max_sample_rate"
    bounds = (1, 1_000_000)
    values = "samples a second"
    absent = "this kernel has no perf events"
    both_sides = "lower this limit only if another user profiles this host while you measure"


class PerfParanoid(Observed):
    id = "perf-access"
    title = "Access to perf events"
    untaught = "The setting decides which users may trace and profile. The setting itself slows no thread down."
    why = (
        "This value decides if a user who is not root may count and sample the kernel's work. A user needs this "
        "permission to explain a stall."
    )
    document = "Documentation/admin-guide/perf-security.rst"
    paths = (f"{_SYSCTL}/perf_event_paranoid",)

    def judge(self, host: Host) -> Assessment:
        current = number_of(read_value(host.root, self.paths[0], absent="this kernel has no perf events"))
        who = (
            "every user may see the kernel's work on all CPUs"
            if current < 0
            else "users see their own tasks, also inside the kernel"
            if current <= 1
            else "users see their own tasks, but only outside the kernel"
        )
        return self.answer("info", str(current), who)


def tracefs_mount(root: HostRoot) -> str:
    """Return the mount point of tracefs. Raise Unavailable where it is not mounted, or may not be read."""
    for folder in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        reason = root.reading(f"{folder}/current_tracer").reason
        if reason == "not permitted":
            raise Unavailable(not_permitted(root))
        if not reason:
            return folder
    raise Unavailable("tracefs is not mounted, or this kernel has no tracers")
