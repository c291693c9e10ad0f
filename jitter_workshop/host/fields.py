"""Read several small files into one dataclass, and keep the reason for each field without a value."""

from __future__ import annotations

from collections.abc import Mapping

from jitter_workshop.host.root import HostRoot, parse_integer, printable
from jitter_workshop.model.cpuset import CpuSet

NOT_A_NUMBER = "does not hold a whole number"


class Fields:
    """Read the files that ``paths`` names by field.

    Each method returns the value or None. For None, ``reasons`` holds ``path: reason`` under the field's name.
    """

    def __init__(self, root: HostRoot, paths: Mapping[str, str]) -> None:
        self.root = root
        self.paths = paths
        self.reasons: dict[str, str] = {}

    def text(self, field: str) -> str | None:
        """Return the file's text."""
        reading = self.root.reading(self.paths[field])
        if reading.text is None:
            self.refuse(field, reading.reason)
        return reading.text

    def integer(self, field: str, low: int = -(1 << 63)) -> int | None:
        """Return a whole number not below ``low``."""
        text = self.text(field)
        if text is None:
            return None
        number = parse_integer(text)
        if number is None or not low <= number < 1 << 64:
            self.refuse(field, NOT_A_NUMBER)
            return None
        return number

    def switch(self, field: str) -> bool | None:
        """Return the bool for ``0`` and ``1``, ``N`` and ``Y``, or ``off`` and ``on``."""
        text = self.text(field)
        if text is None:
            return None
        if text in ("0", "N", "n", "off", "disabled"):
            return False
        if text in ("1", "Y", "y", "on", "enabled"):
            return True
        self.refuse(field, "says neither on nor off")
        return None

    def word(self, field: str, limit: int = 80) -> str | None:
        """Return the text on one clean line, None where it is empty."""
        text = self.text(field)
        if text is None:
            return None
        line = printable(text, limit)
        if not line:
            self.refuse(field, "is empty")
        return line or None

    def choice(self, field: str) -> str | None:
        """Return the chosen word of ``always [madvise] never``."""
        text = self.text(field)
        if text is None:
            return None
        chosen = parse_choice(text)[0]
        if chosen is None:
            self.refuse(field, "marks no choice")
        return chosen

    def cpu_list(self, field: str) -> CpuSet | None:
        """Return a CPU list."""
        return self._cpus(field, mask=False)

    def cpu_mask(self, field: str) -> CpuSet | None:
        """Return a CPU mask."""
        return self._cpus(field, mask=True)

    def refuse(self, field: str, reason: str) -> None:
        """Record why ``field`` has no value."""
        self.reasons[field] = f"{self.paths[field]}: {reason}"

    def _cpus(self, field: str, *, mask: bool) -> CpuSet | None:
        text = self.text(field)
        if text is None:
            return None
        try:
            return CpuSet.parse_mask(text) if mask else CpuSet.parse_list(text)
        except ValueError:
            self.refuse(field, "does not hold a CPU mask" if mask else "does not hold a CPU list")
            return None


def parse_choice(text: str | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the chosen word of ``always [madvise] never`` and all words; None for the first if not exactly one is in
    brackets."""
    words = [printable(word, 40) for word in (text or "").split()[:32]]
    chosen = [w[1:-1] for w in words if len(w) > 2 and w.startswith("[") and w.endswith("]")]
    everything = tuple(w[1:-1] if len(w) > 2 and w.startswith("[") and w.endswith("]") else w for w in words)
    return (chosen[0] if len(chosen) == 1 else None), everything
