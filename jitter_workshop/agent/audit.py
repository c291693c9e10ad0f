"""Log each change on a class host as one JSON object a line.

Each line has the user and the time. There are three logs: one of changes, one of refusals, and one of turns. Only root
may read them. A turn is the time in which one user may change the host. Many refusals or turns of one user cannot push
changes out of the log of changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from typing import Any

from jitter_workshop.agent.statedir import StateDir
from jitter_workshop.model.descriptor import closed_after
from jitter_workshop.model.text import SENTENCE, clean

CHANGES = "audit.jsonl"
"""The log of changes: applied and restored settings, failures, and actions of an instructor."""
TURNS = "turns.jsonl"
REFUSALS = "refusals.jsonl"
MAX_BYTES = 8 << 20
"""Size limit of each log. A log that is full is renamed: its name gets the ending ``.1``, and an older log of this name
is lost."""

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class AuditLog:
    """Append lines to the three audit logs.

    A line that cannot be written is dropped, so that a failing log does not stop a restore.
    """

    def __init__(self, folder: StateDir, user: str, uid: int) -> None:
        self._folder = folder
        self._who = {"user": user, "uid": uid}

    def note(self, log: str, what: str, **more: Any) -> None:
        """Append a line to ``log``: the time, the user, the event ``what``, and ``more`` fields about it."""
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        words = {key: clean(value, SENTENCE) if isinstance(value, str) else value for key, value in more.items()}
        line = json.dumps({"at": at, **self._who, "what": what, **words}, separators=(",", ":")).encode() + b"\n"
        with contextlib.suppress(OSError), closed_after(self._opened(log, len(line))) as file:
            os.write(file, line)

    def _opened(self, name: str, room: int) -> int:
        """Open the log ``name``, lock it, and return its descriptor. The log has room for ``room`` more bytes.

        A full log is first renamed with the ending ".1", and a new log begins. Raise OSError on failure.
        """
        folder = self._folder.state
        while True:
            file = os.open(name, _FLAGS, 0o600, dir_fd=folder)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                mine = os.fstat(file)
                if _same(mine, name, folder):
                    if mine.st_size + room <= MAX_BYTES or not mine.st_size:
                        return file
                    os.rename(name, f"{name}.1", src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                os.close(file)
                raise
            os.close(file)


def _same(file: os.stat_result, name: str, folder: int) -> bool:
    """Return True if ``name`` in ``folder`` is the file whose status is ``file``; False if ``name`` is missing."""
    try:
        return os.path.samestat(file, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return False
