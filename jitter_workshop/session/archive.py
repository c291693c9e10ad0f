"""A session as one piece of bytes, to be handed on inside a report, and what such a piece says of itself.

A line that names the form, the length of an index, the index (JSON, deflated), then its parts one after another, each
compressed. All that makes a session goes in: progress, runs, whole histograms, imports, proofs, history. Histograms of
single blocks and kernel traces are most of the bytes; they go in while there is ``room``, those of the newest runs
first, and what does not is named in the index. Locks, unfinished files and such as were set aside are no part of it.
The same session gives the same bytes. :mod:`jitter_workshop.session.unpack` is the way back.
"""

from __future__ import annotations

import bz2
import hashlib
import json
import os
import re
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.text import clean
from jitter_workshop.session import packedlog
from jitter_workshop.session.files import TEMPORARY_PREFIX, explained, open_regular
from jitter_workshop.session.lock import LOCK_NAME
from jitter_workshop.session.traces import TRACE_FILE

FORMAT_VERSION = 1
BLOCKS_FILE = "histograms.hlog"
SESSION_FILE = "session.json"

MOST_FILES = 100_000
MOST_BYTES = 512 << 20
"""Of all files together, unpacked."""
MOST_INDEX = 32 << 20
DEEPEST = 3
"""``runs/ID/FILE``: no session has a file further down."""

_MAGIC = b"jitter-workshop session 1\n"
_ANY_VERSION = re.compile(rb"jitter-workshop session ([0-9]{1,9})\n")
_LENGTH = struct.Struct("<I")
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z_.-]{0,99}")
_LARGE = 8 << 20
"""From here on what must go in is packed quickly and not well: a report is made while somebody waits."""
_INDEX_BYTES = 150
"""About what a file takes of the index."""

NO_ROOM = "left out to keep the file small"

Form = Literal["plain", "hlog"]
Method = Literal["bz2", "zlib", "stored"]


@dataclass(frozen=True, slots=True)
class Part:
    """One compressed piece: its bytes as they are here, and unpacked."""

    method: Method
    packed: int
    plain: int


@dataclass(frozen=True, slots=True)
class File:
    """A file of the session, in the order of the parts' bytes. ``size`` and ``sha256``: as it lay on disk. ``packed``:
    how many bytes of its ``part`` it takes, and ``form`` how they are made a file again (``hlog``:
    :mod:`jitter_workshop.session.packedlog`, and ``holds`` is the digest of these bytes)."""

    path: str
    size: int
    sha256: str
    part: int
    packed: int
    form: Form
    holds: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file that is not in it, and why."""

    path: str
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Index:
    """What an archive holds."""

    format_version: int
    session: str
    parts: tuple[Part, ...]
    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    path: str
    size: int


def pack(folder: Path, *, room: int | None = None) -> bytes:
    """The session in a folder. ``room``: how many bytes it should take at most, None = everything goes in. What a
    session cannot do without goes in all the same. Raises SessionError."""
    every, left_out = _files_of(folder)
    if SESSION_FILE not in {f.path for f in every}:
        raise SessionError(f"there is no session in {clean(folder, 200)}", "see 'jitter-workshop sessions'")
    packer = _Packer(folder)
    needed = [f for f in every if not _is_blocks(f) and not _is_trace(f)]
    fast = sum(f.size for f in needed) > _LARGE
    packer.add(needed, "zlib" if fast else "bz2", None)
    left = None if room is None else room - packer.size - _INDEX_BYTES * len(every) - 200
    left, missing = _add_while_it_fits(packer, [f for f in every if _is_blocks(f)], "bz2", 1, left)
    left_out += missing
    left, missing = _add_while_it_fits(packer, [f for f in every if _is_trace(f)], "stored", None, left)
    left_out += missing
    index = Index(
        FORMAT_VERSION,
        folder.name,
        tuple(packer.parts),
        tuple(packer.files),
        tuple(sorted(left_out, key=lambda f: f.path)),
    )
    plain = json.dumps(to_plain(index), separators=(",", ":")).encode("ascii")
    packed = zlib.compress(plain, 9)
    return b"".join((_MAGIC, _LENGTH.pack(len(packed)), packed, *packer.pieces))


def _add_while_it_fits(
    packer: _Packer, found: Iterable[_Found], method: Method, misses: int | None, left: int | None
) -> tuple[int | None, list[LeftOut]]:
    """Each file a part of its own, those of the newest runs first. ``misses``: after so many that do not fit no other
    is tried, because trying takes time; None = each is tried whose size alone leaves hope."""
    missing: list[LeftOut] = []
    for one in sorted(found, key=lambda f: f.path, reverse=True):
        hopeless = left is not None and (left <= 0 or (method == "stored" and one.size > left))
        tried = not hopeless and misses != 0
        used = packer.add([one], method, left) if tried else None
        if used is None:
            missing.append(LeftOut(one.path, one.size, NO_ROOM))
            misses = misses - 1 if tried and misses else misses
        elif left is not None:
            left -= used
    return left, missing


class _Packer:
    """Parts as they come."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.parts: list[Part] = []
        self.files: list[File] = []
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, found: Iterable[_Found], method: Method, most: int | None) -> int | None:
        """Some files as one part; how many bytes it takes, or None where those are more than ``most`` (then nothing was
        added)."""
        bodies: list[bytes] = []
        files: list[File] = []
        for one in sorted(found, key=lambda f: (f.path.rpartition("/")[2], f.path)):
            content = self._read(one.path)
            log = packedlog.packed(content) if one.path.endswith(".hlog") and method == "bz2" else None
            body = content if log is None else log
            form: Form = "plain" if log is None else "hlog"
            holds = "" if log is None else _digest(log)
            files.append(File(one.path, len(content), _digest(content), len(self.parts), len(body), form, holds))
            bodies.append(body)
        plain = b"".join(bodies)
        piece = _PACK[method](plain)
        if most is not None and len(piece) > most:
            return None
        self.parts.append(Part(method, len(piece), len(plain)))
        self.files += files
        self.pieces.append(piece)
        self.size += len(piece)
        return len(piece)

    def _read(self, path: str) -> bytes:
        where = self._folder / path
        with explained("read", where), open_regular(where) as file:
            return file.read()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_PACK: dict[Method, Callable[[bytes], bytes]] = {
    "bz2": bz2.compress,
    "zlib": lambda plain: zlib.compress(plain, 1),
    "stored": lambda plain: plain,
}


def _is_blocks(one: _Found) -> bool:
    return one.path.startswith("runs/") and one.path.endswith(f"/{BLOCKS_FILE}")


def _is_trace(one: _Found) -> bool:
    return one.path.startswith("runs/") and one.path.endswith(f"/{TRACE_FILE}")


def _files_of(folder: Path) -> tuple[list[_Found], list[LeftOut]]:
    """The session's files by path, and what lies among them and is none."""
    found: list[_Found] = []
    others: list[LeftOut] = []
    with explained("read the session in", folder):
        for path, entry in walk(folder):
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or not is_path(path):
                others.append(LeftOut(clean(path, 200), status.st_size, "no file of a session"))
            else:
                found.append(_Found(path, status.st_size))
    return sorted(found, key=lambda f: f.path), others


def walk(folder: Path, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """What lies in a session's folder and is a part of it, by path. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = f"{above}{entry.name}"
            if entry.name == LOCK_NAME or entry.name.startswith(TEMPORARY_PREFIX) or ".damaged-" in entry.name:
                continue
            if entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST - 1:
                yield from walk(folder / entry.name, f"{path}/")
            else:
                yield path, entry


def is_path(path: str) -> bool:
    """Whether a session may have a file of this path: a few plain names, nothing that leads elsewhere."""
    names = path.split("/")
    plain = all(_NAME.fullmatch(name) and ".damaged-" not in name for name in names)
    return plain and len(names) <= DEEPEST and names[-1] != LOCK_NAME


def read_index(data: bytes) -> tuple[Index, int]:
    """What an archive holds, and where its first part begins. Raises SessionError for anything that no :func:`pack`
    made; all sizes and paths have been looked at."""
    if not data.startswith(_MAGIC):
        version = _ANY_VERSION.match(data)
        if version:
            raise SessionError(
                f"the session in it has form {int(version[1])}, which a newer version of the workshop wrote",
                "update jitter-workshop",
            )
        raise SessionError("it holds no session of this tool", "give the report as it was written")
    start = len(_MAGIC) + _LENGTH.size
    try:
        (length,) = _LENGTH.unpack(data[len(_MAGIC) : start])
        inflate = zlib.decompressobj()
        plain = inflate.decompress(data[start : start + length], MOST_INDEX)
        if not inflate.eof:
            raise ValueError("its index is cut off or larger than any")
        index = from_plain(Index, json.loads(plain))
        _check(index, len(data) - start - length)
    except (ValueError, zlib.error, struct.error, RecursionError) as error:
        raise damaged(clean(error, 120)) from error
    return index, start + length


def damaged(what: str) -> SessionError:
    """The session in a report is not as it was written."""
    return SessionError(f"the session in it is damaged ({what})", "get the report again from where it was written")


def _check(index: Index, body: int) -> None:
    """Raises ValueError."""
    if index.format_version != FORMAT_VERSION:
        raise ValueError(f"it says version {index.format_version}")
    if not is_path(index.session) or "/" in index.session:
        raise ValueError("its name is none of a session")
    if len(index.files) > MOST_FILES or sum(f.size for f in index.files) > MOST_BYTES:
        raise ValueError("more than a session may hold")
    if any(p.packed < 0 or not 0 <= p.plain <= MOST_BYTES for p in index.parts):
        raise ValueError("its parts have no size")
    if sum(p.plain for p in index.parts) > MOST_BYTES or sum(p.packed for p in index.parts) != body:
        raise ValueError("its parts are not as long as it says")
    lengths = [0] * len(index.parts)
    order = [f.part for f in index.files]
    if order != sorted(order) or (order and not 0 <= order[0] <= order[-1] < len(lengths)):
        raise ValueError("its files are out of order")
    seen: set[str] = set()
    for one in index.files:
        if not is_path(one.path) or min(one.size, one.packed) < 0:
            raise ValueError("it names a file that no session has")
        # A file system that knows no upper case would put two of them into one place.
        ways = one.path.casefold().split("/")
        if "/".join(ways) in seen:
            raise ValueError("it names a file twice")
        seen.add("/".join(ways))
        lengths[one.part] += one.packed
    folders = {path.rsplit("/", depth)[0] for path in seen for depth in range(1, path.count("/") + 1)}
    if seen & folders:
        raise ValueError("it names a file as a folder")
    if lengths != [p.plain for p in index.parts]:
        raise ValueError("its files do not fill its parts")
    if SESSION_FILE not in seen:
        raise ValueError(f"{SESSION_FILE} is missing")
