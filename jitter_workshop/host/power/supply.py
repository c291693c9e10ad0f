"""Read the power source, mains or battery (Documentation/ABI/testing/sysfs-class-power)."""

from __future__ import annotations

from jitter_workshop.host.root import HostRoot

_FOLDER = "/sys/class/power_supply"


def read_on_battery(root: HostRoot) -> bool | None:
    """Return True when the machine itself runs on its battery.

    Return None where it shows no power supply (most desktops, servers and guests). Batteries of mice and keyboards
    (scope ``Device``) do not count.
    """
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
