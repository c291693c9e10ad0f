"""Look up the names of the kernel's functions by address (``/proc/kallsyms``).

Only root's process uses this module. Root's process sends names of functions to other processes, but never addresses.
The kernel may hide the addresses (``kernel.kptr_restrict``, Documentation/admin-guide/sysctl/kernel.rst).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from jitter_workshop.host.root import HostRoot

KALLSYMS = "/proc/kallsyms"
MAX_BYTES = 64 << 20
UNKNOWN = "?"
_FUNCTIONS = ("T", "t", "W", "w")


class Symbols:
    """Hold the table of the kernel's symbols. ``reason``: the reason why the table is empty; "" if it is not empty."""

    def __init__(self, text: str | None, why: str = "") -> None:
        """Build the table from the contents of /proc/kallsyms.

        ``text``: lines ``ADDRESS TYPE NAME [MODULE]`` whose addresses have the same width; None if the file cannot be
        read. ``why``: the reason why the file cannot be read.
        """
        lines = (text or "").splitlines()
        self._width = width = len(lines[0].partition(" ")[0]) if lines else 0
        lines = [line for line in lines if line[width : width + 1] == " "]
        # There are over a hundred thousand lines: they are sorted once, and each is parsed only for a lookup.
        # Of several names for an address the kernel prints the first that it lists, so their order is kept.
        lines.sort(key=lambda line: line[:width])
        self._lines = lines
        self._known: dict[int, str] = {}
        self.reason = ""
        if not lines:
            self.reason = why or "the kernel lists no functions"
        elif not lines[-1][:width].strip("0"):
            self.reason = "the kernel hides the addresses of functions (kernel.kptr_restrict)"
            self._lines = []

    def name(self, address: int) -> str:
        """Return the name of the function that contains ``address``. Return "" for the address 0. Return "?" if no
        known function contains the address."""
        name = self._known.get(address)
        if name is None:
            name = self._known[address] = self._find(address)[0] if address else ""
        return name

    def name_and_offset(self, address: int) -> str:
        """Return the name of the function that contains ``address``, and the offset in this function:
        ``do_syscall_64+0x82``. Return "?" if no known function contains the address."""
        name, offset = self._find(address)
        return name if name == UNKNOWN else f"{name}+{offset:#x}"

    def _find(self, address: int) -> tuple[str, int]:
        width = self._width
        after = bisect_right(self._lines, f"{address:0{width}x}", key=lambda line: line[:width])
        if not 0 < after < len(self._lines):
            return UNKNOWN, 0  # before the first symbol, or beyond the last, whose length is unknown
        start = self._lines[after - 1][:width]
        first = bisect_left(self._lines, start, key=lambda line: line[:width])
        for line in self._lines[first:after]:
            kind, _, name = line[width + 1 :].partition(" ")
            if kind in _FUNCTIONS:
                try:
                    return " ".join(name.split()), address - int(start, 16)
                except ValueError:
                    break
        return UNKNOWN, 0


def kernel_symbols(root: HostRoot) -> Symbols:
    """Return the table of the kernel's symbols. The table is empty if this process may not see the addresses."""
    # The name of this function does not begin with ``read_``: tests call each ``read_`` function on a recording, which
    # has no kernel addresses.
    reading = root.reading(KALLSYMS, MAX_BYTES)
    return Symbols(reading.text, reading.reason)
