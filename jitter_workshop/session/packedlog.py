"""Store a histogram log without its own compression, so that a compressor sees its counts: this halves its size.

The form is the text of the log with a NUL for each histogram, its length before it; then the histograms as they are
inside their zlib streams, each with its length. Unpacking compresses them again, which gives the very same bytes with
every zlib of the same kind, and the same histograms with any (zlib-ng finds other matches).

For a log of whole runs, only the text is kept where its histograms are the sums of another log's (:func:`summed`).

For any packed bytes, making a log takes a few times their own length and that of the requested log. A text cannot make
a histogram be copied many times, and writing stops at the length that the caller states.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from jitter_workshop.stats.geometry import MAX_COUNTERS

MOST_HISTOGRAM = 1 << 20
"""Bytes of one histogram's counts: this tool's own all have less than a quarter of it."""

MOST_HISTOGRAMS = 1 << 18
"""The limit for one log: enough for hours. A longer one is kept as it is."""

_HISTOGRAM = re.compile(rb"(?m)^(Tag=[^,\n]*,[^,\n]*,[^,\n]*,[^,\n]*,)([A-Za-z0-9+/]+=*)$")
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct(">II")
"""Before the stream, in a compressed histogram: a cookie and the stream's length."""
_COOKIE = 0x1C849314
_LEVEL = 6
_INNER = 40
"""The head of a histogram inside its stream; counters follow."""
_MOST_TO_SUM = 64 << 20
_MOST_COUNTERS = 1 << 19
"""Counters in use, in all sums of a log together: a run has half a dozen histograms of at most 27,648."""
_LONGEST = 8
"""The longest number in bytes that is still read; no run counts so high."""
_TAGS = re.compile(rb"(?m)^Tag=([^,\n]*),[^,\n]*,[^,\n]*,[^,\n]*,\0$")
_TOKEN = re.compile(rb"[\x80-\xff]*[\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Log:
    """Hold a packed log in parts: its text with a NUL for each histogram, and the histograms."""

    text: bytes
    plain: list[bytes]

    def form(self) -> Iterator[bytes]:
        """Yield the packed log, piece by piece."""
        yield _LENGTH.pack(len(self.text))
        yield self.text
        for one in self.plain:
            yield _LENGTH.pack(len(one))
            yield one

    def digest(self) -> str:
        """Return SHA-256 of the packed log, in hex."""
        found = hashlib.sha256()
        for piece in self.form():
            found.update(piece)
        return found.hexdigest()


def packed(log: bytes) -> bytes | None:
    """Return a log in this form; None where unpacking would not give the same bytes."""
    if b"\0" in log:
        return None
    plain: list[bytes] = []
    try:
        for match in _HISTOGRAM.finditer(log):
            encoded = binascii.a2b_base64(match[2])
            inflate = zlib.decompressobj()
            one = inflate.decompress(encoded[_HEAD.size :], MOST_HISTOGRAM)
            if not inflate.eof or len(one) < _INNER or len(plain) == MOST_HISTOGRAMS or _encoded(one) != match[2]:
                return None
            plain.append(one)
    except (zlib.error, binascii.Error):
        return None
    return b"".join(Log(_HISTOGRAM.sub(rb"\1\0", log), plain).form())


def unpacked(log: Log, most: int) -> bytes:
    """Return the log as a file. Raise ValueError as soon as it would be longer than ``most`` bytes."""
    pieces, left = list[bytes](), most - len(log.text) + len(log.plain)
    texts = iter(log.text.split(b"\0"))
    pieces.append(next(texts))
    for one, after in zip(log.plain, texts, strict=True):
        if left < 0:
            break
        encoded = _encoded(one)
        left -= len(encoded)
        pieces += [encoded, after]
    if left < 0:
        raise ValueError("a histogram log is longer than it says")
    return b"".join(pieces)


def summed(form: bytes, blocks: bytes) -> bytes | None:
    """Return the text of a packed log whose histograms are the sums, by tag, of those of another packed log; None where
    they are not."""
    log = split(form)
    try:
        made = from_sums(log.text, split(blocks))
    except ValueError:
        return None
    return log.text if made.plain == log.plain else None


def from_sums(text: bytes, blocks: Log) -> Log:
    """Return the log of which :func:`summed` gave the text, with each tag of ``blocks`` at most once. Raise ValueError
    for any other text."""
    number = text.count(b"\0")
    if number > len(blocks.plain):
        raise ValueError("a histogram log sums up more than there is")
    tags = _TAGS.findall(text)
    sums = _sums(blocks)
    if len(tags) != number or len(set(tags)) != number or not set(tags) <= set(sums):
        raise ValueError("a histogram log does not say what it sums up")
    return Log(text, [sums[tag] for tag in tags])


def split(form: bytes) -> Log:
    """Return a packed log in parts. Raise ValueError for bytes that :func:`packed` did not give."""
    (length,) = _LENGTH.unpack(_taken(form, 0, _LENGTH.size))
    text = _taken(form, _LENGTH.size, length)
    place = _LENGTH.size + length
    number = text.count(b"\0")
    if number > MOST_HISTOGRAMS:
        raise ValueError("a log has more histograms than any run")
    plain = []
    for _ in range(number):
        (size,) = _LENGTH.unpack(_taken(form, place, _LENGTH.size))
        if not _INNER <= size <= MOST_HISTOGRAM:
            raise ValueError("a histogram is larger or smaller than any")
        plain.append(_taken(form, place + _LENGTH.size, size))
        place += _LENGTH.size + size
    if place != len(form):
        raise ValueError("a histogram log has something behind its end")
    return Log(text, plain)


def _sums(log: Log) -> dict[bytes, bytes]:
    """Return tag → sum of a log's histograms, in the same form. Raise ValueError."""
    if len(log.text) + sum(map(len, log.plain)) > _MOST_TO_SUM:
        raise ValueError("a histogram log is too long to be added up")
    heads: dict[bytes, bytes] = {}
    totals: dict[bytes, dict[int, int]] = {}
    used = 0
    for tag, one in zip(_TAGS.findall(log.text), log.plain, strict=True):
        # After the cookie and the length comes the mapping of values to counters, the same for all of a tag.
        head = one[:4] + one[8:_INNER]
        if heads.setdefault(tag, head) != head:
            raise ValueError("the histograms of a tag do not add up")
        total = totals.setdefault(tag, {})
        used -= len(total)
        _add(one[_INNER:], total)
        used += len(total)
        if used > _MOST_COUNTERS:
            raise ValueError("a histogram log has more counters than any")
    return {tag: _inner(heads[tag], total) for tag, total in totals.items()}


def _add(counters: bytes, total: dict[int, int]) -> None:
    """Add a histogram's counters to a sum: ZigZag LEB128 numbers, a negative one a run of zeros."""
    place = 0
    for token in _TOKEN.findall(counters):
        number = _KNOWN.get(token)
        if number is None:
            number = _number(token)
        if number < 0:
            place -= number
        else:
            if number:
                total[place] = total.get(place, 0) + number
            place += 1
    if place > MAX_COUNTERS:
        raise ValueError("a histogram is larger than any")


def _number(token: bytes) -> int:
    if len(token) > _LONGEST:
        raise ValueError("a counter is larger than any")
    raw = sum((byte & 0x7F) << (7 * n) for n, byte in enumerate(token))
    return (raw >> 1) ^ -(raw & 1)


def _token(number: int) -> bytes:
    raw = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while raw > 0x7F:
        found.append(raw & 0x7F | 0x80)
        raw >>= 7
    found.append(raw)
    return bytes(found)


def _inner(head: bytes, total: dict[int, int]) -> bytes:
    pieces: list[bytes] = []
    after = 0
    for place in sorted(total):
        if place > after:
            pieces.append(_token(after - place))
        pieces.append(_token(total[place]))
        after = place + 1
    body = b"".join(pieces)
    return head[:4] + struct.pack(">I", len(body)) + head[4:] + body


def _taken(form: bytes, place: int, size: int) -> bytes:
    taken = form[place : place + size]
    if len(taken) != size:
        raise ValueError("a histogram log is cut off")
    return taken


# Most counters are small, and looking them up is faster than decoding them.
_KNOWN = {_token(number): number for number in range(-8_192, 8_192)}


def _encoded(one: bytes) -> bytes:
    stream = zlib.compress(one, _LEVEL)
    return binascii.b2a_base64(_HEAD.pack(_COOKIE, len(stream)) + stream, newline=False)
