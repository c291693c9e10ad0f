"""What the kernel says of its trace's binary form: ``events/*/*/format``, ``events/header_page`` and
``events/header_event`` (Documentation/trace/events.rst, Documentation/trace/ring-buffer-design.rst).

Offsets, sizes and signs come from there and nowhere else: they differ between kernels. Every parser here raises
ValueError for what it does not understand, and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from jitter_workshop.model.record import dataclass

MAX_FIELDS = 1000
MAX_RECORD = 1 << 20
"""A record is smaller than a sub-buffer, and those are at most 512 KiB now."""

_INTEGERS = {(1, False): "B", (1, True): "b", (2, False): "H", (2, True): "h"}
_INTEGERS |= {(4, False): "I", (4, True): "i", (8, False): "Q", (8, True): "q"}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record. ``located``: ``__data_loc`` or ``__rel_loc`` where the field holds only where its data is
    and how long, "" where it holds the data. ``array``: several of what ``kind`` names."""

    name: str
    kind: str
    offset: int
    size: int
    signed: bool
    array: bool = False
    located: str = ""

    @property
    def code(self) -> str:
        """The field for :mod:`struct`: an integer, or for an array its bytes."""
        if self.array and not self.located:
            return f"{self.size}s"
        code = _INTEGERS.get((self.size, self.signed))
        if code is None:
            raise ValueError(f"the field {self.name!r} is no number that is known: {self.size} bytes")
        return code


@dataclass(frozen=True, slots=True)
class EventFormat:
    """One event's record. ``symbols``: what its print format calls some numbers (``{ 1, "TIMER" }``)."""

    name: str
    number: int
    fields: dict[str, Field]
    symbols: dict[int, str]


@dataclass(frozen=True, slots=True)
class PageFormat:
    """A sub-buffer: where its time stamp, the length of its data (with flags above it) and its data are, and how an
    entry in it begins: ``type_bits`` for its type or length, the rest of 32 bits for its time; ``padding``,
    ``time_extend`` and ``time_stamp`` are types, smaller ones are lengths in words."""

    stamp: Field
    commit: Field
    data_offset: int
    data_size: int
    type_bits: int = 5
    padding: int = 29
    time_extend: int = 30
    time_stamp: int = 31

    @property
    def size(self) -> int:
        return self.data_offset + self.data_size


def parse_event(text: str) -> EventFormat:
    """One ``format`` file. Raises ValueError."""
    name, number, fields, symbols = "", -1, {}, {}
    for line in text.splitlines():
        word, colon, rest = line.strip().partition(":")
        if not colon:
            continue
        if word == "name":
            name = rest.strip()
        elif word == "ID":
            number = _number(rest)
        elif word == "field":
            field = _field(line.strip())
            fields[field.name] = field
            if len(fields) > MAX_FIELDS:
                raise ValueError("an event with more fields than any kernel's")
        elif word == "print fmt":
            symbols = _symbols(rest)
    if not name or not 0 <= number < 1 << 16 or not fields:
        raise ValueError("this describes no event: a name, a number or the fields are missing")
    return EventFormat(name, number, fields, symbols)


def parse_page(header_page: str, header_event: str) -> PageFormat:
    """``events/header_page`` with ``events/header_event``. Raises ValueError."""
    fields = {}
    for line in header_page.splitlines():
        if line.strip().startswith("field"):
            field = _field(line.strip())
            fields[field.name] = field
    entry = {}
    for line in header_event.splitlines():
        word, colon, rest = line.partition(":")
        if colon:
            entry[" ".join(word.split())] = rest.replace("type ==", "").replace("bits", "").strip(" =")
    try:
        stamp, commit, data = fields["timestamp"], fields["commit"], fields["data"]
        bits = _number(entry["type_len"])
        types = [_number(entry[name]) for name in ("padding", "time_extend", "time_stamp")]
        whole = bits + _number(entry["time_delta"])
    except KeyError as missing:
        raise ValueError(f"the trace's pages are described without {missing}") from missing
    if not (0 < bits < 32 and whole == 32 and types[0] < types[1] < types[2] < 1 << bits):
        raise ValueError("entries of the trace's pages begin in a form that is not known")
    if stamp.size != 8 or commit.size not in (4, 8) or data.size <= 0 or data.offset % 4 or data.size % 4:
        raise ValueError("the trace's pages begin in a form that is not known")
    if stamp.offset + stamp.size > data.offset or commit.offset + commit.size > data.offset:
        raise ValueError("the trace's pages begin in a form that is not known")
    return PageFormat(stamp, commit, data.offset, data.size, bits, *types)


class Layout:
    """Some fields of an event's record, read at once: the numbers named, then the texts.

    A text is bytes where the field holds it; a field that only points to it, or to a string of the kernel's, is the int
    that does so (see :func:`located`).
    """

    def __init__(self, event: EventFormat, numbers: Sequence[str], texts: Sequence[str] = ()) -> None:
        """Raises ValueError where the event has no such field."""
        fields = [wanted(event, name) for name in (*numbers, *texts)]
        for field in fields[: len(numbers)]:
            if field.array or field.located:
                raise ValueError(f"the field {field.name!r} of the event {event.name} is no number")
        ordered = sorted(dict.fromkeys(fields), key=lambda field: field.offset)
        code, at = "<", 0
        for field in ordered:
            if field.offset < at:
                raise ValueError(f"fields of the event {event.name} overlap")
            code += f"{field.offset - at}x{field.code}"
            at = field.offset + field.size
        self._struct = struct.Struct(code)
        self.size = self._struct.size
        """How many bytes of a record have to be there."""
        places = [ordered.index(field) for field in fields]
        self._places = None if places == list(range(len(ordered))) else places

    def values(self, page: bytes, start: int) -> tuple[Any, ...]:
        """The values of the record at ``start``."""
        values = self._struct.unpack_from(page, start)
        return values if self._places is None else tuple([values[place] for place in self._places])


def wanted(event: EventFormat, name: str) -> Field:
    """A field by its name. Raises ValueError where the event has none."""
    field = event.fields.get(name)
    if field is None:
        raise ValueError(f"the event {event.name} has no field {name!r}")
    return field


def located(page: bytes, start: int, end: int, field: Field, value: int) -> bytes:
    """The data that a ``__data_loc`` or ``__rel_loc`` field with ``value`` points to in the record from ``start`` to
    ``end``. Raises ValueError where it points outside."""
    offset, length = value & 0xFFFF, value >> 16 & 0xFFFF
    if field.located == "__rel_loc":
        offset += field.offset + field.size
    begin = start + offset
    if begin + length > end:
        raise ValueError(f"the data of {field.name} lies outside its record")
    return page[begin : begin + length]


def _field(line: str) -> Field:
    """One line ``field:DECLARATION; offset:N; size:N; signed:N;``."""
    parts = {}
    for part in line.split(";"):
        word, colon, rest = part.strip().partition(":")
        if colon:
            parts[word] = rest.strip()
    try:
        declaration, offset, size = parts["field"], _number(parts["offset"]), _number(parts["size"])
        signed = parts.get("signed", "0") != "0"
    except KeyError as missing:
        raise ValueError(f"a field is described without its {missing}") from missing
    located = next((word for word in ("__data_loc", "__rel_loc") if declaration.startswith(word)), "")
    kind, _, name = declaration.removeprefix(located).strip().rpartition(" ")
    bare, bracket, _ = name.partition("[")
    if not bare or offset + size > MAX_RECORD:
        raise ValueError(f"a field that is not understood: {line[:80]!r}")
    return Field(bare, kind, offset, size, signed, bool(bracket) or "[" in kind, located)


def _symbols(text: str) -> dict[int, str]:
    """The pairs ``{ NUMBER, "NAME" }`` of a print format; a number may be written ``(1 << 3)``."""
    found: dict[int, str] = {}
    for part in text.split("{")[1:]:
        number, comma, rest = part.partition(",")
        pieces = rest.split('"')
        if not comma or len(pieces) < 3 or pieces[0].strip():
            continue
        base, shifted, shift = number.strip().strip("()").partition("<<")
        try:
            places = int(shift.strip(), 0) if shifted else 0
            if 0 <= places < 64:
                found.setdefault(int(base.strip(), 0) << places, pieces[1][:100])
        except ValueError:
            continue  # a name of the kernel's sources that only its own build can resolve
    return found


def _number(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ValueError(f"not a number: {text[:40]!r}")
    return int(text)
