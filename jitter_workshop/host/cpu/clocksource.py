"""Read the kernel's clock source (Documentation/timers/timekeeping.rst) and check if the TSC can stamp a
measurement."""

from __future__ import annotations

from jitter_workshop.host.cpu.cpuinfo import CpuIdentity, read_cpu_identity
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

_FOLDER = "/sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True, slots=True)
class Clocksource:
    """Hold the clock source; ``current`` keeps the time now (None where not shown).

    The flags are None on processors without them.
    """

    current: str | None
    available: tuple[str, ...]
    constant_tsc: bool | None
    nonstop_tsc: bool | None

    @property
    def tsc_trusted(self) -> bool:
        """Return True if the kernel keeps time by the TSC, and no flag says that it changes its rate or stops when
        idle.

        The kernel leaves the TSC as soon as its watchdog finds a fault.
        """
        return self.current == "tsc" and self.constant_tsc is not False and self.nonstop_tsc is not False


def read_clocksource(root: HostRoot, identity: CpuIdentity | None = None) -> Clocksource:
    """Read the clock source; ``identity`` saves reading /proc/cpuinfo again."""
    cpu = identity if identity is not None else read_cpu_identity(root)
    return Clocksource(
        current=root.word(f"{_FOLDER}/current_clocksource"),
        available=root.words(f"{_FOLDER}/available_clocksource"),
        constant_tsc=cpu.has("constant_tsc"),
        nonstop_tsc=cpu.has("nonstop_tsc"),
    )
