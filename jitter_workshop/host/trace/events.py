"""Records of the kernel's trace as events of :mod:`jitter_workshop.model.trace`; kernel addresses become names here and
go no further. What each record means: ``tracekinds``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from jitter_workshop.host.trace.format import EventFormat, Field, Layout, PageFormat, located, wanted
from jitter_workshop.host.trace.page import records
from jitter_workshop.host.trace.symbols import UNKNOWN, Symbols
from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, TraceEvent

_HARDIRQ, _SOFTIRQ, _NMI = 0x08, 0x10, 0x40
"""Bits of ``common_flags`` (``enum trace_flag_type``; as letters h, s and Z in Documentation/trace/ftrace.rst)."""

MAX_NAME = 4096
_NAMES_KEPT = 100_000
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1


class Record:
    """Where a record lies in its page, and what each of its events says."""

    __slots__ = ("cpu", "end", "flags", "page", "pid", "start", "ts")

    def __init__(self, page: bytes, start: int, end: int, ts: int, cpu: int) -> None:
        self.page, self.start, self.end, self.ts, self.cpu = page, start, end, ts, cpu
        self.pid = self.flags = 0

    def event(self, kind: str, a: int = 0, b: int = 0, c: int = 0, name: str = "", other: str = "") -> list[TraceEvent]:
        """The one event of this record. Numbers beyond 32 bits are told as the nearest that has them."""
        a, b, c = (max(_LOW, min(_HIGH, value)) for value in (a, b, c))
        return [TraceEvent(self.ts, self.cpu, kind, self.pid, a, b, c, name, other, self.flags)]


Build = Callable[[Record, tuple[Any, ...]], Iterable[TraceEvent]]
Plan = tuple[tuple[str, ...], tuple[str, ...], Build]
"""The numbers and the texts that are wanted of a record, and what makes events of them, in that order."""
Maker = Callable[["Decoder", EventFormat], Plan]


class Decoder:
    """Events of one kernel; records of those that were not added are left out.

    ``symbols``: its functions; ``cpus``: interrupts that are sent to these are told, one event a CPU; ``strings``: what
    it calls by an address (``printk_formats``). ``running``: what began on a CPU and is named only there; ``switched``:
    when a CPU last changed its thread.
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
        """Know one event more. Raises ValueError where the kernel describes it without what is needed of it."""
        numbers, texts, build = maker(self, event)
        self._known[event.number] = Layout(event, ("common_flags", "common_pid", *numbers), texts), build
        self._number = self._number or Layout(event, ("common_type",))

    def events(self, page: bytes, cpu: int) -> Iterable[TraceEvent]:
        """The events of one page of ``cpu``, in their order. Raises ValueError for a page that is damaged."""
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
        """How a field's text is got: it holds it, points to it in its record, or to a string of the kernel's."""
        field = wanted(event, name)
        if field.located:
            return lambda record, value: self._text(data(record, field, value))
        if field.array:
            return lambda record, value: self._text(value)
        return lambda record, value: self._strings.get(value, UNKNOWN)

    def _text(self, raw: bytes) -> str:
        """A name that ends with its first NUL."""
        name = self._names.get(raw)
        if name is None:
            name = raw.split(b"\0", 1)[0][:MAX_NAME].decode("utf-8", "replace")
            if len(self._names) < _NAMES_KEPT:
                self._names[raw] = name
        return name


def data(record: Record, field: Field, value: Any) -> bytes:
    """The bytes of a text or mask, in the record or where it points to. Raises ValueError."""
    return located(record.page, record.start, record.end, field, value) if field.located else bytes(value)


def read_strings(text: str) -> dict[int, str]:
    """``printk_formats``: lines ``0xADDRESS : "TEXT"``; what is none is left out."""
    found = {}
    for line in text.splitlines():
        address, colon, words = line.partition(" : ")
        try:
            if colon:
                found[int(address, 16)] = words.strip().strip('"')[:200]
        except ValueError:
            continue
    return found
