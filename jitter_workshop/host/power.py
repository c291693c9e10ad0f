"""Read the power source, the temperatures, and the counters of thermal throttling.

Never read sensors during a block of a run: the kernel interrupts a CPU to read some of its sensors. Disk sensors are
not read at all, because a reading may wake the disk. Only Intel processors count throttling; AMD, ARM and guests show
no counter.

Sources: Documentation/ABI/testing/sysfs-class-power, Documentation/driver-api/thermal/sysfs-api.rst,
hwmon/sysfs-interface.rst. Throttling (thermal_throttle): ABI/testing/sysfs-devices-system-cpu.
"""

from __future__ import annotations

import re

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

_FOLDER = "/sys/class/power_supply"


def read_on_battery(root: HostRoot) -> bool | None:
    """Return True if the machine runs on its battery, False if not. Return None if no power supply is shown, as on most
    desktops, servers and guests. Batteries of mice and keyboards (scope ``Device``) are ignored."""
    mains: list[bool] = []
    discharging: list[bool] = []
    for name in root.list_dir(_FOLDER):
        folder = f"{_FOLDER}/{name}"
        kind = root.text(f"{folder}/type")
        if root.text(f"{folder}/scope") == "Device":
            continue
        if kind is not None and (kind in ("Mains", "Wireless") or kind.startswith("USB")):
            online = root.integer(f"{folder}/online")
            if online is not None:
                mains.append(online > 0)
        elif kind == "Battery":
            status = root.text(f"{folder}/status")
            if status and status != "Unknown":
                discharging.append(status == "Discharging")
    # With too weak a charger the battery drains while the charger is online, but the machine keeps its mains profile.
    if any(mains):
        return False
    if discharging:
        return any(discharging)
    return None


_PLAUSIBLE_CELSIUS = (-40.0, 150.0)
"""Lowest and highest temperature, in °C, that count as valid. Sensors that are not connected report values such as -273
°C or 255 °C."""

_CPU_SENSORS = ("coretemp", "k10temp", "k8temp", "zenpower", "x86_pkg_temp", "cpu", "soc", "tctl", "package")
_DISK_CHIPS = ("nvme", "drivetemp")
_MAX_INPUTS = 64


def _of_cpu(name: str) -> bool:
    return any(word in name.lower() for word in _CPU_SENSORS)


@dataclass(frozen=True, slots=True)
class Sensor:
    """Hold one temperature. ``name``: the thermal zone's type, or the chip and the label of a hwmon sensor.
    ``celsius``: the temperature, None if unknown. ``reason``: why ``celsius`` is None."""

    name: str
    source: str
    celsius: float | None
    reason: str = ""

    @property
    def of_cpu(self) -> bool:
        """Return True if the sensor's name is typical of a processor's sensor."""
        return _of_cpu(self.name)


@dataclass(frozen=True, slots=True)
class Thermal:
    """Hold the temperatures of a host: from thermal zones, and from the processor's hwmon chips.

    Other hwmon chips are read only if there is no sensor of the processor. ``throttle_events``: how often heat slowed
    down cores and packages since boot. It is None if the host does not count this (AMD, ARM, guests).
    """

    zones: tuple[Sensor, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    throttle_events: int | None = None

    @property
    def hottest_celsius(self) -> float | None:
        """Return the highest temperature of the processor's sensors. If the processor has none, return the highest of
        all sensors; None without any temperature."""
        known = [s for s in (*self.zones, *self.sensors) if s.celsius is not None]
        chosen = [s for s in known if s.of_cpu] or known
        return max((s.celsius for s in chosen if s.celsius is not None), default=None)


@dataclass(frozen=True, slots=True)
class ThrottleCounts:
    """Hold how often heat slowed down cores and packages since boot.

    Each thread of a core shows the core's count. The sum contains this count only once. ``core_ms``, ``package_ms``:
    how long cores and packages were slowed down; None if the kernel does not count this time (before 5.6).
    """

    core_events: int
    package_events: int
    core_ms: int | None = None
    package_ms: int | None = None

    @property
    def events(self) -> int:
        return self.core_events + self.package_events


@dataclass(slots=True)
class _Group:
    """Hold the throttling count of one group of CPUs: a core or a package. All CPUs of the group count the same events,
    so the largest count is taken, not the sum."""

    events: int = 0
    milliseconds: int | None = None


def read_thermal(root: HostRoot) -> Thermal:
    """Return the temperatures of zones and hwmon chips, and the throttle counters."""
    found, throttling = read_temperatures(root), read_throttling(root)
    return Thermal(found.zones, found.sensors, None if throttling is None else throttling.events)


def read_temperatures(root: HostRoot) -> Thermal:
    """Return the temperatures of zones and hwmon chips. The throttle counters of the CPUs are not read."""
    zones = tuple(
        _sensor(root, root.word(f"{folder}/type") or f"thermal_zone{n}", f"{folder}/temp")
        for n, folder in root.numbered("/sys/class/thermal", "thermal_zone")
    )
    return Thermal(zones, _hwmon(root, any(z.of_cpu for z in zones)))


def read_throttling(root: HostRoot, cpus: CpuSet | None = None) -> ThrottleCounts | None:
    """Return the throttle counters of ``cpus``; None means all CPUs. Return None if no CPU has such counters. Two files
    are read for each CPU, and some more for each CPU that was throttled."""
    cores: dict[str, _Group] = {}
    packages: dict[str, _Group] = {}
    folders = root.numbered(CPU_DIR, "cpu") if cpus is None else [(cpu, f"{CPU_DIR}/cpu{cpu}") for cpu in cpus]
    for number, folder in folders:
        counts = f"{folder}/thermal_throttle"
        # A CPU that counts anything counts its core's events, so without that file the others need not be read.
        if _note(root, cores, f"{counts}/core", f"{folder}/topology/thread_siblings_list", number):
            _note(root, packages, f"{counts}/package", f"{folder}/topology/core_siblings_list", number)
    if not cores:
        return None
    return ThrottleCounts(
        sum(g.events for g in cores.values()),
        sum(g.events for g in packages.values()),
        _total_ms(cores),
        _total_ms(packages),
    )


def parse_millicelsius(text: str | None) -> float | None:
    """Return a temperature in °C from a text in thousandths of a degree. Return None if the text is not a number, or if
    the temperature is impossible for a running machine."""
    number = parse_integer(text)
    if number is None:
        return None
    low, high = _PLAUSIBLE_CELSIUS
    celsius = number / 1_000
    return celsius if low <= celsius <= high else None


def _hwmon(root: HostRoot, cpu_zone: bool) -> tuple[Sensor, ...]:
    chips = [
        (root.word(f"{folder}/name") or f"hwmon{number}", folder)
        for number, folder in root.numbered("/sys/class/hwmon", "hwmon")
    ]
    chosen = [(chip, folder) for chip, folder in chips if _of_cpu(chip)]
    if not chosen and not cpu_zone:
        chosen = [(chip, folder) for chip, folder in chips if chip not in _DISK_CHIPS]
    found: list[Sensor] = []
    for chip, folder in chosen:
        inputs = sorted(
            int(match[1]) for name in root.list_dir(folder) if (match := re.fullmatch(r"temp(\d{1,4})_input", name))
        )
        for index in inputs[:_MAX_INPUTS]:
            label = root.word(f"{folder}/temp{index}_label") or ""
            found.append(_sensor(root, f"{chip} {label}".strip(), f"{folder}/temp{index}_input"))
    return tuple(found)


def _sensor(root: HostRoot, name: str, path: str) -> Sensor:
    reading = root.reading(path)
    celsius = parse_millicelsius(reading.text)
    return Sensor(name, path, celsius, "" if celsius is not None else reading.reason or "not a temperature")


def _note(root: HostRoot, groups: dict[str, _Group], prefix: str, siblings: str, number: int) -> bool:
    count = root.integer(f"{prefix}_throttle_count")
    if count is None or count < 0:
        return False
    if count == 0:
        # A count of 0 adds nothing, so its core or package need not be known.
        groups.setdefault("", _Group())
        return True
    group = groups.setdefault(root.text(siblings) or f"cpu{number}", _Group())
    group.events = max(group.events, count)
    milliseconds = root.integer(f"{prefix}_throttle_total_time_ms")
    if milliseconds is not None and milliseconds >= 0:
        group.milliseconds = max(group.milliseconds or 0, milliseconds)
    return True


def _total_ms(groups: dict[str, _Group]) -> int | None:
    throttled = [g for g in groups.values() if g.events]
    known = [g.milliseconds for g in throttled if g.milliseconds is not None]
    return sum(known) if known or not throttled else None
