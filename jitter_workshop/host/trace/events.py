"""Turn records of the kernel's trace into events of :mod:`jitter_workshop.model.trace`.

Kernel addresses become names here and go no further. The meaning of each record is in ``kinds``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from jitter_workshop.host.trace.format import EventFormat, Field, Layout, PageFormat, located, wanted
from jitter_workshop.host.trace.page import records
from jitter_workshop.host.trace.symbols import UNKNOWN, Symbols
from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, TraceEvent

_HARDIRQ, _SOFTIRQ, _NMI = 0x08, 0x10, 0x40
"""Bits of ``common_flags`` (``enum trace_flag_type``; the letters h, s and Z in Documentation/trace/ftrace.rst)."""

MAX_NAME = 4096
_NAMES_KEPT = 100_000
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


class Record:
    """Hold the place of a record in its page, and the values common to its events."""

    __slots__ = ("cpu", "end", "flags", "page", "pid", "start", "ts")

    def __init__(self, page: bytes, start: int, end: int, ts: int, cpu: int) -> None:
        self.page, self.start, self.end, self.ts, self.cpu = page, start, end, ts, cpu
        self.pid = self.flags = 0

    def event(self, kind: str, a: int = 0, b: int = 0, c: int = 0, name: str = "", other: str = "") -> list[TraceEvent]:
        """Return the one event of this record. Numbers beyond 32 bits become the nearest 32-bit number."""
        a, b, c = (max(_LOW, min(_HIGH, value)) for value in (a, b, c))
        return [TraceEvent(self.ts, self.cpu, kind, self.pid, a, b, c, name, other, self.flags)]


Build = Callable[[Record, tuple[Any, ...]], Iterable[TraceEvent]]
Plan = tuple[tuple[str, ...], tuple[str, ...], Build]
"""The numbers and the texts needed of a record, and the function that makes events of them, in that order."""
Maker = Callable[["Decoder", EventFormat], Plan]


class Decoder:
    """Decode events of one kernel; records of events that were not added are left out.

    ``symbols``: its functions. ``cpus``: interrupts sent to these are reported, one event a CPU. ``strings``: the texts
    that it refers to by an address (``printk_formats``). ``running``: work that began on a CPU and is named only there.
    ``switched``: when a CPU last changed its thread.
    """

    def __init__(
        self,
        form: PageFormat,
        symbols: Symbols,
        cpus: Collection[int] = (),
        strings: Mapping[int, str] | None = None,
    ) -> None:
        self.form = form
        self.symbols = symbols
        self.cpus = tuple(sorted(cpus))
        self.running: dict[tuple[int, int], str] = {}
        self.switched: dict[int, int] = {}
        self._strings = strings or {}
        self._names: dict[bytes, str] = {}
        self._known: dict[int, tuple[Layout, Build]] = {}
        self._number: Layout | None = None

    def add(self, event: EventFormat, maker: Maker) -> None:
        """Add an event. Raise ValueError where the kernel's description lacks something needed."""
        numbers, texts, build = maker(self, event)
        self._known[event.number] = Layout(event, ("common_flags", "common_pid", *numbers), texts), build
        self._number = self._number or Layout(event, ("common_type",))

    def events(self, page: bytes, cpu: int) -> Iterable[TraceEvent]:
        """Return the events of one page of ``cpu``, in their order. Raise ValueError for a damaged page."""
        if self._number is None:
            return
        number, least = self._number.values, self._number.size
        for ts, start, end in records(page, self.form):
            if end - start < least:
                raise ValueError("a record without its beginning")
            known = self._known.get(number(page, start)[0])
            if known is None:
                continue
            layout, build = known
            if end - start < layout.size:
                raise ValueError("a record that is shorter than its event")
            record = Record(page, start, end, ts, cpu)
            flags, record.pid, *values = layout.values(page, start)
            if flags & (_HARDIRQ | _NMI):
                record.flags = IN_IRQ
            if flags & _SOFTIRQ:
                record.flags |= IN_SOFTIRQ
            yield from build(record, tuple(values))

    def words(self, event: EventFormat, name: str) -> Callable[[Record, Any], str]:
        """Return the function that gets a field's text: held in it, elsewhere in its record, or a string of the
        kernel."""
        field = wanted(event, name)
        if field.located:
            return lambda record, value: self._text(data(record, field, value))
        if field.array:
            return lambda record, value: self._text(value)
        return lambda record, value: self._strings.get(value, UNKNOWN)

    def _text(self, raw: bytes) -> str:
        """Return a name that ends at its first NUL."""
        name = self._names.get(raw)
        if name is None:
            name = raw.split(b"\0", 1)[0][:MAX_NAME].decode("utf-8", "replace")
            if len(self._names) < _NAMES_KEPT:
                self._names[raw] = name
        return name


def data(record: Record, field: Field, value: Any) -> bytes:
    """Return the bytes of a text or mask, from the field or the place that it points to. Raise ValueError."""
    return located(record.page, record.start, record.end, field, value) if field.located else bytes(value)


def read_strings(text: str) -> dict[int, str]:
    """Parse ``printk_formats``: lines ``0xADDRESS : "TEXT"``; other lines are left out."""
    found = {}
    for line in text.splitlines():
        address, colon, words = line.partition(" : ")
        try:
            if colon:
                found[int(address, 16)] = words.strip().strip('"')[:200]
        except ValueError:
            continue
    return found
