"""Unpack a recording that is a tar archive (plain, gzip or xz) of ``record-host``'s folder.

An archive is untrusted data. Only folders and plain files are unpacked, into one new folder. Their number and size are
limited.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from jitter_workshop.errors import HostError
from jitter_workshop.host.root import printable
from jitter_workshop.model.text import NAME

MAX_PACKED_BYTES = 64 << 20
MAX_FILE_BYTES = 16 << 20
MAX_TOTAL_BYTES = 512 << 20
MAX_MEMBERS = 400_000
_DIGITS = 32
"""The number of hexadecimal digits in the name of an unpacked recording's folder."""


def unpacked(archive: Path, cache: Path) -> Path:
    """Return the folder with the recording in ``archive``. The first call unpacks the archive below ``cache``.

    The archive may hold the recording directly, or inside a single folder. Raise HostError if the file is not an
    archive, holds anything but folders and plain files, or is too large.
    """
    try:
        if archive.stat().st_size > MAX_PACKED_BYTES:
            raise HostError(f"{archive} is too large for a recording (at most {MAX_PACKED_BYTES >> 20} MiB)")
        target = cache / hashlib.sha256(archive.read_bytes()).hexdigest()[:_DIGITS]
        if target.is_dir():
            return _top(target)
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=cache))
    except OSError as error:
        raise HostError(f"{archive} cannot be unpacked: {error.strerror}", "give an unpacked folder") from error
    try:
        _unpack(archive, unfinished)
        try:
            unfinished.rename(target)
        except OSError:
            # Another process was faster; its copy is equal.
            if not target.is_dir():
                raise
    except (OSError, EOFError, ValueError) as error:
        words = getattr(error, "strerror", None) or "it is not a complete tar archive"
        raise HostError(
            f"{archive} cannot be unpacked: {words}", "give the folder or file that record-host wrote"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return _top(target)


def _top(folder: Path) -> Path:
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() and inside[0].name not in ("proc", "sys") else folder


def _unpack(archive: Path, into: Path) -> None:
    """Unpack ``archive`` into the folder ``into``. Raise HostError if the archive is not a recording. Raise OSError,
    EOFError or ValueError if it cannot be unpacked."""
    import lzma
    import tarfile
    import zlib

    total = 0
    try:
        with tarfile.open(archive) as tar:
            for count, member in enumerate(tar):
                parts = [part for part in member.name.split("/") if part not in ("", ".")]
                if ".." in parts or "\0" in member.name or not (member.isreg() or member.isdir()):
                    name = printable(member.name, NAME)
                    raise HostError(f"{archive} is not a recording: '{name}' in it is not a plain file or folder")
                total += member.size
                if count >= MAX_MEMBERS or member.size > MAX_FILE_BYTES or total > MAX_TOTAL_BYTES:
                    raise HostError(f"{archive} is not a recording: its contents are too large")
                place = into.joinpath(*parts)
                if member.isdir():
                    place.mkdir(parents=True, exist_ok=True)
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                data = tar.extractfile(member)
                file = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
                with os.fdopen(file, "wb") as out:
                    out.write(data.read() if data else b"")
    except (tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise ValueError(str(error)) from error
