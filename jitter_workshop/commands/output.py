"""Where a verb's file goes: ``-o FILE`` is whole or not there, ``-o -`` is stdout."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

from jitter_workshop.errors import SessionError, UsageError
from jitter_workshop.model.text import clean

STDOUT = Path("-")

_ADVICE = {
    errno.ENOENT: "that folder does not exist",
    errno.ENOTDIR: "a file stands where a folder should be",
    errno.EISDIR: "name a file in it",
    errno.ENOSPC: "free some space, or choose a file on another disk",
    errno.EDQUOT: "free some space, or choose a file on another disk",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def write(path: Path, content: bytes) -> None:
    """Write a file that was asked for by name, replacing an older one as a whole and keeping its rights.

    A link is followed: what it points to is replaced. Pipes and devices are written to as they are. Raises
    SessionError.
    """
    try:
        place = Path(os.path.realpath(path))
        found = place.stat() if place.exists() else None
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if found is not None and not stat.S_ISREG(found.st_mode):
            place.write_bytes(content)
            return
        from jitter_workshop.session.files import replace

        replace(place, content, 0o666)
        if found is not None:
            place.chmod(stat.S_IMODE(found.st_mode))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        advice = _ADVICE.get(error.errno or 0, "choose another file")
        raise SessionError(f"cannot write {clean(path, 200)}: {reason}", advice) from error


def write_stdout(content: bytes) -> None:
    """Bytes go to a file or a pipe; text to a terminal, too. Raises UsageError for bytes on a terminal."""
    if sys.stdout.isatty():
        try:
            sys.stdout.write(content.decode())
        except UnicodeDecodeError:
            raise UsageError("bytes would disturb this terminal", "send them to a file or a pipe: -o FILE") from None
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
