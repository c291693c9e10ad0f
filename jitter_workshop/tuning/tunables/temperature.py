"""Define the tunables that are reported, never changed: heat, throttling, and interrupts by the firmware."""

from __future__ import annotations

from jitter_workshop.host.power import read_temperatures, read_throttling
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import MOST_ENTRIES
from jitter_workshop.tuning.base import Observed, only_on_x86
from jitter_workshop.tuning.context import Host

_SMI_EVENT = "/sys/bus/event_source/devices/msr/events/smi"
"""perf's description of the processor's counter of system management interrupts (MSR 0x34, MSR_SMI_COUNT)."""


class Temperature(Observed):
    id = "temperature"
    title = "Temperature"
    why = (
        "A hotter processor first reduces boost. Its clock falls below the nominal value only near the heat limit. "
        "Look at the throttle counters, not at the temperature."
    )
    document = "Documentation/driver-api/thermal/sysfs-api.rst"

    def judge(self, host: Host) -> Assessment:
        thermal = read_temperatures(host.root)
        hottest = thermal.hottest_celsius
        paths = [s.source for s in (*thermal.zones, *thermal.sensors)][:MOST_ENTRIES]
        if hottest is not None:
            reason = "throttling can explain a difference between runs, the temperature alone cannot"
            return self.answer("info", f"{hottest:.0f} °C", reason, paths=paths)
        if host.guest:
            reason = "a guest has no sensors: ask the owner of the hypervisor"
            return self.answer("unavailable", None, reason, only_host=True)
        found = next((s for s in (*thermal.zones, *thermal.sensors) if s.reason), None)
        reason = (
            f"no sensor can be read: {found.reason}" if found else "this host shows no sensor (thermal zone, hwmon)"
        )
        return self.answer("unavailable", None, reason, paths=paths)


class Throttling(Observed):
    id = "throttling"
    title = "Thermal throttling"
    why = (
        "A core or package that gets too hot runs at a much lower clock until it has cooled down. During this time, "
        "all work on that core or package is late. Intel processors count how often this happens."
    )
    document = "Documentation/ABI/testing/sysfs-devices-system-cpu"

    def judge(self, host: Host) -> Assessment:
        found = read_throttling(host.root, host.hot)
        if found is not None and not found.events:
            return self.answer(
                "ok", "0 events", "the hot CPUs were not throttled by heat since boot", wanted="0 events"
            )
        if found is not None:
            lasted = max(found.core_ms or 0, found.package_ms or 0)
            how_long = f", for {lasted:,} ms" if lasted else ""
            reason = (
                f"since boot the hot CPUs' cores were throttled {found.core_events:,} times, and their packages "
                f"{found.package_events:,} times{how_long}; if these counts grow during a run, the run is not valid"
            )
            return self.answer("info", f"{found.events:,} events", reason, wanted="0 events")
        only_on_x86(host)
        if host.guest:
            reason = "a guest cannot see throttling: ask the owner of the hypervisor"
            return self.answer("unavailable", None, reason, only_host=True)
        reason = (
            "only Intel processors count throttling; on other processors look at the clock under load, which each run "
            "reports"
        )
        return self.answer("unavailable", None, reason)


class Smi(Observed):
    """Report how to count system management interrupts.

    This report does not read the count itself, because a reading interrupts the CPU, and needs root and the msr module.
    """

    id = "smi"
    title = "System management interrupts"
    why = (
        "Now and then firmware stops all CPUs for tens to hundreds of microseconds, and the kernel does not "
        "see this. This can explain a stall for which the trace has no event."
    )
    document = "Documentation/trace/hwlat_detector.rst"

    def judge(self, host: Host) -> Assessment:
        only_on_x86(host)
        event = host.root.reading(_SMI_EVENT)
        if event.text:
            reason = (
                "count SMIs during a run with 'perf stat -a -e msr/smi/ sleep 10'. All SMIs come from the firmware. "
                "Other settings in the firmware's set-up (power management, USB legacy, error reporting) can make "
                "SMIs rarer"
            )
            return self.answer("info", "perf can count them", reason)
        if host.guest:
            reason = "a guest cannot see the firmware's interrupts; the guest sees only time without an event"
            return self.answer("unavailable", None, reason, only_host=True)
        reason = f"this processor and kernel cannot count SMIs ({_SMI_EVENT}: {event.reason or 'empty'})"
        return self.answer("unavailable", None, reason)
