"""Recorded pages of real kernels (``tests/pages``, made by ``tests.lab.record_pages``) and made-up ones."""

from __future__ import annotations

import base64
import json
import lzma
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jitter_workshop.host.trace.events import Decoder
from jitter_workshop.host.trace.format import PageFormat, parse_page
from jitter_workshop.host.trace.symbols import Symbols

FOLDER = Path(__file__).parent / "pages"
NAMES = tuple(sorted(path.name.removesuffix(".json.xz") for path in FOLDER.glob("*.json.xz")))

HEADER_PAGE = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:{size};\tsigned:0;
"""
HEADER_EVENT = """\
# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""


@dataclass(frozen=True)
class Recorded:
    """One recording: what the kernel said of its formats, its pages by CPU, and its own printing of them."""

    release: str
    header_page: str
    header_event: str
    formats: dict[str, str]
    symbols: str
    pages: dict[int, list[bytes]]
    text: str

    @property
    def form(self) -> PageFormat:
        return parse_page(self.header_page, self.header_event)

    def decoder(self, cpus: Iterable[int] = range(8)) -> Decoder:
        decoder = Decoder(self.form, Symbols(self.symbols), tuple(cpus))
        for title, text in self.formats.items():
            decoder.add(title, text)
        return decoder


@cache
def recorded(name: str) -> Recorded:
    made: dict[str, Any] = json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))
    size = parse_page(made["header_page"], made["header_event"]).size
    made["pages"] = {
        int(cpu): [base64.b64decode(page).ljust(size, b"\0") for page in pages] for cpu, pages in made["pages"].items()
    }
    return Recorded(**made)


def form(size: int = 4080) -> PageFormat:
    return parse_page(HEADER_PAGE.format(size=size), HEADER_EVENT)


def small(delta: int, data: bytes) -> bytes:
    """An entry whose length fits into its type: 4 to 112 bytes, in words."""
    assert len(data) % 4 == 0
    assert 4 <= len(data) <= 112
    assert delta < 1 << 27
    return struct.pack("<I", len(data) // 4 | delta << 5) + data


def long(delta: int, data: bytes) -> bytes:
    """An entry that says its length apart."""
    assert len(data) % 4 == 0
    return struct.pack("<II", delta << 5, len(data) + 4) + data


def discarded(delta: int, data: bytes) -> bytes:
    """An entry that was written and then discarded."""
    return struct.pack("<II", 29 | delta << 5, len(data) + 4) + data


def extend(delta: int) -> bytes:
    return struct.pack("<II", 30 | (delta & (1 << 27) - 1) << 5, delta >> 27)


def absolute(stamp: int) -> bytes:
    stamp &= (1 << 59) - 1
    return struct.pack("<II", 31 | (stamp & (1 << 27) - 1) << 5, stamp >> 27)


FILL = struct.pack("<I", 29)
"""The bytes behind the last entry."""


def page(stamp: int, entries: bytes, size: int = 4080, flags: int = 0, behind: bytes = b"") -> bytes:
    assert len(entries) <= size
    return (struct.pack("<QQ", stamp, len(entries) | flags) + entries + behind).ljust(16 + size, b"\0")
