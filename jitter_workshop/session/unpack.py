"""Restore a session from a report among the others: bit for bit, or not at all.

For any input, no more is unpacked or built than its index states, and the index may state no more than
:func:`~jitter_workshop.session.archive.most_unpacked` of the input's length. No file lands outside the sessions'
folder, or under a name that no session has. The folder appears whole or not at all.
"""

from __future__ import annotations

import bz2
import dataclasses
import hashlib
import json
import lzma
import shutil
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from jitter_workshop.errors import SessionError
from jitter_workshop.model.codec import CodecError, from_plain
from jitter_workshop.model.session import Session
from jitter_workshop.model.text import clean
from jitter_workshop.session import archive, files, ids, packedlog
from jitter_workshop.session.archive import SESSION_FILE, File, Index, LeftOut, Method, damaged

_OTHER_ZLIB = 1.5
"""The most that a log can grow if this host's zlib compresses worse than the one that wrote it."""

_MOST_MEMORY = 32 << 20
"""The limit for xz's decoder: this tool's archives need a third of it, a crafted piece could ask for gigabytes."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Hold a session's files by path. ``anew``: logs with the same histograms, count for count, but other bytes,
    because another kind of zlib compressed them; their digests are those of their contents."""

    index: Index
    files: dict[str, bytes]
    anew: tuple[str, ...]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        return self.index.left_out


@dataclass(frozen=True, slots=True)
class BroughtBack:
    """Hold the outcome for a session. ``already``: it existed with the same content, and nothing was written.
    ``old_id``: its former id, where another session has that id here; "" where it was kept."""

    session: str
    name: str
    runs: int
    already: bool
    old_id: str
    anew: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[str, ...] = ()
    """Runs that the session lists and that are not in it."""


def unpack(data: bytes) -> Unpacked:
    """Return all files of an archive, each compared with its digest. Raise SessionError."""
    index, place = archive.read_index(data)
    found: dict[str, bytes] = {}
    anew: list[str] = []
    log = packedlog.Log(b"", [])
    try:
        for one, body in _bodies(data, index, place):
            content = body
            if one.form != "plain":
                log = packedlog.from_sums(body, log) if one.form == "sums" else packedlog.split(body)
                content = packedlog.unpacked(log, int(one.size * _OTHER_ZLIB) + 1_000)
            if hashlib.sha256(content).hexdigest() != one.sha256:
                # Not damaged if only this host's zlib differs: a log's contents have their own digest.
                if one.form == "plain" or log.digest() != one.holds:
                    raise ValueError(f"{one.path} is not what was packed")
                anew.append(one.path)
            found[one.path] = content
    except (ValueError, OSError, zlib.error, lzma.LZMAError, EOFError, struct.error) as error:
        raise damaged(clean(error, 120)) from error
    return Unpacked(index, found, tuple(anew))


def _bodies(data: bytes, index: Index, place: int) -> Iterator[tuple[File, bytes]]:
    """Yield each file with its bytes of its part; one part at a time is unpacked."""
    number, at, plain = -1, 0, b""
    for one in index.files:
        while number < one.part:
            number += 1
            part = index.parts[number]
            plain = _plain(part.method, data[place : place + part.packed], part.plain)
            place, at = place + part.packed, 0
        yield one, plain[at : at + one.packed]
        at += one.packed


def _plain(method: Method, packed: bytes, size: int) -> bytes:
    """Unpack a part, at most one byte beyond the stated size. Raise ValueError where it is not as long as the index
    states."""
    if method == "stored":
        plain, whole = packed, True
    elif method == "zlib":
        inflate = zlib.decompressobj()
        plain = inflate.decompress(packed, size + 1)
        whole = inflate.eof and not inflate.unused_data
    else:
        expand = lzma.LZMADecompressor(lzma.FORMAT_XZ, _MOST_MEMORY) if method == "xz" else bz2.BZ2Decompressor()
        plain = expand.decompress(packed, size + 1)
        whole = expand.eof and not expand.unused_data
    if not whole or len(plain) != size:
        raise ValueError("a part of it is cut off or longer than it says")
    return plain


def bring_back(sessions_dir: Path, unpacked: Unpacked) -> BroughtBack:
    """Put a session among those in ``sessions_dir``: under its own id, or a new one where another session has that.
    Raise SessionError; then nothing was written."""
    session = _session(unpacked)
    wanted = sessions_dir / session.id
    content = unpacked.files
    if _is_same(wanted, content, unpacked.left_out):
        return _brought(session, unpacked, already=True)
    old = ""
    if wanted.exists() or wanted.is_symlink():
        old = session.id
        session = dataclasses.replace(
            session, id=_free_id(sessions_dir), name=clean(f"{session.name} (imported)", ids.NAME_LIMIT)
        )
        # The plain object, so that fields of a later version stay in it.
        plain = json.loads(content[SESSION_FILE]) | {"id": session.id, "name": session.name}
        content = content | {SESSION_FILE: files.json_bytes(plain)}
    files.make_folder(sessions_dir)
    _write(sessions_dir / session.id, content)
    return _brought(session, unpacked, old=old)


def _brought(session: Session, unpacked: Unpacked, *, already: bool = False, old: str = "") -> BroughtBack:
    runs = {path.split("/")[1] for path in unpacked.files if path.startswith("runs/") and path.endswith("/run.json")}
    missing = tuple(run for run in dict.fromkeys(session.runs) if run not in runs)
    return BroughtBack(session.id, session.name, len(runs), already, old, unpacked.anew, unpacked.left_out, missing)


def _session(unpacked: Unpacked) -> Session:
    try:
        session = from_plain(Session, json.loads(unpacked.files[SESSION_FILE]))
    except (ValueError, CodecError, RecursionError) as error:
        raise damaged(f"{SESSION_FILE}: {clean(error, 100)}") from error
    if session.id != unpacked.index.session or not ids.is_id(session.id):
        raise damaged(f"{SESSION_FILE} belongs to another session")
    return session


def _free_id(sessions_dir: Path) -> str:
    for _ in range(64):
        ident = ids.new_id()
        if not (sessions_dir / ident).exists():
            return ident
    raise SessionError("no free id for the session was found", "try again")


def _is_same(folder: Path, content: dict[str, bytes], left_out: Iterable[LeftOut]) -> bool:
    """Return True if a session's folder holds these files, and no others except those that were left out of the
    report."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    try:
        here = {path for path, _ in archive.walk(folder)} - {one.path for one in left_out}
        return here == set(content) and all((folder / path).read_bytes() == body for path, body in content.items())
    except OSError:
        return False


def _write(folder: Path, content: dict[str, bytes]) -> None:
    """Write the folder with all its files under a temporary name, then rename it."""
    temporary = folder.with_name(f"{files.TEMPORARY_PREFIX}{folder.name}")
    with files.explained("write", folder):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            temporary.mkdir(mode=0o700)
            for below in _folders(content):
                (temporary / below).mkdir(mode=0o700)
            for path, body in content.items():
                files.write_new(temporary / path, body)
            for below in _folders(content):
                files.sync_folder(temporary / below)
            files.sync_folder(temporary)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        files.sync_folder(folder.parent)


def _folders(content: dict[str, bytes]) -> Iterator[str]:
    """Yield the folders to make, the outer before the inner."""
    names = {"/".join(path.split("/")[:depth]) for path in content for depth in range(1, path.count("/") + 1)}
    yield from sorted(names)
