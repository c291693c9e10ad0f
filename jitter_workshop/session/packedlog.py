"""A histogram log without its own compression, so that a compressor sees its counts: a third is left of it.

The text of the log with a NUL for each histogram, its length before it; then the histograms as they are inside their
zlib streams, each with its length. The way back compresses them anew, which gives the very same bytes with every zlib
of the same kind, and the same histograms with any (zlib-ng finds other matches).
"""

from __future__ import annotations

import binascii
import re
import struct
import zlib

MOST_HISTOGRAM = 16 << 20
"""Of one histogram's counts: every one of this tool's has less than a tenth of it."""

_HISTOGRAM = re.compile(rb"(?m)^(Tag=[^,\n]*,[^,\n]*,[^,\n]*,[^,\n]*,)([A-Za-z0-9+/]+=*)$")
_LENGTH = struct.Struct("<I")
_HEAD = struct.Struct(">II")
"""Before the stream, in a compressed histogram: a cookie and the stream's length."""
_COOKIE = 0x1C849314
_LEVEL = 6


def packed(log: bytes) -> bytes | None:
    """A log in this form; None where the way back would not give the same bytes."""
    if b"\0" in log:
        return None
    plain: list[bytes] = []
    try:
        for match in _HISTOGRAM.finditer(log):
            encoded = binascii.a2b_base64(match[2])
            inflate = zlib.decompressobj()
            one = inflate.decompress(encoded[_HEAD.size :], MOST_HISTOGRAM)
            if not inflate.eof or _encoded(one) != match[2]:
                return None
            plain.append(one)
    except (zlib.error, binascii.Error):
        return None
    text = _HISTOGRAM.sub(rb"\1\0", log)
    return b"".join((_LENGTH.pack(len(text)), text, *(_LENGTH.pack(len(one)) + one for one in plain)))


def unpacked(form: bytes) -> bytes:
    """The log. Raises ValueError for what :func:`packed` did not give."""
    (length,) = _LENGTH.unpack(_taken(form, 0, _LENGTH.size))
    place = _LENGTH.size + length
    texts = _taken(form, _LENGTH.size, length).split(b"\0")
    pieces = [texts[0]]
    for text in texts[1:]:
        (size,) = _LENGTH.unpack(_taken(form, place, _LENGTH.size))
        pieces += [_encoded(_taken(form, place + _LENGTH.size, size)), text]
        place += _LENGTH.size + size
    if place != len(form):
        raise ValueError("a histogram log has something behind its end")
    return b"".join(pieces)


def _taken(form: bytes, place: int, size: int) -> bytes:
    if size > MOST_HISTOGRAM and place > _LENGTH.size:
        raise ValueError("a histogram is larger than any")
    taken = form[place : place + size]
    if len(taken) != size:
        raise ValueError("a histogram log is cut off")
    return taken


def _encoded(one: bytes) -> bytes:
    stream = zlib.compress(one, _LEVEL)
    return binascii.b2a_base64(_HEAD.pack(_COOKIE, len(stream)) + stream, newline=False)
