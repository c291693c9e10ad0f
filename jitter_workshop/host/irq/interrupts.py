"""Read how often each source interrupted each CPU, from /proc/interrupts and /proc/softirqs (proc(5)).

The header of /proc/interrupts names only the online CPUs. The header of /proc/softirqs names all possible CPUs. So the
header of each file decides to which CPU a column belongs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from jitter_workshop.host.root import HostRoot, TextReading, is_count, printable
from jitter_workshop.model.irq_rows import Counter
from jitter_workshop.model.record import dataclass, field

_LARGE_TABLE_BYTES = 32 << 20
_KEY = 24
"""The largest length of the name of a row of the table."""
_WRAP = 1 << 32
_TRIGGERS = ("edge", "level", "fasteoi", "handler", "event", "virq", "ipi", "pirq")
"""Words that end the description of an interrupt that no device uses, such as ``31-edge``."""


@dataclass(frozen=True, slots=True)
class CounterTable(Mapping[str, Counter]):
    """Hold a table of counters: a row's key (``LOC``, ``36``, ``NET_RX``) → its count on each CPU.

    ``totals``: the rows with only one count, which is the sum for all CPUs (``ERR``, ``MIS``). ``reason``: the reason
    why there are no rows, or "".
    """

    rows: dict[str, Counter] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    def __getitem__(self, key: str) -> Counter:
        return self.rows[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def minus(self, earlier: CounterTable) -> CounterTable:
        """Return the growth of the counters since the table ``earlier``. Rows without growth are left out.

        A row or CPU that is missing in ``earlier`` is counted from 0. A counter of 32 bits may have overflowed since
        ``earlier``.
        """
        grown: dict[str, Counter] = {}
        for key, row in self.rows.items():
            before = earlier.rows[key].per_cpu if key in earlier.rows else {}
            per_cpu = {cpu: growth(before.get(cpu, 0), count) for cpu, count in row.per_cpu.items()}
            if any(per_cpu.values()):
                grown[key] = Counter(row.name, per_cpu)
        totals = {key: growth(earlier.totals.get(key, 0), count) for key, count in self.totals.items()}
        return CounterTable(grown, {key: n for key, n in totals.items() if n}, self.reason or earlier.reason)


def growth(before: int, after: int) -> int:
    """Return how much a 32-bit counter grew from ``before`` to ``after``.

    If ``after`` is smaller, the counter overflowed or started again from 0. An overflow is assumed if ``before`` is in
    the upper half of the range, and ``after`` is in the lower half.
    """
    if after >= before:
        return after - before
    if before < _WRAP and before >= _WRAP // 2 > after:
        return after + _WRAP - before
    return after


def read_interrupts(root: HostRoot) -> CounterTable:
    """Return the table of /proc/interrupts; if it cannot be read, an empty table with the reason."""
    return _read(root, "/proc/interrupts")


def read_interrupts_text(root: HostRoot) -> TextReading:
    """Return the text of /proc/interrupts, for both ``parse_counters`` and ``parse_irq_names``."""
    return root.reading("/proc/interrupts", _LARGE_TABLE_BYTES)


def read_softirqs(root: HostRoot) -> CounterTable:
    """Return the table of /proc/softirqs; if it cannot be read, an empty table with the reason."""
    return _read(root, "/proc/softirqs")


def _read(root: HostRoot, path: str) -> CounterTable:
    reading = root.reading(path, _LARGE_TABLE_BYTES)
    if reading.text is None:
        return CounterTable(reason=f"{path}: {reading.reason}")
    table = parse_counters(reading.text)
    return table if table.rows else CounterTable(totals=table.totals, reason=f"{path} holds no table")


def parse_counters(text: str) -> CounterTable:
    """Return the counters in the text of /proc/interrupts or /proc/softirqs. Damaged rows are left out. Never raise an
    error."""
    header, _, body = text.lstrip("\n").partition("\n")
    cpus = _header_cpus(header)
    rows: dict[str, Counter] = {}
    totals: dict[str, int] = {}
    if not cpus:
        return CounterTable()
    for line in body.split("\n"):
        key, colon, rest = line.partition(":")
        key = printable(key, _KEY)
        if not colon or not key:
            continue
        fields = rest.split(None, len(cpus))
        counts = fields[: len(cpus)]
        if len(counts) == len(cpus) and _are_counts(counts) and key.upper() not in ("ERR", "MIS"):
            described = fields[len(cpus)] if len(fields) > len(cpus) else ""
            rows[key] = Counter(_name(key, described), dict(zip(cpus, map(int, counts), strict=True)))
        elif len(fields) == 1 and is_count(fields[0]) and key.upper() in ("ERR", "MIS"):
            totals[key] = int(fields[0])
    return CounterTable(rows, totals)


def _header_cpus(header: str) -> tuple[str, ...]:
    """Return the CPU numbers in a header line ``CPU0 CPU2 …``, as texts; () if the line is not a header."""
    cpus: list[str] = []
    for word in header.split():
        number = word.removeprefix("CPU")
        if not word.startswith("CPU") or not is_count(number) or len(number) > 6:
            return ()
        cpus.append(str(int(number)))
    return tuple(cpus) if len(set(cpus)) == len(cpus) else ()


def parse_irq_names(text: str) -> dict[int, str]:
    """Return interrupt number → the devices that use it, "" for an unused interrupt. Incomplete rows of the text are
    left out.

    The counts are skipped, not parsed: a host with 512 CPUs and 2,000 interrupts has a million counts.
    """
    header, _, body = text.lstrip("\n").partition("\n")
    columns = len(_header_cpus(header))
    names: dict[int, str] = {}
    if not columns:
        return names
    for line in body.split("\n"):
        key, colon, rest = line.partition(":")
        key = key.strip()
        if not colon or not is_count(key) or len(key) > 9:
            continue
        # A count takes a blank and ten columns (it has 32 bits), so the counts end here unless a row is malformed.
        width = 11 * columns
        if len(rest) > width and rest[width - 1].isdigit() and rest[width] == " ":
            names[int(key)] = _devices(rest[width:])
            continue
        fields = rest.split(None, columns)
        if len(fields) >= columns and _are_counts(fields[:columns]):
            names[int(key)] = _devices(fields[columns] if len(fields) > columns else "")
    return names


def _are_counts(words: list[str]) -> bool:
    joined = "".join(words)
    return joined.isascii() and joined.isdigit() and max(map(len, words)) <= 20


def _name(key: str, described: str) -> str:
    """Return the displayed name of a row of /proc/interrupts. If the row's key is a number, the row is named after its
    devices. If there are no devices, it is named after its chip and trigger. Any other row is named after its
    description."""
    if not key.isdigit():
        return printable(described) or key
    return _devices(described) or printable(described) or key


def _devices(described: str) -> str:
    """Return the devices in the description of a row of /proc/interrupts; "" for an unused interrupt. The devices
    follow chip and trigger, after two spaces."""
    _, gap, last = described.rstrip().rpartition("  ")
    trigger = last.lower().lstrip("0123456789 ").removeprefix("-") in _TRIGGERS
    return printable(last) if gap and not trigger else ""
