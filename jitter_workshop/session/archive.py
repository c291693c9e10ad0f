"""Pack a session into an archive for a report, and restore a session from an archive.

An archive is a tar file (POSIX ustar), compressed by xz. Its first file is ``manifest.json``, an :class:`Index`. The
session's files follow in the order of the index. Histograms of blocks and kernel traces need most of the bytes. Only as
many of them are packed as fit into ``room``, beginning with the newest run. The index lists the files that were left
out. All other files of the session are packed, except locks, unfinished files and damaged files. If the same session is
packed again, the archive has the same bytes.

An archive that would unpack to more bytes than :func:`most_unpacked` allows is refused. The same holds for a path
outside the sessions' folder, and for a name that no session uses. A session is restored completely or not at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import io
import json
import lzma
import math
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import from_plain, to_plain
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import ID, LABEL, PATH, REASON, clean
from jitter_workshop.session import files, history, ids, imports, matrices, proofs, screenings
from jitter_workshop.session.opened import BLOCKS_FILE, LOCK_NAME, MERGED_FILE, RUN_FILE, SESSION_FILE
from jitter_workshop.session.traces import TRACE_FILE

FORMAT_VERSION = 2
MANIFEST = "manifest.json"

MOST_FILES = 100_000
MOST_BYTES = 512 << 20
"""The largest size in bytes of a whole archive when unpacked."""
_RATIO, _AT_LEAST = 60, 1 << 20
"""An archive of n bytes may unpack to 60 n bytes and 1 MiB more. Real sessions unpack to two to seven times the
archive's length."""
MOST_INDEX = 32 << 20
DEEPEST = 3
"""The largest number of parts in a path, as in ``runs/ID/FILE``: no session has deeper folders."""
_MOST_MEMORY = 32 << 20
"""The memory limit in bytes for xz's decoder. This tool's archives need a third of this limit; a crafted archive could
ask for gigabytes."""

_XZ = b"\xfd7zXZ\0"
_OF_SESSION = {SESSION_FILE, history.FILE, history.FIRST_STATUS, history.LAST_STATUS}
_OF_RUN = {RUN_FILE, BLOCKS_FILE, MERGED_FILE, TRACE_FILE, "explained.json"}
_LARGE = 8 << 20
"""Files of this size in bytes or more are packed fast and less tightly, because the user waits for the report."""

NO_ROOM = "left out to keep the file small"


@dataclass(frozen=True, slots=True)
class File:
    """Hold a file of the session: its path below the session's folder, its size in bytes and its SHA-256 in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Hold a file that is not in the archive, with the reason."""

    path: str
    size: int
    why: str


@dataclass(frozen=True, slots=True)
class Index:
    """Hold the index of an archive: the packed files, and those that were left out."""

    format_version: int
    session: str
    files: tuple[File, ...]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Hold an unpacked session. ``files``: path → content."""

    session: str
    files: dict[str, bytes]
    left_out: tuple[LeftOut, ...]


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """Hold the result of :func:`bring_back`. ``already``: True if the same session existed here, so that nothing was
    written. ``old_id``: the id in the archive if the session got a new id, else "". ``left_out``: files that the
    archive does not have."""

    session: str
    name: str
    runs: int
    already: bool
    old_id: str
    left_out: tuple[LeftOut, ...]
    missing: tuple[str, ...] = ()
    """Runs that the session lists and the archive does not have."""


# Packing --------------------------------------------------------------------------------------------------------------


def pack_session(folder: Path, *, room: int | None = None) -> bytes:
    """Return the archive of the session in ``folder``. ``room``: the largest size in bytes; None for no limit.
    Required files are always packed, even if the archive then becomes larger than ``room``. Raise SessionError if
    ``folder`` has no session, or if a file cannot be read.
    """
    sizes, left_out = _files_of(folder)
    if SESSION_FILE not in sizes:
        raise SessionError(f"there is no session in {clean(folder, PATH)}", "see 'jitter-workshop sessions'")
    optional = {path for path in sizes if path.endswith((f"/{BLOCKS_FILE}", f"/{TRACE_FILE}"))}
    content = {path: _read(folder, path) for path in sizes if path not in optional}
    level = 0 if sum(map(len, content.values())) > _LARGE else lzma.PRESET_DEFAULT
    left = math.inf if room is None else room - len(_archive(folder.name, content, left_out, level))
    content |= _newest(folder, {path: sizes[path] for path in optional}, left, level)
    left_out += [LeftOut(path, sizes[path], NO_ROOM) for path in optional if path not in content]
    return _archive(folder.name, content, left_out, level)


def _newest(folder: Path, sizes: Mapping[str, int], left: float, level: int) -> dict[str, bytes]:
    """Return the optional files that fit into ``left`` compressed bytes: path → content.

    First, histograms of blocks are added, from the newest run to the oldest, until one does not fit. Then each trace
    that still fits is added, from the newest run to the oldest. ``sizes``: path → size in bytes. ``level``: the xz
    preset.
    """
    found: dict[str, bytes] = {}
    newest = sorted(sizes, reverse=True)
    for path in (path for path in newest if path.endswith(BLOCKS_FILE)):
        content = _read(folder, path) if left > 0 else b""
        left -= len(lzma.compress(content, preset=level))
        if left < 0:
            break
        found[path] = content
    for path in (path for path in newest if path.endswith(TRACE_FILE)):
        # A trace is compressed already.
        if sizes[path] <= left:
            found[path] = _read(folder, path)
            left -= sizes[path]
    return found


def _archive(session: str, content: Mapping[str, bytes], left_out: Iterable[LeftOut], level: int) -> bytes:
    # Files of one name are alike; together they are packed smaller.
    paths = sorted(content, key=lambda path: (path.rpartition("/")[2], path))
    index = Index(
        FORMAT_VERSION,
        session,
        tuple(File(path, len(content[path]), _digest(content[path])) for path in paths),
        tuple(sorted(left_out, key=lambda one: one.path)),
    )
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, body in [(MANIFEST, files.json_line(to_plain(index))), *((path, content[path]) for path in paths)]:
            entry = tarfile.TarInfo(path)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))
    return lzma.compress(plain.getvalue(), preset=level)


def _read(folder: Path, path: str) -> bytes:
    with files.name_os_errors("read", folder / path), files.open_regular(folder / path) as file:
        return file.read()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _files_of(folder: Path) -> tuple[dict[str, int], list[LeftOut]]:
    """Return the files to pack, as path → size in bytes. Also return the other entries of the session's folder, which
    are not packed. Raise SessionError if the folder cannot be read.
    """
    found: dict[str, int] = {}
    others: list[LeftOut] = []
    with files.name_os_errors("read the session in", folder):
        for path, entry in _walk(folder):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(status.st_mode) and is_known(path):
                found[path] = status.st_size
            else:
                others.append(LeftOut(clean(path, PATH), status.st_size, "not a file of a session"))
    return found, others


def _walk(folder: Path, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield (path, entry) of a session's folder in the order of paths, without locks, unfinished and damaged files.
    Raise OSError if a folder cannot be read."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            path = f"{above}{entry.name}"
            if entry.name == LOCK_NAME or entry.name.startswith(files.TEMPORARY_PREFIX) or ".damaged-" in entry.name:
                continue
            if entry.is_dir(follow_symlinks=False) and path.count("/") < DEEPEST - 1:
                yield from _walk(folder / entry.name, f"{path}/")
            else:
                yield path, entry


def is_known(path: str) -> bool:
    """Return True if a session can have a file at this path, such as ``runs/ID/run.json``."""
    match path.split("/"):
        case [name]:
            return name in _OF_SESSION
        case [imports.FOLDER | proofs.FOLDER | matrices.FOLDER | screenings.FOLDER, name]:
            return name.endswith(".json") and ids.is_folder_id(name.removesuffix(".json"))
        case ["runs", run, name]:
            return ids.is_folder_id(run) and name in _OF_RUN
    return False


# Unpacking ------------------------------------------------------------------------------------------------------------


def most_unpacked(length: int) -> int:
    """Return the largest size in bytes to which an archive of this length may unpack."""
    return min(MOST_BYTES, _RATIO * length + _AT_LEAST)


def read_index(data: bytes) -> Index:
    """Return an archive's index; check its sizes and paths. Raise SessionError for damaged bytes."""
    with _damage_told(data) as expand:
        entry = _entry(expand.decompress(data, tarfile.BLOCKSIZE))
        if entry.name != MANIFEST or entry.size > min(MOST_INDEX, most_unpacked(len(data))):
            raise ValueError("the archive's index is missing or too large")
        return _index(expand.decompress(b"", entry.size), most_unpacked(len(data)))


def unpack(data: bytes) -> Unpacked:
    """Return all files of an archive; compare each with its digest. Raise SessionError for a damaged archive."""
    most = most_unpacked(len(data))
    with _damage_told(data) as expand:
        plain = expand.decompress(data, most + 1)
        if len(plain) > most or not expand.eof or expand.unused_data:
            raise ValueError("the archive is cut off or too large")
        (name, manifest), *found = _entries(plain)
        index = _index(manifest, most)
        if name != MANIFEST or tuple(File(path, len(body), _digest(body)) for path, body in found) != index.files:
            raise ValueError("the archive's files do not match its index")
        return Unpacked(index.session, dict(found), index.left_out)


def _entries(plain: bytes) -> list[tuple[str, bytes]]:
    """Return (path, content) of each file in a tar archive. Raise ValueError or tarfile.TarError if the archive is
    damaged, or has anything but files, such as a link or an extended header."""
    found: list[tuple[str, bytes]] = []
    place = 0
    while (header := plain[place : place + tarfile.BLOCKSIZE]).strip(b"\0"):
        entry = _entry(header)
        place += tarfile.BLOCKSIZE
        found.append((entry.name, plain[place : place + entry.size]))
        if len(found[-1][1]) != entry.size or len(found) > MOST_FILES:
            raise ValueError("the archive is cut off, or has too many files")
        place += -(-entry.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    if not found or plain[place:].strip(b"\0"):
        raise ValueError("the archive is empty, or has data after its end")
    return found


def _entry(header: bytes) -> tarfile.TarInfo:
    """Return the header of one file in a tar archive. Raise ValueError or tarfile.TarError if the entry is not a
    regular file. tarfile's reader of whole archives is not used, because it follows links and extended headers."""
    entry = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
    if entry.type != tarfile.REGTYPE or entry.size < 0:
        raise ValueError("an entry of the archive is not a file")
    return entry


def _index(manifest: bytes, most: int) -> Index:
    """Return the index in a manifest. ``most``: the limit of the sum of all sizes, in bytes. Raise ValueError if the
    index cannot be right, for example if no session has one of its paths. Raise SessionError if a newer version wrote
    the index.
    """
    value = json.loads(manifest)
    if files.is_newer(value, FORMAT_VERSION):
        raise SessionError("a newer version of the workshop wrote the session in the file", "update jitter-workshop")
    index = from_plain(Index, value)
    if not ids.is_folder_id(index.session):
        raise ValueError("the session's id is not valid")
    if max(len(index.files), len(index.left_out)) > MOST_FILES or sum(f.size for f in index.files) > most:
        raise ValueError("the archive is larger than a session may be")
    for one in index.files:
        if not is_known(one.path):
            raise ValueError(f"the archive names a file that does not belong to a session: {clean(one.path, ID)}")
        if one.size < 0:
            raise ValueError("a file in the archive has no valid size")
    # A file system that ignores case would store two such files as one.
    if len({one.path.casefold() for one in index.files}) < len(index.files):
        raise ValueError("the archive names a file twice")
    if SESSION_FILE not in {one.path for one in index.files}:
        raise ValueError(f"{SESSION_FILE} is missing")
    return index


@contextlib.contextmanager
def _damage_told(data: bytes) -> Iterator[lzma.LZMADecompressor]:
    """Yield xz's decoder. While the caller uses the decoder, errors of damaged data become a SessionError. Raise
    SessionError if the data is not in xz's format.
    """
    if not data.startswith(_XZ):
        raise SessionError(
            "the file contains no session of this tool",
            "use the report file unchanged, exactly as the workshop wrote it",
        )
    try:
        yield lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY)
    except (ValueError, OSError, EOFError, RecursionError, lzma.LZMAError, tarfile.TarError) as error:
        raise _damaged(clean(error, REASON)) from error


def _damaged(what: str) -> SessionError:
    return SessionError(f"the session in the file is damaged ({what})", "copy the report again from its source")


# Bringing back --------------------------------------------------------------------------------------------------------


def bring_back(sessions_dir: Path, unpacked: Unpacked) -> BroughtBack:
    """Add an unpacked session to the sessions in ``sessions_dir``. If a different session has the same id, the added
    session gets a new id and "(imported)" after its name. If the same session exists already, nothing is written. Raise
    SessionError if the session cannot be added; then nothing was written."""
    session = _session(unpacked)
    wanted = sessions_dir / session.id
    content = unpacked.files
    already = _is_same(wanted, content, unpacked.left_out)
    old = ""
    if not already:
        if os.path.lexists(wanted):
            old = session.id
            session = dataclasses.replace(
                session, id=ids.free_id(sessions_dir), name=clean(f"{session.name} (imported)", LABEL)
            )
            # The JSON object itself is changed, so that fields of a later version are kept.
            plain = json.loads(content[SESSION_FILE]) | {"id": session.id, "name": session.name}
            content = content | {SESSION_FILE: files.json_bytes(plain)}
        files.make_folder(sessions_dir)
        files.write_folder(sessions_dir / session.id, content)
    runs = {path.split("/")[1] for path in content if path.endswith(f"/{RUN_FILE}")}
    missing = tuple(run for run in dict.fromkeys(session.runs) if run not in runs)
    return BroughtBack(session.id, session.name, len(runs), already, old, unpacked.left_out, missing)


def _session(unpacked: Unpacked) -> Session:
    try:
        session = from_plain(Session, json.loads(unpacked.files[SESSION_FILE]))
    except (ValueError, RecursionError) as error:
        raise _damaged(f"{SESSION_FILE}: {clean(error, REASON)}") from error
    if session.id != unpacked.session or not ids.is_folder_id(session.id):
        raise _damaged(f"{SESSION_FILE} belongs to another session")
    return session


def _is_same(folder: Path, content: Mapping[str, bytes], left_out: Iterable[LeftOut]) -> bool:
    """Return True if a session's folder has exactly the files in ``content``. The folder may also have the files in
    ``left_out``, which the archive does not contain.
    """
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        here = {path for path, _ in _walk(folder)} - {one.path for one in left_out}
        return here == set(content) and all((folder / path).read_bytes() == body for path, body in content.items())
    except OSError:
        return False
