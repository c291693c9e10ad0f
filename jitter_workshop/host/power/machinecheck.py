"""Read the machine-check poll of x86: a timer on every CPU that looks for corrected memory errors.

Source: Documentation/ABI/testing/sysfs-mce.
"""

from __future__ import annotations

from jitter_workshop.host.fields import NOT_A_NUMBER
from jitter_workshop.host.root import HostRoot, parse_integer
from jitter_workshop.model.record import dataclass

FOLDER = "/sys/devices/system/machinecheck"


@dataclass(frozen=True, slots=True)
class MachineCheck:
    """Hold the settings of the machine-check poll.

    ``interval_s``: of the poll, 0 for never. ``ignore_corrected``: corrected errors are neither polled nor counted.
    None where not shown (``reason``). The kernel keeps one value for all CPUs and shows it below each.
    """

    cpu: int | None
    interval_s: int | None
    ignore_corrected: bool | None
    reason: str = ""


def interval_path(cpu: int) -> str:
    """Return the path of the poll's interval below one CPU; writing it sets that of all."""
    return f"{FOLDER}/machinecheck{cpu}/check_interval"


def read_machine_check(root: HostRoot) -> MachineCheck:
    """Return the settings as the first CPU shows them."""
    for cpu, folder in root.numbered(FOLDER, "machinecheck"):
        reading = root.reading(f"{folder}/check_interval")
        interval = parse_integer(reading.text)
        if interval is not None and interval < 0:
            interval = None
        ignore = root.integer(f"{folder}/ignore_ce")
        reason = "" if interval is not None else f"{folder}/check_interval: {reading.reason or NOT_A_NUMBER}"
        return MachineCheck(cpu, interval, None if ignore is None else ignore != 0, reason)
    return MachineCheck(None, None, None, f"{FOLDER}: no CPU shows machine checks here")
