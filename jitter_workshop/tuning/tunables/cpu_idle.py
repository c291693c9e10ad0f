"""Define the tunables that limit how deep idle CPUs sleep."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.cpuidle import (
    IDLE_DIR,
    parse_disable,
    read_resume_latency,
    resume_latency_path,
    state_folders,
)
from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Setting, Settings, Tunable, Unavailable, Write
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.setting_types.cpu import NO_LIMIT_US, NOT_HELD, effective_limit
from jitter_workshop.tuning.tunables.single import whole_number

_STATE_NAME = 16
"""The largest length of an idle state's name in the kernel."""
SHALLOW_US = 2
"""Longest accepted wake-up time of a hot CPU, in µs.

The first halting state (C1) takes 1 or 2 µs on Intel and AMD, no more than the scheduler's own work at a wake-up. The
deeper states take 10 to several hundred µs, and the CPU loses the contents of its caches.
"""

DEVICE = "/dev/cpu_dma_latency"


@dataclass(frozen=True, slots=True)
class _DeepState:
    """Hold an idle state of a hot CPU whose exit latency is above the accepted limit."""

    cpu: int
    name: str
    latency_us: int
    setting: Setting


class IdleStates(Settings):
    id = "idle-states"
    title = "Idle states"
    why = (
        "A CPU in a deep idle state takes tens to hundreds of microseconds to wake up, and its caches are then empty. "
        "Every message that arrives during this sleep or wake-up is late."
    )
    danger = "more power and heat; the other cores get less boost"
    document = "Documentation/admin-guide/pm/cpuidle.rst"
    owns = (f"{CPU_DIR}/cpu*/cpuidle/state*/disable",)
    default = str(SHALLOW_US)
    values = "the longest acceptable time to wake, in µs (0: the CPU only polls)"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        return [state.setting for state in _deep_states(self, host, value)]

    def judge(self, host: Host) -> Assessment:
        deep = _deep_states(self, host, None)
        wanted = f"at most {SHALLOW_US} µs"
        unread = [s for s in deep if s.setting.current is None]
        in_use = [s for s in deep if s.setting.current == "0"]
        if unread and not in_use:
            return self.answer(
                "unavailable", None, f"the idle states cannot be read: {unread[0].setting.reason}", wanted=wanted
            )
        if not in_use:
            return self.answer("ok", wanted, _shallow(host, bool(deep)), wanted=wanted)
        worst = max(in_use, key=lambda s: s.latency_us)
        value = f"down to {worst.name}, {worst.latency_us} µs"
        paths = [s.setting.path for s in in_use[: self.shown_paths]]
        limits = [read_resume_latency(host.root, cpu).limit_us for cpu in {s.cpu for s in in_use}]
        if all(limit is not None and limit <= SHALLOW_US for limit in limits):
            reason = "the hot CPUs' latency limits (the tunable pm-qos-resume) keep these CPUs out of deep states"
            return self.answer("ok", value, reason, wanted=wanted, paths=paths)
        reason = f"a hot CPU that sleeps in {worst.name} takes up to {worst.latency_us} µs to wake"
        return self.answer("improve", value, reason, wanted=wanted, paths=paths)


class PmQosFd(Tunable):
    """Handle a latency limit for every CPU. Without VALUE, the limit is the default of the tunable ``idle-states``."""

    id = "pm-qos-fd"
    title = "Latency limit for all CPUs"
    why = (
        "A process can open /dev/cpu_dma_latency and write a limit in µs. While the file stays open, no CPU enters an "
        "idle state with a longer wake-up time. When the process ends, the limit ends."
    )
    danger = "more power and heat on every CPU, and less boost; with 0, every CPU polls"
    risk = "medium"
    document = "Documentation/power/pm_qos_interface.rst"
    owns = (DEVICE,)
    default = str(SHALLOW_US)
    values = "the longest acceptable time to wake, in µs"

    def judge(self, host: Host) -> Assessment:
        if host.root.recorded:
            return self.answer(
                "info", None, "a limit ends with the process that holds it, so a recorded host has no limit"
            )
        teach = (
            "this limit makes every CPU wake up fast and use more power; the tunable idle-states limits only the "
            "hot CPUs"
        )
        _check_device(host)
        limit = effective_limit(DEVICE)
        if limit is None:
            return self.answer("info", None, f"only root can read the limit; {teach}", paths=[DEVICE])
        if limit >= NO_LIMIT_US:
            return self.answer("info", "no limit", f"no process holds a limit; {teach}", paths=[DEVICE])
        return self.answer("info", f"{limit} µs", f"a process holds a limit; {teach}", paths=[DEVICE])

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        limit = whole_number(self, value, 0, 1_000_000)
        _check_device(host)
        return [Write(DEVICE, NOT_HELD, limit, "held", lease=True)]


class PmQosResume(Settings):
    """Handle the latency limit of a single CPU. No process has to hold a device open for this limit. The kernel reads
    ``n/a`` as "no latency is accepted" and ``0`` as "any latency is accepted".
    """

    id = "pm-qos-resume"
    title = "Latency limit of each hot CPU"
    why = (
        "This file tells the kernel how long one CPU may take to wake up. No process has to hold the file open. The "
        "value 'n/a' means that no latency is accepted: the idle CPU then polls and does not halt."
    )
    danger = (
        "a polling CPU draws full power and takes execution units from its sibling; this limit makes no sibling poll"
    )
    risk = "medium"
    document = "Documentation/ABI/testing/sysfs-devices-power"
    owns = (f"{CPU_DIR}/cpu*/power/pm_qos_resume_latency_us",)
    default = "n/a"
    values = "n/a (poll, never halt) or the longest time to wake in µs; 0 removes the limit"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        wanted = self.default if value is None else value
        if wanted != "n/a":
            wanted = whole_number(self, wanted, 0, 1_000_000)
        found: list[Setting] = []
        for cpu in _limited(host, wanted == "n/a"):
            limit = read_resume_latency(host.root, cpu)
            found.append(Setting(resume_latency_path(cpu), limit.text, wanted, reason=limit.reason))
        if not any(setting.current for setting in found):
            raise Unavailable("this kernel has no latency limit for single CPUs")
        return found

    def judge(self, host: Host) -> Assessment:
        found = self.settings(host, None)
        values = sorted({_limit_words(s.current) for s in found if s.current})
        paths = [s.path for s in found[: self.shown_paths]]
        if values == [_limit_words("n/a")]:
            return self.answer("ok", values[0], "idle hot CPUs poll and wake at once", paths=paths)
        reason = (
            "with the value 'n/a', idle hot CPUs poll: they wake up fastest, but use full power. The tunable "
            "idle-states allows the first halting state: its wake-up is nearly as fast, and the CPU is cooler"
        )
        return self.answer("info", ", ".join(values), reason, paths=paths)


class HaltPoll(Tunable):
    id = "haltpoll"
    title = "Polling before a guest halts"
    why = (
        "When a guest's CPU halts, the processor switches from the guest to the hypervisor. The switch back takes "
        "time. If the CPU first polls for a while, short pauses need no such switch."
    )
    danger = (
        "all CPUs of the guest poll, so the host sees a busier guest; its owner may charge more, or the host may "
        "schedule the guest differently"
    )
    document = "Documentation/virt/guest-halt-polling.rst"
    owns = ("/sys/module/haltpoll/parameters/guest_halt_poll_ns",)
    values = "the longest time to poll, in ns (200000 is the kernel's own default)"

    def judge(self, host: Host) -> Assessment:
        current = self._current(host)
        does = f"an idle CPU polls for up to {current:,} ns" if current else "an idle CPU halts at once"
        reason = (
            f"{does}. A CPU that polls wakes up sooner and uses more CPU time. Hot CPUs that are never idle are not "
            "affected"
        )
        return self.answer("info", f"{current} ns", reason, paths=self.owns)

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        wanted = None if value is None else whole_number(self, value, 0, 10_000_000)
        current = self._current(host)
        if wanted is None:
            raise Unavailable("polling costs CPU time, so no value is best for all: write haltpoll=NS", info=True)
        return [Write(self.owns[0], str(current), wanted, "number")]

    def _current(self, host: Host) -> int:
        root = host.root
        governor = root.word(f"{IDLE_DIR}/current_governor_ro") or root.word(f"{IDLE_DIR}/current_governor")
        if governor != "haltpoll":
            whose = f"the idle governor here is {governor}" if governor else "this kernel shows no idle governor"
            raise Unavailable(
                f"only guests with the idle governor haltpoll have this limit; {whose}", info=not host.guest
            )
        current = host.root.integer(self.owns[0])
        if current is None or current < 0:
            raise Unavailable("the governor haltpoll shows no parameters")
        return current


def _deep_states(tunable: Tunable, host: Host, value: str | None) -> list[_DeepState]:
    """Return the idle states of the hot CPUs whose exit latency is above ``value`` µs.

    The first state of each CPU is left out, because a CPU needs one state. Raise Unavailable if the hot CPUs have no
    idle states. Raise UsageError for an invalid value.
    """
    limit_us = int(whole_number(tunable, value, 0, 1_000_000))
    found: list[_DeepState] = []
    seen = False
    for cpu in _limited(host, limit_us == 0):
        for position, (_, folder) in enumerate(state_folders(host.root, cpu)):
            seen = True
            latency = host.root.integer(f"{folder}/latency")
            if position == 0 or latency is None or latency <= limit_us:
                continue
            reading = host.root.reading(f"{folder}/disable")
            disabled = parse_disable(parse_integer(reading.text))
            name = host.root.word(f"{folder}/name", _STATE_NAME) or folder.rpartition("/")[2]
            current = None if disabled is None else str(int(disabled))
            reason = reading.reason or "the file does not hold a number"
            kind = "number" if reading.text in ("0", "1") else "idle-disable"
            found.append(_DeepState(cpu, name, latency, Setting(f"{folder}/disable", current, "1", kind, reason)))
    if not seen:
        raise _no_states(host)
    return found


def _limited(host: Host, polls: bool) -> CpuSet:
    """Return the hot CPUs that get a latency limit. ``polls``: True if the limit makes an idle CPU poll.

    With ``polls``, the hot siblings that stay idle get no limit. Such a CPU would poll, and take execution units from
    the hot CPU on the same core.
    """
    return host.hot - host.hot_siblings if polls else host.hot


def _no_states(host: Host) -> Unavailable:
    idle = host.command_line.value("idle")
    if idle in ("poll", "halt", "nomwait"):
        return Unavailable(f"with the boot parameter idle={idle}, the kernel chooses no idle states", info=True)
    if host.guest:
        return Unavailable(
            "this guest chooses no idle states: its CPUs halt, and the hypervisor decides how deeply they sleep",
            only_host=True,
        )
    return Unavailable("this kernel shows no idle states for the hot CPUs")


def _shallow(host: Host, disabled: bool) -> str:
    if disabled:
        return "the hot CPUs' deep states are disabled"
    if host.guest:
        return "this guest has only shallow states; the hypervisor decides how deeply the CPU really sleeps"
    return "the hot CPUs have only shallow idle states"


def _check_device(host: Host) -> None:
    """Raise Unavailable if this host has no device by which a process can hold a latency limit."""
    if host.root.recorded:
        raise Unavailable("a recorded host has no device to open")
    if host.root.reading(DEVICE, 4).reason == "no such file":
        raise Unavailable(f"this kernel has no {DEVICE}")


def _limit_words(text: str | None) -> str:
    if text == "n/a":
        return "n/a (no latency accepted)"
    return "no limit" if text == "0" else f"{text} µs"
