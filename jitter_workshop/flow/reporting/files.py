"""Choose names for the files of a report or a chart, and write them. Each file is written completely or not at all.

An existing file is overwritten only with ``force``. A symbolic link at the report's own path is never followed, even
with ``force``: the link may point to an important file. Symbolic links in the folders above the report's path are
followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from jitter_workshop.errors import WorkshopError
from jitter_workshop.model.report import ReportDocument
from jitter_workshop.model.text import PATH, clean, day
from jitter_workshop.paths import APP

NAME_LIMIT = 40
_TEMPORARY = f".{APP}-new-"
_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space, or write elsewhere with -o",
    errno.EDQUOT: "your disk quota is used up: free some space, or write elsewhere with -o",
    errno.EROFS: "name a file in another folder with -o",
    errno.EACCES: "name a file in a folder of your own with -o",
    errno.EPERM: "name a file in a folder of your own with -o",
    errno.ENOENT: "make the folder first, or name a file in another folder with -o",
    errno.ENOTDIR: "a part of this path is a file, not a folder: name a file in another folder with -o",
    errno.ENAMETOOLONG: "choose a shorter name with -o",
    errno.EFBIG: "name a file in another folder with -o",
}
_THERE = "replace it with --force, or name another file with -o"
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS)


class NotWritten(WorkshopError):
    """Report that a file could not be written. No partial file is left on the disk."""

    title = "The file is not written"


def default_name(document: ReportDocument, ending: str) -> str:
    """Return ``jitter-workshop-SESSION-DATE.html``. SESSION is made from the session's name, and has only letters,
    digits and dashes."""
    return name_of(document.session_name, document.session_id, document.made_at, ending)


def name_of(session_name: str, session_id: str, made_at: str, ending: str) -> str:
    """Return the default name for a report's file before the report is built. For the built report,
    :func:`default_name` returns the same name. ``made_at``: the time of the report. ``ending``: the file name's ending,
    with its dot.
    """
    plain = unicodedata.normalize("NFKD", session_name).encode("ascii", "ignore").decode("ascii")
    slug = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-").lower()[:NAME_LIMIT].strip("-") or session_id
    date = day(made_at)
    return f"{APP}-{slug}{'' if slug.endswith(date) else f'-{date}'}{ending}"


def free(path: Path) -> Path:
    """Return ``path`` if no file exists there. Otherwise return the first free path of ``NAME-2.html``,
    ``NAME-3.html``, …"""
    stem, dot, rest = path.name.partition(".")
    number = 1
    found = path
    while os.path.lexists(found):
        number += 1
        found = path.with_name(f"{stem}-{number}{dot}{rest}")
    return found


def write_files(files: dict[str, bytes], folder: Path, *, force: bool = False) -> tuple[Path, ...]:
    """Write all of ``files`` (name → content) into a folder, or none of them, and return their paths. Raise NotWritten
    on failure, or if a file exists already and ``force`` is False."""
    targets = [folder / name for name in files]
    for target in targets:
        check_target(target, force)
    made: list[tuple[Path, Path]] = []
    placed: list[Path] = []
    try:
        for target, content in zip(targets, files.values(), strict=True):
            temporary = folder / f"{_TEMPORARY}{secrets.token_hex(6)}"
            made.append((temporary, target))
            with _explained(target):
                _fill(temporary, content)
        for temporary, target in made:
            with _explained(target):
                _place(temporary, target, force)
            if not force:
                placed.append(target)
    except BaseException:
        for path in placed:
            with contextlib.suppress(OSError):
                path.unlink()
        raise
    finally:
        for temporary, _ in made:
            with contextlib.suppress(OSError):
                temporary.unlink()
    return tuple(targets)


def check_target(target: Path, force: bool) -> None:
    """Raise NotWritten if a file cannot be written to ``target``. Call this function before the report is built,
    because building may take long."""
    shown = clean(target, PATH)
    if not target.name or target.name in (".", ".."):
        raise NotWritten(f"'{shown}' is not a file name", "name a file with -o")
    with _explained(target):
        try:
            there = target.lstat()
        except FileNotFoundError:
            if target.parent.is_dir():
                return
            raise
    if stat.S_ISLNK(there.st_mode):
        place = "something"
        with contextlib.suppress(OSError):
            place = str(target.readlink())
        told = f"{shown} is a link to {clean(place, PATH)}, and links are not followed"
        raise NotWritten(told, "name the file itself, or remove the link")
    if stat.S_ISDIR(there.st_mode):
        raise NotWritten(f"{shown} is a folder", "name a file in this folder with -o")
    if not stat.S_ISREG(there.st_mode):
        raise NotWritten(f"{shown} is not a regular file", "'-o -' writes to standard output")
    if not force:
        raise NotWritten(f"{shown} exists already", _THERE)


def _fill(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)


def _place(temporary: Path, target: Path, force: bool) -> None:
    """Rename a finished file to ``target``. Without ``force``, raise FileExistsError if ``target`` exists, even if
    another program made this file while the report was built."""
    if force:
        temporary.replace(target)
        return
    try:
        os.link(temporary, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # On a file system without hard links (FAT, some network shares), make an empty file first, then replace it.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
        temporary.replace(target)


@contextlib.contextmanager
def _explained(target: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise NotWritten(f"{clean(target, PATH)} exists already", _THERE) from error
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        advice = _ADVICE.get(error.errno or 0, "name another file with -o")
        raise NotWritten(f"cannot write {clean(target, PATH)}: {reason}", advice) from error
    except ValueError as error:  # a NUL in the name
        raise NotWritten(f"{clean(target, PATH)} is not a file name", "name another file with -o") from error
