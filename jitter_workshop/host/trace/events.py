"""Turn records of the kernel's trace into the events that :mod:`jitter_workshop.model.trace` defines.

A record has the kernel address of a function; the event has the function's name instead. The files
``include/trace/events/*.h`` in the kernel's sources describe the records. Some records differ between processors. x86
has special events for interrupt vectors and page faults. On arm64, the timer is an ordinary interrupt, and interrupts
from other CPUs are the events ``ipi:*``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from jitter_workshop.host.trace.format import (
    EventFormat,
    Field,
    Layout,
    PageFormat,
    event_field,
    located,
    parse_event,
    records,
)
from jitter_workshop.host.trace.symbols import UNKNOWN, Symbols
from jitter_workshop.model.trace import IN_IRQ, IN_SOFTIRQ, TraceEvent

_HARDIRQ, _SOFTIRQ, _NMI = 0x08, 0x10, 0x40
"""Bits of a record's ``common_flags`` (``enum trace_flag_type``; the letters h, s and Z in
Documentation/trace/ftrace.rst)."""

MAX_NAME = 4096
_NAMES_KEPT = 100_000
_MOST_STRING = 200
"""The largest length of a text from ``printk_formats``."""
_LOW, _HIGH = -(1 << 31), (1 << 31) - 1
MAX_FRAMES = 64
_TRACING = ("trace_event_raw_event_", "__traceiter_", "event_triggers_", "trace_event_buffer_")
"""Beginnings of the names of functions that record a stack. Such functions are the innermost ones on every stack, so
they are left out."""
_LEFT_IDLE = 0xFFFF_FFFF
"""``PWR_EVENT_EXIT``: in the event ``cpu_idle``, the state of a CPU that leaves an idle state."""


class Record:
    """Hold the position of a record in its page, and the values that all events of this record share."""

    __slots__ = ("cpu", "end", "flags", "page", "pid", "start", "ts")

    def __init__(self, page: bytes, start: int, end: int, ts: int, cpu: int) -> None:
        self.page, self.start, self.end, self.ts, self.cpu = page, start, end, ts, cpu
        self.pid = self.flags = 0

    def event(self, kind: str, *numbers: int, name: str = "", other: str = "") -> list[TraceEvent]:
        """Return a list with one event, made from this record. The event can have up to three ``numbers``, a ``name``,
        and a second name ``other``. If a number does not fit into 32 bits, the event gets the nearest number that
        fits."""
        a, b, c = (max(_LOW, min(_HIGH, value)) for value in (*numbers, 0, 0, 0)[:3])
        return [TraceEvent(self.ts, self.cpu, kind, self.pid, a, b, c, name, other, self.flags)]


EventBuilder = Callable[[Record, tuple[Any, ...]], Iterable[TraceEvent]]
DecodePlan = tuple[tuple[str, ...], tuple[str, ...], EventBuilder]
"""The way to decode one event: names of the fields with numbers, names of the fields with texts, and the function that
makes events from the values of these fields."""
Maker = Callable[["Decoder", EventFormat], DecodePlan]


class Decoder:
    """Decode the trace events of one kernel. Records of an event are skipped until :meth:`add` adds the event.

    - ``symbols``: the table of the kernel's functions.
    - ``cpus``: the CPUs whose incoming interrupts become events. An interrupt that is sent to several of these CPUs
      becomes one event for each of them.
    - ``strings``: address → text. Some records contain only the address of a text (``printk_formats``).
    - ``running``: the work that runs now: (CPU, the work's number or address) → name of the interrupt handler, work
      item, timer or call. The name comes from the record that begins the work. The record that ends the work may lack
      the name.
    - ``switched``: CPU → time of its last thread switch.
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
        self._known: dict[int, tuple[Layout, EventBuilder]] = {}
        self._number: Layout | None = None

    def add(self, title: str, text: str) -> None:
        """Let the decoder decode one more event. ``title``: the event's name as ``system:name``. ``text``: the contents
        of its format file. Raise ValueError if the event is unknown, or if the file lacks a needed field."""
        maker = _maker(title)
        if maker is None:
            raise ValueError(f"{title} is not a known event")
        event = parse_event(text)
        numbers, texts, build = maker(self, event)
        self._known[event.number] = Layout(event, ("common_flags", "common_pid", *numbers), texts), build
        self._number = self._number or Layout(event, ("common_type",))

    def events(self, page: bytes, cpu: int) -> Iterable[TraceEvent]:
        """Return the events in one page of the trace of ``cpu``, in their order. Raise ValueError if the page is
        damaged."""
        if self._number is None:
            return
        number, least = self._number.values, self._number.size
        for ts, start, end in records(page, self.form):
            if end - start < least:
                raise ValueError("a record is too short for its first fields")
            known = self._known.get(number(page, start)[0])
            if known is None:
                continue
            layout, build = known
            if end - start < layout.size:
                raise ValueError("a record is shorter than its event")
            record = Record(page, start, end, ts, cpu)
            flags, record.pid, *values = layout.values(page, start)
            if flags & (_HARDIRQ | _NMI):
                record.flags = IN_IRQ
            if flags & _SOFTIRQ:
                record.flags |= IN_SOFTIRQ
            yield from build(record, tuple(values))

    def words(self, event: EventFormat, name: str) -> Callable[[Record, Any], str]:
        """Return a function that reads the text of the field ``name``. The returned function has two arguments: a
        record, and the field's value in this record. Raise ValueError if the event has no such field."""
        field = event_field(event, name)
        if field.located:
            return lambda record, value: self._text(data(record, field, value))
        if field.array:
            return lambda record, value: self._text(value)
        return lambda record, value: self._strings.get(value, UNKNOWN)

    def _text(self, raw: bytes) -> str:
        """Return the text in a field's bytes, up to the first NUL."""
        name = self._names.get(raw)
        if name is None:
            name = raw.split(b"\0", 1)[0][:MAX_NAME].decode("utf-8", "replace")
            if len(self._names) < _NAMES_KEPT:
                self._names[raw] = name
        return name


def data(record: Record, field: Field, value: Any) -> bytes:
    """Return the bytes of a field that contains a text or a mask. ``value``: the field's value in the record. Raise
    ValueError if the field points outside the record."""
    return located(record.page, record.start, record.end, field, value) if field.located else bytes(value)


def read_strings(text: str) -> dict[int, str]:
    """Return address → text from the contents of ``printk_formats``, which has lines ``0xADDRESS : "TEXT"``. Lines of
    any other form are left out."""
    found = {}
    for line in text.splitlines():
        address, colon, words = line.partition(" : ")
        try:
            if colon:
                found[int(address, 16)] = words.strip().strip('"')[:_MOST_STRING]
        except ValueError:
            continue
    return found


def _maker(title: str) -> Maker | None:
    system, _, name = title.partition(":")
    if system == "irq_vectors":
        for ending in ("entry", "exit"):
            if name.endswith(f"_{ending}"):
                return _vector(f"vector_{ending}", name.removesuffix(f"_{ending}"))
    if system == "syscalls":
        for kind, beginning in (("call", "sys_enter_"), ("call_end", "sys_exit_")):
            if name.startswith(beginning):
                return _call(kind, name.removeprefix(beginning))
    return _MAKERS.get(title)


def _switch(decoder: Decoder, event: EventFormat) -> DecodePlan:
    before, after = decoder.words(event, "prev_comm"), decoder.words(event, "next_comm")
    # The print format has a letter for each state of a sleeping thread; a thread without one of them was runnable.
    asleep = 0
    for state in event.symbols:
        asleep |= state

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        decoder.switched[record.cpu] = record.ts
        state = v[0] & asleep
        letter = ord(event.symbols.get(state & -state, "?")[:1] or "?") if state else 0
        names = {"name": after(record, v[5]), "other": before(record, v[4])}
        ranks = (min(max(rank, 0), 0xFF) for rank in v[2:4])
        return record.event("switch", v[1], int(not state), letter | next(ranks) << 8 | next(ranks) << 16, **names)

    if not asleep:
        raise ValueError("the kernel does not say which values of prev_state mean sleep")
    return ("prev_state", "next_pid", "next_prio", "prev_prio"), ("prev_comm", "next_comm"), build


def _plain(kind: str, numbers: tuple[str, ...], text: str = "") -> Maker:
    """Return a function that gets an event's format, and prepares the decoding of events of the kind ``kind``.
    ``numbers``: the fields with the event's numbers. ``text``: the field with the event's name, "" if the event has
    none."""

    def make(decoder: Decoder, event: EventFormat) -> DecodePlan:
        words = decoder.words(event, text) if text else None

        def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
            return record.event(kind, *v[: len(numbers)], name=words(record, v[-1]) if words is not None else "")

        return numbers, (text,) if text else (), build

    return make


def _irq_entry(decoder: Decoder, event: EventFormat) -> DecodePlan:
    words = decoder.words(event, "name")

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        name = decoder.running[record.cpu, v[0]] = words(record, v[1])
        return record.event("irq_entry", v[0], name=name)

    return ("irq",), ("name",), build


def _irq_exit(decoder: Decoder, event: EventFormat) -> DecodePlan:
    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        return record.event("irq_exit", v[0], name=decoder.running.get((record.cpu, v[0]), ""))

    return ("irq",), (), build


def _softirq(kind: str) -> Maker:
    def make(decoder: Decoder, event: EventFormat) -> DecodePlan:
        names = event.symbols
        return ("vec",), (), lambda record, v: record.event(kind, v[0], name=names.get(v[0], str(v[0])))

    return make


def _vector(kind: str, name: str) -> Maker:
    return lambda decoder, event: (("vector",), (), lambda record, v: record.event(kind, v[0], name=name))


def _nmi(decoder: Decoder, event: EventFormat) -> DecodePlan:
    name = decoder.symbols.name
    return ("handler", "delta_ns"), (), lambda record, v: record.event("nmi", v[1], name=name(v[0]))


def _begins(kind: str, function: str, token: str) -> Maker:
    """Return a function that prepares the decoding of events for the start of work, such as a timer's function.
    ``function``: the field with the address of the started function. ``token``: the field that connects the start with
    the end of the work."""

    def make(decoder: Decoder, event: EventFormat) -> DecodePlan:
        def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
            name = decoder.running[record.cpu, v[1]] = decoder.symbols.name(v[0])
            return record.event(kind, name=name)

        return (function, token), (), build

    return make


def _ends(kind: str, function: str, token: str) -> Maker:
    """Return a function that prepares the decoding of events for the end of work. ``function`` and ``token``: the same
    fields as in :func:`_begins`. Older kernels name the function only at the start of the work. The event then gets the
    name from the start."""

    def make(decoder: Decoder, event: EventFormat) -> DecodePlan:
        says = function in event.fields

        def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
            begun = decoder.running.pop((record.cpu, v[0]), "")
            return record.event(kind, name=decoder.symbols.name(v[1]) if says else begun)

        return (token, function) if says else (token,), (), build

    return make


def _tick_stop(decoder: Decoder, event: EventFormat) -> DecodePlan:
    names = event.symbols

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        return record.event("tick_stop", v[0], name="" if v[0] else names.get(v[1], str(v[1])))

    return ("success", "dependency"), (), build


def _sent(decoder: Decoder, event: EventFormat) -> DecodePlan:
    name = decoder.symbols.name

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        return record.event("ipi_send", v[0], name=name(v[1]), other=name(v[2])) if v[0] in decoder.cpus else ()

    return ("cpu", "callback", "callsite"), (), build


def _sent_to_mask(decoder: Decoder, event: EventFormat) -> DecodePlan:
    mask, name = event_field(event, "cpumask"), decoder.symbols.name

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        for cpu in _in_mask(decoder, data(record, mask, v[2])):
            yield from record.event("ipi_send", cpu, name=name(v[0]), other=name(v[1]))

    return ("callback", "callsite"), ("cpumask",), build


def _raised(decoder: Decoder, event: EventFormat) -> DecodePlan:
    mask, reason = event_field(event, "target_cpus"), decoder.words(event, "reason")

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        for cpu in _in_mask(decoder, data(record, mask, v[0])):
            yield from record.event("ipi_send", cpu, name=reason(record, v[1]))

    return (), ("target_cpus", "reason"), build


def _in_mask(decoder: Decoder, mask: bytes) -> list[int]:
    bits = int.from_bytes(mask, "little")
    return [cpu for cpu in decoder.cpus if bits >> cpu & 1]


def _idle(decoder: Decoder, event: EventFormat) -> DecodePlan:
    return ("state", "cpu_id"), (), lambda record, v: record.event("idle", -1 if v[0] == _LEFT_IDLE else v[0], v[1])


def _call(kind: str, name: str) -> Maker:
    return lambda decoder, event: ((), (), lambda record, v: record.event(kind, name=name))


def _fault(user: int) -> Maker:
    return lambda decoder, event: (("error_code",), (), lambda record, v: record.event("fault", user, v[0]))


def _stack(decoder: Decoder, event: EventFormat) -> DecodePlan:
    field, word = event_field(event, "caller"), decoder.form.commit.size
    name, name_and_offset = decoder.symbols.name, decoder.symbols.name_and_offset

    def build(record: Record, v: tuple[Any, ...]) -> Iterable[TraceEvent]:
        start = record.start + field.offset
        count = max(0, min(v[0], (record.end - start) // word, MAX_FRAMES))
        frames: list[str] = []
        for place in range(start, start + count * word, word):
            address = int.from_bytes(record.page[place : place + word], "little")
            function = name(address) if frames else name_and_offset(address)
            if frames or not function.startswith(_TRACING):
                frames.append(function)
        # A stack gets the time of the switch that it belongs to, so that no other event comes between the two.
        record.ts = decoder.switched.get(record.cpu, record.ts)
        return record.event("stack", name=";".join(frames))

    return ("size",), (), build


_MAKERS: dict[str, Maker] = {
    "sched:sched_switch": _switch,
    "sched:sched_migrate_task": _plain("migrate", ("pid", "orig_cpu", "dest_cpu"), "comm"),
    "sched:sched_waking": _plain("waking", ("pid", "target_cpu"), "comm"),
    "sched:sched_process_fork": _plain("fork", ("child_pid",), "child_comm"),
    "sched:sched_process_exec": _plain("exec", (), "filename"),
    "sched:sched_process_exit": _plain("exit", ("pid",), "comm"),
    "ipi:ipi_send_cpu": _sent,
    "ipi:ipi_send_cpumask": _sent_to_mask,
    "ipi:ipi_raise": _raised,
    "ipi:ipi_entry": _plain("vector_entry", (), "reason"),
    "ipi:ipi_exit": _plain("vector_exit", (), "reason"),
    "irq:irq_handler_entry": _irq_entry,
    "irq:irq_handler_exit": _irq_exit,
    "irq:softirq_entry": _softirq("softirq_entry"),
    "irq:softirq_exit": _softirq("softirq_exit"),
    "nmi:nmi_handler": _nmi,
    "workqueue:workqueue_execute_start": _begins("work_start", "function", "work"),
    "workqueue:workqueue_execute_end": _ends("work_end", "function", "work"),
    "timer:tick_stop": _tick_stop,
    "timer:hrtimer_expire_entry": _begins("timer_entry", "function", "hrtimer"),
    "timer:hrtimer_expire_exit": _ends("timer_exit", "function", "hrtimer"),
    "csd:csd_function_entry": _begins("csd_entry", "func", "csd"),
    "csd:csd_function_exit": _ends("csd_exit", "func", "csd"),
    "power:cpu_frequency": _plain("frequency", ("state", "cpu_id")),
    "power:cpu_idle": _idle,
    "exceptions:page_fault_user": _fault(1),
    "exceptions:page_fault_kernel": _fault(0),
    "ftrace:kernel_stack": _stack,
}
