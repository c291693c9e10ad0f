"""Find the records in a sub-buffer of the kernel's trace, as ``per_cpu/cpuN/trace_pipe_raw`` gives it.

Sources: Documentation/trace/ring-buffer-design.rst; for the entry's form include/linux/ring_buffer.h. Damaged or
hostile bytes raise only ValueError, and no entry is visited twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from jitter_workshop.host.trace.format import PageFormat

_LENGTH = (1 << 27) - 1
"""The commit field: a length, and above it flags for events that were overwritten before they were read."""

_STAMP_BITS = 59
"""An absolute time stamp has 27 + 32 bits; the bits above are the page's."""
_STAMP_TOP = ((1 << 64) - 1) >> _STAMP_BITS << _STAMP_BITS


def records(page: bytes, form: PageFormat) -> Iterator[tuple[int, int, int]]:
    """Yield the records of one page: time stamp in ticks of the trace's clock, first and last byte (excluded) in
    ``page``.

    The end includes the kernel's padding to whole words. Raise ValueError.
    """
    end = form.data_offset + _committed(page, form) % (_LENGTH + 1)
    if end > len(page):
        raise ValueError("a page of the trace claims to be longer than it is")
    now = int.from_bytes(page[form.stamp.offset : form.stamp.offset + 8], "little")
    words = memoryview(page[form.data_offset : end - (end - form.data_offset) % 4]).cast("I")
    if (end - form.data_offset) % 4:
        raise ValueError("a page of the trace ends within a word")
    yield from _entries(words, form, now)


def _entries(words: memoryview, form: PageFormat, now: int) -> Iterator[tuple[int, int, int]]:
    bits, padding, extend, absolute = form.type_bits, form.padding, form.time_extend, form.time_stamp
    types, start = (1 << bits) - 1, form.data_offset
    at, count = 0, len(words)
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
                raise ValueError(f"a record of {more} bytes")
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
            raise ValueError(f"an entry of the unknown type {kind}")
        if now >> 64:
            raise ValueError("a time beyond 64 bits")


def _committed(page: bytes, form: PageFormat) -> int:
    if len(page) < form.data_offset:
        raise ValueError("a page of the trace without its beginning")
    return int.from_bytes(page[form.commit.offset : form.commit.offset + form.commit.size], "little")


def _absolute(stamp: int, now: int) -> int:
    """Return an absolute stamp with its missing upper bits, taken from the time so far."""
    top = now & _STAMP_TOP
    if not top:
        return stamp
    stamp |= top
    return stamp if stamp >= now else stamp + (1 << _STAMP_BITS)
