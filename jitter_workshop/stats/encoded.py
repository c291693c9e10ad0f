"""Read encoded histograms without HdrHistogram's library. The sizes in a file are checked before memory is allocated.

Three versions of HdrHistogram's format are in use (see its methods ``encodeIntoCompressedByteBuffer``). V0
(``HISTiQAA…``) and V1 (``HISTIgAA…`` and the like) have plain counters of 2, 4 or 8 bytes. V2 (``HISTFAAA…``) has
ZigZag LEB128 numbers. A negative number -N means that the next N counters are zero. All versions are compressed with
zlib and written in base64.
"""

from __future__ import annotations

import array
import base64
import binascii
import itertools
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from jitter_workshop.stats.geometry import MAX_COUNTERS, Geometry, layout

CUT_OFF = "the histogram is cut off or too large"
MAX_TOTAL = (1 << 63) - 1
"""The largest count that a histogram can hold, the largest long of Java."""

_V0, _V1, _V2 = 0x1C849309, 0x1C849302, 0x1C849304
_INNER_OF = {_V0: 0x1C849308, _V1: 0x1C849301, _V2: 0x1C849303}
_WORD_SIZE = 0xF0
_OUTER = struct.Struct(">II")
_INNER = struct.Struct(">IIIIQQd")
_INNER_V0 = struct.Struct(">IIQQQ")
_LAST_VARINT_BYTE = 8
_TOO_MUCH = "the histogram has counters or counts beyond its limits"
_PLAIN_CHEAPER = 8
"""The approximate factor by which plain counters are faster to read than packed counters."""


class ByteBudget:
    """Limit the unpacked bytes of the counters in one file. All histograms of the file share the budget."""

    def __init__(self, packed_bytes: int) -> None:
        self.left = packed_bytes

    def spend(self, packed_bytes: int) -> None:
        """Subtract bytes from the budget. Raise ValueError once it is used up."""
        self.left -= packed_bytes
        if self.left < 0:
            raise ValueError("the unpacked histograms are too large to read in reasonable time")


@dataclass(frozen=True, slots=True)
class Inner:
    """Hold an encoded histogram's header and its counters, still packed."""

    version: int
    word_bytes: int
    lowest: int
    highest: int
    digits: int
    body: bytes


def decode_counts(text: str | bytes, budget: ByteBudget) -> tuple[Geometry, dict[int, int]]:
    """Return the geometry of an encoded histogram, and its counters as index → count. Counters that are zero are left
    out. Raise ValueError if the text is not a histogram, is damaged or too large, or exceeds the budget."""
    inner = unwrap(text, budget)
    space = layout(inner.lowest, inner.highest, inner.digits)
    packed = inner.version == 2
    values = packed_counts(inner.body, space.counts_len) if packed else _plain(inner.body, inner.word_bytes)
    found = dict(itertools.islice(values, MAX_COUNTERS + 1))
    if len(found) > MAX_COUNTERS:
        raise ValueError(f"the histogram uses more than {MAX_COUNTERS:,} counters")
    if (found and max(found) >= space.counts_len) or sum(found.values()) > MAX_TOTAL:
        raise ValueError(_TOO_MUCH)
    return space, found


def unwrap(text: str | bytes, budget: ByteBudget | None = None) -> Inner:
    """Return the header and the decompressed counters. Raise ValueError for a text that is not a histogram, is damaged,
    has too many counters, or exceeds the budget."""
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the histogram is not base64") from error
    if len(raw) < _OUTER.size:
        raise ValueError("the histogram is cut off")
    cookie, length = _OUTER.unpack_from(raw)
    version = cookie & ~_WORD_SIZE
    if version not in _INNER_OF:
        raise ValueError("not a compressed histogram in the V0, V1 or V2 format")
    if length != len(raw) - _OUTER.size:
        raise ValueError("the histogram is cut off")
    header = _INNER_V0 if version == _V0 else _INNER
    body = _decompressed(raw[_OUTER.size :], header, version)
    if budget is not None:
        budget.spend(len(body) if version == _V2 else len(body) // _PLAIN_CHEAPER + 1)
    return _inner(version, body, header)


def varints(body: bytes) -> Iterator[int]:
    """Yield the ZigZag LEB128 numbers in ``body``, at most nine bytes each. A positive number is a count. A negative
    number -N means that the next N counters are zero. Raise ValueError if the last number is cut off.
    """
    number, shift = 0, 0
    for byte in body:
        if shift == 7 * _LAST_VARINT_BYTE:
            number |= byte << shift
        else:
            number |= (byte & 0x7F) << shift
            if byte & 0x80:
                shift += 7
                continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
    if shift:
        raise ValueError("the histogram is cut off in the middle of a number")


def _decompressed(raw: bytes, header: struct.Struct, version: int) -> bytes:
    """Return the decompressed header and counters. Raise ValueError if the data is damaged, or has more bytes than its
    header allows."""
    unpacker = zlib.decompressobj()
    try:
        head = unpacker.decompress(raw, header.size)
        if len(head) < header.size:
            raise ValueError("the histogram is cut off")
        fields = header.unpack(head)
        digits, lowest, highest = fields[1:4] if version == _V0 else fields[3:6]
        most = layout(lowest, highest, digits).counts_len * (_LAST_VARINT_BYTE + 1)
        body = head + unpacker.decompress(unpacker.unconsumed_tail, most + 1)
    except zlib.error as error:
        raise ValueError("the histogram's compressed part is damaged") from error
    if not unpacker.eof or len(body) > header.size + most:
        raise ValueError(CUT_OFF)
    return body


def _inner(version: int, body: bytes, header: struct.Struct) -> Inner:
    fields = header.unpack_from(body)
    if fields[0] & ~_WORD_SIZE != _INNER_OF[version]:
        raise ValueError("not a histogram in the V0, V1 or V2 format")
    word_bytes = (fields[0] & _WORD_SIZE) >> 4
    if version == _V0:
        _, digits, lowest, highest, _ = fields
        return Inner(0, word_bytes, lowest, highest, digits, body[header.size :])
    _, length, offset, digits, lowest, highest, _ = fields
    counted = body[header.size :]
    # V1's writers sometimes compress their whole buffer: bytes after the stated length are not counters.
    if offset != 0 or length > len(counted) or (version == _V2 and length != len(counted)):
        raise ValueError("the histogram is cut off, or its counts are in the wrong place")
    return Inner(2 if version == _V2 else 1, word_bytes, lowest, highest, digits, counted[:length])


def packed_counts(body: bytes, counters: int) -> Iterator[tuple[int, int]]:
    """Yield index and count of each V2 counter that is not zero. Raise ValueError for more than ``counters`` counters,
    or for a total above :data:`MAX_TOTAL`."""
    index = total = 0
    for value in varints(body):
        if value > 0:
            total += value
            if index >= counters or total > MAX_TOTAL:
                raise ValueError(_TOO_MUCH)
            yield index, value
        index += 1 if value >= 0 else -value
        if index > counters:
            raise ValueError(_TOO_MUCH)


def _plain(body: bytes, word_bytes: int) -> Iterator[tuple[int, int]]:
    kind = {2: "h", 4: "i", 8: "q"}.get(word_bytes)
    if kind is None or len(body) % word_bytes:
        raise ValueError("the histogram's counters have an unknown size")
    words = array.array(kind)
    used = len(body.rstrip(b"\0"))
    words.frombytes(body[: used + -used % word_bytes])
    if sys.byteorder == "little":
        words.byteswap()
    if words and min(words) < 0:
        raise ValueError("the histogram has negative counts")
    return zip(itertools.compress(itertools.count(), words), filter(None, words), strict=True)
