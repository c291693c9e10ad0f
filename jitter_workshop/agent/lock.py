"""Let only one agent at a time change a host, by flock(2) on a file in root's own folder. The kernel releases the lock
when its holder ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from jitter_workshop.agent.statedir import StateDir, open_or_read
from jitter_workshop.errors import HeldError, HostError, reason
from jitter_workshop.model.text import LINE, clean

LOCK_FILE = "lock"
WAIT_S = 5.0
_STEP_S = 0.05
_HOLDS = "holds: "
"""The beginning of a label: the holder has made its writes, and keeps the changes."""
_MOST_BYTES = 200
"""The largest number of bytes that the lock's file holds."""


class HostLock:
    """Hold the host's lock during writes and during a lease.

    Other users must not be able to open the lock's file (mode 0600), because a user who can open the file can take the
    lock.
    """

    def __init__(self, folder: StateDir, who: str) -> None:
        """Open the lock's file, without taking the lock. ``who``: a description of this agent, for agents that wait.

        Raise HostError on failure.
        """
        try:
            self._file = open_or_read(LOCK_FILE, folder.state, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise HostError(
                f"the lock on changes to this host cannot be taken: {reason(error)}", "nothing was changed"
            ) from error
        self._who = who
        self.held = False

    def take(self, wait_s: float = WAIT_S) -> None:
        """Take the lock. Raise HeldError if another agent still has the lock after ``wait_s`` seconds. The error names
        that agent."""
        ends = time.monotonic() + wait_s
        while not self.held:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= ends:
                    raise self._busy() from None
                time.sleep(_STEP_S)
                continue
            self.held = True
            self._label(self._who)

    def keep(self, who: str) -> None:
        """Write into the lock's file that ``who`` needs the lock for a lease. Agents that wait show this text."""
        if self.held:
            self._label(f"{_HOLDS}{who}")

    def _busy(self) -> HeldError:
        holder = self._holder()
        if (who := holder.removeprefix(_HOLDS)) != holder:
            return HeldError(
                f"a running workshop ({who}) has changed this host", "press u in that workshop, or end that workshop"
            )
        return HeldError(f"{holder} is changing this host", "wait until this change is finished")

    def release(self) -> None:
        if self.held:
            self._label("")
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self.held = False

    def _label(self, who: str) -> None:
        """Write ``who`` into the lock's file, for agents that wait. An error of the disk is ignored, because a restore
        must go on."""
        with contextlib.suppress(OSError):
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, who.encode()[:_MOST_BYTES], 0)

    def close(self) -> None:
        self.release()
        os.close(self._file)

    def _holder(self) -> str:
        return clean(os.pread(self._file, 200, 0).decode("utf-8", "replace"), LINE) or "another agent"
