"""Report properties that this tool never changes: protections, limits of a container, scheduler helpers."""

from __future__ import annotations

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import printable
from jitter_workshop.host.tasks.cgroup import read_cgroup
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import LABEL, MOST_ENTRIES
from jitter_workshop.tuning.base import Observed, only_on_x86
from jitter_workshop.tuning.context import Host

_MOST_FILES = 128
"""The largest number of files that are read in the folder of vulnerabilities."""


class CpuMax(Observed):
    id = "cpu-max"
    title = "CPU time limit of this container"
    why = (
        "If a container has used up its CPU time in a period, the kernel stops it on all its CPUs until the next "
        "period. This can last 100 ms. From inside the container, the stop looks like a fault of the scheduler."
    )
    document = "Documentation/scheduler/sched-bwc.rst"

    def judge(self, host: Host) -> Assessment:
        group = read_cgroup(host.root)
        paths = group.stat_paths[:MOST_ENTRIES]
        if group.version is None:
            return self.answer("info", None, group.reason, paths=paths)
        limit = group.cpu_limit
        throttled = group.nr_throttled or 0
        if limit is None:
            return self.answer("ok", "no limit", "no limit for this group or a group above it", paths=paths)
        said = f"{limit:.3g} CPUs, stopped {throttled:,} times"
        if throttled:
            return self.answer(
                "improve",
                said,
                "this group reached its limit and was stopped: this causes stalls of up to a period",
                wanted="no limit",
                paths=paths,
                fix="ask the owner of this container or slice to lift its CPU limit",
            )
        return self.answer("info", said, "there is a limit, but this group has not reached it yet", paths=paths)


class Autogroup(Observed):
    id = "sched-autogroup"
    title = "Grouping of tasks by session"
    why = (
        "All tasks of a terminal session share one weight in the scheduler. So a nice value acts only against other "
        "tasks of the same session. A hot thread that has a CPU for itself is not affected."
    )
    document = "Documentation/scheduler/sched-design-CFS.rst"
    paths = ("/proc/sys/kernel/sched_autogroup_enabled",)

    def judge(self, host: Host) -> Assessment:
        state = host.root.integer(self.paths[0])
        if state is None:
            return self.answer("unavailable", None, "this kernel was built without CONFIG_SCHED_AUTOGROUP")
        if state == 0:
            return self.answer("ok", "off", "a nice value acts against all tasks")
        return self.answer("info", "on", "a nice value acts only against tasks of its own session")


class UtilizationClamps(Observed):
    id = "uclamp"
    title = "Utilisation clamps"
    untaught = (
        "Each program sets the clamps of its own threads. On most hosts a clamp acts only with the governor schedutil."
    )
    why = (
        "A clamp sets the lowest or highest load that the kernel assumes for a task. The governor schedutil chooses "
        "the clock by this load. On processors with fast and slow cores, the scheduler also chooses a core by this "
        "load."
    )
    document = "Documentation/scheduler/sched-util-clamp.rst"
    paths = ("/proc/sys/kernel/sched_util_clamp_min", "/proc/sys/kernel/sched_util_clamp_max")

    def judge(self, host: Host) -> Assessment:
        low, high = (host.root.integer(path) for path in self.paths)
        if low is None or high is None:
            return self.answer("unavailable", None, "this kernel was built without CONFIG_UCLAMP_TASK")
        reason = (
            "the kernel limits each task's clamps to these values"
            if high >= 1024
            else "the upper limit keeps the clock lower than it could be"
        )
        return self.answer("info", f"{low} to {high} of 1024", reason)


_FLAW_STATES = {
    "Not affected": "not affected",
    "Mitigation": "mitigated",
    "KVM: Mitigation": "mitigated",
    "Vulnerable": "vulnerable",
    "KVM: Vulnerable": "vulnerable",
    "Processor vulnerable": "vulnerable",
}
"""The first words of the kernel's text on a flaw of the processor → this tool's word
(ABI/testing/sysfs-devices-system-cpu, vulnerabilities)."""


class Mitigations(Observed):
    id = "mitigations"
    title = "Mitigations of processor flaws"
    why = (
        "Some mitigations make each entry into the kernel slower. Mitigations protect this host, and this tool never "
        "switches one off. They hardly affect a thread that makes no system calls."
    )
    document = "Documentation/admin-guide/hw-vuln/index.rst"
    paths = (f"{CPU_DIR}/vulnerabilities",)

    def judge(self, host: Host) -> Assessment:
        folder = self.paths[0]
        found = {name: host.root.text(f"{folder}/{name}") for name in host.root.list_dir(folder)[:_MOST_FILES]}
        states = {printable(name, LABEL): _state(text) for name, text in found.items() if text is not None}
        if not states:
            return self.answer("unavailable", None, "this kernel does not report processor flaws")
        parts = (
            ("mitigated", "mitigated"),
            ("vulnerable", "not"),
            ("not affected", "do not apply"),
            ("unknown", "unknown"),
        )
        counts = [(list(states.values()).count(state), words) for state, words in parts]
        value = ", ".join(f"{count} {words}" for count, words in counts if count or words != "unknown")
        names = ", ".join(name for name, state in states.items() if state == "mitigated")
        return self.answer("info", value, f"active: {names}" if names else "no mitigation is active")


class AddressRandomisation(Observed):
    id = "aslr"
    title = "Address space randomisation"
    untaught = (
        "Neither value is better for latency. A proof starts new processes in each round, so it compares many "
        "placements of the memory."
    )
    why = (
        "Each time a program starts, its memory has other addresses. So different data compete for the same cache "
        "lines. For this reason, compare rounds of new processes and not single runs."
    )
    document = "Documentation/admin-guide/sysctl/kernel.rst"
    paths = ("/proc/sys/kernel/randomize_va_space",)

    def judge(self, host: Host) -> Assessment:
        state = host.root.integer(self.paths[0])
        if state is None:
            return self.answer("unavailable", None, "the setting cannot be read")
        value = {0: "off", 1: "on, but not for the heap", 2: "on"}.get(state, str(state))
        return self.answer("info", value, "randomisation protects the host; it makes runs differ and causes no stalls")


class Audit(Observed):
    id = "audit"
    title = "Auditing of system calls"
    untaught = "Auditing checks system calls. In most chapters, the threads make no system calls while they measure."
    why = "With rules loaded, each system call is checked, and matches are logged."
    document = "Documentation/admin-guide/kernel-parameters.txt"
    paths = ("/proc/cmdline",)

    def judge(self, host: Host) -> Assessment:
        running = host.services.find("auditd") is not None
        if host.command_line.value("audit") in ("0", "off"):
            return self.answer("ok", "off", "switched off at boot")
        if running:
            return self.answer("info", "auditd runs", "'auditctl -l' shows the loaded rules")
        return self.answer("info", "no daemon", "no program that loads audit rules runs here")


class SplitLock(Observed):
    id = "split-lock"
    title = "Split-lock mitigation"
    untaught = "Only a faulty program makes split locks. Correct that program."
    why = (
        "An atomic operation on data in two cache lines stops the memory bus for every core. The mitigation delays "
        "the program by 10 ms for each such operation."
    )
    document = "Documentation/admin-guide/sysctl/kernel.rst"
    paths = ("/proc/sys/kernel/split_lock_mitigate",)

    def judge(self, host: Host) -> Assessment:
        only_on_x86(host)
        value = {"0": "off", "1": "on"}.get(host.root.text(self.paths[0]) or "")
        if value is None:
            return self.answer("unavailable", None, "this kernel or processor does not detect split locks")
        return self.answer(
            "info", value, "split locks delay the hot CPUs only if a program on this host uses such locks"
        )


def _state(text: str) -> str:
    """Return the state of one of the processor's vulnerabilities, from the kernel's text. The state is ``unknown`` for
    the kernel's own ``Unknown:`` and for any unexpected text."""
    return next((state for beginning, state in _FLAW_STATES.items() if text.startswith(beginning)), "unknown")
