"""Read temperatures; throttling is counted in ``throttle``.

Sources: Documentation/driver-api/thermal/sysfs-api.rst, hwmon/sysfs-interface.rst. Reading some sensors interrupts
their CPU, so never read them during a block. Sensors of disks are not read at all: each reading is a command to the
disk, which may wake it.
"""

from __future__ import annotations

import re

from jitter_workshop.host.power.throttle import read_throttling
from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.record import dataclass

_PLAUSIBLE_CELSIUS = (-40.0, 150.0)
"""Range of valid temperatures: sensors that are not connected report values such as -273 °C or 255 °C."""

_CPU_SENSOR = re.compile(r"coretemp|k10temp|k8temp|zenpower|x86_pkg_temp|cpu|soc|tctl|package", re.IGNORECASE)
_DISK_CHIPS = ("nvme", "drivetemp")
_MAX_INPUTS = 64


@dataclass(frozen=True, slots=True)
class Sensor:
    """Hold one temperature. ``name``: the zone's type, or chip and label. ``celsius``: None with the reason."""

    name: str
    source: str
    celsius: float | None
    reason: str = ""

    @property
    def of_cpu(self) -> bool:
        """Return True if the name is that of a processor's sensor."""
        return _CPU_SENSOR.search(self.name) is not None


@dataclass(frozen=True, slots=True)
class Thermal:
    """Hold the temperatures of a host: its zones, and the processor's sensors among its hwmon chips.

    The other chips are included only where no sensor is the processor's. ``throttle_events``: how often heat slowed
    down cores and packages since boot, each core and package once; None where not counted (AMD, ARM, guests).
    """

    zones: tuple[Sensor, ...] = ()
    sensors: tuple[Sensor, ...] = ()
    throttle_events: int | None = None

    @property
    def hottest_celsius(self) -> float | None:
        """Return the highest temperature of the processor's sensors, else of all sensors; None where there is none."""
        known = [s for s in (*self.zones, *self.sensors) if s.celsius is not None]
        chosen = [s for s in known if s.of_cpu] or known
        return max((s.celsius for s in chosen if s.celsius is not None), default=None)


def read_thermal(root: HostRoot) -> Thermal:
    """Read zones, hwmon chips and throttle counters."""
    found = read_temperatures(root)
    return Thermal(found.zones, found.sensors, read_throttle_events(root))


def read_temperatures(root: HostRoot) -> Thermal:
    """Read zones and hwmon chips alone, not the counters of every CPU."""
    zones = tuple(
        _sensor(root, printable(root.text(f"{folder}/type") or "", 40) or f"thermal_zone{n}", f"{folder}/temp")
        for n, folder in root.numbered("/sys/class/thermal", "thermal_zone")
    )
    return Thermal(zones, _hwmon(root, any(z.of_cpu for z in zones)))


def read_throttle_events(root: HostRoot) -> int | None:
    """Return the thermal throttle events of cores and packages since boot; None where no CPU counts any."""
    throttling = read_throttling(root)
    return None if throttling is None else throttling.events


def parse_millicelsius(text: str | None) -> float | None:
    """Return thousandths of a degree as °C; None for anything but a plausible temperature of a running machine."""
    number = parse_integer(text)
    if number is None:
        return None
    low, high = _PLAUSIBLE_CELSIUS
    celsius = number / 1_000
    return celsius if low <= celsius <= high else None


def _hwmon(root: HostRoot, cpu_zone: bool) -> tuple[Sensor, ...]:
    chips = [
        (printable(root.text(f"{folder}/name") or "", 40) or f"hwmon{number}", folder)
        for number, folder in root.numbered("/sys/class/hwmon", "hwmon")
    ]
    chosen = [(chip, folder) for chip, folder in chips if _CPU_SENSOR.search(chip)]
    if not chosen and not cpu_zone:
        chosen = [(chip, folder) for chip, folder in chips if chip not in _DISK_CHIPS]
    found: list[Sensor] = []
    for chip, folder in chosen:
        inputs = sorted(
            int(match[1]) for name in root.list_dir(folder) if (match := re.fullmatch(r"temp(\d{1,4})_input", name))
        )
        for index in inputs[:_MAX_INPUTS]:
            label = printable(root.text(f"{folder}/temp{index}_label") or "", 40)
            found.append(_sensor(root, f"{chip} {label}".strip(), f"{folder}/temp{index}_input"))
    return tuple(found)


def _sensor(root: HostRoot, name: str, path: str) -> Sensor:
    reading = root.reading(path)
    celsius = parse_millicelsius(reading.text)
    return Sensor(name, path, celsius, "" if celsius is not None else reading.reason or "not a temperature")
