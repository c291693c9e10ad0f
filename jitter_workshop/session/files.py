"""Write files so that each file is either complete or absent. A file gets its final name only when all of it is on the
disk. The message of each error is one sentence.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from jitter_workshop.errors import SessionError, WorkshopError
from jitter_workshop.model.codec import from_plain, parse_object
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.text import NAME, PATH, REASON, clean
from jitter_workshop.session import ids

T = TypeVar("T")

MAX_JSON_BYTES = 64 * 1024 * 1024
TEMPORARY_PREFIX = ".new-"
"""The prefix of unfinished files that a dead process left; the next writer removes them."""
_NAME_KEPT = 200
"""The number of characters of a file's name that its unfinished file keeps. Linux allows names of 255 bytes."""

_ADVICE = {
    errno.ENOSPC: "the disk is full: free some space",
    errno.EDQUOT: "your disk quota is used up: free some space",
    errno.EROFS: "the file system is read-only: set XDG_STATE_HOME to a folder that can be written",
    errno.EACCES: "no right to write there: set XDG_STATE_HOME to a folder of your own",
    errno.EPERM: "no right to write there: set XDG_STATE_HOME to a folder of your own",
    errno.ENOTDIR: "a file is in the way: set XDG_STATE_HOME to a folder of your own",
    errno.ENOENT: "no file can be made there: set XDG_STATE_HOME to a folder of your own",
    errno.ENAMETOOLONG: "a name has at most 255 bytes, a path 4,095: set XDG_STATE_HOME to a shorter folder",
    errno.EEXIST: "a file is in the way: set XDG_STATE_HOME to a folder of your own",
}


class NewerVersion(Exception):
    """Report that a later version of the workshop wrote a file."""


def is_newer(value: Any, known: int) -> bool:
    """Return True if a later version of the workshop wrote this JSON object."""
    version = value.get("format_version") if isinstance(value, dict) else None
    return isinstance(version, int) and version > known


@contextlib.contextmanager
def name_os_errors(
    what: str, path: Path, kind: type[WorkshopError] = SessionError, advice: str | None = None
) -> Iterator[None]:
    """Turn an OSError into an error of class ``kind``. The error says ``cannot <what> <path>: <reason>; <advice>``.
    ``advice``: None for the usual advice on this OSError."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        known = _ADVICE.get(error.errno or 0, "check the path")
        raise kind(f"cannot {what} {clean(path, PATH)}: {reason}", known if advice is None else advice) from error


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, for this user only. Raise SessionError if that fails."""
    with name_os_errors("make the folder", path):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file: readers see the old content or the new one, also after a power cut. Raise SessionError if that
    fails."""
    with name_os_errors("write", path):
        replace(path, content, 0o600)


def replace(path: Path, content: bytes, mode: int) -> None:
    """Replace a file as :func:`write_whole` does. ``mode``: the file's rights, whatever the umask is. Raise OSError on
    failure."""
    temporary = path.with_name(f"{TEMPORARY_PREFIX}{path.name[:_NAME_KEPT]}-{os.urandom(4).hex()}")
    try:
        with _create(temporary, mode) as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            _sync(file)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def write_folder(folder: Path, files: Mapping[str, bytes | Callable[[BinaryIO], object]]) -> None:
    """Make a folder with all its files, or make nothing. ``files``: path below the folder → content, or a function that
    writes the content. Raise SessionError if that fails."""
    temporary = folder.with_name(f"{TEMPORARY_PREFIX}{folder.name}")
    below = sorted({parent for path in files for parent in Path(path).parents})
    with name_os_errors("write", folder):
        try:
            shutil.rmtree(temporary, ignore_errors=True)
            for inner in below:
                (temporary / inner).mkdir(mode=0o700)
            for path, content in files.items():
                with _create(temporary / path) as file:
                    if callable(content):
                        content(file)
                    else:
                        file.write(content)
                    _sync(file)
            for inner in below:
                sync_folder(temporary / inner)
            temporary.rename(folder)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(folder.parent)


def write_json(path: Path, value: Any) -> None:
    """Replace a file's content by a JSON object. Raise SessionError if that fails."""
    write_whole(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """Return readable JSON with a final newline."""
    return json.dumps(value, indent=1, allow_nan=False).encode("ascii") + b"\n"


def json_line(value: Any) -> bytes:
    """Return JSON on one line. Use it for large data: the text is shorter than that of :func:`json_bytes`."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file. Raise OSError if the file cannot be read, ValueError if it is no JSON
    object."""
    with path.open("rb") as file:
        raw = file.read(MAX_JSON_BYTES + 1)
    if len(raw) > MAX_JSON_BYTES:
        raise ValueError("the file is too large")
    return parse_object(raw)


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read. Raise OSError for anything else, because opening a pipe or a device could wait
    forever."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(handle, "rb")


def set_aside(path: Path) -> Path | None:
    """Rename a damaged file to the first free ``NAME.damaged-N`` and return the new path; None if the file cannot be
    renamed."""
    for number in range(1, 1000):
        target = path.with_name(f"{path.name}.damaged-{number}")
        if not os.path.lexists(target):
            try:
                path.rename(target)
            except OSError:
                return None
            return target
    return None


def put_aside(path: Path, may: bool) -> str:
    """Rename a damaged file, but only if ``may`` is True. Return words that say if the file was renamed."""
    target = set_aside(path) if may else None
    return f"set aside as {clean(target.name)}" if target else "left where it is"


def read_each(
    folder: Path, kind: type[T], what: str, newest: int, check: Callable[[T, str], object], *, may_rename: bool
) -> tuple[list[tuple[Path, T]], list[str]]:
    """Return the items in a folder that has a JSON file ``ID.json`` for each item.

    The result is (file, item) pairs in the order of file names, and notices for the user. A notice names each file that
    is damaged, unreadable or of a newer version; such files are left out. A damaged file is also renamed if
    ``may_rename`` is True. ``what``: the name of an item in notices. ``newest``: the latest known format version.
    ``check``: a function of an item and the id in its file's name. It raises ValueError if the item cannot be right.
    """
    found, notices = list[tuple[Path, T]](), list[str]()
    try:
        paths = sorted(e for e in folder.iterdir() if e.suffix == ".json" and ids.is_folder_id(e.stem))
    except OSError:
        return found, notices
    for path in paths:
        shown = clean(path.stem, NAME)
        try:
            value = read_json(path)
            if is_newer(value, newest):
                notices.append(f"{what} {shown} was written by a newer version and is left out")
                continue
            one = from_plain(kind, value)
            check(one, path.stem)
            found.append((path, one))
        except OSError as error:
            notices.append(f"{what} {shown} cannot be read: {(error.strerror or 'unreadable').lower()}")
        except ValueError as error:
            notices.append(f"{what} {shown} is damaged ({clean(error, REASON)}) and is {put_aside(path, may_rename)}")
    return found, notices


def remove_unfinished(folder: Path) -> None:
    """Remove unfinished files. A process wrote them under temporary names, and ended before they were complete. The
    caller must hold the session's lock.
    """
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.name.startswith(TEMPORARY_PREFIX):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut. Do nothing on a file system that cannot sync folders."""
    with closed_after(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as handle:
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise


def _create(path: Path, mode: int = 0o600) -> BinaryIO:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    return os.fdopen(handle, "wb")


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
