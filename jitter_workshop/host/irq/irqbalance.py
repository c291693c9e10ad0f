"""Read which CPUs irqbalance has to leave alone (irqbalance(1), and the distributions' settings files).

Without a setting of its own it bans isolated and tickless CPUs. Its command line and its socket are not read.
"""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot
from jitter_workshop.host.shellfile import parse_assignments
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.record import dataclass

SETTINGS = ("/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/irqbalance.env")
"""The files of Debian, of Fedora and SUSE, and of Arch."""


@dataclass(frozen=True, slots=True)
class IrqBalanceSettings:
    """Hold irqbalance's settings.

    ``path``: the settings file, None where there is none. ``banned``: the banned CPUs, None where the file names none.
    ``reason``: why a line in the file could not be understood.
    """

    path: str | None
    banned: CpuSet | None
    reason: str = ""

    def bans(self, default: CpuSet) -> CpuSet:
        """Return the CPUs that irqbalance leaves alone. ``default``: isolated and tickless CPUs, used without a
        setting."""
        return default if self.banned is None else self.banned


def read_irqbalance_settings(root: HostRoot) -> IrqBalanceSettings:
    """Read the first settings file that exists; the list wins over the older mask, as in irqbalance itself."""
    for path in SETTINGS:
        text = root.text(path)
        if text is None:
            continue
        values = parse_assignments(text)
        for key, parse in (
            ("IRQBALANCE_BANNED_CPULIST", CpuSet.parse_list),
            ("IRQBALANCE_BANNED_CPUS", CpuSet.parse_mask),
        ):
            if not values.get(key):
                continue
            try:
                return IrqBalanceSettings(path, parse(values[key]))
            except ValueError:
                return IrqBalanceSettings(path, None, f"{key} in {path} is no list of CPUs")
        return IrqBalanceSettings(path, None)
    return IrqBalanceSettings(None, None)
