"""The folder of root's own files, opened step by step from the top so that no link is followed on the way.

Every folder on the way has to belong to root and be writable by nobody else: who can rename one of them could put a
journal of their own in its place.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from jitter_workshop.errors import HostError
from jitter_workshop.tuning.journal import STATE_DIR
from jitter_workshop.tuning.reasons import reason

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DONE = "done"
"""Below the journal's folder: what was given back altogether, for looking up."""
DAMAGED = "damaged"
"""Below the journal's folder: damaged journals of which everything that can be read was given back."""


def below(folder: int, name: str, path: str, owner: int) -> int:
    """The folder ``name`` below the descriptor ``folder``, made where it is missing: a descriptor for the caller to
    close. ``path``: how it is called in words. Raises HostError."""
    try:
        try:
            found = os.open(name, _FOLDER, dir_fd=folder)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=folder)
            os.fsync(folder)
            found = os.open(name, _FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise HostError(f"{path} is not a folder but a link or a file", "nothing was changed") from error
        raise HostError(f"{path} cannot be used: {reason(error)}", "nothing was changed") from error
    try:
        status = os.fstat(found)
        if status.st_uid != owner:
            raise HostError(f"{path} belongs to user {status.st_uid}, not to root", "nothing was changed")
        if stat.S_IMODE(status.st_mode) & 0o022:
            raise HostError(f"{path} can be written by others than root", f"chmod go-w {path}")
    except BaseException:
        os.close(found)
        raise
    return found


def walk(top: str, path: str, owner: int) -> int:
    """The folder ``path`` below ``top``, opened step by step: a descriptor for the caller to close. Raises HostError,
    OSError where there is no ``top``."""
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    walked = ""
    for name in path.strip("/").split("/"):
        walked += f"/{name}"
        try:
            further = below(folder, name, walked, owner)
        finally:
            os.close(folder)
        folder = further
    return folder


class StateDir:
    """``/var/lib/jitter-workshop`` below ``top``, made where it is missing. ``state`` and ``journal`` are descriptors.

    ``owner``: the user id that must own all of it; 0 on a real host. Raises HostError.
    """

    def __init__(self, top: str = "/", owner: int = 0) -> None:
        self.owner = owner
        self.state = walk(top, STATE_DIR, owner)
        try:
            self.journal = below(self.state, "journal", f"{STATE_DIR}/journal", owner)
        except BaseException:
            os.close(self.state)
            raise

    def subfolder(self, name: str) -> int:
        """A folder below the journal's (DONE, DAMAGED), made where it is missing; the caller closes it. Raises OSError,
        HostError."""
        return below(self.journal, name, f"{STATE_DIR}/journal/{name}", self.owner)

    def settle(self) -> None:
        """Make sure that the folders themselves last: who made them may have been killed before. Raises OSError."""
        os.fsync(self.state)
        above = os.open("..", _FOLDER, dir_fd=self.state)
        try:
            os.fsync(above)
        finally:
            os.close(above)

    def close(self) -> None:
        os.close(self.journal)
        os.close(self.state)


def open_or_read(name: str, folder: int, flags: int, mode: int = 0o600) -> int:
    """A file below the descriptor ``folder`` as ``flags`` say, or on a disk that has become read-only for reading: to
    give back needs no room, and what is then not written down is found as it was before the next time. No link is
    followed. Raises OSError."""
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    return os.open(name, flags & ~(os.O_ACCMODE | os.O_APPEND | os.O_CREAT), dir_fd=folder)
