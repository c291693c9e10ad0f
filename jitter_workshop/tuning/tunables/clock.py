"""Define the tunables of the clock source and of the watchdog that checks it."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.host.cpu.cpuinfo import Clocksource, read_clocksource
from jitter_workshop.model.status import Assessment
from jitter_workshop.tuning.base import Observed, Tunable, Unavailable, Write, only_on_x86
from jitter_workshop.tuning.context import Host

_CURRENT = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_READ_IN_USER_SPACE = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase")
"""Clock sources that a program reads without entering the kernel."""

_WATCHED_PACKAGES = 4
"""The largest number of processor packages for which the kernel (from 6.3) trusts the firmware's claim that their TSCs
agree."""


class ClockSource(Tunable):
    """Handle the clock source.

    The risk is medium, because after a change all time on the host comes from another counter. The kernel offers the
    TSC only while it trusts the TSC. When its watchdog finds a fault, the kernel changes to another clock.
    """

    id = "clock-source"
    title = "Clock source"
    why = (
        "If the TSC is the clock source, a program reads the time within nanoseconds and does not enter the kernel. "
        "Other clocks such as HPET are devices. To read one, a program needs a system call, which takes a microsecond "
        "or more."
    )
    danger = "the host's time then comes from another counter, whose rate may differ slightly"
    risk = "medium"
    document = "Documentation/timers/timekeeping.rst"
    owns = (_CURRENT,)

    def judge(self, host: Host) -> Assessment:
        clock, current = _clock(host)
        if current in _READ_IN_USER_SPACE:
            reason = "programs read the time without entering the kernel"
            return self.answer("ok", current, reason, wanted=current, paths=self.owns)
        if "tsc" not in clock.available:
            reason = f"programs enter the kernel to read {current}, and this kernel offers no faster clock"
            return self.answer("info", current, reason, paths=self.owns, only_host=host.guest)
        doubt = _doubt(clock)
        if doubt:
            return self.answer("info", current, f"the TSC is offered, but {doubt}", paths=self.owns)
        reason = f"programs enter the kernel to read {current}, although the kernel offers the TSC"
        return self.answer("improve", current, reason, wanted="tsc", paths=self.owns)

    def writes(self, host: Host, value: str | None) -> Sequence[Write]:
        clock, current = _clock(host)
        if current in _READ_IN_USER_SPACE:
            return []
        if "tsc" not in clock.available:
            raise Unavailable(f"this kernel offers no TSC, only: {', '.join(clock.available) or 'nothing'}")
        doubt = _doubt(clock)
        if doubt:
            raise Unavailable(f"the TSC is offered, but {doubt}")
        return [Write(_CURRENT, current, "tsc")]


class TscWatchdog(Observed):
    id = "tsc-watchdog"
    title = "TSC watchdog"
    why = (
        "If the kernel does not trust the TSC, it checks the TSC with another clock twice a second. These checks "
        "interrupt one CPU after the other, also hot CPUs."
    )
    document = "Documentation/admin-guide/kernel-parameters.txt"

    def judge(self, host: Host) -> Assessment:
        only_on_x86(host)
        clock = read_clocksource(host.root, host.identity)
        if clock.constant_tsc is None:
            return self.answer("unavailable", None, "this processor has no TSC, so there is no TSC watchdog")
        told = host.command_line.value("tsc")
        if told in ("reliable", "nowatchdog"):
            return self.answer("ok", "off", f"switched off at boot (tsc={told})")
        if "tsc" not in (clock.current, *clock.available):
            return self.answer("ok", "no TSC in use", "this kernel offers no TSC, so no watchdog checks it")
        has = host.identity.has
        if has("tsc_reliable"):
            return self.answer("ok", "off", "the hypervisor or the platform guarantees the TSC")
        steady = clock.constant_tsc and clock.nonstop_tsc
        others = [name for name in clock.available if name in ("hpet", "acpi_pm")]
        if not others:
            return self.answer("ok", "off", "there is no other clock to compare the TSC with (HPET, ACPI timer)")
        if steady and has("tsc_adjust") and _packages(host) <= _WATCHED_PACKAGES:
            reason = (
                "recent kernels trust this TSC: its rate is constant, and the kernel notices if firmware changes the "
                "TSC"
            )
            return self.answer("ok", "off on recent kernels", reason)
        reason = (
            f"the kernel checks the TSC with {others[0]} twice a second, and interrupts one CPU after the other; "
            "tsc=nowatchdog stops this"
        )
        fix = "if the kernel has never reported a fault of this machine's TSC, boot with tsc=nowatchdog"
        return self.answer("info", "on", reason, fix=fix)


def _clock(host: Host) -> tuple[Clocksource, str]:
    """Return the clock sources and the name of the current one. Raise Unavailable if the kernel shows no clock
    source."""
    clock = read_clocksource(host.root, host.identity)
    if clock.current is None:
        raise Unavailable("this kernel does not show its clock source")
    return clock, clock.current


def _doubt(clock: Clocksource) -> str:
    """Return the reason against the TSC as the clock source; "" if there is none."""
    if clock.constant_tsc is False:
        return "the TSC of this processor changes its rate with the CPU's clock"
    return "the TSC of this processor stops in deep idle states" if clock.nonstop_tsc is False else ""


def _packages(host: Host) -> int:
    return len({cpu.package for cpu in host.topology.cpus if cpu.online})
