"""Read power settings of the whole machine: firmware profile, mains, PCIe links, IOMMU.

Sources: ABI/testing/sysfs-platform_profile, admin-guide/kernel-parameters.txt (pcie_aspm, iommu),
ABI/testing/sysfs-kernel-iommu_groups.
"""

from __future__ import annotations

from jitter_workshop.host.fields import parse_choice
from jitter_workshop.host.power.supply import read_on_battery
from jitter_workshop.host.root import HostRoot, printable
from jitter_workshop.model.record import dataclass

PROFILE = "/sys/firmware/acpi/platform_profile"
ASPM_POLICY = "/sys/module/pcie_aspm/parameters/policy"
_GROUPS = "/sys/kernel/iommu_groups"
_MAX_GROUPS = 32


@dataclass(frozen=True, slots=True)
class PlatformPower:
    """Hold the power settings.

    ``profile``: the firmware's, with the ones it offers; None where it offers none. ``aspm``: the policy of PCIe links
    and the possible ones; None and () where the kernel does not control it. ``on_battery``: None where no power supply
    is shown.
    """

    profile: str | None
    profiles: tuple[str, ...]
    aspm: str | None
    aspm_policies: tuple[str, ...]
    on_battery: bool | None


@dataclass(frozen=True, slots=True)
class Iommu:
    """Hold the IOMMUs.

    ``units``: their names. ``groups``: the number of device groups. ``types``: kinds of domain among the first 32
    groups (``identity`` = passed through, ``DMA``, ``DMA-FQ`` = translated); () where not shown.
    """

    units: tuple[str, ...]
    groups: int
    types: tuple[str, ...]


def read_platform_power(root: HostRoot) -> PlatformPower:
    """Read the four settings."""
    aspm, policies = parse_choice(root.text(ASPM_POLICY))
    return PlatformPower(
        profile=printable(root.text(PROFILE) or "", 40) or None,
        profiles=tuple(printable(word, 40) for word in (root.text(f"{PROFILE}_choices") or "").split()[:32]),
        aspm=aspm,
        aspm_policies=policies,
        on_battery=read_on_battery(root),
    )


def read_iommu(root: HostRoot) -> Iommu:
    """Return the IOMMUs and how they treat the devices behind them."""
    groups = root.numbered(_GROUPS, "")
    types = {root.text(f"{folder}/type") for _, folder in groups[:_MAX_GROUPS]}
    units = tuple(printable(name, 40) for name in root.list_dir("/sys/class/iommu")[:64])
    return Iommu(units, len(groups), tuple(sorted(printable(t, 20) for t in types if t)))
