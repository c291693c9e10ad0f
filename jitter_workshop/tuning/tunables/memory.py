"""Define the tunables of memory: statistics, writeback, huge pages, nodes, swap."""

from __future__ import annotations

from collections.abc import Sequence

from jitter_workshop.errors import UsageError
from jitter_workshop.host.cpu.topology import NODE_DIR, read_memory_nodes
from jitter_workshop.host.root import is_count, printable
from jitter_workshop.host.tasks.limits import read_limits
from jitter_workshop.model.status import Assessment
from jitter_workshop.model.text import ID, MOST_ENTRIES, MOST_WORDS
from jitter_workshop.tuning.base import Observed, Setting, Settings, Unavailable
from jitter_workshop.tuning.context import Host
from jitter_workshop.tuning.tunables.single import OneFile, number_of, read_value, whole_number

_VM = "/proc/sys/vm"
_THP = "/sys/kernel/mm/transparent_hugepage"
_WRITEBACK_MASK = "/sys/devices/virtual/workqueue/writeback/cpumask"
_LOCKED_ENOUGH = 64 << 20
"""The least limit on locked memory that is enough, in bytes. A measuring child process locks less than this."""


class StatInterval(OneFile):
    id = "stat-interval"
    title = "Update of memory statistics"
    why = (
        "A kernel worker on each CPU runs at this interval. It adds the CPU's memory counters to the global counters. "
        "Meanwhile the thread that runs there has to wait."
    )
    danger = "many figures in /proc/vmstat lag behind"
    document = "Documentation/admin-guide/sysctl/vm.rst"
    file = f"{_VM}/stat_interval"
    values = "seconds"
    bounds = (1, 86_400)
    default = "10"
    rewritten_by = ("tuned",)
    good = "the kernel updates the statistics at most once in ten seconds"
    bad = "the kernel updates the statistics every {current} s on each CPU; {wanted} s is enough"

    def best(self, host: Host, current: str) -> str:
        return current if number_of(current) >= 10 else "10"


class Writeback(Settings):
    id = "writeback"
    title = "Writing of changed pages to disk"
    why = (
        "Flusher workers write changed pages to disk, on any CPU that their workqueue allows. They wake up "
        "periodically, and also when many pages have changed. A thread that changes too many pages has to wait for "
        "the disk."
    )
    danger = "a power cut loses the changes of the last seconds; with a longer interval, more changes are lost"
    risk = "medium"
    document = "Documentation/admin-guide/sysctl/vm.rst"
    owns = (
        f"{_VM}/dirty_writeback_centisecs",
        f"{_VM}/dirty_expire_centisecs",
        f"{_VM}/dirty_background_ratio",
        f"{_VM}/dirty_ratio",
    )
    values = (
        "interval:CENTISECONDS, expire:CENTISECONDS, background:LIMIT, limit:LIMIT; LIMIT is a percentage (10%) or a "
        "number of bytes"
    )
    default = "interval:1500"
    rewritten_by = ("tuned", "laptop-mode", "tlp")
    good = "the flushers wake up seldom"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        interval = read_value(host.root, self.owns[0])
        if value is None:
            seldom = number_of(interval) == 0 or number_of(interval) >= 1_500
            keep = seldom or host.root.text(_WRITEBACK_MASK) is not None
            return [Setting(self.owns[0], interval, interval if keep else "1500", "number")]
        return [self._asked(host, word) for word in value.split(",")]

    def judge(self, host: Host) -> Assessment:
        found = super().judge(host)
        mask = host.root.text(_WRITEBACK_MASK)
        if found.state != "ok" or mask is None or number_of(found.value or "0") >= 1_500 or found.value == "0":
            return found
        cpus = host.root.cpu_mask(_WRITEBACK_MASK)
        if cpus is not None and not cpus & host.kept_clear:
            return self.answer("ok", found.value, "the flushers stay off the hot CPUs", paths=(*found.paths,))
        # The mask does it without a longer window for losses; the interval is only for hosts without the mask.
        reason = f"{self._how_often(found.value)}, maybe on hot CPUs: the tunable workqueue-mask keeps them off"
        return self.answer("info", found.value, reason, paths=(*found.paths, _WRITEBACK_MASK))

    def differs(self, setting: Setting, host: Host) -> str:
        del host
        return (
            f"{self._how_often(setting.current)} on any CPU, and this kernel has no mask for flushers: make them "
            "wake up seldom"
        )

    def _how_often(self, centiseconds: str | None) -> str:
        return f"flushers wake up every {number_of(centiseconds or '0') / 100:g} s"

    def _asked(self, host: Host, word: str) -> Setting:
        name, _, text = word.strip().partition(":")
        try:
            path = self.owns[("interval", "expire", "background", "limit").index(name)]
        except ValueError:
            raise UsageError(f"{self.id} cannot be '{printable(word, ID)}'", f"VALUE is {self.values}") from None
        if name in ("interval", "expire"):
            return Setting(path, read_value(host.root, path), whole_number(self, text, 0, 1_000_000), "number")
        current = read_value(host.root, path, "dirty-limit")
        if text.endswith("%"):
            return Setting(path, current, f"{whole_number(self, text[:-1], 1, 100)}%", "dirty-limit")
        return Setting(path, current, whole_number(self, text, 65_536, 1 << 50), "dirty-limit")


class HugePages(Settings):
    id = "thp"
    title = "Transparent huge pages"
    why = (
        "With 'always' the kernel builds 2 MiB pages for all programs. Page faults then take longer. The kernel "
        "thread khugepaged moves memory while threads use it, and interrupts the CPUs of these threads."
    )
    danger = "more TLB misses in programs that do not ask for huge pages"
    document = "Documentation/admin-guide/mm/transhuge.rst"
    owns = (f"{_THP}/enabled", f"{_THP}/defrag")
    default = "madvise"
    values = "madvise or never"
    rewritten_by = ("tuned",)
    good = "only programs that ask for huge pages get them"

    def settings(self, host: Host, value: str | None) -> Sequence[Setting]:
        wanted = self.choose(value, ("madvise", "never"))
        absent = "this kernel has no transparent huge pages"
        enabled = read_value(host.root, f"{_THP}/enabled", "choice", absent)
        defrag = read_value(host.root, f"{_THP}/defrag", "choice", absent)
        if value is None and enabled == "never":
            wanted = "never"
        return [
            Setting(f"{_THP}/enabled", enabled, wanted, "choice"),
            Setting(f"{_THP}/defrag", defrag, "madvise" if defrag == "always" else defrag, "choice"),
        ]


class Ksm(OneFile):
    id = "ksm"
    title = "Merging of equal pages (KSM)"
    why = (
        "The kernel thread ksmd looks for pages with equal content and write-protects them. A thread that then writes "
        "to such a page has a page fault, and the kernel copies the page."
    )
    danger = "a host that runs many guests needs more memory"
    document = "Documentation/admin-guide/mm/ksm.rst"
    file = "/sys/kernel/mm/ksm/run"
    allowed = ("0", "1", "2")
    values = "0 (stop), 1 (run) or 2 (stop and split the merged pages)"
    default = "0"
    rewritten_by = ("ksmtuned",)
    good = "pages are not merged"
    bad = "ksmd scans memory, and each write to a merged page is a page fault"

    def best(self, host: Host, current: str) -> str:
        return current if current == "2" else "0"


class NumaBalancing(OneFile):
    id = "numa-balancing"
    title = "Automatic NUMA balancing"
    why = (
        "The kernel unmaps pages of a task again and again. The page faults that follow show which node uses these "
        "pages. The kernel then moves the pages to this node, or the task to the pages."
    )
    danger = "programs that do not choose the node of their memory may use a far node's memory for longer"
    document = "Documentation/admin-guide/sysctl/kernel.rst"
    file = "/proc/sys/kernel/numa_balancing"
    allowed = ("0", "1", "2")
    values = "0, 1 or 2"
    default = "0"
    rewritten_by = ("tuned",)
    good = "the kernel does not unmap pages to see which node uses them"
    bad = "the kernel periodically unmaps pages of running threads to find out which node uses them"


class ZoneReclaim(OneFile):
    id = "zone-reclaim"
    title = "Reclaim before another node is used"
    why = (
        "If reclaim is on and a node is full, the thread that asks for memory first has to free pages of this node. "
        "If reclaim is off, the thread gets memory of another node at once."
    )
    danger = "a little more memory of far nodes is used"
    document = "Documentation/admin-guide/sysctl/vm.rst"
    file = f"{_VM}/zone_reclaim_mode"
    bounds = (0, 7)
    values = "0 to 7"
    default = "0"
    rewritten_by = ("tuned",)
    good = "if a node is full, a thread gets memory of another node at once"
    bad = (
        "if a thread's node is full, the thread first frees pages on this node, and only then gets memory of another "
        "node"
    )
    absent = "this kernel was built without NUMA"


class Swap(OneFile):
    id = "swap"
    title = "Swap"
    why = "A thread that touches a swapped-out page waits for a disk read: milliseconds instead of nanoseconds."
    danger = "with a low swappiness the kernel drops cached files earlier"
    document = "Documentation/admin-guide/sysctl/vm.rst"
    file = f"{_VM}/swappiness"
    bounds = (0, 200)
    values = "swappiness, 0 to 200"
    default = "10"
    rewritten_by = ("tuned",)
    good = "the kernel swaps only as a last resort; locked memory (mlockall) is never swapped out"
    bad = (
        "with swappiness {current} memory may be swapped out; with {wanted} this happens less often; locked memory "
        "(mlockall) is never swapped out"
    )

    def judge(self, host: Host) -> Assessment:
        areas = _swap_areas(host)
        if areas is None:
            raise Unavailable("/proc/swaps cannot be read", paths=("/proc/swaps",))
        if not areas:
            return self.answer("ok", "none", "nothing can be swapped out", paths=("/proc/swaps",))
        return super().judge(host)

    def best(self, host: Host, current: str) -> str:
        return current if number_of(current) <= 10 or not _swap_areas(host) else "10"


class Compaction(OneFile):
    id = "compaction"
    title = "Proactive compaction"
    why = (
        "The kernel thread kcompactd moves pages in the background to make room for huge pages. A thread that touches "
        "a page during its move has to wait. The kernel also interrupts every CPU that has the page mapped."
    )
    danger = "on a host that runs for long, huge pages become harder to get"
    document = "Documentation/admin-guide/sysctl/vm.rst"
    file = f"{_VM}/compaction_proactiveness"
    bounds = (0, 100)
    values = "0 to 100"
    default = "0"
    rewritten_by = ("tuned",)
    good = "the kernel moves pages only when a program needs the room"
    bad = (
        "kcompactd moves pages before a program needs the room; with the value 0, pages move only when a program "
        "needs it"
    )
    absent = "this kernel does not compact in advance (Linux 5.9 or newer does, with CONFIG_COMPACTION)"


class LockedMemory(Observed):
    id = "locked-memory"
    title = "Limits of locked memory and real-time"
    why = (
        "The kernel can drop or move memory that is not locked. The next access to this memory is then a page fault. "
        "A user may ask for a real-time priority only if the user's limit for it is above zero."
    )
    document = "Documentation/mm/unevictable-lru.rst"

    def judge(self, host: Host) -> Assessment:
        limits = read_limits(host.root)
        if limits.reason:
            return self.answer("unavailable", None, limits.reason)
        if limits.may_lock and limits.may_schedule:
            return self.answer("ok", "no limit", "this process may lock everything and ask for any priority")
        all_memory = limits.may_lock or limits.memlock_bytes is None
        locked = "all" if all_memory else f"{(limits.memlock_bytes or 0) / (1 << 20):.3g} MiB"
        value = f"memory {locked}, priority {'any' if limits.may_schedule or limits.rtprio is None else limits.rtprio}"
        if all_memory or limits.memlock_bytes is None or limits.memlock_bytes >= _LOCKED_ENOUGH:
            return self.answer("ok", value, "a measuring process can lock its memory")
        return self.answer(
            "improve",
            value,
            "a measuring process cannot lock its memory; the run still works and reports this in a note",
            wanted="64 MiB or more",
            fix="as root: add '@GROUP - memlock unlimited' to a file in /etc/security/limits.d, then log in again",
        )


class MemoryNodes(Observed):
    id = "memory-nodes"
    title = "Memory nodes of the hot CPUs"
    why = (
        "A cache miss takes about 1.5 times as long if the memory is on another node. If hot threads are on different "
        "nodes, every message between them crosses the link between the nodes."
    )
    document = "Documentation/mm/numa.rst"

    def judge(self, host: Host) -> Assessment:
        nodes = read_memory_nodes(host.root)
        if not nodes:
            return self.answer("info", None, "the kernel shows no memory nodes: all memory is equally near")
        mine = [node for node, cpus in nodes.items() if cpus & host.hot]
        value = f"{len(mine)} of {len(nodes)}"
        paths = [f"{NODE_DIR}/node{node}/cpulist" for node in mine[:MOST_ENTRIES]]
        if len(nodes) == 1:
            return self.answer("ok", value, "there is one node: all memory is equally near", paths=paths)
        if len(mine) > 1:
            names = ", ".join(map(str, mine[:MOST_WORDS]))
            return self.answer(
                "improve",
                value,
                f"the hot CPUs are on nodes {names}: messages between these nodes cross the link",
                wanted="one node",
                paths=paths,
                fix="choose hot CPUs of one node with --cpus",
            )
        return self.answer(
            "ok",
            value,
            ("the hot CPUs are on one node: if a hot CPU is the first to touch a page, the page is on this node"),
            paths=paths,
        )


def _swap_areas(host: Host) -> int | None:
    """Return the number of swap areas; None if /proc/swaps is not a table."""
    heading, *rows = (host.root.text("/proc/swaps") or "").split("\n")
    if not heading.startswith("Filename"):
        return None
    # A row is name, type, size, used (KiB) and priority; blanks in names are octal there.
    return sum(len(words := row.split()) == 5 and is_count(words[2]) and is_count(words[3]) for row in rows)
