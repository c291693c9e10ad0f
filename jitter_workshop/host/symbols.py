"""Names of the kernel's functions by their addresses (``/proc/kallsyms``), for root's process alone: what leaves it are
names. The kernel hides the addresses where ``kernel.kptr_restrict`` says so
(Documentation/admin-guide/sysctl/kernel.rst)."""

from __future__ import annotations

from array import array
from bisect import bisect_right

from jitter_workshop.host.root import HostRoot

KALLSYMS = "/proc/kallsyms"
MAX_BYTES = 64 << 20
UNKNOWN = "?"


class Symbols:
    """The table, sorted once. ``reason``: why it has no names, "" where it has."""

    def __init__(self, text: str | None, why: str = "") -> None:
        """``text``: the file's contents."""
        rows = []
        for line in (text or "").splitlines():
            words = line.split(None, 3)
            if len(words) < 3:
                continue
            try:
                address = int(words[0], 16)
            except ValueError:
                continue
            if 0 < address < 1 << 64:
                name = f"{words[2]} {words[3]}" if len(words) == 4 else words[2]
                rows.append((address, name if words[1] in "tTwW" else UNKNOWN))
        # Of several names for an address the kernel prints the first that it lists.
        rows.sort(key=lambda row: row[0])
        self._addresses = array("Q", (address for address, _ in rows))
        self._names = [name for _, name in rows]
        self._known: dict[int, str] = {}
        self.reason = ""
        if not rows:
            hidden = "the kernel hides their addresses (kernel.kptr_restrict)"
            self.reason = why or (hidden if text else "the kernel lists none")

    def name(self, address: int) -> str:
        """The function that holds ``address``; "?" where none is known, "" for 0."""
        name = self._known.get(address)
        if name is None:
            name = self._known[address] = self._find(address)[0] if address else ""
        return name

    def name_and_offset(self, address: int) -> str:
        """The same with the place in it, ``do_syscall_64+0x82``."""
        name, offset = self._find(address)
        return name if name == UNKNOWN else f"{name}+{offset:#x}"

    def _find(self, address: int) -> tuple[str, int]:
        last = bisect_right(self._addresses, address) - 1
        if last < 0 or last + 1 == len(self._addresses):
            return UNKNOWN, 0  # beyond the last symbol, where nobody says how long it is
        start = self._addresses[last]
        first = bisect_right(self._addresses, start - 1)
        names = self._names[first : last + 1]
        return next((name for name in names if name != UNKNOWN), UNKNOWN), address - start


def read_symbols(root: HostRoot) -> Symbols:
    """The kernel's table as this process may see it."""
    reading = root.reading(KALLSYMS, MAX_BYTES)
    return Symbols(reading.text, reading.reason)
