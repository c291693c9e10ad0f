"""Decode the kernel's binary trace. Parse the kernel's descriptions of events, and the records in the trace's pages.

Files: ``events/*/*/format``, ``events/header_page``, ``events/header_event`` and ``per_cpu/cpuN/trace_pipe_raw``
(Documentation/trace/events.rst, Documentation/trace/ring-buffer-design.rst). The form of an entry is described in
include/linux/ring_buffer.h. Offsets and sizes differ between kernels, so they always come from the kernel's
descriptions. Damaged or hostile bytes can cause a ValueError, but no other exception and no endless loop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from jitter_workshop.model.record import dataclass
from jitter_workshop.model.text import ID, LINE, NAME

MAX_FIELDS = 1000
MAX_RECORD = 1 << 20
"""Size limit for a record in bytes. No record reaches it: a record is smaller than a sub-buffer, and a sub-buffer has
at most 512 KiB."""

_INTEGERS = {(1, False): "B", (1, True): "b", (2, False): "H", (2, True): "h"}
_INTEGERS |= {(4, False): "I", (4, True): "i", (8, False): "Q", (8, True): "q"}


@dataclass(frozen=True, slots=True)
class Field:
    """Hold the description of one field of a record.

    - ``located``: "" if the field contains its data. ``__data_loc`` or ``__rel_loc`` if the field contains only the
      position and the length of its data.
    - ``array``: True if the field contains several values of the type ``kind``.
    """

    name: str
    kind: str
    offset: int
    size: int
    signed: bool
    array: bool = False
    located: str = ""

    @property
    def code(self) -> str:
        """Return the format with which :mod:`struct` reads the field. If the field is an array inside the record, it is
        read as bytes. Any other field is read as an integer. Raise ValueError if no integer type has the field's
        size."""
        if self.array and not self.located:
            return f"{self.size}s"
        code = _INTEGERS.get((self.size, self.signed))
        if code is None:
            raise ValueError(f"the field {self.name!r} is no number of a known size: {self.size} bytes")
        return code


@dataclass(frozen=True, slots=True)
class EventFormat:
    """Describe the records of one event. ``symbols``: number → its name, from the event's print format (``{ 1, "TIMER"
    }``)."""

    name: str
    number: int
    fields: dict[str, Field]
    symbols: dict[int, str]


@dataclass(frozen=True, slots=True)
class PageFormat:
    """Describe one page of the trace. The kernel also calls such a page a sub-buffer.

    - ``stamp``: the field with the page's time stamp.
    - ``commit``: the field with the length of the page's data. The field's upper bits are flags.
    - ``data_offset``, ``data_size``: position and size of the data in bytes.
    - ``type_bits``: each entry of the data begins with a word of 32 bits. In this word, ``type_bits`` bits hold the
      entry's type or length. The other bits hold the entry's time.
    - ``padding``, ``time_extend``, ``time_stamp``: the type numbers of three special entries. A type number below
      ``padding`` is not a type, but the entry's length in words of 32 bits. If the type number is 0, the next word has
      the entry's length in bytes.
    """

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
    """Return the description of an event from the text of its ``format`` file. Raise ValueError if the text is
    damaged."""
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
                raise ValueError("this event has more fields than any event of a kernel")
        elif word == "print fmt":
            symbols = _symbols(rest)
    if not name or not 0 <= number < 1 << 16 or not fields:
        raise ValueError("the text describes no event: its name, its number or its fields are missing")
    return EventFormat(name, number, fields, symbols)


def parse_page(header_page: str, header_event: str) -> PageFormat:
    """Return the description of a page from the texts of ``events/header_page`` and ``events/header_event``. Raise
    ValueError if one of the texts is damaged."""
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
        raise ValueError(f"the kernel's description of a trace page lacks {missing}") from missing
    if not (0 < bits < 32 and whole == 32 and types[0] < types[1] < types[2] < 1 << bits):
        raise ValueError("the entries of a trace page have a header of an unknown form")
    if stamp.size != 8 or commit.size not in (4, 8) or data.size <= 0 or data.offset % 4 or data.size % 4:
        raise ValueError("a trace page has a header of an unknown form")
    if stamp.offset + stamp.size > data.offset or commit.offset + commit.size > data.offset:
        raise ValueError("a trace page has a header of an unknown form")
    return PageFormat(stamp, commit, data.offset, data.size, bits, *types)


class Layout:
    """Read the values of several fields of a record at once. The values of ``numbers`` come first, then the values of
    ``texts``.

    The value of a text field is bytes if the field contains the text. The value is an int if the field points to a text
    elsewhere (see :func:`located`).
    """

    def __init__(self, event: EventFormat, numbers: Sequence[str], texts: Sequence[str] = ()) -> None:
        """Prepare to read the fields ``numbers`` and ``texts``. Raise ValueError if the event lacks a field, if fields
        overlap, or if a field of ``numbers`` is not a number."""
        fields = [event_field(event, name) for name in (*numbers, *texts)]
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
        """The number of bytes that a record must have at least."""
        places = [ordered.index(field) for field in fields]
        self._places = None if places == list(range(len(ordered))) else places

    def values(self, page: bytes, start: int) -> tuple[Any, ...]:
        """Return the values of the fields of the record that begins at ``start`` in a page."""
        values = self._struct.unpack_from(page, start)
        return values if self._places is None else tuple([values[place] for place in self._places])


def event_field(event: EventFormat, name: str) -> Field:
    """Return the event's field with this name. Raise ValueError if the event has no such field."""
    field = event.fields.get(name)
    if field is None:
        raise ValueError(f"the event {event.name} has no field {name!r}")
    return field


def located(page: bytes, start: int, end: int, field: Field, value: int) -> bytes:
    """Return the data to which a ``__data_loc`` or ``__rel_loc`` field points. ``value``: the field's value. ``start``,
    ``end``: the record's positions in the page. Raise ValueError if the field points outside the record."""
    offset, length = value & 0xFFFF, value >> 16 & 0xFFFF
    if field.located == "__rel_loc":
        offset += field.offset + field.size
    begin = start + offset
    if begin + length > end:
        raise ValueError(f"the data of {field.name} lies outside its record")
    return page[begin : begin + length]


def _field(line: str) -> Field:
    """Return the field that a line ``field:DECLARATION; offset:N; size:N; signed:N;`` describes."""
    parts = {}
    for part in line.split(";"):
        word, colon, rest = part.strip().partition(":")
        if colon:
            parts[word] = rest.strip()
    try:
        declaration, offset, size = parts["field"], _number(parts["offset"]), _number(parts["size"])
        signed = parts.get("signed", "0") != "0"
    except KeyError as missing:
        raise ValueError(f"the description of a field lacks its {missing}") from missing
    located = next((word for word in ("__data_loc", "__rel_loc") if declaration.startswith(word)), "")
    kind, _, name = declaration.removeprefix(located).strip().rpartition(" ")
    bare, bracket, _ = name.partition("[")
    if not bare or offset + size > MAX_RECORD:
        raise ValueError(f"a field has an unknown form: {line[:NAME]!r}")
    return Field(bare, kind, offset, size, signed, bool(bracket) or "[" in kind, located)


def _symbols(text: str) -> dict[int, str]:
    """Return number → name from the pairs ``{ NUMBER, "NAME" }`` of a print format. A number may be written as ``(1 <<
    3)``."""
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
                found.setdefault(int(base.strip(), 0) << places, pieces[1][:LINE])
        except ValueError:
            continue  # a name of the kernel's sources that only its own build can resolve
    return found


def _number(text: str) -> int:
    text = text.strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        raise ValueError(f"not a number: {text[:ID]!r}")
    return int(text)


_LENGTH = (1 << 27) - 1
"""Mask of the length in a page's commit field. The bits above the mask are flags."""
_MISSED = 1 << 31
"""``RB_MISSED_EVENTS`` (kernel/trace/ring_buffer.c): the flag that events were overwritten before they were read."""

_STAMP_BITS = 59
"""The number of bits of an absolute time stamp, 27 + 32. The missing upper bits are taken from the page's time so
far."""
_STAMP_TOP = ((1 << 64) - 1) >> _STAMP_BITS << _STAMP_BITS


def records(page: bytes, form: PageFormat) -> Iterator[tuple[int, int, int]]:
    """Yield (time stamp, start, end) for each record of one page.

    The stamp is in ticks of the trace's clock. ``start`` and ``end`` are positions in ``page``; ``end`` is the first
    position after the record's padding, which fills the last word. Raise ValueError if the page is damaged.
    """
    if len(page) < form.data_offset:
        raise ValueError("a page of the trace is too short for its header")
    end = used_bytes(page, form)
    if end > len(page):
        raise ValueError("a page of the trace claims to be longer than it is")
    now = int.from_bytes(page[form.stamp.offset : form.stamp.offset + 8], "little")
    words = memoryview(page[form.data_offset : end - (end - form.data_offset) % 4]).cast("I")
    if (end - form.data_offset) % 4:
        raise ValueError("a page of the trace ends within a word")
    yield from _entries(words, form, now)


def used_bytes(page: bytes, form: PageFormat) -> int:
    """Return the length of a page's header and data in bytes, as the header states. A damaged page may be shorter than
    this length."""
    return form.data_offset + _committed(page, form) % (_LENGTH + 1)


def after_a_loss(page: bytes, form: PageFormat) -> bool:
    """Return True if events just before this page were overwritten before they were read."""
    return bool(_committed(page, form) & _MISSED)


def _committed(page: bytes, form: PageFormat) -> int:
    return int.from_bytes(page[form.commit.offset : form.commit.offset + form.commit.size], "little")


def _entries(words: memoryview, form: PageFormat, now: int) -> Iterator[tuple[int, int, int]]:
    bits, padding, extend, absolute = form.type_bits, form.padding, form.time_extend, form.time_stamp
    types, start = (1 << bits) - 1, form.data_offset
    at, count = 0, len(words)
    # No entry is visited twice, so damaged bytes cause no endless loop.
    while at < count:
        word = words[at]
        kind, delta = word & types, word >> bits
        if 0 < kind < padding:
            now += delta
            after = at + 1 + kind
            if after > count:
                raise ValueError("a record reaches beyond its page")
            yield now, start + 4 * (at + 1), start + 4 * after
            at = after
            continue
        if kind == padding and delta == 0:
            return  # nothing more on this page
        if at + 1 >= count:
            raise ValueError("an entry is cut off by the end of its page")
        more = words[at + 1]
        if kind == 0 or kind == padding:
            # A length in bytes, including its own four. A discarded record's time counts for the records after it,
            # unless it is 1, which only marks the record as discarded.
            if more < 4 or more % 4:
                raise ValueError(f"a record has the impossible length of {more} bytes")
            after = at + 1 + more // 4
            if after > count:
                raise ValueError("a record reaches beyond its page")
            if kind == 0:
                now += delta
                yield now, start + 4 * (at + 2), start + 4 * after
            elif delta != 1:
                now += delta
            at = after
        elif kind == extend:
            now += (more << (32 - bits)) + delta
            at += 2
        elif kind == absolute:
            now = _absolute((more << (32 - bits)) + delta, now)
            at += 2
        else:
            raise ValueError(f"an entry has the unknown type {kind}")
        if now >> 64:
            raise ValueError("a time stamp has more than 64 bits")


def _absolute(stamp: int, now: int) -> int:
    """Return an absolute time stamp with all of its 64 bits. ``stamp``: the stamp's lower 59 bits. ``now``: the last
    time before the stamp. The upper bits of the result come from ``now``."""
    top = now & _STAMP_TOP
    if not top:
        return stamp
    stamp |= top
    return stamp if stamp >= now else stamp + (1 << _STAMP_BITS)
