"""Read the values of a host that the by-hand commands of a chapter name: its housekeeping CPUs, and masks of its L3
cache."""

from __future__ import annotations

from jitter_workshop.host.cpu.resctrl import RESCTRL, read_cache_ways
from jitter_workshop.host.root import HostRoot
from jitter_workshop.model.course import Chapter
from jitter_workshop.model.cpuset import CpuSet
from jitter_workshop.model.host import Topology
from jitter_workshop.tuning.context import Host

_HOUSEKEEPING = "housekeeping"
_OF_CACHE = ("l3_id", "l3_all", "l3_part", "l3_rest", "resctrl")
_IN_CAPITALS = "the words in capitals below stand for values that this host does not show"
NO_RESCTRL = f"This host has no resctrl: {_IN_CAPITALS}."
NOT_MOUNTED = "Once resctrl is mounted, the commands below have the masks of this host."
NOT_DIVIDED = f"Here resctrl cannot divide the L3 cache: {_IN_CAPITALS}."


def names_host_values(chapter: Chapter) -> bool:
    """Return True if a by-hand command of the chapter names a value that :func:`values_by_hand` reads."""
    return any(_names(chapter, name) for name in (_HOUSEKEEPING, *_OF_CACHE))


def values_by_hand(chapter: Chapter, root: HostRoot, topology: Topology, hot: CpuSet, used: CpuSet) -> dict[str, str]:
    """Return placeholder → value, for the placeholders of a chapter's by-hand commands that the host has values for.

    A value that the host does not show is missing. The host is read only for placeholders that a command names.
    ``hot``: the hot CPUs. ``used``: the CPUs of the run that the commands are about; without a run, the hot CPUs.
    """
    values: dict[str, str] = {}
    if _names(chapter, _HOUSEKEEPING) and (rest := Host(root, hot, topology).housekeeping):
        values[_HOUSEKEEPING] = str(rest)
    if any(_names(chapter, name) for name in _OF_CACHE):
        values |= _cache_values(root, used)
    return values


def _names(chapter: Chapter, name: str) -> bool:
    written = "{" + name + "}"
    return any(written in text for one in chapter.by_hand for text in (one.command, one.why, one.check))


def _cache_values(root: HostRoot, used: CpuSet) -> dict[str, str]:
    """Return the values on the L3 cache of the first used CPU, and a sentence on them (``resctrl``)."""
    if not root.is_dir(RESCTRL):
        return {"resctrl": NO_RESCTRL}
    if root.text(f"{RESCTRL}/schemata") is None:
        return {"resctrl": NOT_MOUNTED}
    ways = read_cache_ways(root, used.cpus[0]) if used else None
    if ways is None:
        return {"resctrl": NOT_DIVIDED}
    told = f"L3 cache {ways.cache} of this host has {ways.ways} ways, so its mask is {ways.every}."
    masks = {"l3_all": ways.every, "l3_part": ways.part, "l3_rest": ways.rest}
    return {"l3_id": str(ways.cache), "resctrl": told, **masks}
