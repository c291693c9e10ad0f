"""Open the folder of root's own files one level at a time, without following links.

Each folder on the path must belong to root, and only root may write to it. Otherwise another user could replace a
folder on the path by a folder with false journals.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from jitter_workshop.errors import HostError, reason
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.tuning.journal import STATE_DIR

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
DONE = "done"
"""The subfolder for journals whose changes are all restored; they are kept for reference."""
DAMAGED = "damaged"
"""The subfolder for damaged journals, after everything readable in them was restored."""


def open_folder_below(folder: int, name: str, path: str, owner: int) -> int:
    """Return a descriptor of the folder ``name`` below the descriptor ``folder``. If there is no such folder, make it.
    The caller closes the descriptor.

    ``path``: the folder's name for messages. Raise HostError on failure.
    """
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
            raise HostError(f"{path} can be written by users other than root", f"chmod go-w {path}")
    except BaseException:
        os.close(found)
        raise
    return found


def open_below(top: str, path: str, owner: int) -> int:
    """Return a descriptor of the folder ``path`` below ``top``, opened step by step. The caller closes the descriptor.

    Raise OSError if there is no ``top``. Raise HostError on any other failure.
    """
    folder = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    walked = ""
    for name in path.strip("/").split("/"):
        walked += f"/{name}"
        with closed_after(folder):
            folder = open_folder_below(folder, name, walked, owner)
    return folder


class StateDir:
    """Hold the folder ``/var/lib/jitter-workshop`` below ``top``, and make it if it is missing. ``state`` and
    ``journal`` are descriptors of this folder and of its subfolder for journals.

    ``owner``: the user id that must own both folders; 0 on a real host. Raise HostError on failure.
    """

    def __init__(self, top: str = "/", owner: int = 0) -> None:
        self.owner = owner
        self.state = open_below(top, STATE_DIR, owner)
        try:
            self.journal = open_folder_below(self.state, "journal", f"{STATE_DIR}/journal", owner)
        except BaseException:
            os.close(self.state)
            raise

    def subfolder(self, name: str) -> int:
        """Return a descriptor of the subfolder ``name`` (DONE or DAMAGED) for journals, and make it if it is missing.
        The caller closes the descriptor. Raise OSError or HostError on failure."""
        return open_folder_below(self.journal, name, f"{STATE_DIR}/journal/{name}", self.owner)

    def sync_folders(self) -> None:
        """Sync the state folder and its parent folder to the disk. Raise OSError on failure.

        An earlier process may have made these folders without syncing them.
        """
        os.fsync(self.state)
        with closed_after(os.open("..", _FOLDER, dir_fd=self.state)) as above:
            os.fsync(above)

    def close(self) -> None:
        os.close(self.journal)
        os.close(self.state)


def open_or_read(name: str, folder: int, flags: int, mode: int = 0o600) -> int:
    """Open a file in ``folder`` with ``flags``, and return the file's descriptor.

    If the disk is read-only, open the file read-only, because a restore must also work there. No link is followed.
    Raise OSError on failure.
    """
    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
    return os.open(name, flags & ~(os.O_ACCMODE | os.O_APPEND | os.O_CREAT), dir_fd=folder)
