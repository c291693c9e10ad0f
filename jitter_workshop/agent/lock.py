"""One agent changes a host at a time: flock(2) on a file in root's own folder, let go by the kernel with its holder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from jitter_workshop.agent.statedir import StateDir, open_or_read
from jitter_workshop.errors import HostError
from jitter_workshop.model.text import clean
from jitter_workshop.tuning.reasons import reason

LOCK_FILE = "lock"
WAIT_S = 5.0
_STEP_S = 0.05


class Busy(HostError):
    """Somebody else holds the lock."""


class HostLock:
    """Taken while something is written, and as long as a lease lives. Not to be read by others (mode 0600): a lock that
    anybody can open is a lock that anybody can take."""

    def __init__(self, folder: StateDir, who: str) -> None:
        """``who``: words about the holder, for those who wait."""
        try:
            self._file = open_or_read(LOCK_FILE, folder.state, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise HostError(f"the lock cannot be used: {reason(error)}", "nothing was changed") from error
        self._who = who
        self.held = False

    def take(self, wait_s: float = WAIT_S) -> None:
        """Take it, or raise Busy, which names the holder after ``wait_s`` seconds."""
        ends = time.monotonic() + wait_s
        while not self.held:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= ends:
                    raise Busy(
                        f"somebody else holds changes to this host: {self._holder()}", "wait until they are done"
                    ) from None
                time.sleep(_STEP_S)
                continue
            self.held = True
            self._label(self._who)

    def release(self) -> None:
        if self.held:
            self._label("")
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.held = False

    def _label(self, who: str) -> None:
        """Words for those who wait; a full or read-only disk must not keep anybody from giving back."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, who.encode()[:200], 0)

    def close(self) -> None:
        self.release()
        os.close(self._file)

    def _holder(self) -> str:
        return clean(os.pread(self._file, 200, 0).decode("utf-8", "replace"), 100) or "another agent"
