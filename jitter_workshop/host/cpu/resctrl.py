"""Read how resctrl could divide the L3 cache of a CPU.

Sources: Documentation/filesystems/resctrl.rst (info/L3), Documentation/ABI/testing/sysfs-devices-system-cpu
(cache/index*/id).
"""

from __future__ import annotations

import re

from jitter_workshop.host.cpu.topology import CPU_DIR
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.record import dataclass

RESCTRL = "/sys/fs/resctrl"
_L3 = 3
_MASK = re.compile(r"[0-9a-f]{1,8}")
_SHARE = 3
"""The CPUs of interest get one way of so many."""


@dataclass(frozen=True, slots=True)
class CacheWays:
    """Hold one L3 cache, and a division of its ways into two parts. The masks are hexadecimal, as in ``schemata``.

    - ``cache``: the id of the cache. ``ways``: the number of its ways. ``every``: the mask of all ways.
    - ``part``: the mask of the lowest third of the ways. ``rest``: the mask of all other ways.
    """

    cache: int
    ways: int
    every: str
    part: str
    rest: str


def read_cache_ways(root: HostRoot, cpu: int) -> CacheWays | None:
    """Return the L3 cache of a CPU and a division of its ways. Return None if resctrl is not mounted, if it cannot
    divide this cache, or if the host does not show the cache's id."""
    text = root.word(f"{RESCTRL}/info/L3/cbm_mask") or ""
    mask = int(text, 16) if _MASK.fullmatch(text) else 0
    ways = mask.bit_length()
    least = max(root.integer(f"{RESCTRL}/info/L3/min_cbm_bits") or 1, 1)
    part = max(-(-ways // _SHARE), least)
    cache = _id_of_l3(root, cpu)
    if cache is None or mask != _lowest(ways) or ways - part < least:
        return None
    return CacheWays(cache, ways, *(f"{one:x}" for one in (mask, _lowest(part), mask & ~_lowest(part))))


def _lowest(ways: int) -> int:
    """Return the mask of the lowest ways."""
    return (1 << ways) - 1


def _id_of_l3(root: HostRoot, cpu: int) -> int | None:
    for _, folder in root.numbered(f"{CPU_DIR}/cpu{cpu}/cache", "index"):
        if root.integer(f"{folder}/level") == _L3:
            found = root.integer(f"{folder}/id")
            return found if found is not None and found >= 0 else None
    return None
