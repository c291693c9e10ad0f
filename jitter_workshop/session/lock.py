"""Allow one writer per session, by an flock that ends with its holder, so there are no stale locks to break."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path

LOCK_NAME = "lock"


class SessionLock:
    """Hold an exclusive flock on a session's ``lock`` file. ``holder``: the process that has it instead of us, in
    words; "" where none has."""

    def __init__(self, folder: Path) -> None:
        self._handle: int | None = None
        self.holder = ""
        self._path = folder / LOCK_NAME

    def take(self) -> bool:
        """Take the lock without waiting; return False (and set ``holder``) where another process has it. Raise
        OSError."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.holder = _holder(handle)
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        # The lock is held even if a full disk leaves no room to write our pid.
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid()}).encode(), 0)
        self._handle = handle
        return True

    def release(self) -> None:
        """Release the lock; harmless when not held."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _holder(handle: int) -> str:
    try:
        return f"another workshop (pid {int(json.loads(os.pread(handle, 200, 0))['pid'])})"
    except (ValueError, KeyError, TypeError, OSError):
        return "another workshop"
