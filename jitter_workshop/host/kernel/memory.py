"""Read settings of memory management that costs running threads time.

Sources: Documentation/admin-guide/mm/transhuge.rst, ksm.rst, Documentation/admin-guide/sysctl/vm.rst and kernel.rst.
"""

from __future__ import annotations

from jitter_workshop.host.fields import Fields
from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.record import dataclass, field

_THP = "/sys/kernel/mm/transparent_hugepage"
_VM = "/proc/sys/vm"

PATHS = {
    "thp": f"{_THP}/enabled",
    "thp_defrag": f"{_THP}/defrag",
    "khugepaged_defrag": f"{_THP}/khugepaged/defrag",
    "ksm_run": "/sys/kernel/mm/ksm/run",
    "numa_balancing": "/proc/sys/kernel/numa_balancing",
    "zone_reclaim_mode": f"{_VM}/zone_reclaim_mode",
    "swaps": "/proc/swaps",
    "swappiness": f"{_VM}/swappiness",
    "stat_interval_s": f"{_VM}/stat_interval",
    "compaction_proactiveness": f"{_VM}/compaction_proactiveness",
    "dirty_ratio": f"{_VM}/dirty_ratio",
    "dirty_background_ratio": f"{_VM}/dirty_background_ratio",
    "dirty_bytes": f"{_VM}/dirty_bytes",
    "dirty_background_bytes": f"{_VM}/dirty_background_bytes",
    "dirty_writeback_centisecs": f"{_VM}/dirty_writeback_centisecs",
    "dirty_expire_centisecs": f"{_VM}/dirty_expire_centisecs",
}


@dataclass(frozen=True, slots=True)
class Swap:
    """Hold one swap area: its file or device (untrusted where shown), and its sizes."""

    name: str
    kind: str
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Hold the memory settings.

    ``thp``: always, madvise or never; ``thp_defrag`` similar. ``ksm_run``: 0 off, 1 on, 2 off and all unmerged.
    ``numa_balancing``: 0 off, 1 on, 2 and 3 with memory tiers. ``swaps``: () where there is no swap. Of each dirty
    pair, ratio (percent) and bytes, the kernel sets the other to 0. None where not shown (``reasons``).
    """

    thp: str | None
    thp_defrag: str | None
    khugepaged_defrag: bool | None
    ksm_run: int | None
    numa_balancing: int | None
    zone_reclaim_mode: int | None
    swaps: tuple[Swap, ...] | None
    swappiness: int | None
    stat_interval_s: int | None
    compaction_proactiveness: int | None
    reasons: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Writeback:
    """Hold the settings for writing dirty pages (see :class:`Memory`).

    The periods are in hundredths of a second as in the kernel's names, 0 for never. None where not shown (``reasons``).
    """

    dirty_ratio: int | None
    dirty_background_ratio: int | None
    dirty_bytes: int | None
    dirty_background_bytes: int | None
    writeback_centisecs: int | None
    expire_centisecs: int | None
    reasons: dict[str, str] = field(default_factory=dict)


def read_memory(root: HostRoot) -> Memory:
    """Read huge pages, KSM, NUMA balancing, swap and the statistics timer."""
    fields = Fields(root, PATHS)
    return Memory(
        thp=fields.choice("thp"),
        thp_defrag=fields.choice("thp_defrag"),
        khugepaged_defrag=fields.switch("khugepaged_defrag"),
        ksm_run=fields.integer("ksm_run", 0),
        numa_balancing=fields.integer("numa_balancing", 0),
        zone_reclaim_mode=fields.integer("zone_reclaim_mode", 0),
        swaps=_swaps(fields),
        swappiness=fields.integer("swappiness", 0),
        stat_interval_s=fields.integer("stat_interval_s", 0),
        compaction_proactiveness=fields.integer("compaction_proactiveness", 0),
        reasons=fields.reasons,
    )


def read_writeback(root: HostRoot) -> Writeback:
    """Read the writeback settings."""
    fields = Fields(root, PATHS)
    return Writeback(
        dirty_ratio=fields.integer("dirty_ratio", 0),
        dirty_background_ratio=fields.integer("dirty_background_ratio", 0),
        dirty_bytes=fields.integer("dirty_bytes", 0),
        dirty_background_bytes=fields.integer("dirty_background_bytes", 0),
        writeback_centisecs=fields.integer("dirty_writeback_centisecs", 0),
        expire_centisecs=fields.integer("dirty_expire_centisecs", 0),
        reasons=fields.reasons,
    )


def _swaps(fields: Fields) -> tuple[Swap, ...] | None:
    text = fields.text("swaps")
    found = parse_swaps(text)
    if text is not None and found is None:
        fields.refuse("swaps", "is not a table of swap areas")
    return found


def parse_swaps(text: str | None) -> tuple[Swap, ...] | None:
    """Parse /proc/swaps: a heading, then name, type, size, used (KiB) and priority; blanks in names are octal there.

    Damaged lines are left out. Return None where there is no heading, because a missing table does not mean no swap.
    """
    if text is None or not text.startswith("Filename"):
        return None
    found: list[Swap] = []
    for line in text.split("\n")[1:]:
        words = line.split()
        if len(words) != 5:
            continue
        size, used = parse_integer(words[2]), parse_integer(words[3])
        if size is not None and used is not None and size >= 0 and used >= 0:
            found.append(Swap(printable(words[0], 200), printable(words[1], 20), size << 10, used << 10))
    return tuple(found)
