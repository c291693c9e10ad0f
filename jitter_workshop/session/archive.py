"""Pack a session into one piece of bytes to embed in a report, and read the index of such a piece.

The form: a line that names it, the length of an index, the index (JSON, deflated), then its parts one after another,
each compressed. A session's progress, runs, whole histograms, imports, proofs and history are all packed. Histograms of
single blocks and kernel traces are most of the bytes. They are packed while there is ``room``, those of the newest runs
first; the others are named in the index. Locks, unfinished files and files that were set aside are not packed. The same
session gives the same bytes. :mod:`jitter_workshop.session.unpack` reads them back.
"""

from __future__ import annotations

import bz2
import dataclasses
import hashlib
import json
import lzma
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
from jitter_workshop.session import history, ids, imports, packedlog, proofs
from jitter_workshop.session.files import TEMPORARY_PREFIX, explained, open_regular
from jitter_workshop.session.lock import LOCK_NAME
from jitter_workshop.session.traces import TRACE_FILE

FORMAT_VERSION = 1
BLOCKS_FILE = "histograms.hlog"
MERGED_FILE = "merged.hlog"
SESSION_FILE = "session.json"

MOST_FILES = 100_000
MOST_BYTES = 512 << 20
"""The limit for all files together, unpacked."""
_RATIO, _AT_LEAST = 60, 1 << 20
"""An archive of n bytes may unpack to 60 n + 1 MiB. Real sessions unpack to four to seven times their length."""
MOST_INDEX = 32 << 20
DEEPEST = 3
"""``runs/ID/FILE``: no session has a file further down."""

_MAGIC = b"jitter-workshop session 1\n"
_ANY_VERSION = re.compile(rb"jitter-workshop session ([0-9]{1,9})\n")
_LENGTH = struct.Struct("<I")
_OF_SESSION = {SESSION_FILE, history.FILE, history.FIRST_STATUS, history.LAST_STATUS}
_OF_RUN = {"run.json", BLOCKS_FILE, MERGED_FILE, TRACE_FILE, "explained.json"}
_LARGE = 8 << 20
"""From this size on, required files are packed fast instead of small: the user waits for the report."""
_INDEX_BYTES = 150
"""About the size of one file's entry in the index."""

NO_ROOM = "left out to keep the file small"

Form = Literal["plain", "hlog", "sums"]
Method = Literal["xz", "bz2", "zlib", "stored"]
_PLAIN: Form = "plain"
_HLOG: Form = "hlog"
_SUMS: Form = "sums"


@dataclass(frozen=True, slots=True)
class Part:
    """Hold the sizes in bytes of one compressed piece: as it is here, and unpacked."""

    method: Method
    packed: int
    plain: int


@dataclass(frozen=True, slots=True)
class File:
    """Hold a file of the session, in the order of the parts' bytes. ``size`` and ``sha256``: of the file on disk.
    ``packed``: the bytes of its ``part`` that it takes. ``form``: how they become a file again (``hlog``, and ``sums``
    of the log right before it: :mod:`jitter_workshop.session.packedlog`). ``holds``: the digest of the packed log."""

    path: str
    size: int
    sha256: str
    part: int
    packed: int
    form: Form
    holds: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Hold a file that is not in the archive, and why."""

    path: str
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Index:
    """Hold the contents of an archive."""

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
    """Pack the session in a folder. ``room``: the most bytes it should take, None = everything is packed. Required
    files are packed even beyond that. Raise SessionError."""
    every, left_out = _files_of(folder)
    if SESSION_FILE not in {f.path for f in every}:
        raise SessionError(f"there is no session in {clean(folder, 200)}", "see 'jitter-workshop sessions'")
    packer = _Packer(folder)
    needed = [f for f in every if not _is_blocks(f) and not _is_trace(f)]
    fast = sum(f.size for f in needed) > _LARGE
    logs = [] if fast else [f for f in needed if _is_merged(f)]
    packer.add([f for f in needed if f not in logs], "zlib" if fast else "bz2")
    left = None if room is None else room - packer.size - _INDEX_BYTES * len(every) - 200
    left, missing = _add_logs(packer, logs, [f for f in every if _is_blocks(f)], left)
    left_out += missing
    for trace in sorted(filter(_is_trace, every), key=lambda f: f.path, reverse=True):
        if left is not None and trace.size > left:
            left_out.append(LeftOut(trace.path, trace.size, NO_ROOM))
        else:
            used = packer.add([trace], "stored")
            left = None if left is None else left - used
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


def _add_logs(
    packer: _Packer, merged: Iterable[_Found], blocks: Iterable[_Found], left: int | None
) -> tuple[int | None, list[LeftOut]]:
    """Add the whole histograms of every run, and those of its blocks while there is room, the newest run's first. After
    the first run whose blocks do not fit, no older one is tried: packing takes time."""
    missing: list[LeftOut] = []
    whole = {_run_of(one): one for one in merged}
    by_block = {_run_of(one): one for one in blocks}
    alone = {run: packer.piece([one], "xz") for run, one in whole.items()}
    left = None if left is None else left - sum(len(piece.packed) for piece in alone.values())
    for run in sorted({*whole, *by_block}, reverse=True):
        piece = alone.get(run)
        if run in by_block:
            found = [by_block[run], *([whole[run]] if run in whole else [])]
            both = packer.piece(found, "xz") if left is None or left > 0 else None
            more = len(both.packed) - (len(piece.packed) if piece is not None else 0) if both is not None else 0
            if both is not None and (left is None or more <= left):
                piece, left = both, None if left is None else left - more
            else:
                # The remaining room is too small for any other run, so nothing more is tried.
                left = min(left or 0, 0)
                missing.append(LeftOut(by_block[run].path, by_block[run].size, NO_ROOM))
        if piece is not None:
            packer.take(piece)
    return left, missing


@dataclass(frozen=True, slots=True)
class _Piece:
    """Hold a part that may be taken or not. The ``part`` of its ``files`` is not known yet."""

    method: Method
    plain: int
    packed: bytes
    files: tuple[File, ...]


class _Packer:
    """Collect the parts in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.parts: list[Part] = []
        self.files: list[File] = []
        self.pieces: list[bytes] = []
        self.size = 0

    def add(self, found: Iterable[_Found], method: Method) -> int:
        """Add some files as one part; return its size in bytes."""
        piece = self.piece(found, method)
        self.take(piece)
        return len(piece.packed)

    def take(self, piece: _Piece) -> None:
        self.files += [dataclasses.replace(one, part=len(self.parts)) for one in piece.files]
        self.parts.append(Part(piece.method, len(piece.packed), piece.plain))
        self.pieces.append(piece.packed)
        self.size += len(piece.packed)

    def piece(self, found: Iterable[_Found], method: Method) -> _Piece:
        """Pack some files without adding them yet."""
        bodies: list[bytes] = []
        files: list[File] = []
        blocks: bytes | None = None
        for one in sorted(found, key=lambda f: (f.path.rpartition("/")[2], f.path)):
            content = self._read(one.path)
            body, form, holds = content, _PLAIN, ""
            log = packedlog.packed(content) if one.path.endswith(".hlog") and method == "xz" else None
            if log is not None:
                sums = packedlog.summed(log, blocks) if blocks is not None and _is_merged(one) else None
                body, form, holds = (log, _HLOG, _digest(log)) if sums is None else (sums, _SUMS, _digest(log))
            blocks = log if _is_blocks(one) else None
            files.append(File(one.path, len(content), _digest(content), 0, len(body), form, holds))
            bodies.append(body)
        plain = b"".join(bodies)
        return _Piece(method, len(plain), _PACK[method](plain), tuple(files))

    def _read(self, path: str) -> bytes:
        where = self._folder / path
        with explained("read", where), open_regular(where) as file:
            return file.read()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


_PACK: dict[Method, Callable[[bytes], bytes]] = {
    # For counts, xz gives a fifth less than bz2 in four times the time; for JSON, bz2 gives less.
    "xz": lambda plain: lzma.compress(plain, check=lzma.CHECK_NONE),
    "bz2": bz2.compress,
    "zlib": lambda plain: zlib.compress(plain, 1),
    "stored": lambda plain: plain,
}


def _is_blocks(one: _Found) -> bool:
    return one.path.startswith("runs/") and one.path.endswith(f"/{BLOCKS_FILE}")


def _is_merged(one: _Found) -> bool:
    return one.path.startswith("runs/") and one.path.endswith(f"/{MERGED_FILE}")


def _run_of(one: _Found) -> str:
    return one.path.split("/")[1]


def _is_trace(one: _Found) -> bool:
    return one.path.startswith("runs/") and one.path.endswith(f"/{TRACE_FILE}")


def _files_of(folder: Path) -> tuple[list[_Found], list[LeftOut]]:
    """Return the session's files by path, and the other entries found among them."""
    found: list[_Found] = []
    others: list[LeftOut] = []
    with explained("read the session in", folder):
        for path, entry in walk(folder):
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or not is_known(path):
                others.append(LeftOut(clean(path, 200), status.st_size, "no file of a session"))
            else:
                found.append(_Found(path, status.st_size))
    return sorted(found, key=lambda f: f.path), others


def walk(folder: Path, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the entries of a session's folder that are part of it, by path. Raise OSError."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = f"{above}{entry.name}"
            if entry.name == LOCK_NAME or entry.name.startswith(TEMPORARY_PREFIX) or ".damaged-" in entry.name:
                continue
            if entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST - 1:
                yield from walk(folder / entry.name, f"{path}/")
            else:
                yield path, entry


def is_known(path: str) -> bool:
    """Return True if a session has files of this path, such as ``runs/ID/run.json``."""
    match path.split("/"):
        case [name]:
            return name in _OF_SESSION
        case [imports.FOLDER | proofs.FOLDER, name]:
            return name.endswith(".json") and ids.is_id(name.removesuffix(".json"))
        case ["runs", run, name]:
            return ids.is_id(run) and name in _OF_RUN
    return False


def most_unpacked(length: int) -> int:
    """Return the most bytes that an archive of this length may unpack to."""
    return min(MOST_BYTES, _RATIO * length + _AT_LEAST)


def read_index(data: bytes) -> tuple[Index, int]:
    """Return an archive's index, and the position of its first part. Raise SessionError for bytes that :func:`pack` did
    not make. All sizes and paths in the result have been checked."""
    if not data.startswith(_MAGIC):
        version = _ANY_VERSION.match(data)
        if version:
            raise SessionError(
                f"the session in it has form {int(version[1])}, which a newer version of the workshop wrote",
                "update jitter-workshop",
            )
        raise SessionError(
            "it holds no session of this tool", "use the report file unchanged, exactly as the workshop wrote it"
        )
    start = len(_MAGIC) + _LENGTH.size
    try:
        (length,) = _LENGTH.unpack(data[len(_MAGIC) : start])
        inflate = zlib.decompressobj()
        plain = inflate.decompress(data[start : start + length], min(MOST_INDEX, most_unpacked(len(data))))
        if not inflate.eof:
            raise ValueError("its index is cut off or too large")
        index = from_plain(Index, json.loads(plain))
        _check(index, len(data) - start - length, most_unpacked(len(data)))
    except (ValueError, zlib.error, struct.error, RecursionError) as error:
        raise damaged(clean(error, 120)) from error
    return index, start + length


def damaged(what: str) -> SessionError:
    """Return the error for a session in a report that is not as it was written."""
    return SessionError(f"the session in it is damaged ({what})", "get the report again from where it was written")


def _check(index: Index, body: int, most: int) -> None:
    """Raise ValueError for an index whose sizes, paths or order are wrong."""
    if index.format_version != FORMAT_VERSION:
        raise ValueError(f"it says version {index.format_version}")
    if not ids.is_id(index.session):
        raise ValueError("its name is not that of a session")
    if max(len(index.files), len(index.left_out)) > MOST_FILES or sum(f.size for f in index.files) > most:
        raise ValueError("more than a session may hold")
    if any(min(p.packed, p.plain) < 0 for p in index.parts):
        raise ValueError("its parts have no size")
    if sum(p.plain for p in index.parts) > most or sum(p.packed for p in index.parts) != body:
        raise ValueError("its parts do not have the stated length")
    lengths = [0] * len(index.parts)
    order = [f.part for f in index.files]
    if order != sorted(order) or (order and not 0 <= order[0] <= order[-1] < len(lengths)):
        raise ValueError("its files are out of order")
    seen: set[str] = set()
    for one in index.files:
        if not is_known(one.path):
            raise ValueError(f"it names a file that no session has: {clean(one.path, 40)}")
        if min(one.size, one.packed) < 0 or (one.form == "plain" and one.size != one.packed):
            raise ValueError("its files do not have the stated length")
        # A file system that ignores case would store two such files as one.
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
